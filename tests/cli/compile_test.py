"""moejit compile: the table, every stage, the cache, refusals."""

import json
import os
import resource
import subprocess

from harness import KERNELS, MOEJIT, ROOT, CliTest, grouped, main

STAGE_FILES = {"moe": "moe.mlir", "plan": "plan.json", "tile": "tile.mlir", "ptx-ir": "ptx.mlir",
               "cuda": "kernel.cu", "ptx": "kernel.ptx", "cubin": "kernel.cubin",
               "resources": "resources.txt"}
MARKS = {"moe": "moe.gemm grouped", "plan": '"tileM": 128', "tile": "tile.", "ptx-ir": "ptx.kernel",
         "cuda": "moejit_kernel(", "ptx": ".entry moejit_kernel", "resources": "registers "}

# The message of a batched GEMM with static scales: where, what, and what works instead.
REFUSAL = """\
{file}:8:8: error: 'moe.gemm' op batched takes dynamic activation scales, got static [MJ001]
  %y = moe.gemm batched(%x, %ids, %w)
       ^
{file}:6:21: note: x is declared here
moe.kernel @gate_up(%x: tensor<?x4096xf8E4M3FN, #x>, %ids: tensor<?xi32>,
                    ^
{file}:8:8: note: 'eager' consumes static scales, one expert at a time
  %y = moe.gemm batched(%x, %ids, %w)
       ^
{file}:8:8: note: 'grouped' takes one static scale per tensor (granule = [*, *]) or per expert (granule = [expert, *])
{file}:8:8: note: or use a dynamic scheme: source = dynamic, scales computed from the live activations
error: {file} breaks a rule
note: moejit explain MJ001 says why, and what works
"""


