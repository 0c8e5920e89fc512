"""The command and its cache where compilers die, lie or differ, and where folders are not to be used."""

import os
import shutil
import signal
import subprocess

from harness import FAKE_NVRTC, MOEJIT, CliTest, grouped, main


class Torture(CliTest):
    def kept(self, folder="kept"):
        path = self.folder / folder
        return sorted(file.suffix for file in path.iterdir()) if path.exists() else []

    def test_deepgemm_301_a_compiler_that_crashes_leaves_nothing_behind(self):
        file = self.write("a.mlir", grouped())
        self.environment["FAKE_NVRTC_CRASHES"] = "1"
        self.counting("compile", file, "--cache", "kept", "--rows", 0, expect=-signal.SIGKILL)
        self.assertNotIn(".kernel", self.kept())
        del self.environment["FAKE_NVRTC_CRASHES"]
        done, count = self.counting("compile", file, "--cache", "kept", "--rows", 0)
        self.assertEqual(count, 1)
        self.assertNotIn("warning", done.err)
        self.assertEqual(self.kept(), [".index", ".kernel"])

    def test_deepgemm_301_a_compiler_that_writes_nothing_or_half_is_not_believed(self):
        file = self.write("a.mlir", grouped())
        for gives, says in (("nothing", "neither cubin nor PTX"), ("half", "cut short")):
            self.environment["FAKE_NVRTC_GIVES"] = gives
            done, _ = self.counting("compile", file, "--cache", "kept", "--rows", 0, expect=4)
            self.assertIn(says, done.err)
            self.assertEqual(self.kept(), [])
        del self.environment["FAKE_NVRTC_GIVES"]
        self.assertEqual(self.counting("compile", file, "--cache", "kept", "--rows", 0)[1], 1)

    def test_sglang_34274_installations_at_different_paths_share_kernels(self):
        file = self.write("a.mlir", grouped())
        self.counting("compile", file, "--cache", "kept", "--rows", 0)
        other = self.folder / "another prefix" / "bin" / "moejit"
        other.parent.mkdir(parents=True)
        shutil.copy2(MOEJIT, other)
        nvrtc = self.folder / "another prefix" / "libnvrtc.so"
        shutil.copy2(FAKE_NVRTC, nvrtc)
        before = self.log.read_text().count("\n")
        done = subprocess.run([other, "compile", file, "--cache", self.folder / "kept", "--rows", "0",
                               "--nvrtc", nvrtc], cwd=other.parent, env=self.environment, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.log.read_text().count("\n"), before)
        self.assertEqual(self.kept(), [".index", ".kernel"])

    def test_triton_518_a_folder_named_and_unusable_is_an_error_of_aot(self):
        file = self.write("a.mlir", grouped())
        shared = self.folder / "shared"
        shared.mkdir()
        shared.chmod(0o777)
        for folder in (shared, self.write("blocked", "") / "below", self.folder / ("n" * 256)):
            done = self.moejit("aot", file, "--rows", 0, "-o", folder, expect=2)
            self.assertIn(str(folder), done.err)
        # A command that can do without goes on, with one warning.
        done, count = self.counting("compile", file, "--cache", shared, "--rows", 0)
        self.assertEqual((count, done.err.count("warning: ")), (1, 1))
        self.assertEqual(os.listdir(shared), [])


if __name__ == "__main__":
    main()
