"""The command line itself: help, versions, mistakes, exit codes, and docs/cli.md."""

import json
import os
import re
import resource
import subprocess
import time

from harness import FAKE_NVRTC, MOEJIT, ROOT, CliTest, grouped, main

COMMANDS = ("check", "compile", "run", "bench", "tune", "explain", "aot", "cache", "doctor")


class Usage(CliTest):
    def test_help_teaches(self):
        text = self.moejit("--help").out
        for command in COMMANDS:
            self.assertRegex(text, rf"(?m)^  {command} +[A-Z]")
        self.assertIn("Exit codes:", text)
        self.assertEqual(self.moejit("help").out, text)
        for command in COMMANDS:
            help_text = self.moejit(command, "--help").out
            for part in (f"Usage: moejit {command} ", "Options:", "Exit codes:\n  0  ", "Examples:\n"):
                self.assertIn(part, help_text)
            self.assertEqual(self.moejit("help", command).out, help_text)
            self.assertEqual(self.moejit(command, "-h").out, help_text)
            self.assertLessEqual(max(map(len, help_text.splitlines())), 100)

    def test_version(self):
        self.assertRegex(self.moejit("--version").out, r"^moejit \d+\.\d+\.\d+ \(generator [0-9a-f]{12}, ")

    def test_nothing_is_usage(self):
        done = self.moejit(expect=2)
        self.assertEqual(done.out, "")
        self.assertIn("Usage: moejit", done.err)

    def test_mistakes_name_the_nearest(self):
        for words, hint in ((["complie"], "did you mean 'compile'?"),
                            (["compile", "a.mlir", "--emti", "tile"], "did you mean '--emit'?"),
                            (["compile", "a.mlir", "--emit", "cudaa"], "Did you mean 'cuda'?"),
                            (["run", "a.mlir", "--token", "4"], "did you mean '--tokens'?"),
                            (["run", "a.mlir", "--divice=gpu"], "did you mean '--device'?"),
                            (["run", "a.mlir", "--device", "cpu"], "auto, gpu, emulator")):
            done = self.moejit(*words, expect=2)
            self.assertTrue(done.err.startswith("error: "), done.err)
            self.assertIn(hint, done.err)
            self.assertEqual(done.out, "")
        self.assertNotIn("did you mean", self.moejit("compile", "--zzzzzzzzzz", expect=2).err)

    def test_values_are_checked(self):
        for words in (["compile", "--emit"], ["compile", "a", "b"], ["compile"], ["compile", "--json=1"],
                      ["run", "a", "--tokens", "many"], ["run", "a", "--tokens", "-1"],
                      ["run", "a", "--tokens", "99999999999"], ["compile", "a", "-o", "f"],
                      ["compile", "a", "--rows", "1e3"], ["aot", "a", "--jobs", "0"]):
            self.assertIn("error: ", self.moejit(*words, expect=2).err)
        done = self.moejit("compile", "--emit", "--json", expect=2)
        self.assertEqual(done.json()["error"]["code"], "invalid-argument")

    def test_words_after_two_dashes_are_files(self):
        done = self.moejit("compile", "--", "--emit", expect=2)
        self.assertIn("cannot read --emit", done.err)

    def test_explain(self):
        rules = self.moejit("explain", "--json").json()["rules"]
        self.assertEqual(rules[0]["id"], "MJ001")
        listing = self.moejit("explain").out
        for rule in rules:
            self.assertIn(rule["id"], listing)
            text = self.moejit("explain", rule["id"]).out
            for part in ("id", "summary", "reason", "remedy"):
                self.assertIn(rule[part], text)
        self.assertEqual(self.moejit("explain", "mj001", "--json").json(), rules[0])
        self.assertIn("MJ001", self.moejit("explain", "MJ999", expect=2).err)

    def test_full_disks_are_told(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([MOEJIT, "--help"], stdout=full, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"cannot write to stdout", done.stderr)

    def test_help_of_nothing_is_a_mistake(self):
        for words in (["help", "complie"], ["--help", "complie"]):
            done = self.moejit(*words, expect=2)
            self.assertIn("did you mean 'compile'?", done.err)
            self.assertEqual(done.out, "")

    def test_closed_streams_are_no_files(self):
        _, count = self.counting("compile", self.write("a.mlir", grouped()), "--rows", 0, "--no-cache")
        self.assertEqual(count, 1)
        self.environment["FAKE_NVRTC_SLEEP_MS"] = "2500"
        process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" >&- 2>&-', MOEJIT, "compile", "a.mlir", "--rows", "0",
                                    "--cache", "kept", "--nvrtc", FAKE_NVRTC], cwd=self.folder, env=self.environment)
        # Progress is said after a second: to nobody, and not into a file that took the stream's number.
        time.sleep(1.8)
        locks = {path.name: path.read_text() for path in (self.folder / "kept").glob("*.lock")}
        self.assertEqual(list(locks.values()), [""])
        self.assertEqual(process.wait(), 3)  # stdout took nothing
        self.assertEqual(self.moejit("compile", "a.mlir", "--rows", 0, "--cache", "kept", "--json").json()["compiled"], 0)

    def test_want_of_memory_is_told_in_json_too(self):
        big = self.write("config.json", '{"a": [' + ",".join(['{"aaaaaaaaaaaaa": 1}'] * 900_000) + "]}")
        little = lambda: resource.setrlimit(resource.RLIMIT_AS, (100 << 20, 100 << 20))
        if subprocess.run([MOEJIT, "--version"], capture_output=True, preexec_fn=little).returncode:
            self.skipTest("sanitizers take more address space than that")
        done = subprocess.run([MOEJIT, "check", big, "--json"], capture_output=True, text=True, preexec_fn=little)
        self.assertEqual(done.returncode, 3, done.stderr)
        self.assertEqual(json.loads(done.stdout)["error"], {"code": "unavailable", "message": "out of memory", "notes": []})
        self.assertEqual(done.stderr, "error: out of memory\n")

    def test_a_user_without_threads_gets_the_same(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.folder.chmod(0o777)

        def alone():
            resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
            if os.geteuid() == 0:  # whom the limit does not bind
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
        try:
            done = subprocess.run([MOEJIT, "aot", *files, "-o", "made", "--jobs", "4", "--json"], cwd=self.folder,
                                  env=self.environment, capture_output=True, text=True, preexec_fn=alone)
        except PermissionError:
            self.skipTest("the program lies where nobody may run it")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(json.loads(done.stdout)["closed"])

    def test_a_pipe_that_does_not_block_gets_everything(self):
        words = [MOEJIT, "check", str(ROOT / "tests/cases/configs"), "--json"]
        whole = subprocess.run(words, capture_output=True)
        self.assertGreater(len(whole.stdout), 1 << 17)  # more than a pipe holds
        end, beginning = os.pipe()
        os.set_blocking(beginning, False)
        process = subprocess.Popen(words, stdout=beginning, stderr=subprocess.DEVNULL)
        os.close(beginning)
        time.sleep(1)
        with os.fdopen(end, "rb") as pipe:
            self.assertEqual(pipe.read(), whole.stdout)
        self.assertEqual(process.wait(), whole.returncode)

    def test_the_manual_has_every_option(self):
        manual = (ROOT / "docs/cli.md").read_text()
        for command in COMMANDS:
            self.assertIn(f"## moejit {command}", manual)
            section = manual.split(f"## moejit {command}", 1)[1].split("\n## ")[0]
            help_text = self.moejit(command, "--help").out
            for option in re.findall(r"(?m)^  (--?[a-z-]+)", help_text):
                if option != "--help" and f"`{option}" not in section + manual.split("## Common", 1)[1]:
                    self.fail(f"docs/cli.md does not tell of {command} {option}")

    def test_the_binary_is_self_contained(self):
        needs = subprocess.run(["objdump", "-p", MOEJIT], capture_output=True, text=True, check=True).stdout
        libraries = re.findall(r"NEEDED +(\S+)", needs)
        self.assertFalse([name for name in libraries if re.search("LLVM|MLIR|fmt|stdc|cuda|nvrtc|z", name)])
        versions = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_(2\.\d+)", needs)}
        self.assertLessEqual(max(versions), (2, 34))
        symbols = subprocess.run(["nm", "-D", "--defined-only", MOEJIT], capture_output=True, text=True).stdout
        exported = [line.split()[-1] for line in symbols.splitlines() if line.split()[1] in "TDBRVW"]
        self.assertFalse([name for name in exported if "llvm" in name or "mlir" in name or "moejit" in name])


if __name__ == "__main__":
    main()
