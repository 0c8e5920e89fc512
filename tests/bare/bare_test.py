"""A bundle where nothing else is: a program of the runtime alone, pinned, with and without a device."""

import os
import pathlib
import re
import shutil
import subprocess
import unittest

from harness import CliTest, grouped, main

PROBE = pathlib.Path(os.environ["PROBE"])
STAND_IN = pathlib.Path(os.environ["STAND_IN"])
# Small: an expert of 256 x 256 for a fake of everything else a configuration has.
CONFIG = """{"model_type": "deepseek_v3", "hidden_size": 256, "moe_intermediate_size": 256,
  "n_routed_experts": 4, "num_experts_per_tok": 2, "num_hidden_layers": 4, "hidden_act": "silu",
  "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
                          "activation_scheme": "dynamic", "fmt": "e4m3"}}"""


class Bare(CliTest):
    def counts(self, text):
        return {name: int(count) for name, count in re.findall(r"(?m)^(\w+) (\d+)$", text)}

    def probe(self, bundle, digest, first, last, expect=0, **environment):
        done = subprocess.run([PROBE, bundle, digest, str(first), str(last)], capture_output=True,
                              text=True, env=environment, timeout=600)
        self.assertEqual(done.returncode, expect, done.stdout + done.stderr)
        return done

    def test_a_checkpoints_bundle_has_a_kernel_for_every_token_count(self):
        config = self.write("config.json", CONFIG)
        made = self.moejit("aot", config, "--tp", 2, "--tokens", "1:600", "--input", "fp8,quantize", "-o", "made",
                           "--json").json()
        self.assertTrue(made["closed"])
        # Every row count of 1 to 600 tokens, two experts each, at 78, 114 and 132 SMs.
        counts = self.counts(self.probe(self.folder / "made", made["manifestSha256"], 1, 1200).stdout)
        specs = len({kernel["spec"] for kernel in made["kernels"]})
        self.assertEqual(counts["specs"], specs)
        self.assertEqual(counts["lookups"], 3 * specs * 1200)
        self.assertEqual(counts["kernels"], len({kernel["key"] for kernel in made["kernels"]}))
        self.assertEqual(counts["launches"], 0)
        # One kernel less is noticed.
        victim = next((self.folder / "made").glob("*.kernel"))
        victim.unlink()
        done = self.probe(self.folder / "made", made["manifestSha256"], 1, 1200, expect=1)
        self.assertIn("not as it was made", done.stderr)
        self.assertIn(victim.name, done.stderr)
        self.assertIn("pinned is", self.probe(self.folder / "made", "0" * 64, 1, 1, expect=1).stderr)

    def test_its_kernels_compute(self):
        """On the device that is the emulator: sums of ones."""
        config = self.write("config.json", CONFIG)
        made = self.moejit("aot", config, "--dispatch", "grouped,batched", "--tokens", "1:8", "-o", "made",
                           "--input", "fp8,bf16", "--json").json()
        (STAND_IN / "units").mkdir(exist_ok=True)
        (STAND_IN / "units/fault").write_text("none 0\n")
        (STAND_IN / "units/bundle").write_text(f"{self.folder / 'made'}\n")
        self.addCleanup((STAND_IN / "units/bundle").unlink, missing_ok=True)
        done = self.probe(self.folder / "made", made["manifestSha256"], 1, 16, LD_LIBRARY_PATH=str(STAND_IN),
                          PATH=os.environ["PATH"])
        self.assertEqual(self.counts(done.stdout)["launches"],
                         2 * len({kernel["spec"] for kernel in made["kernels"]}))

    @unittest.skipUnless(os.geteuid() == 0, "chroot is for root")
    def test_in_a_userland_of_the_loader_and_libc_alone(self):
        file = self.write("a.mlir", grouped())
        made = self.moejit("aot", file, "-o", "made", "--json").json()
        root = self.folder / "root"
        (root / "bundle").parent.mkdir()
        shutil.copytree(self.folder / "made", root / "bundle")
        os.chmod(root / "bundle", 0o755)
        shutil.copy(PROBE, root / "probe")
        loaded = subprocess.run(["ldd", PROBE], capture_output=True, text=True, check=True).stdout
        libraries = re.findall(r"(/\S+\.so\S*)", loaded)
        self.assertTrue(libraries)
        for library in libraries:
            self.assertRegex(library, r"/(libc|libm|libgcc_s|ld-linux-x86-64)\.so\.")
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(library, target)
        done = subprocess.run(["chroot", root, "/probe", "/bundle", made["manifestSha256"], "0", "20000"],
                              capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.counts(done.stdout)["lookups"], 3 * 20001)
        self.assertIn("no CUDA driver", done.stdout)


if __name__ == "__main__":
    main()
