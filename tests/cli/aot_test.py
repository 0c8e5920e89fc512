"""moejit aot of checkpoints: closed sets of kernels, tokens, shards, runs that were killed."""

import json
import os
import resource
import shutil
import signal
import subprocess
import time

from harness import FAKE_NVRTC, MOEJIT, CliTest, grouped, main

CONFIG = {"model_type": "deepseek_v3", "hidden_size": 256, "moe_intermediate_size": 384, "n_routed_experts": 4,
          "num_experts_per_tok": 2, "num_hidden_layers": 4, "hidden_act": "silu",
          "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128],
                                  "activation_scheme": "dynamic", "fmt": "e4m3"}}


class Checkpoint(CliTest):
    def config(self, name="config.json", **changes):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({**CONFIG, **changes}))
        return path

    def aot(self, *words, folder="made", expect=0):
        return self.moejit("aot", *words, "-o", folder, "--json", expect=expect).json()

    def manifest(self, folder="made"):
        return json.loads((self.folder / folder / "manifest.json").read_text())

    def rows(self, folder="made"):
        """The row ranges of each spec of the manifest."""
        rows = {}
        for kernel in self.manifest(folder)["kernels"]:
            rows.setdefault(kernel["spec"], []).extend(kernel["rows"])
        return {spec: sorted(ranges) for spec, ranges in rows.items()}

    def test_every_form_and_row_count(self):
        made = self.aot(self.config())
        self.assertTrue(made["closed"])
        names = {kernel["file"].split(": ")[1] for kernel in made["kernels"]}
        for projection in ("gate_up", "down"):
            for form in ("eager", "batched", "grouped", "grouped from bf16", "quantization"):
                self.assertIn(f"{projection} {form}", names)
        for spec, ranges in self.rows().items():
            self.assertEqual((ranges[0][0], ranges[-1][1]), (0, None), spec)
            for before, after in zip(ranges, ranges[1:]):
                self.assertEqual(before[1] + 1, after[0], spec)

    def test_the_manifest_says_what_each_kernel_is_and_needs(self):
        made = self.aot(self.config(), "--dispatch", "grouped", "--input", "fp8")
        manifest = self.manifest()
        by_key = {kernel["key"]: kernel for kernel in made["kernels"]}
        self.assertEqual({kernel["name"] for kernel in manifest["kernels"]}, set(by_key))
        for kernel in manifest["kernels"]:
            wanted = by_key[kernel["name"]]
            for field in ("arch", "spec", "registers", "spillStoreBytes", "sharedBytes", "threads", "minDriver"):
                self.assertEqual(kernel[field], wanted[field], field)
            self.assertEqual(kernel["plan"], wanted["planText"])
            self.assertIn(f"{kernel['name']}.kernel", manifest["files"])
            self.assertIn(f"{kernel['lookup']}.index", manifest["files"])
        self.assertEqual(manifest["minDriver"], made["minDriver"])
        self.assertIn(manifest["minDriver"], (12000, 13000))

    def test_tokens_bound_the_set(self):
        config = self.config()
        few = self.aot(config, "--dispatch", "grouped", "--input", "fp8", "--tokens", "1:8", folder="few")
        many = self.aot(config, "--dispatch", "grouped", "--input", "fp8", folder="many")
        self.assertLess(len(few["kernels"]), len(many["kernels"]))
        for ranges in self.rows("few").values():
            self.assertEqual(ranges[0][0], 0)
            self.assertGreaterEqual(ranges[-1][1], 16)  # two experts a token
        for wrong in ("8:1", "", "a", "1:", "-3", "1:2:3", "1-8"):
            self.moejit("aot", config, "--tokens", wrong, "-o", "no", expect=2)

    def test_forms_inputs_and_splits(self):
        config = self.config()
        forms = lambda made: {kernel["spec"].split(";")[1] for kernel in made["kernels"]}
        made = self.aot(config, "--dispatch", "masked", "--masked-rows", 128, "--input", "fp8", "--tokens", "4")
        self.assertEqual(forms(made), {"dispatch=masked"})
        self.moejit("aot", config, "--dispatch", "masked", "-o", "no", expect=2)
        self.moejit("aot", config, "--dispatch", "sorted", "-o", "no", expect=2)
        self.moejit("aot", config, "--input", "fp4", "-o", "no", expect=2)
        done = self.moejit("aot", config, "--tp", 5, "-o", "no", expect=2)
        self.assertIn("384", done.err)
        made = self.aot(config, "--ep", 2, "--dispatch", "batched", "--input", "fp8", "--tokens", "4")
        self.assertTrue(all("experts=2;" in kernel["spec"] for kernel in made["kernels"]))

    def test_what_has_no_fp8_is_said(self):
        plain = self.config("plain/config.json", quantization_config=None)
        done = self.moejit("aot", plain, "-o", "no", expect=2)
        self.assertIn("no FP8 experts", done.err)
        self.config("fp8/config.json")
        (self.folder / "many").mkdir()
        (self.folder / "plain").rename(self.folder / "many/plain")
        (self.folder / "fp8").rename(self.folder / "many/fp8")
        done = self.moejit("aot", "many", "--dispatch", "grouped", "--input", "fp8", "--tokens", 4, "-o", "made")
        self.assertIn("plain/config.json: no FP8 experts", done.err)
        self.assertIn("fp8/config.json: gate_up grouped", done.out)

    def test_options_that_no_path_has_a_use_for_are_refused(self):
        config, file = self.config(), self.write("a.mlir", grouped())
        for command in ("aot", "doctor"):
            for option in (("--tp", 2), ("--ep", 2), ("--dispatch", "grouped"), ("--input", "fp8"), ("--masked-rows", 8)):
                done = self.moejit(command, file, *option, expect=2)
                self.assertIn(f"{option[0]} is of a checkpoint", done.err)
            for option in (("--experts", 4), ("--n", 128), ("--k", 128), ("--kernel", "gemm")):
                done = self.moejit(command, config, *option, expect=2)
                self.assertIn(f"{option[0]} is of a description", done.err)
        # Of both, each takes its own.
        self.moejit("aot", config, file, "--n", 128, "--dispatch", "grouped", "--input", "fp8", "--tokens", 4, "-o", "made")

    def test_an_impossible_gemm_is_refused_by_rule(self):
        odd = self.config(moe_intermediate_size=200)
        done = self.moejit("aot", odd, "--tp", 8, "-o", "no", expect=1)
        self.assertRegex(done.err, r"MJ\d+")
        self.assertIn("no form is legal", done.err)