class Compile(CliTest):
    def test_table_names_every_range_and_says_where_kernels_came_from(self):
        file = KERNELS / "deepseek-v3.gate_up.mlir"
        first = self.moejit("compile", file).out
        begins = [begin for begin, _ in self.ranges(file)]
        self.assertIn("grouped, 256 experts, N 4096, K 7168", first)
        self.assertGreaterEqual(len(begins), 2)
        self.assertRegex(first, rf"(?m)^0 to {begins[1] - 1} +64x\d+x128 .* compiled in ")
        self.assertRegex(first, rf"(?m)^{begins[-1]} or more +128x256x128 ")
        second = self.moejit("compile", file).out
        self.assertEqual(second.count("from cache"), len(begins))
        self.assertIn(str(self.folder / ".cache/moejit"), second)

    def test_catalogue_kernels_spill_next_to_nothing(self):
        for name in ("deepseek-v3.gate_up", "mixtral-8x7b.down", "glm-4.5.gate_up"):
            found = self.moejit("compile", KERNELS / f"{name}.mlir", "--no-cache", "--json").json()
            # Ranges may share a plan, and so a kernel.
            self.assertEqual(found["compiled"], len({kernel["key"] for kernel in found["kernels"]}))
            for kernel in found["kernels"]:
                # Tails leave consumers and the producer few registers: a word or some, once a tile.
                most = 32 if kernel["plan"]["tailRows"] else 0
                self.assertLessEqual(kernel["spillStoreBytes"] + kernel["spillLoadBytes"], most, name)
                self.assertLessEqual(kernel["registers"] * kernel["threads"], 65536, name)
                self.assertGreater(kernel["cubinBytes"], 1000)
                self.assertEqual(kernel["plan"]["tileK"], 128)

    def test_each_stage_goes_to_stdout(self):
        file = self.write("a.mlir", grouped())
        for stage, mark in MARKS.items():
            done = self.moejit("compile", file, "--emit", stage)
            self.assertIn(mark, done.out, stage)
            self.assertNotIn("error", done.err, stage)
        cubin = self.moejit("compile", file, "--emit", "cubin").bytes
        self.assertEqual(cubin[:4], b"\x7fELF")
        as_json = self.moejit("compile", file, "--emit", "tile", "--json").json()
        self.assertEqual(as_json["text"], self.moejit("compile", file, "--emit", "tile").out)
        json.loads(self.moejit("compile", file, "--emit", "plan").out)

    def test_all_stages_go_to_files_equal_to_what_each_prints(self):
        file = self.write("a.mlir", grouped())
        printed = self.moejit("compile", file, "--emit", "all", "-o", "deep/stages")
        files = {stage: self.folder / "deep/stages" / name for stage, name in STAGE_FILES.items()}
        self.assertEqual(printed.out, "".join(f"deep/stages/{n}\n" for n in STAGE_FILES.values()))
        for stage, path in files.items():
            self.assertEqual(path.read_bytes(), self.moejit("compile", file, "--emit", stage).bytes)
        self.moejit("compile", file, "--emit", "tile", "-o", "one.mlir")
        self.assertEqual((self.folder / "one.mlir").read_bytes(), files["tile"].read_bytes())

    def test_rows_choose_the_plan(self):
        file = self.write("a.mlir", grouped())
        ranges = self.ranges(file)
        rows = [0, ranges[-1][0] - 1, ranges[-1][0], 10**6]
        plans = [json.loads(self.moejit("compile", file, "--emit", "plan", "--rows", count).out) for count in rows]
        # Each says why.
        why = [plan.pop("why") for plan in plans]
        self.assertEqual([each["rows"] for each in why], rows)
        self.assertEqual(why[3]["estimate"]["limit"], "memory")
        self.assertEqual(len(why[3]["alternatives"]), 3)
        self.assertEqual((plans[0]["tileM"], plans[3]["tileM"]), (64, 128))
        self.assertNotEqual(plans[1], plans[2])
        self.assertEqual(plans[2], plans[3])
        found = self.moejit("compile", file, "--rows", rows[2], "--json").json()
        self.assertEqual([kernel["minRows"] for kernel in found["kernels"]], [rows[2]])
        self.assertIsNone(found["kernels"][0]["maxRows"])

    def test_up_to_cuda_no_nvrtc_is_needed(self):
        file = self.write("a.mlir", grouped())
        for stage in ("moe", "plan", "tile", "ptx-ir", "cuda"):
            self.moejit("compile", file, "--emit", stage, "--nvrtc", "/nowhere/libnvrtc.so")
        for rest in (["--emit", "ptx"], ["--emit", "all", "-o", "stages"], []):
            done = self.moejit("compile", file, "--nvrtc", "/nowhere/libnvrtc.so", *rest, expect=3)
            self.assertIn("error: NVRTC is not on this machine", done.err)
            self.assertIn("/nowhere/libnvrtc.so", done.err)
        # What could be made is there to be looked at.
        self.assertEqual(sorted(path.name for path in (self.folder / "stages").iterdir()),
                         sorted(["moe.mlir", "plan.json", "tile.mlir", "ptx.mlir", "kernel.cu"]))

    def test_passes_can_be_left_out(self):
        file = self.write("a.mlir", grouped())
        whole = self.moejit("compile", file, "--emit", "tile").out
        part = self.moejit("compile", file, "--emit", "tile", "--skip-pass", "tile-split-columns").out
        self.assertNotEqual(whole, part)
        self.assertFalse((self.folder / ".cache/moejit").exists())
        done = self.moejit("compile", file, "--skip-pass", "tile-split", expect=2)
        self.assertIn("the optional passes: ", done.err)

    def test_batched_static_is_refused_with_what_works_instead(self):
        file = ROOT / "tests/cases/batched-static.mlir"
        done = self.moejit("compile", file, expect=1)
        self.assertEqual(done.out, "")
        self.assertEqual(done.err, REFUSAL.format(file=file))

    def test_refusals_are_json_too(self):
        done = self.moejit("compile", ROOT / "tests/cases/batched-static.mlir", "--json", expect=1)
        self.assertEqual(done.json()["error"]["code"], "rule-violation")
        self.assertEqual(done.json()["exit"], 1)

    def test_bad_files_are_diagnosed_where_they_are_bad(self):
        file = self.write("a.mlir", grouped().replace("grouped(", "groped("))
        done = self.moejit("compile", file, expect=2)
        self.assertRegex(done.err, r"a\.mlir:\d+:\d+: error: ")
        self.assertIn("^", done.err)
        done = self.moejit("compile", "absent.mlir", expect=2)
        self.assertIn("cannot read absent.mlir: No such file or directory", done.err)
        done = self.moejit("compile", self.folder, expect=2)
        self.assertIn("cannot read", done.err)
        self.moejit("compile", self.write("empty.mlir", ""), expect=2)
        self.moejit("compile", self.write("bytes.mlir", "\x00\x7f\x01"), expect=2)

    def test_deep_nesting_is_refused_before_it_is_parsed(self):
        for name, text in (("regions", "module {" * 20000), ("lists", "#a = " + "[" * 200000),
                           ("types", "moe.kernel @a(%x: " + "tensor<1x" * 50000),
                           ("arrows", "!a = " + "(() -> " * 50000)):
            done = self.moejit("compile", self.write(f"{name}.mlir", text), expect=2)
            self.assertIn("brackets nest too deep", done.err)
        quoted = "// " + "<" * 1000 + "\n" + grouped() + "module @\"" + "[" * 1000 + "\" {}\n"
        self.moejit("compile", self.write("quoted.mlir", quoted), "--emit", "moe")

    def test_what_mlirs_parser_does_not_survive_is_refused_before(self):
        for attribute in ("array<index: 0>", "array < // note\n index: 1, 2>", "array<!a: 0>"):
            file = self.write("a.mlir", f"!a = index\nmodule attributes {{x.a = {attribute}}} {{}}\n")
            self.assertIn("array<index>", self.moejit("compile", file, expect=2).err)

    def test_one_kernel_of_several_is_named(self):
        text = grouped(name="first") + grouped(n=512, name="second").split("\n\n", 1)[1]
        file = self.write("two.mlir", text)
        done = self.moejit("compile", file, "--emit", "moe", expect=2)
        self.assertIn("first", done.err)
        self.assertIn("second", done.err)
        self.assertIn("512", self.moejit("compile", file, "--emit", "moe", "--kernel", "second").out)
        self.moejit("compile", file, "--emit", "moe", "--kernel", "third", expect=2)

    def test_extents_are_replaced_and_checked(self):
        file = self.write("a.mlir", grouped())
        text = self.moejit("compile", file, "--emit", "moe", "--experts", 5, "--n", 128, "--k", 512).out
        self.assertIn("tensor<5x128x512xf8E4M3FN", text)
        self.assertIn("tensor<6xi32>", text)
        done = self.moejit("compile", file, "--n", 100, expect=1)
        self.assertIn("[MJ", done.err)
        self.moejit("compile", file, "--experts", 0, expect=2)

    def test_architectures(self):
        file = self.write("a.mlir", grouped())
        self.assertIn("[MJ", self.moejit("compile", file, "--arch", "sm_80", expect=1).err)
        self.assertIn("sm_90a", self.moejit("compile", file, "--arch", "sm_90", expect=2).err)

    def test_spec_text_stands_for_a_file(self):
        file = self.write("a.mlir", grouped())
        spec = self.moejit("compile", file, "--rows", 0, "--json").json()["spec"]
        self.assertEqual(self.moejit("compile", "--spec", spec, "--emit", "cuda").out,
                         self.moejit("compile", file, "--emit", "cuda").out)
        self.moejit("compile", "--spec", spec[:-3], "--emit", "cuda", expect=2)
        for command in ("compile", "run", "aot"):
            done = self.moejit(command, file, "--spec", spec, expect=2)
            self.assertRegex(done.err, "--spec stands for a (FILE|PATH), got")

    def test_an_eager_spec_of_many_experts_breaks_a_rule(self):
        spec = self.moejit("compile", self.write("a.mlir", grouped()), "--rows", 0, "--json").json()["spec"]
        done = self.moejit("compile", "--spec", spec.replace("grouped", "eager"), "--emit", "moe", expect=1)
        self.assertIn("[MJ012]", done.err)
        self.assertNotIn("--experts", done.err)


