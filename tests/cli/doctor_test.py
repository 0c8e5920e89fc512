"""moejit doctor: what it finds, what it calls a problem, and its remedies."""

import os
import pathlib

from harness import FAKE_NVRTC, CliTest, grouped, main

STAND_IN = pathlib.Path(os.environ["STAND_IN"])


class Doctor(CliTest):
    def doctor(self, *words, expect=0):
        found = self.moejit("doctor", *words, "--json", expect=expect).json()
        return found, {finding["what"]: finding for finding in found["findings"]}

    def test_a_machine_with_nothing(self):
        self.environment["PATH"] = "/nowhere"
        found, by_name = self.doctor("--nvrtc", "/nowhere/libnvrtc.so", expect=3)
        self.assertEqual([found[f"can{what}"] for what in ("Compile", "Launch", "Emulate")], [False] * 3)
        self.assertEqual([by_name[what]["state"] for what in ("driver", "NVRTC", "cache", "emulator")],
                         ["problem", "problem", "ok", "note"])
        self.assertEqual(found["problems"], 2)
        for finding in found["findings"]:
            self.assertEqual(finding["state"] == "ok", not finding["remedy"], finding)
        self.assertIn("--nvrtc", by_name["NVRTC"]["remedy"])
        self.assertFalse((self.folder / ".cache").exists())
        text = self.moejit("doctor", "--nvrtc", "/nowhere/libnvrtc.so", expect=3).out
        self.assertIn("what helps\ndriver: install NVIDIA's driver", text)
        self.assertIn("can compile: no, launch: no, emulate: no", text)

    def test_what_a_machine_is_for(self):
        nothing = ("--nvrtc", "/nowhere/libnvrtc.so")
        self.doctor("--for", "compile")
        self.doctor("--for", "compile", *nothing, expect=3)
        self.doctor("--for", "emulate", *nothing)
        self.environment["PATH"] = "/nowhere"
        self.doctor("--for", "emulate", *nothing, expect=3)
        self.moejit("doctor", "--for", "fun", expect=2)

    def test_a_compiler_that_compiles_nothing_is_told(self):
        compilers = self.folder / "bin"
        compilers.mkdir()
        (compilers / "c++").write_text("""#!/bin/sh
[ "$1" = --version ] && { echo "c++ 1.0"; exit 0; }
echo "cannot execute 'cc1plus'" >&2
exit 1
""")
        (compilers / "c++").chmod(0o755)
        self.environment["PATH"] = str(compilers)
        found, by_name = self.doctor("--for", "emulate", expect=3)
        self.assertFalse(found["canEmulate"])
        self.assertIn("c++: cannot execute 'cc1plus'", by_name["emulator"]["text"])

    def test_what_is_given_is_looked_at(self):
        digest = "0" * 64
        done = self.moejit("doctor", "--bundle-sha256", digest, expect=2)
        self.assertIn("name it with --bundle", done.err)
        self.moejit("aot", self.write("a.mlir", grouped()), "-o", "made")
        for words in ((), ("--bundle", "made")):
            self.moejit("doctor", "--for", "emulate", *words)
            self.assertIn("absent.json", self.moejit("doctor", "--for", "emulate", *words, "--tuned", "absent.json", expect=2).err)
        self.moejit("doctor", "--for", "emulate", "--cache", "", expect=2)

    def test_a_link_that_leads_nowhere_is_no_cache_to_be_made(self):
        for name, target in (("dangling", "nowhere"), ("loop", "loop")):
            (self.folder / name).symlink_to(target)
            for path in (name, f"{name}/below"):
                _, by_name = self.doctor("--for", "emulate", "--cache", path, expect=3)
                self.assertIn("cannot be made", by_name["cache"]["text"])

    def test_nvrtc_and_driver(self):
        found, by_name = self.doctor("--for", "compile")
        self.assertTrue(found["canCompile"])
        self.assertTrue(pathlib.Path(found["nvrtcPath"]).exists())
        self.assertIn("kernels need CUDA", by_name["NVRTC"]["text"])

    def test_a_library_cut_short_is_told(self):
        whole = pathlib.Path(self.doctor("--for", "compile")[0]["nvrtcPath"]).read_bytes()
        part = self.folder / "libnvrtc.so.13"
        for length in (0, 40, 100, 5000, len(whole) // 2):
            part.write_bytes(whole[:length])
            for path in (part, self.folder):
                _, by_name = self.doctor("--for", "compile", "--nvrtc", path, expect=3)
                self.assertEqual(by_name["NVRTC"]["state"], "problem")
        self.assertIn("cut short", by_name["NVRTC"]["text"])

    def test_a_device_and_a_driver_that_fits_or_not(self):
        (STAND_IN / "units").mkdir(exist_ok=True)
        (STAND_IN / "units/fault").write_text("none 0\n")
        self.environment["LD_LIBRARY_PATH"] = str(STAND_IN)
        self.environment["REAL_NVRTC"] = self.doctor("--for", "compile")[0]["nvrtcPath"]
        found, by_name = self.doctor()
        self.assertIn("moejit emulator, sm_90a", by_name["GPU 0"]["text"])
        self.assertTrue(found["canLaunch"])
        # The same driver is too old for what a later NVRTC makes.
        self.environment["FAKE_NVRTC_VERSION"] = "99"
        found, by_name = self.doctor("--nvrtc", FAKE_NVRTC, expect=3)
        self.assertEqual(by_name["NVRTC"]["state"], "problem")
        self.assertFalse(found["canLaunch"])
        self.assertIn("update the driver", by_name["NVRTC"]["remedy"])
        _, by_name = self.doctor("--nvrtc", FAKE_NVRTC, "--for", "compile")
        self.assertEqual(by_name["NVRTC"]["state"], "note")
        # Nothing is compiled for a bundle: what counts is what that was made by.
        file = self.write("a.mlir", grouped())
        newer = ("--nvrtc", FAKE_NVRTC)
        self.moejit("aot", file, "-o", "fits")
        self.moejit("aot", file, "-o", "later", *newer)
        for words in (newer, ()):
            found, by_name = self.doctor(file, "--bundle", "fits", *words)
            self.assertEqual((found["canLaunch"], by_name["bundle"]["state"]), (True, "ok"))
            found, by_name = self.doctor(file, "--bundle", "later", *words, expect=3)
            self.assertEqual((found["canLaunch"], by_name["bundle"]["state"]), (False, "problem"))
            self.assertIn("update the driver", by_name["bundle"]["remedy"])
        self.assertIn("launch: no", self.moejit("doctor", "--bundle", "later", expect=3).out)
        found, by_name = self.doctor("--bundle", "later", "--for", "emulate")
        self.assertEqual((found["canLaunch"], by_name["bundle"]["state"]), (False, "note"))
        # Damage does not hide that: a whole copy would be too new as well.
        victim = next((self.folder / "later").glob("*.kernel"))
        victim.write_bytes(victim.read_bytes() + b"x")
        found, _ = self.doctor("--bundle", "later", expect=3)
        told = [finding for finding in found["findings"] if finding["what"] == "bundle"]
        self.assertEqual([finding["state"] for finding in told], ["problem"] * 2)
        self.assertIn("copy it again", told[0]["remedy"])
        self.assertIn("update the driver", told[1]["remedy"])

    def test_the_state_of_the_cache(self):
        state = lambda *words, expect=0: self.doctor("--for", "compile", *words, expect=expect)[1]["cache"]
        self.assertIn("will be made", state()["text"])
        self.moejit("compile", self.write("a.mlir", grouped()), "--cache", "kept")
        self.assertIn("kept: 2 kernels", state("--cache", "kept")["text"])
        victim = next((self.folder / "kept").glob("*.kernel"))
        victim.write_bytes(b"junk")
        found = state("--cache", "kept", expect=3)
        self.assertIn("1 damaged", found["text"])
        self.assertIn("moejit cache gc", found["remedy"])
        (self.folder / "kept").chmod(0o777)
        self.assertIn("lets others write", state("--cache", "kept", expect=3)["text"])
        self.write("file", "")
        self.assertIn("not a folder", state("--cache", "file/below", expect=3)["text"].replace("is not a", "not a"))
        state("--cache", "file", expect=3)
        del self.environment["HOME"]
        self.assertIn("HOME", state(expect=3)["text"])
        self.assertIn("stay in memory", state("--no-cache")["text"])

    def test_what_would_be_compiled(self):
        file = self.write("a.mlir", grouped())
        keys = [key for _, key in self.ranges(file)]
        found, by_name = self.doctor("--for", "compile", file)
        self.assertIn(f"0 of {len(keys)} row ranges are in the cache; {len(keys)} would be compiled",
                      by_name["kernels"]["text"])
        self.assertEqual(len(found["missing"]), len(keys))
        self.moejit("compile", file, "--rows", 0)
        found, _ = self.doctor("--for", "compile", file)
        self.assertEqual(len(found["missing"]), len(keys) - keys.count(keys[0]))
        self.moejit("aot", file)
        found, by_name = self.doctor("--for", "compile", file)
        self.assertEqual((found["missing"], by_name["kernels"]["state"]), ([], "ok"))
        # Without NVRTC they are found all the same, and what is missing is a problem.
        nothing = ("--nvrtc", "/nowhere/libnvrtc.so", "--for", "emulate")
        self.doctor(file, *nothing)
        self.doctor(file, "--n", 128, *nothing, expect=3)
        self.moejit("doctor", "absent.mlir", expect=2)

    def test_a_bundle(self):
        file = self.write("a.mlir", grouped())
        digest = self.moejit("aot", file, "-o", "made", "--json").json()["manifestSha256"]
        look = ("--bundle", "made", "--for", "emulate", "--nvrtc", "/nowhere/libnvrtc.so")
        _, by_name = self.doctor(file, *look, "--bundle-sha256", digest)
        self.assertIn("2 kernels; needs CUDA", by_name["bundle"]["text"])
        self.assertIn("every row count of 1 launches", by_name["kernels"]["text"])
        self.moejit("doctor", *look, "--bundle-sha256", "0" * 64, expect=2)
        found, by_name = self.doctor(file, "--n", 128, *look, expect=3)
        self.assertEqual(by_name["kernels"]["state"], "problem")
        self.assertEqual(len(found["missing"]), 1)
        victim = next((self.folder / "made").glob("*.kernel"))
        victim.write_bytes(victim.read_bytes() + b"x")
        found, by_name = self.doctor(file, *look, expect=3)
        self.assertEqual((by_name["bundle"]["state"], by_name["kernels"]["state"]), ("problem",) * 2)
        self.assertIn(victim.name, found["missing"][0])
        self.moejit("doctor", "--bundle", "absent", expect=2)


if __name__ == "__main__":
    main()
