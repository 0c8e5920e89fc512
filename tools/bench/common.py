"""What the drivers of peers share: kernel descriptions, operands, the clock, and the JSON that `moejit bench` prints.

Operands are like those of moejit: random e4m3 codes, rows drawn by the same routings, scales of the layout that the kernel
describes. A peer is a function from Operands to a call; what it computes is compared with float64 on sampled experts."""

import ctypes
import json
import math
import pathlib
import random
import re
import statistics
import time

import torch

GRANULE = re.compile(r"granule = \[([^\]]*)\]")


class Kernel:
    """A grouped kernel of kernels/, as far as peers can run it: bf16 out, f32 scales."""

    def __init__(self, path):
        text = pathlib.Path(path).read_text()
        self.file, self.name = str(path), pathlib.Path(path).stem
        weights = re.search(r"%w: tensor<(\d+)x(\d+)x(\d+)xf8E4M3FN", text)
        layouts = dict(re.findall(r"#(\w+) = #moe\.scales<(.*)>", text))
        self.usable = bool(weights and "moe.gemm grouped" in text and "xbf16>" in text
                           and {"x", "w"} <= layouts.keys()
                           and not any("f8E8M0" in l or "parts" in l or "packing" in l for l in layouts.values()))
        if not self.usable:
            return
        self.experts, self.n, self.k = map(int, weights.groups())
        self.x_granule, self.w_granule = (
            [part.strip() for part in GRANULE.search(layouts[name]).group(1).split(",")] for name in ("x", "w"))

    def layout(self):
        """"block" (1x128 by 128x128), "row" (per token by per channel), "tensor", or "" for what no peer has."""
        return {("1,128", "1,128,128"): "block", ("1,*", "1,1,*"): "row",
                ("*,*", "1,*,*"): "tensor"}.get((",".join(self.x_granule), ",".join(self.w_granule)), "")