class Cached(CliTest):
    def test_what_is_there_is_not_compiled_again(self):
        file = self.write("a.mlir", grouped())
        done, count = self.counting("compile", file, "--json")
        self.assertEqual((count, done.json()["compiled"]), (2, 2))
        done, count = self.counting("compile", file, "--json")
        self.assertEqual((count, done.json()["compiled"]), (0, 0))
        # Stages come from the same kernels.
        for stage in ("ptx", "cubin", "resources"):
            self.assertEqual(self.counting("compile", file, "--emit", stage)[1], 0)
        self.assertEqual(self.counting("compile", file, "--emit", "ptx", "--json")[0].json()["compiled"], 0)
        # Another name, another place, comments: the same kernel.
        other = self.write("b.mlir", "// again\n" + grouped(name="other"))
        self.assertEqual(self.counting("compile", other)[1], 0)

    def test_every_change_of_the_kernel_compiles_once(self):
        self.counting("compile", self.write("a.mlir", grouped()))
        changes = {
            "N": {"n": 384},
            "K": {"k": 384},
            "experts": {"experts": 4},
            "a block size": {"w_granule": "[1, *, *]", "x_granule": "[1, *]", "x_layout": ""},
            "a scale layout": {"x_layout": ""},
            "the output type": {"out": "f16"},
        }
        for name, change in changes.items():
            file = self.write("b.mlir", grouped(**change))
            self.assertEqual(self.counting("compile", file)[1], 2, name)
            self.assertEqual(self.counting("compile", file)[1], 0, name)
        self.assertEqual(self.counting("compile", self.folder / "a.mlir")[1], 0)

    def test_no_cache_leaves_nothing(self):
        file = self.write("a.mlir", grouped())
        for _ in range(2):
            self.assertEqual(self.counting("compile", file, "--no-cache", "--rows", 0)[1], 1)
        self.assertFalse((self.folder / ".cache").exists())

    def test_cache_folder_is_chosen(self):
        file = self.write("a.mlir", grouped())
        self.assertEqual(self.counting("compile", file, "--cache", "kept")[1], 2)
        self.assertEqual(self.counting("compile", file, "--cache", "kept")[1], 0)
        self.assertFalse((self.folder / ".cache").exists())
        self.assertEqual(len(list((self.folder / "kept").glob("*.kernel"))), 2)

    def test_damaged_entries_are_built_again(self):
        file = self.write("a.mlir", grouped())
        self.counting("compile", file, "--cache", "kept")
        victim = next((self.folder / "kept").glob("*.kernel"))
        victim.write_bytes(victim.read_bytes()[:-100])
        done, count = self.counting("compile", file, "--cache", "kept")
        self.assertEqual(count, 1)
        self.assertIn("warning: ", done.err)
        self.assertEqual(self.counting("compile", file, "--cache", "kept")[1], 0)

    def test_unusable_cache_folder_costs_a_warning(self):
        file = self.write("a.mlir", grouped())
        blocked = self.write("blocked", "not a folder")
        done, count = self.counting("compile", file, "--cache", blocked)
        self.assertEqual(count, 2)
        self.assertEqual(done.err.count("warning: "), 1)

    def test_failed_compilations_say_so_and_are_not_kept(self):
        file = self.write("a.mlir", grouped())
        self.environment["FAKE_NVRTC_FAILS"] = "1"
        done, count = self.counting("compile", file, "--rows", 0, expect=4)
        self.assertEqual(count, 1)
        self.assertIn("error: NVRTC failed to compile", done.err)
        del self.environment["FAKE_NVRTC_FAILS"]
        self.assertEqual(self.counting("compile", file, "--rows", 0)[1], 1)


