"""moejit tune on a driver whose device is the emulator. All times are alike there, so the heuristic's plan wins; what is
shown is which plans are measured and checked, the table, going on, and that a table is used."""

import json
import os
import pathlib
import subprocess

from harness import MOEJIT, CliTest, grouped, main

STAND_IN = pathlib.Path(os.environ["STAND_IN"])
QUICK = ("--rounds", 1, "--repeat", 1, "--idle-ms", 0, "--flush-mib", 1, "--jobs", 2)


class Tune(CliTest):
    def setUp(self):
        super().setUp()
        units = STAND_IN / "units"
        units.mkdir(exist_ok=True)
        self.addCleanup((units / "bundle").unlink, missing_ok=True)
        self.addCleanup((units / "fault").unlink, missing_ok=True)
        # Kernels reach the device as soon as they are in the cache.
        (units / "bundle").write_text(f"{self.folder}/.cache/moejit/plans\n{self.folder}/.cache/moejit\n")
        (units / "fault").write_text("none 0\n")
        self.file = self.write("a.mlir", grouped(n=128))
        self.plans = self.write("plans", "stages=2\ntileM=192,tileN=256 # is refused\nraster=4\n")

    def tune(self, *words, expect=0):
        self.environment["LD_LIBRARY_PATH"] = str(STAND_IN)
        done = self.moejit("tune", *words, expect=expect)
        del self.environment["LD_LIBRARY_PATH"]
        return done

    def test_a_table_is_made_kept_and_used(self):
        words = (self.file, "--candidates", self.plans, "-o", "t.json", *QUICK, "--rows", "4,40")
        done = self.tune(*words, "--json")
        spec, = done.json()["specs"]
        self.assertEqual(spec["wrong"], 0)
        self.assertEqual([row["measuredRows"] for row in spec["rows"]], [12, 120])
        self.assertEqual(len(spec["times"]), 6)
        self.assertTrue(all(time["us"] == 1000 and time["modelUs"] > 0 for time in spec["times"]))
        text = (self.folder / "t.json").read_text()
        table = json.loads(text)
        self.assertEqual((table["gpu"], table["smCount"]), ("moejit emulator", 132))
        ranges = table["specs"][0]["ranges"]
        self.assertEqual((ranges[0]["minRows"], ranges[0]["maxRows"] + 1), (8, ranges[1]["minRows"]))
        self.assertFalse((self.folder / "t.json.part").exists())

        # What is there is not measured again, unless asked for; another kernel is added.
        done = self.tune(*words)
        self.assertIn("0 kernels tuned, 1 were there", done.out)
        self.assertEqual((self.folder / "t.json").read_text(), text)
        other = self.write("b.mlir", grouped(n=64))
        self.tune(self.file, other, *words[1:-1], "4")
        self.assertEqual(len(json.loads((self.folder / "t.json").read_text())["specs"]), 2)

        # A plan of the table is chosen, explained, and part of the kernel's key.
        ranges[0]["plan"] = ranges[0]["plan"].replace("raster=16", "raster=3")
        ranges[0].update(us=900, heuristicUs=1000)
        self.write("t.json", json.dumps(table))

        def plan(rows, *more):
            return self.moejit("compile", self.file, "--emit", "plan", "--rows", rows, *more).json()

        tuned, usual = plan(12, "--tuned", "t.json"), plan(12, "--tuned", "none")
        self.assertEqual((tuned["raster"], tuned["why"]["chosenBy"]), (3, "tuned table"))
        self.assertTrue(tuned["why"]["text"].startswith("Measured: 900.0 us"))
        self.assertEqual((usual["raster"], usual["why"]["chosenBy"]), (16, "heuristic"))
        self.assertEqual(plan(5000, "--tuned", "t.json")["why"]["chosenBy"], "heuristic")
        keys = [self.moejit("compile", self.file, "--rows", 12, "--tuned", table, "--json").json()["kernels"][0]["key"]
                for table in ("t.json", "none")]
        self.assertNotEqual(*keys)
        found = self.moejit("run", self.file, "--tokens", 12, "--device", "emulator", "--check", "--json",
                            "--tuned", "t.json").json()
        self.assertIn("raster=3", found["kernel"]["planText"])
        self.assertTrue(found["check"]["ok"])

    def test_two_runs_add_to_one_table(self):
        words = ("--candidates", self.plans, *QUICK, "--rows", "4")
        other = self.write("b.mlir", grouped(n=64))
        self.tune(other, *words, "-o", "other.json")
        self.environment["LD_LIBRARY_PATH"] = str(STAND_IN)
        first = subprocess.Popen([MOEJIT, "tune", self.file, *map(str, words), "-o", "t.json"], cwd=self.folder,
                                 env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        # It has read the table; another run is done before it is.
        self.assertIn("1 of 1: a", first.stderr.readline())
        (self.folder / "other.json").rename(self.folder / "t.json")
        first.communicate()
        self.assertEqual(first.returncode, 0)
        table = json.loads((self.folder / "t.json").read_text())
        self.assertEqual(len(table["specs"]), 2)
        self.assertEqual([path.name for path in self.folder.glob("t.json?*")], [])
        # What cannot be kept is not measured.
        table["gpu"] = "another"
        self.write("t.json", json.dumps(table))
        done = self.tune(self.file, *words, "-o", "t.json", expect=2)
        self.assertNotIn("1 of 1", done.err)

    def test_wrong_plans_are_left_out_and_told(self):
        # The first launch is the heuristic's check, the second that of the candidate.
        (STAND_IN / "units/fault").write_text("wrong 2\n")
        candidates = self.write("plans", "stages=2\n")
        done = self.tune(self.file, "--candidates", candidates, "-o", "t.json", *QUICK, "--rows", "4", "--json",
                         expect=1)
        spec, = done.json()["specs"]
        self.assertEqual((spec["wrong"], len(spec["times"])), (1, 1))
        self.assertIn("WRONG: a, 12 rows, ", done.err)
        self.assertIn("stages=2", done.err)

    def test_generated_candidates(self):
        file = self.write("c.mlir", grouped(n=64, k=128))
        done = self.tune(file, "-o", "t.json", *QUICK, "--rows", "2", "--keep", "1", "--json")
        spec, = done.json()["specs"]
        self.assertEqual(spec["wrong"], 0)
        self.assertGreater(spec["candidates"], 12)
        plans = {time["plan"] for time in spec["times"]}
        self.assertEqual(len(plans), len(spec["times"]))
        self.assertGreater(len(plans), 5)

    def test_mistakes(self):
        bad = self.write("bad.json", '{"format": 1}')
        worse = self.write("worse", "stages=2\nstages=x\n")
        for words, word in (((self.file,), "-o FILE"), ((self.file, "-o", bad), "tuned table"),
                            ((self.file, "-o", "t.json", "--candidates", worse), "worse:2: plan: stages is 'x'"),
                            ((self.file, "-o", "t.json", "--rows", "x"), "--rows"), (("-o", "t.json"), "no FILE")):
            self.assertIn(word, self.tune(*words, expect=2).err)
        self.assertIn("cannot write absent/t.json", self.moejit("tune", self.file, "-o", "absent/t.json", expect=2).err)
        self.assertIn("libcuda", self.moejit("tune", self.file, "-o", "t.json", expect=3).err)


if __name__ == "__main__":
    main()