def draw_counts(experts, rows, routing, seed):
    generator = random.Random(seed)
    if routing == "exact":
        return [rows // experts + (e < rows % experts) for e in range(experts)]
    weights = [1.0] * experts
    if routing == "skewed":
        weights = [1.0 / (i + 1) for i in range(experts)]
        generator.shuffle(weights)
    counts = [0] * experts
    for expert in generator.choices(range(experts), weights, k=rows):
        counts[expert] += 1
    return counts


class Operands:
    """One kernel at one number of rows, on the device."""

    def __init__(self, kernel, rows_per_expert, routing, seed, weights=None, device="cuda"):
        self.kernel, self.rows_per_expert, self.routing = kernel, rows_per_expert, routing
        self.rows = rows_per_expert * kernel.experts
        self.counts = draw_counts(kernel.experts, self.rows, routing, seed)
        generator = torch.Generator(device=device).manual_seed(seed)

        def codes(*shape):
            return (torch.randn(shape, device=device, generator=generator, dtype=torch.float16) * 112).clamp(
                -448, 448).to(torch.float8_e4m3fn)

        def scales(*shape):
            return torch.exp2(torch.rand(shape, device=device, generator=generator) * 4 - 12)

        e, n, k = kernel.experts, kernel.n, kernel.k
        self.x = codes(self.rows, k)
        if weights is None:
            w = torch.empty((e, n, k), device=device, dtype=torch.float8_e4m3fn)
            for expert in range(e):
                w[expert] = codes(n, k)
            weights = w
        self.w = weights
        kind = kernel.layout()
        blocks_k, blocks_n = math.ceil(k / 128), math.ceil(n / 128)
        self.x_scales = scales(*{"block": (self.rows, blocks_k), "row": (self.rows,), "tensor": ()}[kind])
        self.w_scales = scales(*{"block": (e, blocks_n, blocks_k), "row": (e, n), "tensor": (e,)}[kind])
        self.offsets = torch.tensor([0] + self.counts, device=device).cumsum(0).to(torch.int32)
        self.active = sum(count > 0 for count in self.counts)
        self.operations = 2.0 * self.rows * n * k
        self.weight_bytes = float(self.active) * n * k

    def rows_of(self, expert):
        begin = sum(self.counts[:expert])
        return slice(begin, begin + self.counts[expert])

    def row_scales(self):
        """A scale a row and a scale a column, for peers that take nothing else; [1] and [1] where those mean the same."""
        x, w = self.x_scales, self.w_scales
        kind = self.kernel.layout()
        if kind == "block":  # not the same product: lighter, and said so
            return x[:, 0].contiguous(), w[:, :, 0].repeat_interleave(128, 1)[:, :self.kernel.n].contiguous()
        if kind == "tensor":
            return x.expand(self.rows).contiguous(), w[:, None].expand(-1, self.kernel.n).contiguous()
        return x, w

    def reference(self, expert):
        rows, kind = self.rows_of(expert), self.kernel.layout()
        x, w = self.x[rows].double(), self.w[expert].double()
        if kind == "block":
            x *= self.x_scales[rows].double().repeat_interleave(128, 1)[:, :self.kernel.k]
            scale = self.w_scales[expert].double().repeat_interleave(128, 0)[:self.kernel.n]
            w *= scale.repeat_interleave(128, 1)[:, :self.kernel.k]
            return x @ w.t()
        y = x @ w.t()
        if kind == "row":
            return y * self.x_scales[rows].double()[:, None] * self.w_scales[expert].double()
        return y * self.x_scales.double() * self.w_scales[expert].double()

    def error(self, y, seed=0):
        """‖y − reference‖ / ‖reference‖ over the busiest expert and three others; NaN where y is not finite."""
        if not bool(torch.isfinite(y).all()):
            return float("nan")
        active = [e for e, count in enumerate(self.counts) if count]
        chosen = {max(active, key=lambda e: self.counts[e]), active[-1],
                  *random.Random(seed).sample(active, min(2, len(active)))}
        difference = norm = 0.0
        for expert in chosen:
            reference = self.reference(expert)
            difference += float((y[self.rows_of(expert)].double() - reference).square().sum())
            norm += float(reference.square().sum())
        return (difference / norm) ** 0.5


class Clock:
    """Times one call, the L2 flushed before it by a read."""

    def __init__(self, flush_mib=512):
        self.flush = torch.randn(flush_mib << 18, device="cuda")
        self.sink = torch.empty((), device="cuda")
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def time_us(self, call):
        torch.sum(self.flush, dim=0, out=self.sink)
        self.begin.record()
        call()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1e3

    def window_us(self, call, window_ms, us):
        count = max(1, int(window_ms * 1e3 / max(us, 1)))
        self.begin.record()
        for _ in range(count):
            call()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1e3 / count


def host_us(call, calls=64):
    times = []
    for i in range(calls):
        if i % 8 == 0:
            torch.cuda.synchronize()
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


def measure(items, clock, rounds, repeats, idle_ms, window_ms, seed, progress):
    """Times in µs of every item (name → call): bursts, then windows if `window_ms`. Shuffled in each round."""
    shuffler, order = random.Random(seed), list(items)
    burst, sustained = {name: [] for name in items}, {name: [] for name in items}
    for call in items.values():
        clock.time_us(call)
    for r in range(rounds):
        shuffler.shuffle(order)
        for name in order:
            time.sleep(idle_ms / 1e3)
            burst[name] += [clock.time_us(items[name]) for _ in range(repeats)]
        progress(f"round {r + 1} of {rounds}")
    for r in range(rounds if window_ms else 0):
        shuffler.shuffle(order)
        for name in order:
            us = statistics.median(burst[name])
            sustained[name].append(clock.window_us(items[name], window_ms, us))
    return burst, sustained


def line(operands, peer, label, burst, sustained, read_us, error, limit, host):
    """One line of `lines`, as moejit bench prints it."""
    us = statistics.median(burst)
    quarters = statistics.quantiles(burst, n=4) if len(burst) > 1 else [us] * 3
    found = {
        "kernel": operands.kernel.name, "file": operands.kernel.file, "peer": peer, "label": label,
        "rows": operands.rows, "ownedRows": operands.rows, "rowsPerExpert": operands.rows_per_expert,
        "routing": operands.routing, "activeExperts": operands.active,
        "leastRows": min(c for c in operands.counts if c), "mostRows": max(operands.counts),
        "us": us, "leastUs": min(burst), "mostUs": max(burst), "spread": (quarters[2] - quarters[0]) / us,
        "allUs": burst, "operations": operands.operations, "weightBytes": operands.weight_bytes,
        "teraflops": operands.operations / us / 1e6, "gigabytesPerSecond": operands.weight_bytes / us / 1e3,
        "readUs": read_us, "shareOfRead": read_us / us, "hostUs": host,
        "check": {"ok": error <= limit, "relativeError": error} if error is not None else None,
    }
    if sustained:
        us = statistics.median(sustained)
        found.update(sustainedUs=us, sustainedTeraflops=operands.operations / us / 1e6, allSustainedUs=sustained)
    return found


def driver_version():
    version = ctypes.c_int()
    ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(version))
    return f"{version.value // 1000}.{version.value % 1000 // 10}"


def document(arguments, lines, refused, teraflops):
    properties = torch.cuda.get_device_properties(0)
    return json.dumps({
        "format": 1,
        "device": {"name": properties.name, "smCount": properties.multi_processor_count, "driver": driver_version(),
                   "torch": torch.__version__},
        "how": {"rounds": arguments.rounds, "repeats": arguments.repeat, "idleMs": arguments.idle_ms,
                "windowMs": arguments.window_ms if arguments.sustained else 0, "seed": arguments.seed,
                "routing": arguments.routing, "l2": "flushed by a read of 512 MiB before each call",
                "read": "torch.sum of the weights"},
        "ceilings": {"teraflops": teraflops, "teraflopsFrom": "torch._scaled_mm 8192, fast accumulation"},
        "lines": lines, "refused": refused}, indent=1)