class Building(CliTest):
    def test_a_killed_run_goes_on_where_it_was(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 192, 256, 320, 384, 448)]
        wanted = {key for file in files for _, key in self.ranges(file)}
        process = subprocess.Popen([MOEJIT, "aot", *files, "-o", "made", "--jobs", "2"], cwd=self.folder,
                                   env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        kept = lambda: {path.stem for path in (self.folder / "made").glob("*.kernel")}
        while len(kept()) < 3 and process.poll() is None:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        before = kept()
        self.assertTrue(3 <= len(before) < len(wanted), f"killed too late: {len(before)}")
        self.assertFalse((self.folder / "made/manifest.json").exists())
        done, count = self.counting("aot", *files, "-o", "made", "--json")
        self.assertEqual(count, len(wanted) - len(before))
        self.assertTrue(done.json()["closed"])
        self.assertEqual(kept(), wanted)
        self.moejit("cache", "verify", "--cache", "made", "--bundle-sha256", done.json()["manifestSha256"])
        self.assertFalse([path for path in (self.folder / "made").iterdir() if path.suffix in (".tmp", ".lock")])

    def test_a_bundle_built_twice_has_one_digest(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        digests = {self.moejit("aot", *order, "-o", folder, "--jobs", jobs, "--json").json()["manifestSha256"]
                   for folder, order, jobs in (("a", files, 1), ("b", files[::-1], 3))}
        self.assertEqual(len(digests), 1)

    def test_shards_fill_one_folder_at_once(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256, 384)]
        wanted = {key for file in files for _, key in self.ranges(file)}
        shards = [subprocess.Popen([MOEJIT, "aot", *files, "-o", "made", "--shard", f"{i}/2", "--json"],
                                   cwd=self.folder, env=self.environment, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL) for i in range(2)]
        made = [json.loads(shard.communicate()[0]) for shard in shards]
        keys = [{kernel["key"] for kernel in each["kernels"]} for each in made]
        self.assertEqual(keys[0] | keys[1], wanted)
        self.assertFalse(keys[0] & keys[1])
        manifest = json.loads((self.folder / "made/manifest.json").read_text())
        self.assertEqual({kernel["name"] for kernel in manifest["kernels"]}, wanted)
        done, count = self.counting("aot", *files, "-o", "made", "--json")
        self.assertEqual((count, done.json()["closed"]), (0, True))
        for wrong in ("2/2", "-1/2", "1", "/2", "0/0", "0/2x"):
            self.moejit("aot", *files, "-o", "made", f"--shard={wrong}", expect=2)

    def test_a_shard_without_kernels_says_so(self):
        file = self.write("a.mlir", grouped())
        done = self.moejit("aot", file, "-o", "made", "--shard", "50/100")
        self.assertIn("shard 50 of 100 has nothing to do: only 2 kernels are wanted in all", done.out)
        self.assertFalse((self.folder / "made/manifest.json").exists())
        made = self.moejit("aot", file, "-o", "made", "--shard", "50/100", "--json").json()
        self.assertEqual((made["kernels"], made["bundle"], made["closed"]), ([], False, False))
        digest = self.moejit("aot", file, "-o", "made", "--json").json()["manifestSha256"]
        self.moejit("aot", file, "-o", "made", "--shard", "50/100")
        self.moejit("cache", "verify", "--cache", "made", "--bundle-sha256", digest)

    def test_a_range_that_was_lost_is_no_success(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.environment["FAKE_NVRTC_SLEEP_MS"] = "700"
        self.counting("aot", files[0], "--rows", 0, "--cache", "elsewhere")  # finds the real NVRTC
        for words in (("--rows", 0), ("--shard", "0/1")):
            process = subprocess.Popen([MOEJIT, "aot", *files, "-o", "made", "--jobs", "1", "--nvrtc", FAKE_NVRTC,
                                        *map(str, words)], cwd=self.folder, env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            # Another process replaces the first index while the second is made.
            index = lambda: list((self.folder / "made").glob("*.index"))
            while not index() and process.poll() is None:
                time.sleep(0.005)
            time.sleep(0.1)
            index()[0].unlink()
            _, said = process.communicate()
            self.assertEqual(process.returncode, 2, said)
            self.assertIn("manifest.json does not list all that this run built", said)
            self.assertIn("128.mlir, ", said)
            shutil.rmtree(self.folder / "made")

    def test_progress_counts(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256, 384)]
        self.environment["FAKE_NVRTC_SLEEP_MS"] = "700"
        done, _ = self.counting("aot", *files, "-o", "made", "--jobs", 1)
        self.assertRegex(done.err, r"(?m)^\d+/\d+ kernels, \d+\.\d+ a second, \d+ (s|min)")
        self.assertRegex(done.err, r"(?m)^(\d+)/\1 kernels in \d+ s")
        self.assertNotIn("kernels", self.counting("aot", *files, "-o", "made", "--json")[0].err)

    def test_a_full_disk_is_no_defect_and_makes_no_bundle(self):
        file = self.write("a.mlir", grouped())
        full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # a kernel is larger
        for words in (("-o", "made"), ("--cache", "kept")):
            done = subprocess.run([MOEJIT, "aot", file, *words], cwd=self.folder, env=self.environment,
                                  capture_output=True, text=True, preexec_fn=full)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn("error: ", done.stderr)
            self.assertIn("File too large", done.stderr)
            self.assertIn("goes on from there", done.stderr)
        self.assertFalse((self.folder / "made/manifest.json").exists())
        self.assertTrue(self.moejit("aot", file, "-o", "made", "--json").json()["closed"])

    def test_a_umask_that_takes_our_own_bits(self):
        file = self.write("a.mlir", grouped())
        before = os.umask(0o777)
        try:
            self.moejit("aot", file, "-o", "made/deep")
        finally:
            os.umask(before)
        modes = {path.stat().st_mode & 0o777 for path in (self.folder / "made/deep").iterdir()}
        self.assertEqual(modes, {0o600})
        for folder in ("made", "made/deep"):
            self.assertEqual((self.folder / folder).stat().st_mode & 0o777, 0o700)

    def test_an_architecture_named_twice_is_one(self):
        file = self.write("a.mlir", grouped())
        once, twice = (self.moejit("aot", file, "-o", folder, "--arch", arch, "--json").json()["kernels"]
                       for folder, arch in (("once", "sm_90a"), ("twice", "sm_90a,sm_90a")))
        self.assertEqual([kernel["key"] for kernel in once], [kernel["key"] for kernel in twice])

    def test_one_failure_keeps_what_was_made(self):
        files = [self.write(f"{n}.mlir", grouped(n=n)) for n in (128, 256)]
        self.environment["FAKE_NVRTC_FAILS"] = "1"
        done, _ = self.counting("aot", *files, "-o", "made", expect=4)
        self.assertIn("others failed too", done.err)
        self.assertFalse((self.folder / "made/manifest.json").exists())


if __name__ == "__main__":
    main()
