#!/usr/bin/env python3
"""The cases that moejit is held to, measured in one run after the other, and their table.

  aims.py run --moejit ./moejit -o run1.json         # some 40 s of a GPU; again later, on another machine, …
  aims.py table run1.json run2.json run3.json > aims.md

Every case is DeepSeek-V3's kernel (1x128 by 128x128 scales) with the extents of the case. The best peer of each case was measured
in one process with its rivals on the same kind of GPU, as `moejit bench` measures (DeepGEMM 2.6.1, vLLM's Triton kernel at its
best of 13 to 15 configurations, the transformers hub kernel, finegrained-fp8 version 4); the floor is a plain read of the active
experts' weights, measured with them. Rows were drawn by other seeds, so a case is alike, not the same."""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    experts: int
    n: int
    k: int
    rows: int  # an expert, in the mean
    routing: str
    peer: str
    peer_us: float
    peer_rows: int  # of the launch
    aim: float  # times faster than the peer; of decode steps the floor's share instead
    floor_us: float = 0


CASES = (
    Case("DeepSeek-V3 gate_up, 128 rows", 32, 4096, 7168, 128, "uniform", "DeepGEMM masked", 290.9, 4096, 1.15),
    Case("DeepSeek-V3 gate_up, 128 rows, skewed", 32, 4096, 7168, 128, "skewed", "DeepGEMM masked", 332.6, 4096, 1.2),
    Case("DeepSeek-V3 gate_up, 512 rows", 32, 4096, 7168, 512, "uniform", "DeepGEMM contiguous", 823.8, 16384, 1.08),
    Case("DeepSeek-V3 down, 128 rows", 32, 7168, 2048, 128, "uniform", "DeepGEMM masked", 165.6, 4096, 1.2),
    Case("DeepSeek-V3 down, 128 rows, skewed", 32, 7168, 2048, 128, "skewed", "DeepGEMM masked", 175.9, 4096, 1.2),
    Case("DeepSeek-V3 down, 512 rows", 32, 7168, 2048, 512, "uniform", "DeepGEMM contiguous", 429.1, 16384, 1.08),
    Case("Qwen3-30B gate_up, 4096 tokens", 128, 1536, 2048, 256, "uniform", "DeepGEMM contiguous", 221.0, 32768, 1.15),
    Case("Qwen3-30B down, 4096 tokens", 128, 2048, 768, 256, "uniform", "DeepGEMM contiguous", 138.1, 32768, 1.15),
    Case("Mixtral gate_up, 1024 tokens", 8, 28672, 4096, 256, "uniform", "DeepGEMM contiguous", 486.0, 2048, 1.15),
    Case("Mixtral down, 1024 tokens", 8, 4096, 14336, 256, "uniform", "DeepGEMM contiguous", 246.1, 2048, 1.15),
    Case("Mixtral gate_up, 8192 tokens", 8, 28672, 4096, 2048, "uniform", "DeepGEMM contiguous", 2854.6, 16384, 1.02),
    Case("Mixtral down, 8192 tokens", 8, 4096, 14336, 2048, "uniform", "DeepGEMM contiguous", 1434.8, 16384, 1.02),
    Case("DeepSeek-V3 gate_up, decode", 32, 4096, 7168, 42, "uniform", "DeepGEMM masked", 238.3, 1360, 1.02, 228.4),
    Case("DeepSeek-V3 down, decode", 32, 7168, 2048, 42, "uniform", "DeepGEMM contiguous", 129.4, 1360, 1.02, 117.6),
    Case("Qwen3-30B gate_up, 16 tokens", 128, 1536, 2048, 1, "uniform", "vLLM", 66.7, 128, 1.02, 64.9),
    Case("Qwen3-30B gate_up, 256 tokens", 128, 1536, 2048, 16, "uniform", "vLLM", 112.3, 2048, 1.02, 106.5),
    Case("Qwen3-30B down, 16 tokens", 128, 2048, 768, 1, "uniform", "vLLM", 38.5, 128, 1.02, 37.2),
    Case("Qwen3-30B down, 256 tokens", 128, 2048, 768, 16, "uniform", "DeepGEMM masked", 64.2, 2048, 1.02, 55.0),
    Case("Mixtral gate_up, 16 tokens", 8, 28672, 4096, 4, "uniform", "vLLM", 231.4, 32, 1.02, 228.5),
    Case("Mixtral down, 16 tokens", 8, 4096, 14336, 4, "uniform", "vLLM", 119.2, 32, 1.02, 117.8),
)


