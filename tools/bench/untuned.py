#!/usr/bin/env python3
"""How far the plans that moejit chooses without a table are from what `moejit tune` finds, for shapes nobody tuned for.

  untuned.py --moejit ./moejit --count 100 --seed 7 --seconds 420 -o untuned.json > untuned.md

Shapes are drawn from the seed: experts, columns and reduction length of the sizes that checkpoints and their shards have, rows
an expert from 1 to 1024, grouped or masked, the scales of the three common schemes. Each is tuned alone, from the heuristic's
plan, as `moejit tune` does; what is compared is the heuristic's time and the fastest of the same shuffled rounds. Where time runs
out the rest is not measured, and the table says so."""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

SCALES = {
    "block": ("granule = [{b}1, 128], source = dynamic, order = mn_major, align = 16", "granule = [1, 128, 128]"),
    "row": ("granule = [{b}1, *], source = dynamic", "granule = [1, 1, *]"),
    "tensor": ("granule = [{b}*, *], source = static", "granule = [1, *, *]"),
}


def draw(generator):
    """One shape: at most 4 GiB of weights, at most 65,536 rows."""
    while True:
        shape = {
            "experts": generator.choice([4, 8, 16, 32, 40, 64, 96, 128]),
            "n": 64 * generator.choice([8, 12, 16, 24, 32, 44, 48, 64, 80, 112, 128, 192, 256]),
            "k": 128 * generator.choice([3, 4, 6, 8, 11, 12, 16, 20, 24, 32, 40, 48, 56, 64, 112]),
            "rows": generator.choice([1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024]),
            "scales": generator.choice(["block", "block", "block", "row", "tensor"]),
            "dispatch": generator.choice(["grouped", "grouped", "grouped", "masked"]),
        }
        if shape["dispatch"] == "masked" and shape["scales"] == "tensor":
            continue  # a static scale of x with a buffer for each expert: one scale each, another layout
        if shape["experts"] * shape["n"] * shape["k"] <= 4 << 30 and shape["experts"] * shape["rows"] <= 65536:
            return shape


def text_of(shape):
    experts, n, k, rows = (shape[name] for name in ("experts", "n", "k", "rows"))
    masked = shape["dispatch"] == "masked"
    x_scales, w_scales = SCALES[shape["scales"]]
    x = f"tensor<{experts}x{2 * rows}x{k}xf8E4M3FN, #x>" if masked else f"tensor<?x{k}xf8E4M3FN, #x>"
    routing = f"tensor<{experts}xi32>" if masked else f"tensor<{experts + 1}xi32>"
    y = f"tensor<{experts}x{2 * rows}x{n}xbf16>" if masked else f"tensor<?x{n}xbf16>"
    w = f"tensor<{experts}x{n}x{k}xf8E4M3FN, #w>"
    return (f"#x = #moe.scales<{x_scales.format(b='1, ' if masked else '')}>\n#w = #moe.scales<{w_scales}>\n"
            f"moe.kernel @drawn(%x: {x}, %r: {routing}, %w: {w}) -> {y} {{\n"
            f"  %y = moe.gemm {shape['dispatch']}(%x, %r, %w) : {x}, {routing}, {w} -> {y}\n  moe.return %y : {y}\n}}\n")


def measure(options, shape, folder):
    kernel, table = folder / "drawn.mlir", folder / "drawn.json"
    kernel.write_text(text_of(shape))
    table.unlink(missing_ok=True)
    # Rows of a masked launch are the buffer's: half of them is what experts own.
    rows = shape["rows"] * (2 if shape["dispatch"] == "masked" else 1)
    command = [options.moejit, "tune", str(kernel), "-o", str(table), "--rows", str(rows), "--rounds", "3", "--idle-ms", "5",
               "--keep", str(options.keep), "--tolerance", "0", "--cache", str(folder / "cache")]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        return {**shape, "error": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else f"exit {done.returncode}"}
    best = json.loads(table.read_text())["specs"][0]["ranges"][0]
    return {**shape, "heuristicUs": best["heuristicUs"], "bestUs": best["us"], "plan": best["plan"]}


def report(lines, options):
    good = sorted((line for line in lines if "bestUs" in line), key=lambda line: -line["heuristicUs"] / line["bestUs"])
    ratios = [line["heuristicUs"] / line["bestUs"] for line in good]
    if not ratios:
        return print("nothing was measured")
    within = sum(ratio <= 1.1 for ratio in ratios)
    print(f"{len(good)} of {options.count} shapes of seed {options.seed}; time of the chosen plan over that of the fastest: median "
          f"{statistics.median(ratios):.3f}, worst {max(ratios):.2f}; {within} within 1.10. Failed: {len(lines) - len(good)}; "
          f"not measured, for want of time: {options.count - len(lines)}.\n")
    print("| ratio | experts × N × K | rows an expert | dispatch | scales | chosen µs | fastest µs | fastest plan |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    shown = ("tileM", "tileN", "stages", "warpgroups", "split", "scheduler", "raster", "tailRows", "swapOperands", "fitRows",
             "unrollSlots", "weightPolicy", "cluster", "clusterSide", "blocksPerSm", "splitK")
    for line, ratio in zip(good, ratios):
        plan = ", ".join(field for field in line["plan"].split(",") if field.split("=")[0] in shown)
        print(f"| {ratio:.2f} | {line['experts']} × {line['n']} × {line['k']} | {line['rows']} | {line['dispatch']} | "
              f"{line['scales']} | {line['heuristicUs']:.1f} | {line['bestUs']:.1f} | {plan} |")
    for line in lines:
        if "error" in line:
            print(f"\nFailed: {line['experts']} × {line['n']} × {line['k']}, {line['rows']} rows, {line['dispatch']}, "
                  f"{line['scales']}: {line['error']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moejit", default="moejit")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no shape after so many")
    parser.add_argument("--keep", type=int, default=1, help="as of moejit tune")
    parser.add_argument("-o", dest="output", required=True)
    options = parser.parse_args()
    generator, begun, lines = random.Random(options.seed), time.monotonic(), []
    with tempfile.TemporaryDirectory() as name:
        for index in range(options.count):
            shape = draw(generator)
            if time.monotonic() - begun > options.seconds:
                break
            lines.append(measure(options, shape, pathlib.Path(name)))
            print(f"{index + 1} of {options.count}, {time.monotonic() - begun:.0f} s: {lines[-1]}", file=sys.stderr)
            pathlib.Path(options.output).write_text(json.dumps(lines, indent=1) + "\n")
    report(lines, options)


if __name__ == "__main__":
    main()
