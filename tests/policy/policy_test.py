"""Rules of the house that no compiler checks. Usage: policy_test.py REPOSITORY"""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
folders = ["compiler", "runtime", "kernels", "tests", "tools", "docs", "cmake"]
sources = {".h", ".cpp", ".td", ".py", ".sh"}
failures = []


def files(*parts, suffixes=sources):
    for part in parts or folders:
        for path in sorted((root / part).rglob("*")):
            if path.is_file() and path.suffix in suffixes and "__pycache__" not in path.parts:
                yield path


def fail(path, line, what):
    failures.append(f"{path.relative_to(root)}:{line}: {what}")


def lines(path):
    return enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)


# A program without MLIR finds and runs its kernels: the runtime never includes the compiler's side.
for path in files("runtime"):
    for number, line in lines(path):
        if re.match(r'\s*#\s*include\s*[<"](mlir|llvm|compiler)/', line):
            fail(path, number, "runtime/ includes the compiler's side")

# The environment is read by tools, and by the one function that finds the default cache folder.
reads = []
for path in files("compiler", "runtime", suffixes={".h", ".cpp"}):
    reads += [(path, number) for number, line in lines(path) if re.search(r"\bgetenv\s*\(", line)]
if not reads:
    failures.append("no getenv in runtime/: this test looks for the wrong thing")
for path, number in reads:
    if path.name != "Cache.cpp":
        fail(path, number, "getenv below tools/")

# A file a reader can hold in mind.
for path in files():
    count = sum(1 for _ in lines(path))
    if count > 600:
        fail(path, count, f"{count} lines, more than 600")

# The README's two commands are there and can be run.
readme = (root / "README.md").read_text(encoding="utf-8")
for script in ["tools/quickstart.sh", "tools/test.sh"]:
    if script not in readme:
        failures.append(f"README.md does not name {script}")
    if not (root / script).stat().st_mode & 0o111:
        failures.append(f"{script} cannot be executed")

# Links between documents lead somewhere.
for path in [root / "README.md", *files("docs", suffixes={".md"})]:
    for number, line in lines(path):
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", line):
            if not (path.parent / target).exists():
                fail(path, number, f"links to {target}, which is not there")

print("\n".join(failures) or "every rule holds")
sys.exit(1 if failures else 0)