class Refusing(CliTest):
    def test_what_a_folder_did_not_take_is_not_called_kept(self):
        file = self.write("a.mlir", grouped())
        little = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))  # a kernel is larger
        for words, isKept in ((("--cache", "kept"), False), (("--no-cache",), False), (("--cache", "other"), True)):
            done = [subprocess.run([MOEJIT, "compile", file, *words, *more], cwd=self.folder, env=self.environment,
                                   capture_output=True, text=True, preexec_fn=None if isKept else little)
                    for more in ((), ("--json",))]
            self.assertEqual([each.returncode for each in done], [0, 0], done[0].stderr)
            self.assertEqual("\nkept in " in done[0].stdout, isKept)
            self.assertEqual("\nnot kept: " in done[0].stdout, words[-1] == "kept")
            self.assertEqual(json.loads(done[1].stdout)["kept"], isKept)


class Strange(CliTest):
    def test_what_a_description_says_steers_no_terminal(self):
        done = self.moejit("compile", self.write("a.mlir", "moe.kernel @x(%x \x1b[31m\x07: tensor<\r?"), expect=2)
        self.assertIn("a.mlir:1:18: error", done.err)
        self.assertIn("\\x1b[31m\\x07", done.err)
        self.assertFalse(set(done.err) & set("\x1b\x07\r"))

    def test_pipes_in_a_folder_are_passed_over(self):
        (self.folder / "kernels").mkdir()
        os.mkfifo(self.folder / "kernels/a.mlir")
        (self.folder / "kernels/b.mlir").mkdir()
        self.assertIn("no .mlir file", self.moejit("bench", "kernels", expect=2).err)
        self.write("kernels/c.mlir", grouped())
        self.assertTrue(self.moejit("aot", "kernels", "-o", "made", "--json").json()["closed"])
        (self.folder / "kernels/d.mlir").symlink_to("nowhere")
        self.assertIn("d.mlir: No such file", self.moejit("aot", "kernels", "-o", "made", expect=2).err)


if __name__ == "__main__":
    main()
