"""Runs moejit in a folder of its own, and counts what NVRTC compiles."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

MOEJIT = os.environ["MOEJIT"]
FAKE_NVRTC = os.environ["FAKE_NVRTC"]
ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels"

HEADER = """#x = #moe.scales<granule = {x_granule}, source = {source}{x_layout}>
#w = #moe.scales<granule = {w_granule}>
"""
GROUPED = HEADER + """
moe.kernel @{name}(%x: tensor<?x{k}xf8E4M3FN, #x>, %offsets: tensor<{boundaries}xi32>,
                   %w: tensor<{experts}x{n}x{k}xf8E4M3FN, #w>) -> tensor<?x{n}x{out}> {{
  %y = moe.gemm grouped(%x, %offsets, %w)
     : tensor<?x{k}xf8E4M3FN, #x>, tensor<{boundaries}xi32>, tensor<{experts}x{n}x{k}xf8E4M3FN, #w>
       -> tensor<?x{n}x{out}>
  moe.return %y : tensor<?x{n}x{out}>
}}
"""


def grouped(experts=3, n=256, k=256, out="bf16", x_granule="[1, 128]", w_granule="[1, 128, 128]",
            source="dynamic", x_layout=", order = mn_major, align = 16", name="gemm"):
    """The text of a grouped kernel."""
    return GROUPED.format(experts=experts, boundaries=experts + 1, n=n, k=k, out=out,
                          x_granule=x_granule, w_granule=w_granule, source=source,
                          x_layout=x_layout, name=name)


class Done:
    """What a finished command left."""

    def __init__(self, process):
        self.code = process.returncode
        self.bytes = process.stdout
        self.out = process.stdout.decode(errors="replace")
        self.err = process.stderr.decode(errors="replace")

    def json(self):
        return json.loads(self.out)


class CliTest(unittest.TestCase):
    """A test in an empty folder that is also HOME; kernels are kept below it."""

    maxDiff = None

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.log = self.folder / "nvrtc.log"
        self.environment = {"HOME": str(self.folder), "PATH": os.environ["PATH"],
                            "NVRTC_LOG": str(self.log)}

    def moejit(self, *words, expect=0):
        """Runs moejit with `words`, checks the exit code, and returns what it printed."""
        done = Done(subprocess.run([MOEJIT, *map(str, words)], cwd=self.folder,
                                   env=self.environment, capture_output=True, timeout=600))
        self.assertEqual(done.code, expect, f"moejit {' '.join(map(str, words))}\n{done.out}{done.err}")
        return done

    def counting(self, *words, expect=0):
        """The same with the counting NVRTC. Returns what it printed and the number of compilations."""
        if "REAL_NVRTC" not in self.environment:
            found = self.moejit("compile", KERNELS / "deepseek-v3.down.mlir", "--no-cache",
                                "--rows", 0, "--json").json()["nvrtc"]
            self.assertTrue(found["found"])
            self.environment["REAL_NVRTC"] = found["path"]
        before = self.log.read_text().count("\n") if self.log.exists() else 0
        done = self.moejit(*words, "--nvrtc", FAKE_NVRTC, expect=expect)
        after = self.log.read_text().count("\n") if self.log.exists() else 0
        return done, after - before

    def ranges(self, *words):
        """(first row count, name of the kernel) of each range of plans that `words` have. Ranges of one plan share a
        kernel. Leaves nothing in the cache."""
        found = self.moejit("compile", *words, "--no-cache", "--json").json()
        return [(kernel["minRows"], kernel["key"]) for kernel in found["kernels"]]

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path


def main():
    unittest.main(verbosity=2)
