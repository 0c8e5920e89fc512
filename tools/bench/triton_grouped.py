"""A grouped FP8 product in Triton, written for the comparison: what a careful user of Triton would write. A program finds its
expert by prefix sums of row tiles; sums are promoted every 128 of K; a dozen configurations are tried for each shape."""

import torch
import triton
import triton.language as tl

CONFIGS = [triton.Config({"BLOCK_M": m, "BLOCK_N": n, "GROUP": g}, num_warps=w, num_stages=s)
           for m, n, w, s in ((16, 128, 4, 4), (32, 128, 4, 4), (64, 128, 4, 4), (64, 256, 8, 3), (128, 128, 8, 3),
                              (128, 256, 8, 3)) for g in (1, 8)]


@triton.jit
def _grouped(x, w, y, x_scales, w_scales, offsets, experts, N, K: tl.constexpr, PROMOTED: tl.constexpr,
             E_POW2: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    # Which expert and rows: prefix sums of row tiles over all experts, in registers.
    e = tl.arange(0, E_POW2)
    begins = tl.load(offsets + e, mask=e < experts, other=0)
    ends = tl.load(offsets + e + 1, mask=e < experts, other=0)
    tiles = tl.cdiv(ends - begins, BLOCK_M)
    last = tl.cumsum(tiles, 0)
    total = tl.sum(tiles, 0)
    columns = tl.cdiv(N, BLOCK_N)
    pid = tl.program_id(0)
    # GROUP row tiles share a sweep over the columns.
    band = pid // (GROUP * columns)
    in_band = tl.minimum(total - band * GROUP, GROUP)
    if in_band <= 0:
        return
    row_tile = band * GROUP + (pid % (GROUP * columns)) % in_band
    column_tile = (pid % (GROUP * columns)) // in_band
    if column_tile >= columns:
        return
    expert = tl.sum((last <= row_tile).to(tl.int32), 0)
    first = tl.sum(tl.where(e == expert, last - tiles, 0), 0)
    begin = tl.load(offsets + expert) + (row_tile - first) * BLOCK_M
    end = tl.load(offsets + expert + 1)
    m = begin + tl.arange(0, BLOCK_M)
    n = column_tile * BLOCK_N + tl.arange(0, BLOCK_N)
    live, inside = m < end, n < N
    k = tl.arange(0, 128)
    xp = x + m.to(tl.int64)[:, None] * K + k[None, :]
    wp = w + expert.to(tl.int64) * N * K + n[None, :].to(tl.int64) * K + k[:, None]
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    blocks: tl.constexpr = (K + 127) // 128
    for i in range(blocks):
        rest = K - i * 128
        a = tl.load(xp + i * 128, mask=live[:, None] & (k[None, :] < rest), other=0.0)
        b = tl.load(wp + i * 128, mask=inside[None, :] & (k[:, None] < rest), other=0.0)
        if PROMOTED:
            sx = tl.load(x_scales + m * blocks + i, mask=live, other=0.0)
            sw = tl.load(w_scales + (expert * tl.cdiv(N, 128) + n // 128) * blocks + i, mask=inside, other=0.0)
            acc += tl.dot(a, b) * sx[:, None] * sw[None, :]
        else:
            # The tensor core's own sum is left every 128 of K, as exact accumulation wants.
            acc += tl.dot(a, b)
    if not PROMOTED:
        sx = tl.load(x_scales + m, mask=live, other=0.0)
        sw = tl.load(w_scales + expert * N + n, mask=inside, other=0.0)
        acc = acc * sx[:, None] * sw[None, :]
    tl.store(y + m.to(tl.int64)[:, None] * N + n[None, :], acc.to(tl.bfloat16), mask=live[:, None] & inside[None, :])


def grouped_call(operands):
    """A call that writes y and returns it, tuned over CONFIGS by time."""
    kernel = operands.kernel
    promoted = kernel.layout() == "block"
    x_scales, w_scales = (operands.x_scales, operands.w_scales) if promoted else operands.row_scales()
    y = torch.full((operands.rows, kernel.n), float("nan"), dtype=torch.bfloat16, device="cuda")

    def with_config(config):
        m, n, group = (config.kwargs[name] for name in ("BLOCK_M", "BLOCK_N", "GROUP"))
        row_tiles = operands.rows // m + min(kernel.experts, operands.rows)
        bands = triton.cdiv(row_tiles, group)
        grid = (bands * group * triton.cdiv(kernel.n, n),)

        def call():
            _grouped[grid](operands.x, operands.w, y, x_scales, w_scales, operands.offsets, kernel.experts, kernel.n,
                           kernel.k, promoted, triton.next_power_of_2(kernel.experts), m, n, group,
                           num_warps=config.num_warps, num_stages=config.num_stages)
            return y

        return call

    best, best_us, chosen = None, float("inf"), None
    for config in CONFIGS:
        call = with_config(config)
        try:
            call()
            us = triton.testing.do_bench(call, warmup=5, rep=20) * 1e3
        except Exception:  # too much shared memory or registers
            continue
        if us < best_us:
            best, best_us, chosen = call, us, config
    if best is None:
        raise RuntimeError("no configuration runs")
    kwargs = chosen.kwargs
    return best, f"{kwargs['BLOCK_M']}x{kwargs['BLOCK_N']}, group {kwargs['GROUP']}, " \
                 f"{chosen.num_warps} warps, {chosen.num_stages} stages"
