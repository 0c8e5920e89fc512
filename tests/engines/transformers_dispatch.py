"""Runs the FP8 expert dispatches of transformers on tiny tensors and prints one JSON line a case: what it raises, or how
far its result is from float64. Needs a GPU, torch and Triton. Holds nothing of the engines: releases come as wheels,
the hub kernel as a folder of its source.

usage: transformers_dispatch.py [--release WHEEL_OR_VERSION[,WHEEL…]=KERNEL_FOLDER] … [--json FILE] [--seconds N]

A release is the version that is installed, or a wheel (and wheels it needs besides, such as another tokenizers);
KERNEL_FOLDER holds the package finegrained_fp8 at the version that this release asks the hub for. Without --release the
installed one runs, without the hub kernel. Each release runs twice: as it comes up here, without the package `kernels`,
and with the hub kernel's source in its place. exit code: 0, or 2 when nothing ran.
"""
import argparse
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import zipfile

E, T, H, TOP_K = 4, 24, 256, 2
DISPATCHES = ["eager", "batched_mm", "grouped_mm", "deepgemm", "deepgemm_megamoe"]

# name: intermediate size, block, activation scheme, scale format, and what is special about ids or rows.
CASES = {
    "block dynamic": dict(i=128, block=(128, 128)),
    "block dynamic, I=160 (scales cover rounded up)": dict(i=160, block=(128, 128)),
    "block dynamic, I=192": dict(i=192, block=(128, 128)),
    "block static": dict(i=128, block=(128, 128), scheme="static"),
    "block ue8m0": dict(i=128, block=(128, 128), fmt="ue8m0"),
    "block 64x64 dynamic": dict(i=128, block=(64, 64)),
    "tensor dynamic": dict(i=128, block=None),
    "tensor dynamic, one scale an expert": dict(i=128, block=None, one_scale=True),
    "tensor static": dict(i=128, block=None, scheme="static"),
    "block dynamic, no token": dict(i=128, block=(128, 128), tokens=0),
    "block dynamic, a row of zeros": dict(i=128, block=(128, 128), rows="zero"),
    "block dynamic, float16": dict(i=128, block=(128, 128), dtype="float16"),
    # These may take the context with them: last.
    "block dynamic, ids of no expert (E)": dict(i=128, block=(128, 128), ids="sentinel"),
    "block dynamic, ids of no expert (E), expert parallel": dict(i=128, block=(128, 128), ids="sentinel", parallel=True),
    "block dynamic, id E + 1": dict(i=128, block=(128, 128), ids="past"),
    "block dynamic, id -1": dict(i=128, block=(128, 128), ids="negative"),
}


def load_kernel(folder):
    """The package of `folder`; its build step would have written `_ops`. Tuning tries one configuration: it is about speed."""
    import torch
    import triton

    plain = triton.autotune
    triton.autotune = lambda configs, *args, **named: plain(configs[:1], *args, **named)
    os.environ["FINEGRAINED_AUTOTUNE_TRIALS"] = "1"
    ops = types.ModuleType("finegrained_fp8._ops")
    ops.ops = torch.ops.finegrained_fp8_local
    ops.add_op_namespace_prefix = lambda name: "finegrained_fp8_local::" + name
    sys.modules["finegrained_fp8._ops"] = ops
    sys.path.insert(0, str(folder))
    return importlib.import_module("finegrained_fp8")


def quantized_rows(x, group):
    """What dynamic quantization makes of x along its last dimension, as numbers (float64)."""
    import torch

    s, k = x.shape
    padded = torch.nn.functional.pad(x.float(), (0, -k % group)).reshape(s, -1, group)
    scale = padded.abs().amax(-1, keepdim=True).clamp(min=1e-12) / 448
    codes = (padded / scale).clamp(-448, 448).to(torch.float8_e4m3fn)
    return (codes.double() * scale.double()).reshape(s, -1)[:, :k]


