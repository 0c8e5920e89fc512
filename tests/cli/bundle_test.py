"""moejit aot and moejit cache: bundles that never compile, and what lies in a folder."""

import os
import shutil

from harness import KERNELS, CliTest, grouped, main


class Bundle(CliTest):
    def test_a_bundle_runs_without_compiling(self):
        file = self.write("a.mlir", grouped())
        done, count = self.counting("aot", file, "-o", "made", "--json")
        self.assertEqual((count, done.json()["compiled"]), (2, 2))
        self.assertTrue((self.folder / "made/manifest.json").exists())
        self.assertFalse((self.folder / ".cache").exists())
        for tokens in (9, 300):
            done, count = self.counting("run", file, "--tokens", tokens, "--device", "emulator",
                                        "--bundle", "made", "--check", "--json")
            self.assertEqual((count, done.json()["compiled"]), (0, 0))
            self.assertTrue(done.json()["check"]["ok"])
        # No NVRTC is looked for.
        self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--bundle", "made",
                    "--nvrtc", "/nowhere/libnvrtc.so")

    def test_a_bundle_is_the_caches_own_kernels(self):
        file = self.write("a.mlir", grouped())
        self.counting("aot", file, "-o", "made")
        self.counting("compile", file, "--cache", "kept")
        # The names are digests of all that a kernel is made of.
        names = [{entry.name for entry in (self.folder / place).glob("*.kernel")}
                 for place in ("made", "kept")]
        self.assertEqual(names[0], names[1])
        self.assertEqual(len(names[0]), 2)
        for rows in (0, 10**6):
            cubins = [self.moejit("compile", file, "--rows", rows, "--emit", "cubin", "--cache",
                                  place).bytes for place in ("made", "kept")]
            self.assertEqual(cubins[0], cubins[1])
        # Also the other way round: the folder serves as a cache.
        self.assertEqual(self.counting("compile", file, "--cache", "made")[1], 0)

    def test_a_kernel_that_is_not_in_the_bundle_is_named(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        done = self.moejit("run", file, "--n", 128, "--device", "emulator", "--bundle", "made", expect=3)
        self.assertIn("not in the cache; build it with: moejit aot", done.err)
        self.moejit("run", file, "--device", "emulator", "--bundle", "absent", expect=2)
        self.moejit("run", file, "--device", "emulator", "--bundle", ".", expect=2)

    def test_the_command_of_that_message_builds_it(self):
        import shlex
        file, folder = self.write("a.mlir", grouped()), "it's made"
        self.moejit("aot", file, "-o", folder)
        done = self.moejit("run", file, "--n", 128, "--device", "emulator", "--bundle", folder, expect=3)
        self.assertIn("where its digest is pinned, pin the one that is printed then", done.err)
        words = shlex.split(done.err.split("build it with: moejit ")[1].splitlines()[0])
        self.moejit(*words)
        self.moejit("run", file, "--n", 128, "--device", "emulator", "--bundle", folder, "--check")

    def test_a_cache_that_changes_a_bundle_says_so_once(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.counting("aot", *files, "-o", "made")
        # Other kernels of the same lookup keys.
        self.environment["FAKE_NVRTC_VERSION"] = "12"
        said = "which manifest.json lists: the folder is no longer the bundle that it was"
        done, count = self.counting("aot", *files, "--cache", "made")
        self.assertGreater(count, 1)
        self.assertEqual(done.err.count(said), 1)
        self.moejit("cache", "verify", "--cache", "made", expect=1)
        del self.environment["FAKE_NVRTC_VERSION"]
        done, _ = self.counting("aot", *files, "-o", "made")
        self.assertNotIn("warning", done.err)
        self.moejit("cache", "verify", "--cache", "made")

    def test_files_that_others_can_write_are_not_used(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        run = ("run", file, "--tokens", 9, "--device", "emulator", "--bundle", "made")
        for path in (self.folder / "made").iterdir():
            path.chmod(0o644)
        self.moejit(*run)
        for pattern in ("manifest.json", "*.index", "*.kernel"):
            paths = list((self.folder / "made").glob(pattern))
            for path in paths:
                path.chmod(0o664)
            self.assertIn("mode 0664 lets others write", self.moejit(*run, expect=2).err)
            self.assertIn("mode 0664 lets others write", self.moejit("cache", "verify", "--cache", "made", expect=1).out)
            for path in paths:
                path.chmod(0o644)

    def test_many_files_build_at_once_and_only_what_is_missing(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256, 384)]
        ranges = [self.ranges(file) for file in files]
        wanted = [len({key for _, key in each}) for each in ranges]
        done, count = self.counting("aot", *files[:2], "-o", "made", "--jobs", 4, "--json")
        self.assertEqual((count, len(done.json()["kernels"])), (sum(wanted[:2]), sum(map(len, ranges[:2]))))
        done, count = self.counting("aot", *files, "-o", "made", "--jobs", 4, "--json")
        self.assertEqual((count, done.json()["compiled"]), (wanted[2], wanted[2]))
        self.assertEqual(len(done.json()["kernels"]), sum(map(len, ranges)))
        table = self.moejit("aot", *files, "-o", "made").out
        self.assertIn(f"{sum(wanted)} kernels (0 compiled) in ", table)

    def test_without_a_folder_kernels_go_to_the_cache(self):
        file = self.write("a.mlir", grouped())
        self.assertEqual(self.counting("aot", file)[1], 2)
        self.assertEqual(self.counting("run", file, "--tokens", 9, "--device", "emulator")[1], 0)
        self.assertFalse((self.folder / ".cache/moejit/manifest.json").exists())

    def test_refusals(self):
        file = self.write("a.mlir", grouped())
        self.assertIn("a.mlir", self.moejit("aot", file, "--arch", "sm_90a,sm_80", "-o", "made",
                                            expect=1).err)
        self.moejit("aot", "-o", "made", expect=2)
        self.moejit("aot", file, "--arch", ",", "-o", "made", expect=2)
        self.moejit("aot", file, "-o", self.write("blocked", ""), expect=2)
        self.moejit("aot", file, "--no-cache", expect=2)
        self.moejit("aot", file, "-o", "made", "--nvrtc", "/nowhere/libnvrtc.so", expect=3)

    def test_a_damaged_manifest_is_named(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made", "--rows", 0)
        for text in ("", "{", "{}", "null"):
            (self.folder / "made/manifest.json").write_text(text)
            done = self.moejit("run", file, "--bundle", "made", expect=2)
            self.assertIn("manifest.json is damaged", done.err)

    def test_catalogue(self):
        files = [KERNELS / "mixtral-8x7b.gate_up.mlir", KERNELS / "mixtral-8x7b.down.mlir"]
        done = self.moejit("aot", *files, "-o", "made", "--json")
        self.assertEqual({kernel["key"] for kernel in done.json()["kernels"]},
                         {key for file in files for _, key in self.ranges(file)})


class Cache(CliTest):
    def test_ls_and_info(self):
        file = self.write("a.mlir", grouped())
        made = self.moejit("compile", file, "--json").json()
        listed = self.moejit("cache", "ls", "--json").json()
        self.assertEqual({entry["key"] for entry in listed["entries"]},
                         {kernel["key"] for kernel in made["kernels"]})
        self.assertEqual(listed["bytes"], sum(entry["bytes"] for entry in listed["entries"]))
        text = self.moejit("cache", "ls").out
        self.assertIn("grouped E3 N256 K256", text)
        begins = [kernel["minRows"] for kernel in made["kernels"]]
        self.assertIn(f"0 to {begins[1] - 1}", text)
        self.assertIn(f"{begins[-1]} or more", text)
        self.assertIn("2 kernels, ", text)
        key = made["kernels"][0]["key"]
        info = self.moejit("cache", "info", key[:8]).out
        self.assertIn(key, info)
        self.assertIn(made["spec"], info)
        self.assertIn("registers      ", info)
        entry = self.moejit("cache", "info", key, "--json").json()
        self.assertEqual(entry["registers"], made["kernels"][0]["registers"])
        self.assertIn("sm_90a", entry["buildKey"])

    def test_bundles_are_listed_too(self):
        self.moejit("aot", self.write("a.mlir", grouped()), "-o", "made")
        self.assertEqual(len(self.moejit("cache", "ls", "--cache", "made", "--json").json()["entries"]), 2)

    def test_empty_and_absent(self):
        (self.folder / "kept").mkdir(mode=0o700)
        self.assertIn("0 kernels", self.moejit("cache", "ls", "--cache", "kept").out)
        self.moejit("cache", "ls", "--cache", "absent", expect=2)
        self.moejit("cache", "info", "abc", "--cache", "kept", expect=2)
        self.moejit("cache", "info", expect=2)
        self.moejit("cache", "info", "", "--cache", "kept", expect=2)
        self.moejit("cache", expect=2)
        self.moejit("cache", "lss", expect=2)

    def test_damage_is_shown(self):
        self.moejit("compile", self.write("a.mlir", grouped()), "--cache", "kept")
        victim = next((self.folder / "kept").glob("*.kernel"))
        victim.write_bytes(victim.read_bytes()[:100])
        self.assertIn("damaged: ", self.moejit("cache", "ls", "--cache", "kept").out)
        self.moejit("cache", "info", victim.stem, "--cache", "kept", expect=2)


class Links(CliTest):
    def test_a_bundle_of_links_is_told_by_name(self):
        # As model hubs lay files out.
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "blobs")
        (self.folder / "made").mkdir(mode=0o700)
        for path in (self.folder / "blobs").iterdir():
            (self.folder / "made" / path.name).symlink_to(path)
        run = ("run", file, "--tokens", 9, "--device", "emulator", "--bundle")
        done = self.moejit(*run, "made", expect=2)
        self.assertIn("made/manifest.json: is a symbolic link", done.err)
        self.assertIn("cp -rL", done.err)
        shutil.copytree(self.folder / "made", self.folder / "copied")
        self.moejit(*run, "copied")


class Emulated(CliTest):
    def test_units_of_the_emulator_leave_the_cache_closed_to_others(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        before = os.umask(0o002)
        try:
            self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--bundle", "made")
        finally:
            os.umask(before)
        done = self.moejit("compile", file, "--json")
        self.assertEqual(done.json()["cache"], str(self.folder / ".cache/moejit"))
        self.assertNotIn("warning", done.err)


    def test_damaged_units_are_built_anew(self):
        file = self.write("a.mlir", grouped())
        run = ("run", file, "--tokens", 9, "--device", "emulator", "--check")
        self.moejit(*run)
        folder = self.folder / ".cache/moejit/emulator"
        for path in [*folder.glob("*.so"), *folder.glob("*.cpp")]:
            whole = path.read_bytes()
            for damage in (b"", whole[:5000], whole[:4096] + b"X" * 64 + whole[4160:]):
                path.write_bytes(damage)
                if path.suffix == ".cpp":
                    next(folder.glob("*.so")).unlink()
                self.moejit(*run)
                self.assertEqual(path.read_bytes(), whole)


if __name__ == "__main__":
    main()
