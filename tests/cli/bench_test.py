"""moejit bench on a driver whose device is the emulator: what is measured, checked, printed and refused. Times are 1 ms."""

import json
import os
import pathlib
import subprocess
import sys
import xml.dom.minidom

from harness import KERNELS, ROOT, CliTest, grouped, main

STAND_IN = pathlib.Path(os.environ["STAND_IN"])
# Small and quick: no rest, few calls, no 512 MiB to read, no dense product of 8192.
QUICK = ("--rounds", 2, "--repeat", 2, "--idle-ms", 0, "--flush-mib", 1, "--ceiling", "none", "--seed", 3)


class Bench(CliTest):
    def setUp(self):
        super().setUp()
        (STAND_IN / "units").mkdir(exist_ok=True)
        self.fault("none 0")

    def fault(self, text):
        (STAND_IN / "units/fault").write_text(text + "\n")
        self.addCleanup((STAND_IN / "units/fault").unlink, missing_ok=True)

    def bundle(self, *files):
        """Kernels that the device knows."""
        folder = self.folder / "kernels.bundle"
        self.moejit("aot", *files, "-o", folder)
        (STAND_IN / "units/bundle").write_text(f"{folder}\n")
        self.addCleanup((STAND_IN / "units/bundle").unlink, missing_ok=True)
        return folder

    def bench(self, *words, expect=0):
        self.environment["LD_LIBRARY_PATH"] = str(STAND_IN)
        return self.moejit("bench", *words, expect=expect)

    def test_a_kernel_is_measured_and_right(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        found = self.bench(file, "--bundle", folder, *QUICK, "--rows", "5,40", "--json").json()
        self.assertEqual(found["device"]["name"], "moejit emulator")
        self.assertEqual([line["ownedRows"] for line in found["lines"]], [15, 120])
        for line in found["lines"]:
            self.assertEqual(line["kernel"], "a")
            self.assertEqual(len(line["allUs"]), 4)
            self.assertEqual((line["us"], line["readUs"], line["shareOfRead"]), (1000, 1000, 1))
            self.assertTrue(line["check"]["ok"], line["check"]["text"])
            self.assertEqual(line["operations"], 2 * line["ownedRows"] * 256 * 256)
            self.assertAlmostEqual(line["teraflops"], line["operations"] / 1e9)
            self.assertEqual(line["weightBytes"], line["activeExperts"] * 256 * 256)
            self.assertGreater(line["leastBytes"], line["weightBytes"])
            self.assertGreater(line["hostUs"], 0)
            self.assertNotIn("sustainedUs", line)
        self.assertEqual(found["ceilings"]["teraflopsFrom"], "none")

    def test_the_table_and_the_plot(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        done = self.bench(file, "--bundle", folder, *QUICK[:-4], "--ceiling", 1500, "--tokens", "9",
                          "--routing", "exact", "--svg", "r.svg", "--sustained", "--window-ms", 2)
        self.assertRegex(done.out, r"(?m)^kernel +rows an expert +µs .*sustained µs +TFLOP/s +check$")
        self.assertRegex(done.out, r"(?m)^a +9 in all +1000\.0 .* ok, \d\.\d\de-03$")
        self.assertIn("dense: 1500 TFLOP/s, as given", done.out)
        self.assertIn("no NVML", done.err)
        svg = (self.folder / "r.svg").read_text()
        xml.dom.minidom.parseString(svg)
        self.assertIn("1500 TFLOP/s, dense, as given", svg)
        self.assertIn("GB/s, a plain read", svg)

    def test_a_plot_that_cannot_be_written_is_told_first_and_costs_no_results(self):
        file = self.write("a.mlir", grouped())
        # Before a device is looked for.
        for path in ("absent/r.svg", "."):
            self.assertIn(f"cannot write {path}", self.moejit("bench", file, "--svg", path, expect=2).err)
        self.moejit("bench", file, "--svg", "r.svg", expect=3)
        self.assertFalse((self.folder / "r.svg").exists())
        done = self.bench(file, "--bundle", self.bundle(file), *QUICK, "--rows", 5, "--svg", "/dev/full", "--json", expect=2)
        self.assertEqual(len(done.json()["lines"]), 1)
        self.assertIn("cannot write /dev/full", done.err)
        # Names are people's: the plot is XML all the same.
        file = self.write("a\x01<&\"b.mlir", grouped())
        self.bench(file, "--bundle", "kernels.bundle", *QUICK, "--rows", 5, "--svg", "r.svg")
        self.assertIn("a\\x01&lt;&amp;", (self.folder / "r.svg").read_text())
        xml.dom.minidom.parse(str(self.folder / "r.svg"))

    def test_a_quantization_is_measured(self):
        file = self.write("q.mlir", (KERNELS / "quantize.bf16.1x128.mlir").read_text())
        words = ("--k", 256)
        folder = self.folder / "kernels.bundle"
        self.moejit("aot", file, *words, "-o", folder)
        (STAND_IN / "units/bundle").write_text(f"{folder}\n")
        line, = self.bench(file, *words, "--bundle", folder, *QUICK, "--rows", 20,
                           "--json").json()["lines"]
        self.assertTrue(line["check"]["ok"])
        self.assertEqual((line["teraflops"], line["leastBytes"]), (0, 20 * 256 * 3 + 20 * 2 * 4))

    def test_wrong_results_are_seen(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        self.fault("wrong 1")
        done = self.bench(file, "--bundle", folder, *QUICK, "--rows", 5, expect=1)
        self.assertRegex(done.out, r"(?m)^a +5 .* WRONG$")
        self.assertIn("WRONG: a, 15 rows, chosen: ", done.out)
        line, = self.bench(file, "--bundle", folder, *QUICK, "--rows", 5, "--json", expect=1).json()["lines"]
        self.assertFalse(line["check"]["ok"])
        done = self.bench(file, "--bundle", folder, *QUICK, "--rows", 5, "--no-check")
        self.assertIn("not checked", done.out)

    def test_a_fault_of_the_device_ends_it(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        self.fault("fault 1")
        done = self.bench(file, "--bundle", folder, *QUICK, "--rows", 5, expect=3)
        self.assertIn("a, 15 rows: cuStreamSynchronize", done.err)

    def test_a_second_plan_stands_beside_the_chosen_one(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        # A bundle has no other kernels, and says so; the chosen one is measured all the same.
        found = self.bench(file, "--bundle", folder, *QUICK, "--rows", 5, "--plan", "stages=2",
                           "--plan", "tileM=64", "--json").json()
        self.assertEqual([line["label"] for line in found["lines"]], ["chosen"])
        refused, = found["refused"]
        self.assertEqual(refused["label"], "stages=2")
        self.assertIn("bundle", refused["message"])

    def test_folders_and_rows_that_cannot_be(self):
        (self.folder / "many").mkdir()
        for name in ("b", "a"):
            self.write(f"many/{name}.mlir", grouped(n=64 if name == "a" else 128))
        folder = self.bundle("many/a.mlir", "many/b.mlir")
        found = self.bench("many", "--bundle", folder, *QUICK, "--rows", 2, "--json").json()
        self.assertEqual([line["kernel"] for line in found["lines"]], ["a", "b"])
        self.assertEqual(self.bench("many", "--rows", "2,", expect=2).out, "")

    def test_results_are_joined_with_those_of_peers(self):
        file = self.write("a.mlir", grouped())
        folder = self.bundle(file)
        ours = self.bench(file, "--bundle", folder, *QUICK, "--rows", "5,40", "--json").json()
        peers = json.loads(json.dumps(ours))
        peers["lines"] = [dict(line, peer=peer, label=label, allUs=[us] * 3)
                          for line in peers["lines"][:1]
                          for peer, label, us in (("triton", "64x128", 1500), ("deepgemm", "padded", 1200),
                                                  ("torch", "a scale a row and a column: a lighter product", 800))]
        names = [self.write(name, json.dumps(found)) for name, found in (("a.json", ours), ("b.json", peers))]
        join = [sys.executable, str(ROOT / "tools/bench/join.py")]
        done = subprocess.run([*join, *names], capture_output=True, text=True, check=True).stdout
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.splitlines() if "|" in line]
        self.assertEqual(rows[0][3:10], ["moejit µs", "TFLOP/s", "% of read", "deepgemm µs", "torch µs", "triton µs",
                                         "× the best equal peer"])
        self.assertEqual(rows[2], ["a", "5", "uniform", "1000.0", "0", "100", "1200.0", "800.0*", "1500.0", "1.20", "ok"])
        self.assertEqual(rows[3][6:], ["–", "–", "–", "–", "ok"])
        ours["lines"][0]["check"]["ok"] = False
        self.write("a.json", json.dumps(ours))
        done = subprocess.run([*join, *names], capture_output=True, text=True, check=True).stdout
        self.assertIn("**wrong: moejit**", done)

    def test_the_drivers_of_peers_read_the_catalogue(self):
        # torch is not needed to read descriptions: an empty module stands for it.
        self.write("torch.py", "")
        script = ("import common, pathlib, sys\n"
                  "for path in sorted(pathlib.Path(sys.argv[1]).glob('*.mlir')):\n"
                  "    kernel = common.Kernel(path)\n"
                  "    if kernel.usable:\n"
                  "        print(kernel.name, kernel.experts, kernel.n, kernel.k, kernel.layout())\n"
                  "assert common.draw_counts(3, 7, 'exact', 1) == [3, 2, 2]\n"
                  "assert sum(common.draw_counts(9, 100, 'skewed', 1)) == 100\n")
        path = f"{self.folder}:{ROOT / 'tools/bench'}"
        done = subprocess.run([sys.executable, "-B", "-c", script, str(KERNELS)], capture_output=True, text=True,
                              env={"PYTHONPATH": path}, check=True).stdout.splitlines()
        self.assertIn("deepseek-v3.gate_up 256 4096 7168 block", done)
        self.assertIn("glm-4.5.down 160 5120 1536 row", done)
        self.assertIn("mixtral-8x7b.down 8 4096 14336 tensor", done)
        self.assertFalse([line for line in done if "ue8m0" in line or ".mx" in line or "quantize" in line])

    def test_aims_are_tables_of_runs(self):
        script = ("import aims, json, pathlib, sys\n"
                  "for run, faster in enumerate((1.1, 1.3, 1.2)):\n"
                  "    lines = []\n"
                  "    for case in aims.CASES:\n"
                  "        us = case.peer_us / faster\n"
                  "        lines.append(dict(case=case.name, us=us, teraflops=2 * case.peer_rows * case.n * case.k / us / 1e6,\n"
                  "                          readUs=us / 1.05, activeExperts=aims.active_of_peer(case), ok=run > 0))\n"
                  "    found = dict(device=dict(name='GPU', clocks='1 MHz'), cases=lines)\n"
                  "    pathlib.Path(sys.argv[1], f'run{run}.json').write_text(json.dumps(found))\n"
                  "sys.argv = ['aims.py', 'table'] + [f'{sys.argv[1]}/run{run}.json' for run in range(3)]\n"
                  "aims.main()\n")
        done = subprocess.run([sys.executable, "-B", "-c", script, str(self.folder)], capture_output=True, text=True,
                              env={"PYTHONPATH": str(ROOT / "tools/bench")}, check=True).stdout
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.splitlines() if "DeepSeek" in line]
        self.assertEqual(rows[0], ["DeepSeek-V3 gate_up, 128 rows", "DeepGEMM masked", "290.9", "264.5", "223.8", "242.4",
                                   "992", "1.20", "≥ 1.15", "reached (wrong)"])
        self.assertEqual(rows[6][3:], ["216.6", "183.3", "198.6", "1.20", "0.87", "1.05", "≤ 1.02", "reached (wrong)"])

    def test_untuned_shapes_are_kernels(self):
        script = ("import json, random, untuned\n"
                  "generator = random.Random(3)\n"
                  "print(json.dumps([untuned.text_of(untuned.draw(generator)) for _ in range(12)]))\n")
        texts = json.loads(subprocess.run([sys.executable, "-B", "-c", script], capture_output=True, text=True, check=True,
                                          env={"PYTHONPATH": str(ROOT / "tools/bench")}).stdout)
        self.assertTrue(any("masked" in text for text in texts) and any("1, *, *" in text for text in texts))
        for index, text in enumerate(texts):
            self.moejit("compile", self.write(f"drawn{index}.mlir", text), "--emit", "moe")

    def test_start_up_needs_no_gpu(self):
        file = self.write("a.mlir", grouped())
        found = self.moejit("bench", file, "--startup", "--rounds", 2, "--rows", "4,4,5000", "--json").json()
        self.assertEqual([times["rows"] for times in found["startup"]], [12, 15000])
        for times in found["startup"]:
            self.assertGreater(times["compileMs"], times["sourceMs"])
            self.assertGreater(times["compileMs"], times["diskMs"])
            self.assertTrue(0 < times["knownNs"] < 1e6 * times["diskMs"])
            self.assertIsNone(times["loadMs"])
        self.assertFalse((self.folder / ".cache").exists())
        done = self.moejit("bench", file, "--startup", "--rounds", 1, "--rows", 4)
        self.assertRegex(done.out, r"(?m)^a +12 +\d+ +\d+ +\d+\.\d\d +\d+ +no GPU$")
        self.moejit("bench", file, "--startup", "--tokens", 4, expect=2)
        self.moejit("bench", file, "--startup", "--nvrtc", "/nowhere", expect=3)

    def test_mistakes(self):
        file = self.write("a.mlir", grouped())
        plans = self.write("plans", "# some\ntileM=64, stages=3\nstages=many\n")
        for words, word in (((), "no FILE given"), ((file, "--rows", "1", "--tokens", "2"), "--tokens"),
                            ((file, "--rows", "0"), "from 1"), ((file, "--rows", "1,a"), "'1,a'"),
                            ((file, "--plan", "stage=3"), "no field 'stage'"),
                            ((file, "--plans", plans), "plans:3: plan: stages is 'many'"),
                            ((file, "--ceiling", "fast"), "measure, none"),
                            ((file, "--rounds", "0"), "--rounds"), (("absent.mlir",), "cannot read")):
            self.assertIn(word, self.bench(*words, expect=2).err)
        bad = self.write("bad.json", "{}")
        folder = self.bundle(file)
        done = self.bench(file, "--bundle", folder, "--tuned", bad, *QUICK, "--rows", 5, expect=2)
        self.assertIn("bad.json: tuned table", done.err)

    def test_there_is_no_emulation(self):
        file = self.write("a.mlir", grouped())
        done = self.moejit("bench", file, expect=3)
        self.assertIn("libcuda", done.err)


if __name__ == "__main__":
    main()