def expanded(scale, rows, columns, block):
    """A scale for every element of a weight [E, rows, columns]; without a block one for each of its halves, or one."""
    scale = scale.float().double()
    if block:
        return scale.repeat_interleave(block[0], 1)[:, :rows].repeat_interleave(block[1], 2)[:, :, :columns]
    return scale.repeat_interleave(rows // scale.shape[1], 1).expand(-1, -1, columns)


def reference(case, module, hidden, ids, weights, quantizes):
    """float64; with `quantizes` activations become codes on the way, as the scheme says, and bf16 between the GEMMs."""
    import torch

    block, i = case.get("block"), case["i"]
    up = module.gate_up_proj.double() * expanded(module.gate_up_proj_scale_inv, 2 * i, H, block)
    down = module.down_proj.double() * expanded(module.down_proj_scale_inv, H, i, block)
    out = torch.zeros(hidden.shape, dtype=torch.float64, device=hidden.device)

    def activations(x, expert, name):
        if not quantizes:
            return x.double()
        if case.get("scheme") == "static":
            scale = getattr(module, name)[expert].float()
            return (x.float() / scale).clamp(-448, 448).to(torch.float8_e4m3fn).double() * scale.double()
        return quantized_rows(x, block[1] if block else x.shape[-1])

    for expert in range(E):
        token, slot = torch.where(ids == expert)
        if len(token) == 0:
            continue
        product = activations(hidden[token], expert, "gate_up_proj_activation_scale") @ up[expert].T
        gate, value = product.to(hidden.dtype if quantizes else torch.float64).chunk(2, -1)
        middle = torch.nn.functional.silu(gate) * value
        result = activations(middle, expert, "down_proj_activation_scale") @ down[expert].T
        out.index_add_(0, token, result * weights[token, slot].double()[:, None])
    return out


def make(case, dispatch, fp8, moe, device):
    """Experts with random codes and scales, and what they are called with."""
    import torch

    torch.manual_seed(7)
    config = types.SimpleNamespace(hidden_size=H, num_local_experts=E, num_experts=E, moe_intermediate_size=case["i"],
                                   intermediate_size=case["i"], hidden_act="silu", hidden_activation="silu",
                                   _experts_implementation=dispatch)
    # A fresh class: the decorator changes the one it is given.
    base = type("Experts", (fp8.FP8Experts,), {})
    made = moe.use_experts_implementation(experts_class=base, experts_interface=fp8.ALL_FP8_EXPERTS_FUNCTIONS,
                                          has_bias=False, has_gate=True)
    options = dict(block_size=case["block"], activation_scheme=case.get("scheme", "dynamic"))
    if case.get("fmt"):
        options["scale_fmt"] = case["fmt"]
    module = made(config, **options).to(device)
    module._is_expert_parallel = bool(case.get("parallel"))
    for name, parameter in module.named_parameters():
        if name.endswith("activation_scale"):
            parameter.data.fill_((4 if name.startswith("gate") else 64) / 448)
        elif "scale" in name:
            exponents = torch.randint(-10, -6, parameter.shape, device=device).float()
            values = torch.exp2(exponents) * (1 if case.get("fmt") else 1 + torch.rand_like(exponents))
            if case.get("one_scale"):
                parameter.data = values[:, :1, :1].contiguous()
            else:
                parameter.data = values.to(parameter.dtype)
        else:
            parameter.data = (torch.randn(parameter.shape, device=device) * 64).clamp(-448, 448).to(parameter.dtype)
    dtype = getattr(torch, case.get("dtype", "bfloat16"))
    tokens = case.get("tokens", T)
    hidden = torch.randn(tokens, H, device=device).to(dtype)
    ids = torch.stack([torch.randperm(E, device=device)[:TOP_K] for _ in range(tokens)]) if tokens else torch.zeros(
        0, TOP_K, dtype=torch.int64, device=device)
    weights = torch.rand(tokens, TOP_K, device=device).to(dtype)
    special = {"sentinel": E, "past": E + 1, "negative": -1}.get(case.get("ids"))
    if special is not None:
        ids[::3, 1] = special
    if case.get("rows") == "zero":
        hidden[3] = 0
    return module, hidden, ids, weights


def worker(args):
    """One release, in a process of its own; begins after the lines that are there already."""
    import torch
    import transformers
    import triton
    import transformers.integrations.finegrained_fp8 as fp8
    import transformers.integrations.hub_kernels as hub
    import transformers.integrations.moe as moe

    hub_kernel = "absent"
    if args.kernel:
        kernel = load_kernel(args.kernel)
        hub._KERNEL_MODULE_MAPPING["finegrained-fp8"] = kernel
        if hasattr(fp8, "is_kernels_available"):
            fp8.is_kernels_available = lambda *_, **__: True
        if hasattr(fp8, "_deepgemm_available"):
            fp8._deepgemm_available = False  # as after an attempt that found no build
        hub_kernel = "source of " + pathlib.Path(args.kernel).name
    device = torch.cuda.get_device_name() if args.device == "cuda" else "cpu"
    done = set()
    if pathlib.Path(args.lines).exists():
        for line in pathlib.Path(args.lines).read_text().splitlines():
            entry = json.loads(line)
            done.add((entry["case"], entry["dispatch"]))
    with open(args.lines, "a") as lines:
        def put(entry):
            lines.write(json.dumps(entry) + "\n")
            lines.flush()

        for name, case in CASES.items():
            for dispatch in DISPATCHES:
                # Without the kernel what follows is alike; megamoe is for another architecture.
                skipped = "ids" in case and not args.kernel or dispatch == "deepgemm_megamoe" and name != next(iter(CASES))
                if (name, dispatch) in done or skipped or args.only not in name:
                    continue
                if time.time() > args.until:
                    return 0
                entry = dict(engine="transformers", version=transformers.__version__, torch=torch.__version__,
                             triton=triton.__version__, device=device,
                             hub_kernel=hub_kernel, dispatch=dispatch, case=name)
                begun = dict(entry, outcome="crash", message="the process did not come back")
                at = lines.tell()
                put(begun)  # overwritten by what comes of it
                try:
                    with torch.no_grad():
                        module, hidden, ids, weights = make(case, dispatch, fp8, moe, args.device)
                        out = module(hidden, ids, weights)
                        if args.device == "cuda":
                            torch.cuda.synchronize()
                        entry["outcome"] = "ok"
                        entry["finite"] = bool(torch.isfinite(out).all())
                        for key, quantizes in (("error_float64", False), ("error_scheme", True)):
                            exact = reference(case, module, hidden, ids, weights, quantizes)
                            norm = exact.norm().item()
                            entry[key] = (out.double() - exact).norm().item() / norm if norm else 0.0
                            if entry[key] != entry[key]:
                                entry[key] = None
                except Exception as error:  # whatever an engine raises is what is asked for
                    entry["outcome"] = "raises"
                    entry["exception"] = type(error).__name__
                    text = str(error).strip()
                    entry["message"] = text.splitlines()[0][:300] if text else ""
                lines.seek(at)
                lines.truncate()
                put(entry)
                lost = ("CUDA error", "Triton Error [CUDA]", "illegal memory access", "device-side assert")
                if entry.get("exception") == "AcceleratorError" or any(t in entry.get("message", "") for t in lost):
                    return 3  # the context is of no more use
    return 0


def unpacked(spec, folder):
    """Folder of the wheels' packages; None for the installed release."""
    wheels = [word for word in spec.split(",") if word.endswith(".whl")]
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder if wheels else None


def run_release(spec, kernel, until, work, index, args):
    """All lines of one release, without and with the hub kernel."""
    site = unpacked(spec, os.path.join(work, f"site{index}"))
    entries = []
    for folder in [None] + ([kernel] if kernel else []):
        lines = os.path.join(work, f"lines{index}-{'hub' if folder else 'none'}")
        environment = dict(os.environ, HF_HUB_OFFLINE="1", PYTHONDONTWRITEBYTECODE="1", TOKENIZERS_PARALLELISM="false")
        if site:
            environment["PYTHONPATH"] = os.pathsep.join([site, environment.get("PYTHONPATH", "")])
        command = [sys.executable, __file__, "--worker", "--lines", lines, "--until", str(until), "--device",
                   args.device, "--only", args.only]
        if folder:
            command += ["--kernel", folder]
        for _ in range(12):  # a lost context costs a process
            try:
                ended = subprocess.run(command, env=environment, stdout=sys.stderr, timeout=max(5, until + 20 - time.time()))
            except subprocess.TimeoutExpired:
                print(f"{spec}: out of time", file=sys.stderr)
                break
            if ended.returncode == 0 or time.time() > until:
                break
        if os.path.exists(lines):
            entries += [json.loads(line) for line in open(lines)]
        else:
            entries.append(dict(engine="transformers", version=spec.split(",")[0], hub_kernel="absent", dispatch="-",
                                case="-", outcome="raises", exception="ImportError", message="the worker wrote nothing"))
    return entries


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", action="append", default=[])
    parser.add_argument("--json", default="")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"], help="cpu: only what is refused is of use")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kernel", default="", help=argparse.SUPPRESS)
    parser.add_argument("--lines", default="", help=argparse.SUPPRESS)
    parser.add_argument("--until", type=float, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return worker(args)
    until = time.time() + args.seconds
    entries = []
    with tempfile.TemporaryDirectory() as work:
        # Side by side: their work is a little on the GPU and much in compilers.
        import concurrent.futures

        with concurrent.futures.ThreadPoolExecutor() as pool:
            runs = []
            for index, release in enumerate(args.release or ["installed"]):
                spec, _, kernel = release.partition("=")
                runs.append(pool.submit(run_release, spec, os.path.abspath(kernel) if kernel else "", until, work, index,
                                        args))
            for run in runs:
                entries += run.result()
    text = "".join(json.dumps(entry) + "\n" for entry in entries)
    if args.json:
        pathlib.Path(args.json).write_text(text)
    sys.stdout.write(text)
    return 0 if any(entry["outcome"] == "ok" or entry["case"] != "-" for entry in entries) else 2


if __name__ == "__main__":
    sys.exit(main())
