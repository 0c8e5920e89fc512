#!/usr/bin/env python3
"""Speed of batched kernels for a few rows on one GPU, as in a decode step, beside reading their weights alone.

Rows go to experts one after the other, so that r rows have min(r, E) experts. Launches that quantize their bf16 rows are
timed beside those that are given fp8 and scales. The L2 is flushed before each call; CUDA events; medians. Each output is
checked against float64 on every expert with rows.
"""

import argparse
import json
import random
import statistics
import sys
import time
import traceback

import torch

import binding
from speed import Clock


def counts_of(rows, experts):
    """Rows of each expert: as even as can be."""
    return [rows // experts + (e < rows % experts) for e in range(experts)]


def error_of(data, y):
    difference, norm = 0.0, 0.0
    for expert, count in enumerate(data.counts):
        if count == 0:
            continue
        if data.spec.quantizes():
            w = data.w[expert].double() * data.w_scales_of(expert).double()
            reference = data.source[data.rows_of(expert)].double() @ w.t()
        else:
            reference = data.product(expert)
        difference += float((y[data.rows_of(expert)].double() - reference).square().sum())
        norm += float(reference.square().sum())
    return (difference / norm)**0.5


def measure(calls, clock, rounds, repeats, seed):
    shuffler = random.Random(seed)
    times = {label: [] for label in calls}
    for call in calls.values():
        clock.time_us(call)
    for _ in range(rounds):
        order = list(calls)
        shuffler.shuffle(order)
        for label in order:
            for _ in range(repeats):
                times[label].append(clock.time_us(calls[label]))
    return {label: statistics.median(values) for label, values in times.items()}


HEADER = ("| kernel | E × N × K | rows | µs | µs of reading the active weights | % of that | weights GB/s | error | |\n"
          "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")


def run(arguments):
    library = binding.Library(arguments.library, arguments.folder)
    clock = Clock(arguments.device)
    started = time.monotonic()
    specs = [s for s in binding.read_specs(arguments.folder)
             if "decode" in s[1] and s[2].is_usual() and arguments.only in s[0]]
    lines, numbers, failed = [], [], 0
    weights = {}
    for name, _, spec in specs:
        gemm = library.find(spec)
        for rows in arguments.rows:
            if time.monotonic() - started > arguments.seconds:
                print(f"{name}, {rows} rows: not run, no time left", flush=True)
                continue
            shape = (spec.experts, spec.n, spec.k)
            data = binding.Data(spec, counts_of(rows, spec.experts), arguments.device, seed=rows,
                                weights=weights.get(shape))
            weights[shape] = data.w
            y = torch.full((rows, spec.n), float("nan"), dtype=spec.out_type,
                           device=arguments.device)
            launch = gemm.launcher(data, y)
            active = min(rows, spec.experts)
            read = data.w[:active].view(torch.float32)
            launch()
            clock.sync()
            error = error_of(data, y) if bool(torch.isfinite(y).all()) else float("nan")
            # Quantization itself costs what fp8 has: 2^-4 at most, evenly spread.
            limit = 0.04 if spec.quantizes() else binding.error_limit(spec)
            is_right = error <= limit
            failed += not is_right
            times = measure({"moejit": launch, "read": lambda: torch.sum(read)}, clock,
                            arguments.rounds, arguments.repeats, seed=rows)
            us, floor = times["moejit"], times["read"]
            size = float(active) * spec.n * spec.k
            lines.append(f"| {name} | {spec.experts} × {spec.n} × {spec.k} | {rows} | {us:.1f} | "
                         f"{floor:.1f} | {100 * floor / us:.0f} | {size / us / 1e3:.0f} | {error:.2e} | "
                         f"{'ok' if is_right else '**failed**'} |")
            print(lines[-1], flush=True)
            numbers.append({"kernel": name, "rows": rows, "medianUs": times, "error": error,
                            "ok": is_right})
    if arguments.markdown:
        with open(arguments.markdown, "w") as out:
            out.write("# Batched kernels, few rows\n\nMade by `tests/gpu/speed_batched.py`.\n\n" + HEADER
                      + "\n".join(lines) + "\n")
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump(numbers, out, indent=1)
    print(f"{len(lines)} cases, {failed} failed", flush=True)
    return 1 if failed or not lines else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libmoejit.so")
    parser.add_argument("--folder", required=True, help="made by moejit-gpu-bundle")
    parser.add_argument("--markdown", help="write a table")
    parser.add_argument("--json", help="write all numbers")
    parser.add_argument("--only", default="", help="only kernels whose name contains this")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64, 256])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no case after that")
    parser.add_argument("--device", default="cuda", help="cpu: dry run with the stand-in driver")
    arguments = parser.parse_args()
    try:
        binding.make_context_current(arguments.device)
        return run(arguments)
    except Exception:
        traceback.print_exc()
        return 1


if __name__ == "__main__":
    sys.exit(main())
