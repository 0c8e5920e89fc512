"""moejit run: right results on the emulator, every routing, wrong results seen, nothing compiled twice."""

import json
import shutil

from harness import KERNELS, CliTest, grouped, main

EAGER = """
#x = #moe.scales<granule = [*, *], source = static>
#w = #moe.scales<granule = [*, *]>
moe.kernel @dense(%x: tensor<?x256xf8E4M3FN, #x>, %w: tensor<128x256xf8E4M3FN, #w>) -> tensor<?x128xf32> {
  %y = moe.gemm eager(%x, %w) : tensor<?x256xf8E4M3FN, #x>, tensor<128x256xf8E4M3FN, #w> -> tensor<?x128xf32>
  moe.return %y : tensor<?x128xf32>
}
"""


class Run(CliTest):
    def run_json(self, file, *words, expect=0):
        return self.moejit("run", file, "--device", "emulator", "--json", *words, expect=expect).json()

    def test_catalogue_kernel_is_right(self):
        done = self.moejit("run", KERNELS / "deepseek-v3.gate_up.mlir", "--tokens", 64, "--experts", 4,
                           "--n", 512, "--device", "emulator", "--check")
        self.assertIn("grouped, 4 experts, N 512, K 7168", done.out)
        self.assertIn("device    emulator (sm_90a)", done.out)
        self.assertIn("rows      64, of which experts own 64 (uniform)", done.out)
        self.assertIn("check     equal to the oracle, ok: relative error", done.out)

    def test_auto_says_what_it_took(self):
        done = self.moejit("run", self.write("a.mlir", grouped()), "--tokens", 8, "--check", "--json")
        found = done.json()
        self.assertIn(found["device"], ("gpu", "emulator"))
        if found["device"] == "emulator":
            self.assertIn("note: no GPU to use", done.err)

    def test_routings(self):
        file = self.write("a.mlir", grouped())
        owned = {"uniform": 70, "skewed": 70, "one-expert": 70, "empty": 0}
        for routing, expected in owned.items():
            found = self.run_json(file, "--tokens", 70, "--routing", routing, "--check")
            self.assertEqual(found["ownedRows"], expected, routing)
            self.assertEqual(found["check"]["unownedRows"], 70 - expected, routing)
            self.assertTrue(found["check"]["ok"], routing)

    def test_routing_files(self):
        file = self.write("a.mlir", grouped())
        counts = self.write("r.json", json.dumps({"counts": [3, 0, 5]}))
        found = self.run_json(file, "--tokens", 9, "--routing", counts, "--check")
        self.assertEqual((found["ownedRows"], found["check"]["unownedRows"]), (8, 1))
        # Illegal offsets are clamped by the kernel.
        offsets = self.write("o.json", json.dumps({"offsets": [-5, 4, 2, 1000]}))
        found = self.run_json(file, "--tokens", 9, "--routing", offsets, "--check")
        self.assertEqual(found["ownedRows"], 9)
        for text, word in (('{"counts": [3, 0]}', "expected 3"), ('{"counts": [30, 0, 5]}', "sum to 35"),
                           ('{"counts": [3, 0, 5', "r.json"), ('{"offsets": [1]}', "expected 4")):
            self.write("r.json", text)
            done = self.moejit("run", file, "--tokens", 9, "--routing", counts, expect=2)
            self.assertIn(word, done.err)
        done = self.moejit("run", file, "--routing", "unifrom", expect=2)
        self.assertIn("Did you mean 'uniform'?", done.err)
        self.moejit("run", file, "--routing", "absent.json", expect=2)

    def test_edges_of_row_counts(self):
        file = self.write("a.mlir", grouped())
        for rows in (0, 1, 63, 65, 129):
            found = self.run_json(file, "--tokens", rows, "--check")
            self.assertEqual(found["rows"], rows)
            self.assertTrue(found["check"]["ok"], rows)

    def test_gaps_between_rows(self):
        for layout in ({}, {"x_granule": "[1, *]", "w_granule": "[1, 1, *]", "x_layout": ""}):
            file = self.write("a.mlir", grouped(n=136, k=272, **layout))
            found = self.run_json(file, "--tokens", 33, "--rows-padding", "--check")
            self.assertTrue(found["check"]["ok"], layout)

    def test_eager(self):
        file = self.write("e.mlir", EAGER)
        found = self.run_json(file, "--tokens", 40, "--check")
        self.assertTrue(found["check"]["ok"])
        self.assertEqual(found["ownedRows"], 40)
        self.moejit("run", file, "--experts", 2, expect=2)

    def test_seeds_give_other_data_and_the_same_again(self):
        file = self.write("a.mlir", grouped())
        worst = [self.run_json(file, "--tokens", 20, "--check", "--seed", seed)["check"]["worstOut"]
                 for seed in (1, 2, 1)]
        self.assertEqual(worst[0], worst[2])
        self.assertNotEqual(worst[0], worst[1])

    def test_a_second_run_compiles_nothing(self):
        file = self.write("a.mlir", grouped())
        words = ["run", file, "--device", "emulator", "--check", "--json"]
        # The first and the last row count of each range, as far as the emulator is quick.
        ranges = [range for range in self.ranges(file) if range[0] < 700]
        tokens = [30, 30, *(count for begin, _ in ranges[1:] for count in (begin - 1, begin)), ranges[-1][0] + 9]
        seen = set()
        for count in tokens:
            key = [key for begin, key in ranges if begin <= count][-1]
            done, compiled = self.counting(*words, "--tokens", count)
            self.assertEqual((compiled, done.json()["compiled"]), (int(key not in seen),) * 2, count)
            self.assertTrue(done.json()["check"]["ok"])
            seen.add(key)
        self.assertEqual(len(seen), 2)
        # What run compiled, compile finds.
        self.assertEqual(self.counting("compile", file)[1], 0)
        self.assertEqual(self.counting(*words, "--tokens", 30, "--n", 128)[1], 1)

    def test_the_emulator_needs_no_nvrtc(self):
        file = self.write("a.mlir", grouped())
        done = self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--check", "--json",
                           "--nvrtc", "/nowhere/libnvrtc.so")
        self.assertTrue(done.json()["check"]["ok"])
        self.assertIn("no NVRTC on this machine", done.err)

    def test_without_cache_nothing_stays(self):
        file = self.write("a.mlir", grouped())
        self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--no-cache")
        self.assertFalse((self.folder / ".cache").exists())

    def test_beside_a_bundle_units_go_where_the_cache_is_or_nowhere(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        run = ("run", file, "--tokens", 9, "--device", "emulator", "--bundle", "made")
        self.moejit(*run, "--no-cache")
        self.assertFalse((self.folder / ".cache").exists())
        self.moejit(*run, "--cache", "kept")
        self.assertFalse((self.folder / ".cache").exists())
        self.assertEqual(len(list((self.folder / "kept/emulator").glob("*.so"))), 1)
        self.moejit(*run)
        self.assertEqual(len(list((self.folder / ".cache/moejit/emulator").glob("*.so"))), 1)
        self.assertFalse((self.folder / "made/emulator").exists())

    def test_no_unit_is_loaded_from_below_a_folder_that_others_write(self):
        file = self.write("a.mlir", grouped())
        self.moejit("aot", file, "-o", "made")
        (self.folder / "open").mkdir()
        (self.folder / "open").chmod(0o777)
        self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--bundle", "made", "--cache", "open")
        self.assertEqual(list((self.folder / "open").glob("emulator/*.so")), [])

    def test_without_a_path_the_standard_one_serves(self):
        file = self.write("a.mlir", grouped())
        del self.environment["PATH"]
        found = shutil.which("c++", path="/usr/bin:/bin")
        self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--no-cache", expect=0 if found else 3)

    def test_a_compiler_that_compiles_nothing_is_none(self):
        file = self.write("a.mlir", grouped())
        real = shutil.which("c++", path=self.environment["PATH"])
        compilers = self.folder / "bin"
        compilers.mkdir()
        for name in ("c++", "g++", "clang++"):
            (compilers / name).write_text("""#!/bin/sh
[ "$1" = --version ] && { echo "c++ 1.0"; exit 0; }
echo "cannot execute 'cc1plus'" >&2
exit 1
""")
            (compilers / name).chmod(0o755)
        before = self.environment["PATH"]
        self.environment["PATH"] = str(compilers)
        run = ("run", file, "--tokens", 9, "--device", "emulator")
        done = self.moejit(*run, "--no-cache", expect=3)
        self.assertIn("the emulator needs a C++ compiler", done.err)
        self.assertIn("note: c++: cannot execute 'cc1plus'", done.err)
        # The next one is tried.
        (compilers / "g++").write_text(f"""#!/bin/sh
PATH='{before}' exec '{real}' "$@"
""")
        self.moejit(*run, "--check")

    def break_kernel(self, file, right, wrong):
        """Has the emulator's compiler change the body of the kernel for 9 rows of `file`."""
        self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--check")
        units = self.folder / ".cache/moejit/emulator"
        source, = units.glob("*.cpp")
        wrappers, body = source.read_text().split("moejit_kernel(", 1)
        self.assertIn(right, body)
        for unit in units.glob("*.so"):
            unit.unlink()
        altered = self.write("altered.cpp", wrappers + "moejit_kernel(" + body.replace(right, wrong))
        compiler = self.folder / "bin/c++"
        compiler.parent.mkdir()
        compiler.write_text(f"""#!/bin/sh
for word do
  shift
  [ "$word" = "{source}" ] && word="{altered}"
  set -- "$@" "$word"
done
exec "{shutil.which("c++", path=self.environment["PATH"])}" "$@"
""")
        compiler.chmod(0o755)
        self.environment["PATH"] = f"{compiler.parent}:{self.environment['PATH']}"

    def test_a_wrong_kernel_is_seen(self):
        file = self.write("a.mlir", grouped())
        self.break_kernel(file, "fma_f32(", "1.01f * fma_f32(")
        done = self.moejit("run", file, "--tokens", 9, "--device", "emulator", "--check", expect=1)
        self.assertIn("check     WRONG: relative error", done.out)
        found = self.run_json(file, "--tokens", 9, "--check", expect=1)
        self.assertFalse(found["check"]["ok"])

    def test_a_fault_is_a_wrong_result(self):
        file = self.write("a.mlir", grouped())
        self.break_kernel(file, " mbarrier_init(", " mbarrier_init(1 + ")
        done = self.moejit("run", file, "--tokens", 9, "--device", "emulator", expect=1)
        self.assertIn("mbarrier_init", done.err)

    def test_too_large_problems_are_refused_before_they_start(self):
        done = self.moejit("run", KERNELS / "deepseek-v3.gate_up.mlir", "--experts", 1024,
                           "--n", 1 << 20, "--device", "emulator", expect=3)
        self.assertIn("of memory", done.err)
        self.assertIn("--experts", done.err)

    def test_quantizations_are_right_to_the_bit(self):
        for name, k in (("1x128", 1040), ("per-token", 528), ("mx", 272)):
            file = KERNELS / f"quantize.bf16.{name}.mlir"
            found = self.run_json(file, "--tokens", 21, "--k", k, "--check", "--rows-padding")
            self.assertTrue(found["check"]["ok"], found["check"]["text"])
            self.assertEqual(found["check"]["compared"], 21 * k)
        done = self.moejit("run", file, "--tokens", 3, "--k", 64, "--device", "emulator", "--check")
        self.assertIn("quantize, K 64, bf16 -> f8E4M3FN, dynamic scales [1, 32] of f8E8M0FNU", done.out)
        self.assertIn("check     equal to the oracle, 192 codes and", done.out)
        done = self.moejit("run", file, "--n", 64, expect=2)
        self.assertIn("--n: a quantization has rows and K", done.err)

    def test_a_wrong_quantization_is_seen(self):
        file = KERNELS / "quantize.bf16.per-token.mlir"
        self.break_kernel(file, "448.0f", "447.0f")
        found = self.run_json(file, "--tokens", 9, "--check", expect=1)
        self.assertGreater(found["check"]["wrongScaleBytes"], 0)

    def test_gpu_is_asked_for(self):
        file = self.write("a.mlir", grouped())
        auto = self.moejit("run", file, "--tokens", 8, "--json").json()
        if auto["device"] == "emulator":
            done = self.moejit("run", file, "--tokens", 8, "--device", "gpu", expect=3)
            self.assertIn("libcuda", done.err)


if __name__ == "__main__":
    main()
