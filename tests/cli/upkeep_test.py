"""moejit cache verify, gc, diff and merge: what is found, removed and said."""

import fcntl
import os
import shutil
import time

import forged
from harness import CliTest, grouped, main

LEFT = "5" * 64  # begins the names of files that a process at work has


class Verify(CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.write("a.mlir", grouped())

    def states(self, folder, expect=0, *words):
        found = self.moejit("cache", "verify", "--cache", folder, "--json", *words, expect=expect).json()
        return found, {file["file"]: file["state"] for file in found["files"]}

    def test_a_sound_cache(self):
        self.moejit("compile", self.file, "--cache", "kept")
        found, states = self.states("kept")
        self.assertEqual(set(states.values()), {"sound"})
        self.assertEqual((found["kernels"], found["damaged"], found["sound"]), (2, 0, True))
        self.assertEqual(set(states), {path.name for path in (self.folder / "kept").iterdir()
                                       if path.suffix in (".kernel", ".index")})
        self.assertIn("2 kernels", self.moejit("cache", "verify", "--cache", "kept").out)
        self.moejit("cache", "verify", "--cache", "absent", expect=2)

    def test_every_kind_of_damage_is_named(self):
        self.moejit("compile", self.file, "--cache", "kept")
        kept = self.folder / "kept"
        kernels, index = sorted(kept.glob("*.kernel")), next(kept.glob("*.index"))
        sound = {path: path.read_bytes() for path in (*kernels, index)}
        for path, content in sound.items():
            for change in (b"", content[:100], content[:-1], content + b"x",
                           content[:200] + bytes([content[200] ^ 1]) + content[201:]):
                path.write_bytes(change)
                _, states = self.states("kept", 1)
                self.assertEqual(states[path.name], "damaged")
            path.write_bytes(content)
        # A sound file under another name.
        shutil.copy(kernels[0], kernels[1])
        self.assertEqual(self.states("kept", 1)[1][kernels[1].name], "damaged")
        kernels[1].unlink()
        kernels[1].mkdir()
        self.assertEqual(self.states("kept", 1)[1][kernels[1].name], "damaged")
        # A kernel that is gone is a miss, no damage; an index of nothing is stale.
        kernels[1].rmdir()
        _, states = self.states("kept")
        self.assertEqual(states[index.name], "sound")
        kernels[0].unlink()
        self.assertEqual(self.states("kept")[1], {index.name: "stale"})

    def test_leftovers_and_strangers(self):
        self.moejit("compile", self.file, "--cache", "kept")
        (self.folder / f"kept/{LEFT}.1-2-3.tmp").write_text("half")
        (self.folder / f"kept/{LEFT}.lock").write_text("")
        (self.folder / "kept/notes.txt").write_text("mine")
        _, states = self.states("kept")
        self.assertEqual([states[name] for name in (f"{LEFT}.1-2-3.tmp", f"{LEFT}.lock", "notes.txt")],
                         ["stale", "stale", "unknown"])
        self.assertTrue((self.folder / f"kept/{LEFT}.lock").exists())

    def test_a_bundle_altered_in_any_way(self):
        made = self.moejit("aot", self.file, "-o", "made", "--json").json()
        digest = made["manifestSha256"]
        folder = self.folder / "made"
        run = ("run", self.file, "--tokens", 9, "--device", "emulator", "--bundle", "made")
        found, _ = self.states("made", 0, "--bundle-sha256", digest)
        self.assertEqual(found["manifestSha256"], digest)
        self.moejit(*run, "--bundle-sha256", digest)
        self.moejit(*run, "--bundle-sha256", digest.upper(), expect=2)
        self.moejit("run", self.file, "--bundle-sha256", digest, expect=2)
        used = self.moejit(*run, "--json").json()["kernel"]["key"] + ".kernel"
        for path in sorted(folder.iterdir()):
            content = path.read_bytes()
            isUsed = path.name == used or path.suffix != ".kernel"
            for change in (b"", content[:-1], content + b"\n", content[:50] + b"X" + content[51:], None):
                path.write_bytes(change) if change is not None else path.unlink()
                self.states("made", 1, "--bundle-sha256", digest)
                done = self.moejit(*run, "--bundle-sha256", digest, expect=2 if isUsed else 0)
                if isUsed:
                    self.assertIn(path.name, done.err)
                    self.assertRegex(done.err, "SHA-256|by the manifest|not there|No such file")
                path.write_bytes(content)
                path.chmod(0o600)
        # Made anew from the altered files, the manifest is sound, and another one.
        victim = folder / used
        other = self.moejit("aot", self.write("b.mlir", grouped(n=128)), "-o", "made", "--json").json()
        self.assertNotEqual(other["manifestSha256"], digest)
        done = self.moejit(*run, "--bundle-sha256", digest, expect=2)
        self.assertIn(f"pinned is {digest}", done.err)
        self.moejit(*run, "--bundle-sha256", other["manifestSha256"])
        self.assertTrue(victim.exists())


    def test_a_manifest_that_lies_is_damaged_though_every_checksum_fits(self):
        self.moejit("aot", self.file, "-o", "true")
        lies = {"no kernels": lambda text: text["kernels"].clear(),
                "one kernel less": lambda text: text["kernels"].pop(),
                "one kernel twice": lambda text: text["kernels"].append(text["kernels"][0]),
                "any driver": lambda text: text["kernels"][0].update(minDriver=0),
                "other rows": lambda text: text["kernels"][0].update(rows=[[0, 1]]),
                "another architecture": lambda text: text["kernels"][1].update(arch="sm_80")}
        for name, lie in lies.items():
            with self.subTest(name):
                shutil.rmtree(self.folder / "made", ignore_errors=True)
                shutil.copytree(self.folder / "true", self.folder / "made")
                forged.forge(self.folder / "made", manifest=lie)
                _, states = self.states("made", 1)
                self.assertEqual({file for file, state in states.items() if state != "sound"}, {"manifest.json"})
                done = self.moejit("doctor", "--bundle", "made", "--for", "emulate", expect=3)
                self.assertIn("not as the manifest says", done.out)

    def test_a_kernel_of_another_spec_than_its_key_says_is_damaged(self):
        self.moejit("aot", self.file, "-o", "made")
        def of_another_spec(fields):
            fields[forged.SPEC] = fields[forged.SPEC].replace(b";n=256;", b";n=512;")
        forged.forge(self.folder / "made", kernel=of_another_spec)
        found, _ = self.states("made", 1)
        self.assertEqual(found["damaged"], 2)
        done = self.moejit("run", self.file, "--tokens", 9, "--device", "emulator", "--bundle", "made", expect=2)
        self.assertIn("its keys are of another spec or plan", done.err)
        # It counts as absent where kernels are built, and a bundle is whole again.
        self.assertEqual(self.moejit("aot", self.file, "-o", "made", "--json").json()["compiled"], 2)
        self.states("made")

    def test_what_files_say_steers_no_terminal(self):
        self.moejit("aot", self.file, "-o", "made")
        def coloured(fields):
            fields[forged.ARCH] = fields[forged.NVRTC] = b"\x1b[31mred\nkey"
        forged.forge(self.folder / "made", kernel=coloured)
        (self.folder / "made/a\x1b[2J\nb.txt").write_text("mine")
        key = self.ranges(self.file)[0][1]
        for words in (("ls",), ("info", key)):
            self.assertNotIn("\x1b", self.moejit("cache", *words, "--cache", "made").out)
        text = self.moejit("cache", "verify", "--cache", "made", expect=1).out
        self.assertNotIn("\x1b", text)
        self.assertIn("a\\x1b[2J\\x0ab.txt", text)

    def test_folders_of_other_commands_are_no_strangers(self):
        self.moejit("run", self.file, "--tokens", 9, "--device", "emulator", "--cache", "kept")
        found, states = self.states("kept")
        self.assertEqual(states["emulator"], "unknown")
        self.assertNotIn("not written by moejit", [file["finding"] for file in found["files"]])

    def test_a_pin_that_is_no_digest_is_a_mistake(self):
        self.moejit("aot", self.file, "-o", "made")
        for pin in ("", "1f2e", "F" * 64):
            self.moejit("cache", "verify", "--cache", "made", "--bundle-sha256", pin, expect=2)


class Words(CliTest):
    def test_options_of_other_commands_are_refused(self):
        self.moejit("aot", self.write("a.mlir", grouped()), "-o", "made")
        for words in (("merge", "made", "-o", "out", "--dry-run"), ("merge", "made", "-o", "out", "--cache", "made"),
                      ("ls", "--cache", "made", "--bundle-sha256", "0" * 64), ("verify", "--cache", "made", "--superseded"),
                      ("info", "a", "--cache", "made", "--older-than", "1d"), ("gc", "--cache", "made", "-o", "out")):
            done = self.moejit("cache", *words, "--json", expect=2)
            self.assertIn(f"moejit cache {words[0]} takes no -", done.json()["error"]["message"])
        self.assertFalse((self.folder / "out").exists())

    def test_a_name_that_is_empty_names_no_folder(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        for words in (("cache", "ls"), ("cache", "verify"), ("cache", "gc"), ("cache", "info", "a"), ("compile", file), ("aot", file)):
            self.assertIn("it is empty", self.moejit(*words, "--cache", "", expect=2).err)
        for words in (("made", "", "-o", "out"), ("made", "-o", ""), ("made",), ("", "-o", "out"), ("-o", "out")):
            self.moejit("cache", "merge", *words, expect=2)
        self.assertFalse((self.folder / "out").exists())
        for words in ((), ("lss",), ("ls", "x"), ("info",), ("info", "a", "b"), ("diff", "a"), ("verify", "x")):
            self.assertIn("expected: moejit cache ", self.moejit("cache", *words, expect=2).err)


class Clear(CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.write("a.mlir", grouped())

    def gc(self, *words):
        return self.moejit("cache", "gc", "--cache", "kept", "--json", *words).json()

    def names(self):
        return {path.name for path in (self.folder / "kept").glob("*.kernel") if path.is_file()}

    def test_useless_files_go_and_sound_ones_stay(self):
        self.moejit("compile", self.file, "--cache", "kept")
        kernels = sorted(self.names())
        (self.folder / "kept" / kernels[0]).write_bytes(b"junk")
        (self.folder / f"kept/{LEFT}.lock").write_text("")
        for name in ("notes.txt", "uv.lock", "faiss.index"):
            (self.folder / "kept" / name).write_text("mine")
        (self.folder / "kept/data.kernel").mkdir()
        dry = self.gc("--dry-run")
        self.assertEqual({file["file"] for file in dry["removed"]}, {kernels[0], f"{LEFT}.lock"})
        self.assertEqual(self.names(), set(kernels))
        self.assertEqual(self.gc()["removed"], dry["removed"])
        self.assertEqual(self.names(), {kernels[1]})
        self.assertFalse((self.folder / f"kept/{LEFT}.lock").exists())
        # The cache that is opened to compile clears up too.
        self.moejit("compile", self.file, "--checked", "--cache", "kept")
        for name in ("notes.txt", "uv.lock", "faiss.index", "data.kernel"):
            self.assertTrue((self.folder / "kept" / name).exists(), name)
        self.assertEqual(self.gc()["removed"], [])

    def test_an_index_whose_kernel_is_being_built_stays(self):
        self.moejit("compile", self.file, "--rows", 0, "--cache", "kept")
        kernel, index = self.names().pop(), next((self.folder / "kept").glob("*.index"))
        (self.folder / "kept" / kernel).unlink()
        # As between the two files of a put: the builder has written the index, and holds its lock.
        lock = self.folder / "kept" / kernel.replace(".kernel", ".lock")
        with open(lock, "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(self.gc()["removed"], [])
            self.assertTrue(index.exists())
        self.assertEqual({file["file"] for file in self.gc()["removed"]}, {index.name, lock.name})
        self.assertFalse(index.exists())

    def test_what_is_no_file_is_cleared_too(self):
        self.moejit("compile", self.file, "--cache", "kept")
        kept = self.folder / "kept"
        (kept / f"{LEFT}.lock").mkdir()
        os.mkfifo(kept / f"{LEFT}.1-2-3.tmp")
        (kept / f"{LEFT}.2-2-3.tmp").symlink_to("nowhere")
        self.assertEqual(len(self.gc()["removed"]), 3)
        self.assertEqual([path for path in kept.iterdir() if path.name.startswith(LEFT)], [])
        self.assertEqual(self.gc()["removed"], [])

    def test_age_size_and_superseded(self):
        self.moejit("compile", self.file, "--cache", "kept")
        old, new = sorted(self.names())
        day = 86400
        os.utime(self.folder / "kept" / old, (time.time() - 40 * day,) * 2)
        self.assertEqual([file["file"] for file in self.gc("--older-than", "30d", "--dry-run")["removed"]], [old])
        self.assertEqual(self.gc("--older-than", "6w", "--dry-run")["removed"], [])
        # The least recently used goes first.
        size = (self.folder / "kept" / new).stat().st_size
        self.assertEqual([file["file"] for file in self.gc("--max-size", size)["removed"]], [old])
        self.assertEqual(self.names(), {new})
        self.assertEqual(self.gc("--max-size", "1G")["keptKernels"], 1)
        self.gc("--max-size", "0")
        self.assertEqual(self.names(), set())
        for wrong in ("", "5x", "-1", "nan", "d", "1e999"):
            self.moejit("cache", "gc", "--cache", "kept", "--max-size", wrong, expect=2)
            self.moejit("cache", "gc", "--cache", "kept", "--older-than", wrong, expect=2)

    def test_indexes_go_with_the_last_of_their_kernels(self):
        for limit in (("--max-size", "0"), ("--older-than", "0m")):
            shutil.rmtree(self.folder / "kept", ignore_errors=True)
            self.moejit("compile", self.file, "--cache", "kept")
            files = {path.name for path in (self.folder / "kept").iterdir()}
            self.assertEqual({name.split(".")[1] for name in files}, {"kernel", "index"})
            dry = self.gc(*limit, "--dry-run")
            self.assertEqual({file["file"] for file in dry["removed"]}, files)
            self.assertEqual({path.name for path in (self.folder / "kept").iterdir()}, files)
            found = self.gc(*limit)
            self.assertEqual({file["file"] for file in found["removed"]}, files)
            self.assertEqual(found["removedBytes"], dry["removedBytes"])
            self.assertEqual(list((self.folder / "kept").iterdir()), [])
        # One that names a kernel which stays, or is being built, stays too.
        self.moejit("compile", self.file, "--cache", "kept")
        old, new = sorted(self.names())
        os.utime(self.folder / "kept" / old, (1, 1))
        self.assertEqual([file["file"] for file in self.gc("--older-than", "30d")["removed"]], [old])
        with open(self.folder / "kept" / old.replace(".kernel", ".lock"), "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual([file["file"] for file in self.gc("--max-size", 0)["removed"]], [new])
        self.assertEqual(len(list((self.folder / "kept").glob("*.index"))), 1)

    def test_superseded_kernels_go_on_request(self):
        self.moejit("compile", self.file, "--cache", "kept")
        index = next((self.folder / "kept").glob("*.index"))
        index.unlink()
        self.assertEqual(self.gc()["removed"], [])
        self.assertEqual(len(self.gc("--superseded")["removed"]), 2)
        self.assertEqual(self.names(), set())

    def test_a_bundle_loses_nothing_that_its_manifest_lists(self):
        self.moejit("aot", self.file, "-o", "kept")
        listed = self.names()
        self.moejit("compile", self.file, "--n", 128, "--cache", "kept")
        self.assertGreater(self.names(), listed)
        found = self.gc("--max-size", "0", "--older-than", "0m", "--superseded")
        self.assertEqual(self.names(), listed)
        self.assertEqual((found["pinned"], found["aboveMaxSize"]), (len(listed), True))
        # What stays is told apart from what went, and why it stays.
        text = self.moejit("cache", "gc", "--cache", "kept", "--older-than", "0m").out
        self.assertIn(f"{len(listed)} more, damaged or not used for so long, stay: the bundle's manifest", text)
        self.assertNotIn("--max-size", text)
        text = self.moejit("cache", "gc", "--cache", "kept", "--max-size", "0").out
        self.assertIn("more than --max-size stay: of a bundle nothing goes", text)
        self.assertFalse(self.gc("--max-size", "1G")["aboveMaxSize"])
        self.moejit("run", self.file, "--tokens", 9, "--device", "emulator", "--bundle", "kept")
        # A damaged manifest may have listed anything.
        manifest = self.folder / "kept/manifest.json"
        manifest.write_bytes(manifest.read_bytes()[:-9])
        self.assertEqual(self.gc("--max-size", "0", "--superseded")["removed"], [])
        self.assertEqual(self.names(), listed)
        self.assertIn("not as it was made", self.moejit("cache", "verify", "--cache", "kept", expect=1).out)


class Diff(CliTest):
    def test_the_fields_that_differ_are_named(self):
        file = self.write("a.mlir", grouped())
        low, high = dict.fromkeys(key for _, key in self.ranges(file))
        self.moejit("compile", file, "--cache", "kept")
        self.moejit("compile", file, "--checked", "--n", 128, "--rows", 0, "--cache", "kept")
        diff = lambda *words: self.moejit("cache", "diff", *words, "--cache", "kept", "--json").json()
        found = diff(low[:10], high[:10])
        self.assertEqual({each["part"] for each in found["differences"]}, {"plan"})
        self.assertIn({"part": "plan", "field": "tileM", "a": "64", "b": "128"}, found["differences"])
        self.assertEqual((found["same"], found["sameLookup"], found["sameCode"]), (False, True, False))
        other = next(path for path in (self.folder / "kept").glob("*.kernel") if path.stem not in (low, high))
        found = diff(low, other)
        fields = {(each["part"], each["field"]): (each["a"], each["b"]) for each in found["differences"]}
        self.assertEqual(fields["spec", "n"], ("256", "128"))
        self.assertEqual(fields["checked", ""], (None, "true"))
        self.assertFalse(found["sameLookup"])
        self.assertTrue(diff(low, low)["same"])
        text = self.moejit("cache", "diff", low, high, "--cache", "kept").out
        self.assertIn("plan.tileM", text)
        self.assertIn("another plan", text)
        for words in (("diff",), ("diff", low), ("diff", low, "ffff"), ("diff", low, "")):
            self.moejit("cache", *words, "--cache", "kept", expect=2)


class Merge(CliTest):
    def test_folders_are_joined(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        whole = self.moejit("aot", *files, "-o", "whole", "--json").json()
        for i in range(3):
            self.moejit("aot", *files, "-o", f"part{i}", "--shard", f"{i}/3")
        merged = self.moejit("cache", "merge", "part0", "part1", "part2", "-o", "merged", "--json").json()
        names = {path.name for path in (self.folder / "whole").iterdir()}
        self.assertEqual({path.name for path in (self.folder / "merged").iterdir()}, names)
        self.moejit("cache", "verify", "--cache", "merged", "--bundle-sha256", merged["manifestSha256"])
        # It builds nothing and finds everything.
        done, count = self.counting("aot", *files, "-o", "merged", "--json")
        self.assertEqual((count, done.json()["compiled"], done.json()["closed"]), (0, 0, True))
        self.assertEqual({kernel["key"] for kernel in whole["kernels"]},
                         {kernel["key"] for kernel in done.json()["kernels"]})

    def test_what_disagrees_or_is_damaged_is_refused_whole(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "one")
        self.moejit("aot", file, "-o", "two")
        victim = next((self.folder / "two").glob("*.kernel"))
        victim.write_bytes(b"junk")
        done = self.moejit("cache", "merge", "one", "two", "-o", "merged", expect=2)
        self.assertIn(victim.name, done.err)
        self.assertFalse((self.folder / "merged").exists())
        self.moejit("cache", "merge", "one", expect=2)
        self.moejit("cache", "merge", "-o", "merged", expect=2)
        self.moejit("cache", "merge", "one", "absent", "-o", "merged", expect=2)
        # The output is one of the folders that have to agree.
        self.environment["FAKE_NVRTC_VERSION"] = "12"
        self.counting("aot", file, "-o", "other")
        before = {path.name for path in (self.folder / "other").iterdir()}
        done = self.moejit("cache", "merge", "one", "-o", "other", expect=2)
        self.assertIn("serve the same rows of one spec", done.err)
        self.assertEqual({path.name for path in (self.folder / "other").iterdir()}, before)
        (self.folder / "empty").mkdir()
        done = self.moejit("cache", "merge", "empty", "-o", "merged", expect=2)
        self.assertIn("no kernel", done.err)
        self.assertFalse((self.folder / "merged").exists())

    def test_a_source_that_has_lost_anything_is_refused(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.moejit("aot", *files, "-o", "whole")
        names = [path.name for path in (self.folder / "whole").iterdir()]
        for name in sorted(names):
            for change in ("absent", "altered", "altered, without a manifest"):
                with self.subTest(name=name, change=change):
                    if name == "manifest.json" and change != "altered":
                        continue  # a cache, which will do
                    shutil.rmtree(self.folder / "part", ignore_errors=True)
                    shutil.copytree(self.folder / "whole", self.folder / "part")
                    victim = self.folder / "part" / name
                    content = victim.read_bytes()
                    victim.unlink()
                    if change != "absent":
                        victim.write_bytes(content[:70] + bytes([content[70] ^ 1]) + content[71:])
                    if "without" in change:
                        (self.folder / "part/manifest.json").unlink()
                    done = self.moejit("cache", "merge", "part", "-o", "merged", expect=2)
                    self.assertIn(name, done.err)
                    self.assertIn("nothing was merged", done.err)
                    self.assertFalse((self.folder / "merged").exists())

    def test_a_bundle_is_not_made_anew_without_what_it_lost(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.moejit("aot", files[0], "-o", "more")
        self.moejit("aot", files[1], "-o", "whole")
        for suffix in (".kernel", ".index"):
            shutil.rmtree(self.folder / "old", ignore_errors=True)
            shutil.copytree(self.folder / "whole", self.folder / "old")
            victim = next((self.folder / "old").glob("*" + suffix))
            victim.write_bytes(b"junk")
            manifest = (self.folder / "old/manifest.json").read_bytes()
            done = self.moejit("cache", "merge", "more", "-o", "old", expect=2)
            self.assertIn(victim.name.replace(".kernel", ""), done.err)
            self.assertEqual((self.folder / "old/manifest.json").read_bytes(), manifest)
            # A folder that has it makes it whole.
            self.moejit("cache", "merge", "more", "whole", "-o", "old")
            self.moejit("cache", "verify", "--cache", "old")
            self.moejit("aot", files[1], "-o", "old")


if __name__ == "__main__":
    main()
