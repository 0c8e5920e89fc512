#!/usr/bin/env python3
"""Speed of the catalogue's kernels on one GPU, beside torch's own FP8 products, measured as docs/results says.

All contenders of a case run in one process, in shuffled order, in several rounds; before each call the L2 is flushed by a
512 MiB read; CUDA events; medians. Random data. Each output is checked against float64 on sampled experts in the same run.
"""

import argparse
import json
import random
import statistics
import sys
import threading
import time
import traceback

import torch

import binding


class Clock:
    """Times one call on the device, the L2 flushed before it."""

    def __init__(self, device):
        self.device = device
        self.flush = None
        if device != "cpu":
            self.flush = torch.randn(128 << 20, device=device)  # 512 MiB of f32
            self.sink = torch.empty((), device=device)
            self.begin = torch.cuda.Event(enable_timing=True)
            self.end = torch.cuda.Event(enable_timing=True)

    def time_us(self, call):
        if self.device == "cpu":
            begin = time.perf_counter()
            call()
            return (time.perf_counter() - begin) * 1e6
        torch.sum(self.flush, dim=0, out=self.sink)
        self.begin.record()
        call()
        self.end.record()
        self.end.synchronize()
        return self.begin.elapsed_time(self.end) * 1e3

    def sync(self):
        if self.device != "cpu":
            torch.cuda.synchronize()


class PowerMeter:
    """Samples power, clock and temperature in a thread; where NVML is missing it reads nothing."""

    def __init__(self, device):
        self.samples, self.stopping, self.thread = [], False, None
        if device == "cpu":
            return
        try:
            import pynvml
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByIndex(0)

            def sample():
                while not self.stopping:
                    self.samples.append(
                        (time.monotonic(), pynvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
                         pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
                         pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU)))
                    time.sleep(0.05)

            sample_once = pynvml.nvmlDeviceGetPowerUsage(handle)
            self.thread = threading.Thread(target=sample, daemon=True) if sample_once else None
            if self.thread:
                self.thread.start()
        except Exception as problem:
            print(f"no power readings: {problem}", flush=True)

    def since(self, begin):
        """"up to 512 W, 1410 to 1980 MHz" since `begin`."""
        seen = [s for s in self.samples if s[0] >= begin]
        if not seen:
            return ""
        return (f"up to {max(s[1] for s in seen):.0f} W, {min(s[2] for s in seen)} to "
                f"{max(s[2] for s in seen)} MHz, {max(s[3] for s in seen)} °C")


def dense_product(size, device):
    """The ceiling: one dense FP8 product, per tensor, fast accumulation."""
    generator = torch.Generator(device=device)
    generator.manual_seed(1)
    a = binding.random_codes((size, size), device, generator)
    b = binding.random_codes((size, size), device, generator)
    one = torch.tensor(2.0**-8, device=device)

    def call():
        return torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16,
                                use_fast_accum=True)

    return call


def torch_grouped(data, fast):
    """torch._scaled_grouped_mm on the same codes: a scale a row, a scale a column."""
    spec = data.spec
    rowwise = spec.x.granule == [1, "*"] and spec.w.granule == [1, 1, "*"]
    generator = torch.Generator(device=data.device)
    generator.manual_seed(7)
    if rowwise:
        scale_x = data.x_logical.reshape(-1).contiguous()
        scale_w = data.w_scales.reshape(spec.experts, -1).contiguous()
    else:
        scale_x = binding.random_scales((data.rows,), data.device, generator)
        scale_w = binding.random_scales((spec.experts, spec.n), data.device, generator)
    ends = data.offsets[1:].contiguous()
    w = data.w.transpose(-2, -1)

    def call():
        return torch._scaled_grouped_mm(data.x, w, scale_x, scale_w, offs=ends,
                                        out_dtype=torch.bfloat16, use_fast_accum=fast)

    return call


def sampled_experts(counts, seed):
    """The busiest expert, the last one with rows, and two at random."""
    active = [e for e, count in enumerate(counts) if count > 0]
    busiest = max(active, key=lambda e: counts[e])
    chosen = {busiest, active[-1], *random.Random(seed).sample(active, min(2, len(active)))}
    return sorted(chosen)


def error_on(data, y, experts):
    difference, norm = 0.0, 0.0
    for expert in experts:
        reference = data.product(expert)
        difference += float((y[data.rows_of(expert)].double() - reference).square().sum())
        norm += float(reference.square().sum())
    return (difference / norm)**0.5


