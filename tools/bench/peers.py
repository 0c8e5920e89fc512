#!/usr/bin/env python3
"""Speed of peers on the kernels of moejit, measured as `moejit bench` measures and printed as its JSON.

Peers: torch._scaled_grouped_mm with and without fast accumulation, a Triton kernel written for this (triton_grouped.py),
DeepGEMM's contiguous and masked kernels and the transformers hub kernel where they can be imported. A peer that cannot run
a kernel is listed under `refused` with its reason. All peers of a case take turns in one process, in shuffled rounds.

  peers.py kernels/*.mlir --rows 16,128,512 > peers.json
  join.py moejit.json peers.json
"""

import argparse
import statistics
import sys
import time

import torch

import common

# Twice what rounding to bf16 costs; fast accumulation is held to more (docs/numerics.md).
EXACT, FAST = 2.4e-3, 6e-3


def torch_grouped(operands, fast):
    x_scales, w_scales = operands.row_scales()
    w, ends = operands.w.transpose(-2, -1), operands.offsets[1:].contiguous()

    def call():
        return torch._scaled_grouped_mm(operands.x, w, x_scales, w_scales, offs=ends, out_dtype=torch.bfloat16,
                                        use_fast_accum=fast)

    note = "" if operands.kernel.layout() != "block" else "a scale a row and a column: a lighter product"
    return call, note


def torch_fast(operands):
    return torch_grouped(operands, True)


def torch_exact(operands):
    return torch_grouped(operands, False)


def triton_kernel(operands):
    import triton_grouped
    return triton_grouped.grouped_call(operands)


def require_block(operands):
    if operands.kernel.layout() != "block":
        raise NotImplementedError("takes 1x128 by 128x128 scales only")