def run(options):
    """One `moejit bench` for each shape and routing: what shares a process takes turns."""
    groups = {}
    for case in CASES:
        groups.setdefault((case.experts, case.n, case.k, case.routing), []).append(case)
    results = []
    for (experts, n, k, routing), cases in groups.items():
        command = [options.moejit, "bench", str(options.kernel), "--experts", str(experts), "--n", str(n), "--k", str(k),
                   "--routing", routing, "--rows", ",".join(str(case.rows) for case in cases), "--rounds",
                   str(options.rounds), "--seed", str(options.seed), "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit {done.returncode}")
        found = json.loads(done.stdout)
        by_rows = {line["rowsPerExpert"]: line for line in found["lines"]
                   if line["rowsPerExpert"] and line["label"] == "chosen" and line["spec"].find(f"n={n};") >= 0}
        for case in cases:
            line = by_rows[case.rows]
            results.append({"case": case.name, "us": line["us"], "teraflops": line["teraflops"], "rows": line["ownedRows"],
                            "weightBytes": line["weightBytes"], "readUs": line["readUs"], "activeExperts": line["activeExperts"],
                            "ok": bool(line["check"] and line["check"]["ok"]), "plan": line["plan"], "hostUs": line["hostUs"],
                            "spillBytes": line["spillBytes"]})
        print(f"{experts} x {n} x {k}, {routing}: done", file=sys.stderr)
    text = json.dumps({"format": 1, "device": found["device"], "how": found["how"], "cases": results}, indent=1)
    pathlib.Path(options.output).write_text(text + "\n")


def cells(case, lines):
    """Times of the runs, their median's ratio to the peer and, of a decode step, to the floor."""
    median = statistics.median(line["us"] for line in lines)
    middle = min(lines, key=lambda line: abs(line["us"] - median))
    # The peer's launch had about as many rows: time for time of decode steps, speed for speed of prefill.
    peer_speed = 2 * case.peer_rows * case.n * case.k / case.peer_us / 1e6
    ratio = case.peer_us / median if case.floor_us else middle["teraflops"] / peer_speed
    times = [f"{line['us']:.1f}" for line in lines]
    wrong = "" if all(line["ok"] for line in lines) else " (wrong)"
    if case.floor_us:
        share = median / (case.floor_us * middle["activeExperts"] / active_of_peer(case))
        own = statistics.median(line["us"] / line["readUs"] for line in lines)
        reached = share <= case.aim and ratio >= 1
        tail = [f"{share:.2f}", f"{own:.2f}", f"≤ {case.aim}"]
    else:
        reached = ratio >= case.aim
        tail = [f"≥ {case.aim}"]
    return times, f"{middle['teraflops']:.0f}", f"{ratio:.2f}", tail, ("reached" if reached else "missed") + wrong


def active_of_peer(case):
    return 78 if case.experts == 128 and case.rows == 1 else case.experts


def table(options):
    runs = [json.loads(pathlib.Path(path).read_text()) for path in options.runs]
    by_case = [{line["case"]: line for line in found["cases"]} for found in runs]
    names = [f"run {i + 1}, µs" for i in range(len(runs))]
    print("| case | best peer | its µs | " + " | ".join(names) + " | TFLOP/s | × the peer | aim | |")
    print("|" + " --- |" * (7 + len(runs)))
    for case in CASES:
        if not case.floor_us:
            times, speed, ratio, tail, verdict = cells(case, [lines[case.name] for lines in by_case])
            print("| " + " | ".join([case.name, case.peer, f"{case.peer_us:.1f}", *times, speed, ratio, *tail, verdict]) + " |")
    print()
    print("| decode step | best peer | its µs | " + " | ".join(names)
          + " | × the peer | of the floor | of bench's read | aim | |")
    print("|" + " --- |" * (8 + len(runs)))
    for case in CASES:
        if case.floor_us:
            times, _, ratio, tail, verdict = cells(case, [lines[case.name] for lines in by_case])
            print("| " + " | ".join([case.name, case.peer, f"{case.peer_us:.1f}", *times, ratio, *tail, verdict]) + " |")
    print()
    for i, found in enumerate(runs):
        print(f"Run {i + 1}: {found['device']['name']}, {found['device']['clocks']}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    measuring = commands.add_parser("run", help="measure every case once")
    measuring.add_argument("--moejit", default="moejit")
    measuring.add_argument("--kernel", default=ROOT / "kernels/deepseek-v3.gate_up.mlir")
    measuring.add_argument("--rounds", type=int, default=5)
    measuring.add_argument("--seed", type=int, default=1)
    measuring.add_argument("-o", dest="output", required=True)
    joining = commands.add_parser("table", help="print runs as markdown")
    joining.add_argument("runs", nargs="+")
    options = parser.parse_args()
    (run if options.command == "run" else table)(options)


if __name__ == "__main__":
    main()