class Case:
    """One kernel of the catalogue at one number of rows."""

    def __init__(self, library, name, spec, rows_per_expert, weights, device, seed):
        self.name, self.spec, self.rows_per_expert = name, spec, rows_per_expert
        rows = rows_per_expert * spec.experts
        counts = binding.draw_counts(spec.experts, rows, seed)
        self.data = binding.Data(spec, counts, device, seed, weights)
        self.y = torch.full((rows, spec.n), float("nan"), dtype=spec.out_type, device=device)
        gemm = library.find(spec)
        self.flops = 2.0 * rows * spec.n * spec.k
        self.active = sum(count > 0 for count in counts)
        self.weight_bytes = float(self.active) * spec.n * spec.k
        self.calls, self.notes, self.times = {}, [], {}
        for label, expected in (("moejit", 0), ("few-rows kernel", 1), ("many-rows kernel", 1 << 30)):
            self.calls[label] = gemm.launcher(self.data, self.y, expected)
        self.errors = {}
        self.limit = binding.error_limit(spec)

    def check(self, clock, seed):
        """Runs each kernel once into a poisoned output; the worst error of them."""
        experts = sampled_experts(self.data.counts, seed)
        for label in list(self.calls):
            self.y.fill_(float("nan"))
            try:
                self.calls[label]()
                clock.sync()
                finite = bool(torch.isfinite(self.y).all())
                self.errors[label] = error_on(self.data, self.y, experts) if finite else float("nan")
            except binding.MoejitError as problem:
                self.notes.append(f"{label}: {problem}")
                del self.calls[label]

    def add_peers(self, clock):
        for label, fast in (("torch grouped fast", True), ("torch grouped", False)):
            try:
                call = torch_grouped(self.data, fast)
                out = call()
                clock.sync()
                if self.spec.x.granule == [1, "*"] and self.spec.w.granule == [1, 1, "*"]:
                    self.errors[label] = error_on(self.data, out,
                                                  sampled_experts(self.data.counts, 3))
                del out
                self.calls[label] = call
            except Exception as problem:
                self.notes.append(f"{label}: {str(problem).splitlines()[0][:100]}")

    def ok(self):
        """Every kernel ran, and each error is within its limit (NaN is not)."""
        kernels = ("moejit", "few-rows kernel", "many-rows kernel")
        return all(label in self.errors and self.errors[label] <= self.limit for label in kernels)


def measure(case, clock, ceiling, rounds, repeats, seed):
    shuffler = random.Random(seed)
    calls = dict(case.calls)
    if ceiling:
        calls["ceiling"] = ceiling
    weights = case.data.w.view(torch.float32)
    calls["read weights"] = lambda: torch.sum(weights)
    times = {label: [] for label in calls}
    for call in calls.values():
        clock.time_us(call)
    for _ in range(rounds):
        order = list(calls)
        shuffler.shuffle(order)
        for label in order:
            if clock.device != "cpu":
                time.sleep(0.05)
            for _ in range(repeats):
                times[label].append(clock.time_us(calls[label]))
    case.times = {label: statistics.median(values) for label, values in times.items()}


CEILING_SIZE = 8192


def row_of(case):
    us = case.times["moejit"]
    tflops = case.flops / us / 1e6
    ceiling = case.times.get("ceiling")
    share = f"{100 * tflops / (2 * CEILING_SIZE**3 / ceiling / 1e6):.1f}" if ceiling else ""
    bandwidth = case.weight_bytes / us / 1e3

    def other(label):
        return f"{case.times[label]:.1f}" if label in case.times else "–"

    # All experts' weights are read there, active or not.
    floor = case.times["read weights"] * case.active / case.spec.experts
    peers = [case.times[label] for label in ("torch grouped fast", "torch grouped")
             if label in case.times]
    gain = f"{min(peers) / us:.2f}" if peers else ""
    worst = max((error for label, error in case.errors.items() if not label.startswith("torch")),
                key=lambda error: float("inf") if error != error else error, default=float("nan"))
    return (f"| {case.name} | {case.spec.experts} × {case.spec.n} × {case.spec.k} | "
            f"{case.rows_per_expert} | {us:.1f} | {tflops:.0f} | {share} | {bandwidth:.0f} | "
            f"{100 * floor / us:.0f} | {other('few-rows kernel')} | {other('many-rows kernel')} | "
            f"{other('torch grouped fast')} | {other('torch grouped')} | {gain} | {worst:.2e} | "
            f"{'ok' if case.ok() else '**failed**'} |")


HEADER = (
    "| kernel | E × N × K | rows an expert | µs | TFLOP/s | % of ceiling | weights GB/s | "
    "% of reading them | µs, few-rows kernel | µs, many-rows kernel | µs, torch grouped fast | "
    "µs, torch grouped | × faster than torch | error | |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n")