def deepgemm_contiguous(operands):
    """Rows of each expert padded to the alignment; padding is outside of the timing, rows of it are not counted."""
    require_block(operands)
    import deep_gemm
    align = (deep_gemm.get_mk_alignment_for_contiguous_layout()
             if hasattr(deep_gemm, "get_mk_alignment_for_contiguous_layout")
             else deep_gemm.get_m_alignment_for_contiguous_layout())
    kernel = operands.kernel
    padded = [(count + align - 1) // align * align for count in operands.counts]
    total = sum(padded)
    x = torch.zeros((total, kernel.k), device="cuda", dtype=torch.float8_e4m3fn)
    scales = torch.ones((total, operands.x_scales.shape[1]), device="cuda")
    layout = torch.full((total,), -1, device="cuda", dtype=torch.int32)
    where = torch.empty(operands.rows, device="cuda", dtype=torch.int64)
    at = 0
    for expert, count in enumerate(operands.counts):
        rows = operands.rows_of(expert)
        x[at:at + count] = operands.x[rows]
        scales[at:at + count] = operands.x_scales[rows]
        layout[at:at + padded[expert]] = expert
        where[rows] = torch.arange(at, at + count, device="cuda")
        at += padded[expert]
    y = torch.full((total, kernel.n), float("nan"), device="cuda", dtype=torch.bfloat16)
    scales = deep_gemm.get_mn_major_tma_aligned_tensor(scales)
    run = getattr(deep_gemm, "m_grouped_fp8_gemm_nt_contiguous")

    def call():
        run((x, scales), (operands.w, operands.w_scales), y, layout)
        return y

    call.rows = where  # where the rows of x lie in y
    return call, f"padded to {align}: x{total / operands.rows:.2f}"


def deepgemm_masked(operands):
    require_block(operands)
    import deep_gemm
    kernel, most = operands.kernel, max(operands.counts)
    limit = max(256, (most + 127) // 128 * 128)
    if kernel.experts * limit * max(kernel.k, 2 * kernel.n) > 40e9:
        raise MemoryError("buffers of all experts are too large")
    x = torch.zeros((kernel.experts, limit, kernel.k), device="cuda", dtype=torch.float8_e4m3fn)
    scales = torch.ones((kernel.experts, limit, operands.x_scales.shape[1]), device="cuda")
    where = torch.empty(operands.rows, device="cuda", dtype=torch.int64)
    for expert, count in enumerate(operands.counts):
        rows = operands.rows_of(expert)
        x[expert, :count], scales[expert, :count] = operands.x[rows], operands.x_scales[rows]
        where[rows] = torch.arange(expert * limit, expert * limit + count, device="cuda")
    counts = torch.tensor(operands.counts, device="cuda", dtype=torch.int32)
    y = torch.full((kernel.experts, limit, kernel.n), float("nan"), device="cuda", dtype=torch.bfloat16)
    scales = deep_gemm.get_mn_major_tma_aligned_tensor(scales)
    run = getattr(deep_gemm, "m_grouped_fp8_gemm_nt_masked", None) or deep_gemm.fp8_m_grouped_gemm_nt_masked
    expected = max(1, operands.rows // kernel.experts)

    def call():
        run((x, scales), (operands.w, operands.w_scales), y, counts, expected)
        return y.view(-1, kernel.n)

    call.rows = where
    return call, ""


def hub_grouped(operands):
    """kernels-community/finegrained-fp8: quantizes inside, so it is given bf16 rows; not the same work, and said so."""
    require_block(operands)
    from kernels import get_kernel
    hub = get_kernel("kernels-community/finegrained-fp8")
    run = getattr(hub, "w8a8_block_fp8_matmul_grouped", None) or getattr(hub, "grouped_matmul")
    counts = torch.tensor(operands.counts, device="cuda", dtype=torch.int32)
    scales = operands.x_scales.repeat_interleave(128, 1)[:, :operands.kernel.k]
    x = (operands.x.float() * scales).to(torch.bfloat16)

    def call():
        return run(x, operands.w, operands.w_scales, counts, [128, 128])

    call.requantized = True
    return call, "quantizes bf16 rows inside"


PEERS = {"torch fast": (torch_fast, FAST), "torch": (torch_exact, EXACT), "triton": (triton_kernel, EXACT),
         "deepgemm contiguous": (deepgemm_contiguous, EXACT), "deepgemm masked": (deepgemm_masked, EXACT),
         "hub grouped": (hub_grouped, FAST)}


def dense_product(size=8192):
    generator = torch.Generator(device="cuda").manual_seed(1)
    a, b = ((torch.randn((size, size), device="cuda", generator=generator) * 112).clamp(-448, 448)
            .to(torch.float8_e4m3fn) for _ in range(2))
    one = torch.tensor(2.0**-8, device="cuda")
    return lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True)


def run_case(operands, chosen, clock, ceiling, arguments, lines, refused, ceilings):
    calls, facts = {}, {}
    for peer in chosen:
        make, limit = PEERS[peer]
        try:
            call, note = make(operands)
            y = call()
            torch.cuda.synchronize()
            y = y[call.rows] if hasattr(call, "rows") else y
            is_same = not note.startswith("a scale") and not hasattr(call, "requantized")
            facts[peer] = (note, operands.error(y) if is_same else None, limit)
            calls[peer] = call
        except Exception as problem:
            reason = (str(problem).splitlines() or [""])[0][:200]
            refused.append({"kernel": operands.kernel.name, "rows": operands.rows, "label": peer,
                            "message": f"{type(problem).__name__}: {reason}"})
    weights = operands.w.view(torch.float32)
    items = {**calls, "dense": ceiling, "read": lambda: torch.sum(weights)}

    def progress(text):
        print(f"{operands.kernel.name}, {operands.rows_per_expert} rows an expert: {text}", file=sys.stderr, flush=True)

    burst, sustained = common.measure(items, clock, arguments.rounds, arguments.repeat, arguments.idle_ms,
                                      arguments.window_ms if arguments.sustained else 0, arguments.seed, progress)
    ceilings.append(2 * 8192**3 / statistics.median(burst["dense"]) / 1e6)
    # All experts' weights are read there, active or not.
    read_us = statistics.median(burst["read"]) * operands.active / operands.kernel.experts
    for peer, call in calls.items():
        note, error, limit = facts[peer]
        lines.append(common.line(operands, peer, note or peer, burst[peer], sustained[peer], read_us, error, limit,
                                 common.host_us(call)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="kernels/*.mlir; those that no peer can run are left out")
    parser.add_argument("--rows", default="16,128,512", help="rows an expert")
    parser.add_argument("--routing", default="uniform", choices=("uniform", "skewed", "exact"))
    parser.add_argument("--only", default=",".join(PEERS), help="peers, with commas between them")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--idle-ms", type=float, default=50)
    parser.add_argument("--sustained", action="store_true")
    parser.add_argument("--window-ms", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case after so long")
    arguments = parser.parse_args()
    chosen = [peer for peer in arguments.only.split(",") if peer]
    unknown = sorted(set(chosen) - set(PEERS))
    if unknown:
        parser.error(f"no peer {', '.join(unknown)}; there are {', '.join(PEERS)}")
    kernels = [kernel for kernel in map(common.Kernel, arguments.files) if kernel.usable and kernel.layout()]
    kernels.sort(key=lambda kernel: kernel.experts * kernel.n * kernel.k)
    if not kernels:
        parser.error("no FILE is a grouped kernel that a peer could run")
    started, clock, ceiling = time.monotonic(), common.Clock(), dense_product()
    lines, refused, ceilings = [], [], []
    for kernel in kernels:
        weights = None
        for rows in map(int, arguments.rows.split(",")):
            if time.monotonic() - started > arguments.seconds:
                refused.append({"kernel": kernel.name, "rows": rows * kernel.experts, "label": "all",
                                "message": "out of time"})
                continue
            operands = common.Operands(kernel, rows, arguments.routing, arguments.seed, weights)
            weights = operands.w
            run_case(operands, chosen, clock, ceiling, arguments, lines, refused, ceilings)
            del operands
            torch.cuda.empty_cache()
    print(common.document(arguments, lines, refused, statistics.median(ceilings) if ceilings else 0))
    wrong = [line for line in lines if line["check"] and not line["check"]["ok"]]
    for line in wrong:
        print(f"WRONG: {line['kernel']}, {line['rows']} rows, {line['peer']}: {line['check']['relativeError']:.2e}",
              file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
