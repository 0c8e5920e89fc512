"""What the generator's fingerprint follows, and what it does not (sglang#34274). Usage: fingerprint_test.py CMAKE SCRIPT"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CMAKE, SCRIPT = sys.argv[1:3]

TREE = {
    "compiler/Compile.cpp": '#include "compiler/dialect/Ops.h"\nint compile();\n',
    "compiler/dialect/Ops.h": '#include "runtime/Plan.h"\n',
    "compiler/dialect/Ops.td": "def Op;\n",
    "runtime/Plan.h": '#pragma once\n  #  include "runtime/Spec.h"\n',
    "runtime/PlanText.cpp": '#include "runtime/Plan.h"\n#include "runtime/Text.h"\n',
    "runtime/Spec.h": "struct Spec;\n",
    "runtime/Spec.cpp": "struct Spec {};\n",
    "runtime/Text.h": "int text;\n",
    "runtime/Cache.h": '#include "runtime/Spec.h"\n',
    "runtime/Cache.cpp": "int cache;\n",
    "README.md": "words\n",
    "compiler/notes.md": "words\n",
    "tests/Test.cpp": "int test;\n",
}


class Fingerprint(unittest.TestCase):
    """sglang#34274: the key followed 8 of 1112 files that the compiler read."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.root = pathlib.Path(holder.name)

    def make(self, name, changes=None):
        tree = self.root / name
        for path, text in {**TREE, **(changes or {})}.items():
            if text is None:
                continue
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(text)
        return tree

    def of(self, tree):
        output = self.root / "fingerprint.h"
        subprocess.run([CMAKE, f"-DSOURCE={tree}/compiler", f"-DOUTPUT={output}", "-P", SCRIPT], check=True)
        return output.read_text()

    def test_every_file_that_makes_kernels_counts(self):
        seen = {self.of(self.make("plain"))}
        for path in ["compiler/Compile.cpp", "compiler/dialect/Ops.h", "compiler/dialect/Ops.td", "runtime/Plan.h",
                     "runtime/PlanText.cpp", "runtime/Spec.h", "runtime/Spec.cpp", "runtime/Text.h"]:
            with self.subTest(path):
                found = self.of(self.make(path.replace("/", "-"), {path: TREE[path] + "// more\n"}))
                self.assertNotIn(found, seen)
                seen.add(found)
        found = self.of(self.make("new", {"compiler/passes/New.cpp": "int made;\n"}))
        self.assertNotIn(found, seen)
        found = self.of(self.make("gone", {"runtime/Spec.cpp": None}))
        self.assertNotIn(found, seen)

    def test_nothing_else_does(self):
        plain = self.make("plain")
        wanted = self.of(plain)
        for path in ["runtime/Cache.h", "runtime/Cache.cpp", "README.md", "compiler/notes.md", "tests/Test.cpp"]:
            with self.subTest(path):
                changed = self.make(path.replace("/", "-"), {path: TREE[path] + "// more\n"})
                self.assertEqual(self.of(changed), wanted)
        self.assertEqual(self.of(self.make("another place/of a user")), wanted)
        for path in plain.rglob("*"):
            os.utime(path, (1, 1))
        self.assertEqual(self.of(plain), wanted)

    def test_the_files_of_this_project(self):
        compiler = pathlib.Path(SCRIPT).resolve().parents[1] / "compiler"
        listed = self.root / "list"
        subprocess.run([CMAKE, f"-DSOURCE={compiler}", f"-DOUTPUT={self.root}/out.h", f"-DLIST={listed}", "-P", SCRIPT],
                       check=True)
        names = {line.split()[0] for line in listed.read_text().splitlines()}
        for name in ["Compile.cpp", "emit/CudaPrinter.cpp", "dialect/ptx/PtxInstructions.td", "../runtime/Plan.cpp",
                     "../runtime/Checks.h", "../runtime/Spec.cpp"]:
            self.assertIn(name, names)
        self.assertNotIn("../runtime/Cache.cpp", names)


unittest.main(argv=sys.argv[:1])