def explain(device_text, rounds, repeats, ceilings, power, notes):
    ceiling = ""
    if ceilings:
        rates = [2 * CEILING_SIZE**3 / us / 1e6 for us in ceilings]
        ceiling = (f"Dense FP8 ceiling (torch._scaled_mm, {CEILING_SIZE}³, per tensor, fast "
                   f"accumulation), in every case's own shuffle: median {statistics.median(rates):.0f}"
                   f" TFLOP/s, {min(rates):.0f} to {max(rates):.0f}. ")
    return (f"# Speed of the catalogue\n\n{device_text}. {ceiling}\n\n"
            f"Made by `tests/gpu/speed.py`: all contenders of a case in one process, shuffled in each "
            f"of {rounds} rounds of {repeats} calls, 50 ms idle before each block, L2 flushed by a "
            "512 MiB read before each call, CUDA events, median. Random e4m3 data; rows drawn "
            "uniformly, so experts differ. TFLOP/s counts real rows; `% of ceiling` is of the dense "
            "product in the same case. `weights GB/s` is the active experts' weights over the time, "
            "`% of reading them` the time a plain sum over those weights takes over ours. `few-rows` "
            "and `many-rows` force one kernel of the two; the plan's own choice is `µs`, and equals "
            "one of them up to noise. torch grouped is `torch._scaled_grouped_mm`, which takes a "
            "scale a row and a column whatever the kernel's own layout is: the same product where "
            "that is its layout, a lighter one elsewhere. `error` is the worst of the kernels against "
            "float64 on up to four experts; outputs start as NaN and every element must be finite.\n\n"
            f"{'Power over the run: ' + power + '.' if power else ''}\n\n"
            + "".join(f"* {note}\n" for note in notes) + "\n" + HEADER)


def run(arguments):
    library = binding.Library(arguments.library, arguments.folder)
    device = arguments.device
    started = time.monotonic()
    clock, meter = Clock(device), PowerMeter(device)
    if device == "cpu":
        device_text = "Dry run without a GPU"
        ceiling = None
    else:
        properties = torch.cuda.get_device_properties(0)
        device_text = (f"{properties.name}, {properties.multi_processor_count} SMs, torch "
                       f"{torch.__version__}, CUDA {torch.version.cuda}, moejit {library.version()}")
        ceiling = dense_product(CEILING_SIZE, device)
        ceiling()
        clock.sync()
    specs = [s for s in binding.read_specs(arguments.folder)
             if "catalogue" in s[1] and arguments.only in s[0] and s[2].is_plain()]
    # Small ones first: if time runs out, most of the table is there.
    specs.sort(key=lambda s: s[2].experts * s[2].n * s[2].k)
    cases, rows, notes, skipped = [], [], [], 0
    for name, _, spec in specs:
        weights = None
        for rows_per_expert in arguments.rows:
            if time.monotonic() - started > arguments.seconds:
                skipped += 1
                continue
            begun = time.monotonic()
            case = Case(library, name, spec, rows_per_expert, weights, device, seed=len(cases))
            weights = case.data.w
            case.check(clock, seed=len(cases))
            if "moejit" not in case.calls:
                notes += [f"{name}, {rows_per_expert} rows an expert: {n}" for n in case.notes]
                rows.append(f"| {name} | | {rows_per_expert} | did not run |" + " |" * 10
                            + " **failed** |")
                print(rows[-1], case.notes, flush=True)
                cases.append(case)
                continue
            if device != "cpu":
                case.add_peers(clock)
            measure(case, clock, ceiling, arguments.rounds, arguments.repeats, seed=len(cases))
            notes += [f"{name}, {rows_per_expert} rows an expert: {n}" for n in case.notes]
            rows.append(row_of(case))
            print(rows[-1], f"{time.monotonic() - begun:.1f} s", flush=True)
            cases.append(case)
            # The tensors of a case are big; only its numbers are kept.
            case.calls = {}
            case.data = case.y = None
            write(arguments, device_text, cases, rows, notes, meter, started)
        if device != "cpu":
            weights = None
            torch.cuda.empty_cache()
    meter.stopping = True
    write(arguments, device_text, cases, rows, notes, meter, started)
    failed = sum(not case.ok() for case in cases)
    print(f"{len(cases)} cases, {failed} failed, {skipped} not run, "
          f"{time.monotonic() - started:.0f} s; power {meter.since(started)}", flush=True)
    return 1 if failed or not cases else 0


def write(arguments, device_text, cases, rows, notes, meter, started):
    ceilings = [case.times["ceiling"] for case in cases if "ceiling" in case.times]
    if arguments.markdown:
        with open(arguments.markdown, "w") as out:
            out.write(explain(device_text, arguments.rounds, arguments.repeats, ceilings,
                              meter.since(started), notes) + "\n".join(rows) + "\n")
    if arguments.json:
        with open(arguments.json, "w") as out:
            json.dump([{"kernel": case.name, "rowsPerExpert": case.rows_per_expert,
                        "experts": case.spec.experts, "n": case.spec.n, "k": case.spec.k,
                        "activeExperts": case.active, "medianUs": case.times,
                        "errors": case.errors, "ok": case.ok()} for case in cases], out, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", required=True, help="libmoejit.so")
    parser.add_argument("--folder", required=True, help="made by moejit-gpu-bundle")
    parser.add_argument("--markdown", help="write a table")
    parser.add_argument("--json", help="write all numbers")
    parser.add_argument("--only", default="", help="only kernels whose name contains this")
    parser.add_argument("--rows", type=int, nargs="+", default=[16, 128, 512],
                        help="rows an expert")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=4)
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
