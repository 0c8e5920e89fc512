"""docs/generated shows the stages of a kernel as they are: docs/architecture.md follows it."""

import tempfile
from pathlib import Path

from harness import ROOT, CliTest, main

KERNEL = "deepseek-v3.gate_up"
# What does not depend on the NVRTC of the machine.
STAGES = {"moe": "moe.mlir", "plan": "plan.json", "tile": "tile.mlir", "ptx-ir": "ptx.mlir", "cuda": "kernel.cu"}


class Stages(CliTest):
    def test_stages_are_up_to_date(self):
        folder = Path(ROOT) / "docs" / "generated" / KERNEL
        self.assertEqual(sorted(path.name for path in folder.iterdir()), sorted(STAGES.values()))
        for stage, name in STAGES.items():
            with tempfile.TemporaryDirectory() as made:
                out = Path(made) / name
                self.moejit("compile", str(Path(ROOT) / "kernels" / f"{KERNEL}.mlir"), "--emit", stage, "-o", str(out))
                self.assertTrue(out.read_text() == (folder / name).read_text(),
                                f"docs/generated/{KERNEL}/{name} is stale: run tools/update-generated.sh")


if __name__ == "__main__":
    main()
