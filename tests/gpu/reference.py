#!/usr/bin/env python3
"""Second references for moejit's kernels: a dequantised torch product in float64, and torch's own FP8 products.

Every layout of the bundle at mid-size, each of its kernels (few rows, many rows), through libmoejit.so. Exit code 1
when an error is above what docs/numerics.md allows, or nothing ran.
"""

import argparse
import sys
import time
import traceback

import torch

import binding


def out_like(data, spec):
    # NaN: what a kernel does not write shows in the error.
    return torch.full((data.rows, spec.n), float("nan"), dtype=spec.out_type, device=data.device)


def error_against_product(data, y):
    """Over all experts with rows: the norm of the difference against float64."""
    difference, norm = 0.0, 0.0
    for expert in range(data.spec.experts):
        if data.counts[expert] == 0:
            continue
        reference = data.product(expert)
        difference += float((y[data.rows_of(expert)].double() - reference).square().sum())
        norm += float(reference.square().sum())
    return (difference / norm)**0.5


def grouped_peer(data, fast):
    """torch._scaled_grouped_mm, rowwise: needs a scale a token and a scale a channel."""
    ends = data.offsets[1:].contiguous()
    return torch._scaled_grouped_mm(data.x, data.w.transpose(-2, -1),
                                    data.x_logical.reshape(-1).contiguous(),
                                    data.w_scales.reshape(data.spec.experts, -1).contiguous(),
                                    offs=ends, out_dtype=torch.bfloat16, use_fast_accum=fast)


def dense_peer(data, fast):
    """torch._scaled_mm: per tensor, token × channel, or 1x128 × 128x128."""
    spec = data.spec
    if spec.x.granule == ["*", "*"] and spec.w.granule == ["*", "*"]:
        scale_x, scale_w = data.x_logical.reshape(()), data.w_scales.reshape(())
    elif spec.x.granule == [1, "*"] and spec.w.granule == [1, "*"]:
        scale_x, scale_w = data.x_logical.reshape(-1, 1), data.w_scales.reshape(1, -1)
    else:
        # cuBLASLt wants scales of x with the row index contiguous, and those of w padded along K.
        scale_x = data.x_logical.t().contiguous().t()
        scale_w = data.w_scales[0].contiguous().t()
        fast = False
    return torch._scaled_mm(data.x, data.w[0].t(), scale_a=scale_x, scale_b=scale_w,
                            out_dtype=torch.bfloat16, use_fast_accum=fast)


def peer_of(spec):
    """The torch function that computes the same thing, or nothing."""
    if spec.n % 16 or spec.k % 16:
        return None
    if spec.dispatch == "grouped":
        rowwise = spec.x.granule == [1, "*"] and spec.w.granule == [1, 1, "*"]
        return ("_scaled_grouped_mm", grouped_peer) if rowwise else None
    known = [(["*", "*"], ["*", "*"]), ([1, "*"], [1, "*"]), ([1, 128], [128, 128])]
    if (spec.x.granule, spec.w.granule) in known and spec.k % 512 == 0:
        return ("_scaled_mm", dense_peer)
    return None


def run(arguments):
    library = binding.Library(arguments.library, arguments.folder)
    device = arguments.device
    rows_limit = arguments.rows
    started = time.monotonic()
    lines, failed, done, skipped, seen_peers = [], 0, 0, 0, set()
    specs = [s for s in binding.read_specs(arguments.folder)
             if "matrix" in s[1] and arguments.only in s[0] and s[2].is_plain()]
    # The aligned ones first, which have peers; of the ragged ones, those with bf16 out.
    specs.sort(key=lambda s: (s[2].n % 16 != 0, s[0]))
    specs = [s for s in specs if s[2].n % 16 == 0 or ".bf16." in s[0]]
    for name, _, spec in specs:
        if time.monotonic() - started > arguments.seconds:
            skipped += 1
            continue
        if spec.dispatch == "grouped":
            rows = rows_limit if spec.experts <= 16 else rows_limit // 2
            counts = binding.draw_counts(spec.experts, rows, seed=len(lines), skew=0.7)
        else:
            rows, counts = rows_limit, [rows_limit]
        data = binding.Data(spec, counts, device, seed=1000 + len(lines))
        gemm = library.find(spec)
        limit = binding.error_limit(spec)
        peer_text, peer_error = "", None
        peer = peer_of(spec)
        if peer:
            for fast in (False, True):
                try:
                    peer_out = peer[1](data, fast)
                    error = error_against_product(data, peer_out)
                    label = f"{peer[0]}{' fast' if fast else ''} {error:.2e}"
                    peer_text += (", " if peer_text else "") + label
                    if not fast:
                        peer_error = peer_out
                        seen_peers.add(peer[0])
                except Exception as problem:  # a torch without that layout
                    peer_text += f"{peer[0]}: {str(problem).splitlines()[0][:80]}"
                    break
        for plan, expected in (("few rows", 1), ("many rows", 1 << 30)):
            try:
                y = out_like(data, spec)
                gemm.launcher(data, y, expected)()
                if device != "cpu":
                    torch.cuda.synchronize()
                error = error_against_product(data, y)
                # Against the peer (bf16 out) directly: two right answers differ by both errors.
                apart = binding.relative_error(y, peer_error) if peer_error is not None else None
                ok = error <= limit and (apart is None or apart <= limit + 2.2e-3)
                text = f"{error:.2e}"
            except binding.MoejitError as problem:
                ok, text, apart = False, str(problem).splitlines()[0], None
            failed += not ok
            done += 1
            apart_text = "" if apart is None else f"{apart:.2e}"
            lines.append(f"| {name} | {data.rows} | {plan} | {text} | {limit:.1e} | {peer_text} | "
                         f"{apart_text} | {'ok' if ok else '**failed**'} |")
            print(lines[-1], flush=True)
    summary = (f"{done} kernels against float64, {failed} failed, {skipped} layouts not run; "
               f"peers: {', '.join(sorted(seen_peers)) or 'none ran'}")
    if arguments.markdown:
        with open(arguments.markdown, "w") as out:
            out.write("# Kernels on a GPU, compared with torch\n\n"
                      f"{describe(device)}, moejit {library.version()} through its C API. "
                      "Random e4m3 operands, scales over 2^±3, rows spread unevenly over the "
                      "experts; outputs start as NaN. `error` is ‖y − ref‖/‖ref‖ over all rows, "
                      "ref the dequantised product in float64; `limit` is what docs/numerics.md "
                      "allows; `peer` gives the error of torch's own FP8 product of the same "
                      "operands, `apart` how far the two outputs are from each other.\n\n"
                      f"{summary}\n\n"
                      "| kernel | rows | plan | error | limit | peer | apart | |\n"
                      "| --- | --- | --- | --- | --- | --- | --- | --- |\n" + "\n".join(lines) + "\n")
    print(summary, flush=True)
    return 1 if failed or done == 0 or skipped else 0


def describe(device):
    if device == "cpu":
        return "dry run without a GPU"
    return (f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, "
            f"CUDA {torch.version.cuda}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libmoejit.so")
    parser.add_argument("--folder", required=True, help="made by moejit-gpu-bundle")
    parser.add_argument("--markdown", help="write a table")
    parser.add_argument("--only", default="", help="only kernels whose name contains this")
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--seconds", type=float, default=1e9, help="start no layout after that")
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
