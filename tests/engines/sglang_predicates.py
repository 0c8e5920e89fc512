"""Asks sglang's own FP8 expert scheme for compressed-tensors which pairs of strategies and which extents it takes, and
prints one JSON line a case. The scheme's module runs as it is; what it imports of sglang is stood in for, so that neither
kernels nor a GPU are needed. Needs torch and compressed-tensors.

usage: sglang_predicates.py SGLANG_WHEEL [--json FILE]
exit code: 0, or 2 when the module could not be loaded
"""
import argparse
import enum
import json
import pathlib
import sys
import types
import zipfile

SCHEME = "sglang/srt/layers/quantization/compressed_tensors/schemes/compressed_tensors_w8a8_fp8_moe.py"


class ScaleKind(enum.Enum):
    TENSOR, CHANNEL, GROUP, BLOCK = "tensor", "channel", "group", "block"


class AnyName(types.ModuleType):
    """A module all of whose names exist; those that the scheme calls on its way are set by hand."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def load(wheel):
    """The scheme's class."""
    source = zipfile.ZipFile(wheel).read(SCHEME).decode()
    imported = {line.split()[1] for line in source.replace("\n    ", "\n").splitlines() if line.startswith("from sglang")}
    for name in imported:
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            sys.modules.setdefault(".".join(parts[:i]), AnyName(".".join(parts[:i])))
            sys.modules[".".join(parts[:i])].__path__ = []
    no_backend = types.SimpleNamespace(is_flashinfer_trtllm=lambda: False)
    for module in list(sys.modules.values()):
        if isinstance(module, AnyName):
            module.get_moe_runner_backend = lambda: no_backend
            module.get_moe_weight_sizes = lambda inter, **_: (2 * inter, inter, False)  # without AITER's padding
            module.set_weight_attrs = lambda tensor, attributes: None
            module.is_hip = module.get_bool_env_var = lambda *_: False
            module.is_fp8_fnuz = lambda: False
            module.CompressedTensorsMoEScheme = object
            module.FusedMoeWeightScaleSupported = ScaleKind
    scheme = types.ModuleType("scheme")
    exec(compile(source, SCHEME, "exec"), scheme.__dict__)
    return scheme.CompressedTensorsW8A8Fp8MoE


def cases():
    """Weights, inputs, intermediate size of a shard, shards."""
    for weights in ("tensor", "channel", "block"):
        for inputs in ("tensor", "token", "group"):
            for dynamic in (True, False):
                yield weights, inputs, dynamic, 256, 1
    for inter, shards in ((160, 1), (192, 1), (192, 2), (64, 2)):
        yield "block", "group", True, inter, shards


def ask(scheme, weights, inputs, dynamic, inter, shards):
    import torch
    from compressed_tensors.quantization import QuantizationArgs

    def arguments(**named):
        return QuantizationArgs(num_bits=8, type="float", symmetric=True, **named)

    step = "arguments of compressed-tensors"
    try:
        w = arguments(strategy=weights, **({"block_structure": [128, 128]} if weights == "block" else {}))
        x = arguments(strategy=inputs, dynamic=dynamic, **({"group_size": 128} if inputs == "group" else {}))
        step = "the scheme"
        made = scheme(w, x)
        step = "its weights"
        layer = torch.nn.Module()
        layer.moe_tp_size = shards
        made.create_weights(layer, 4, 256, inter, torch.bfloat16)
        return dict(outcome="ok", scales={name: list(p.shape) for name, p in layer.named_parameters() if "scale" in name})
    except Exception as error:  # whatever is raised is what is asked for
        text = str(error).strip()
        return dict(outcome="raises", step=step, exception=type(error).__name__, message=" ".join(text.split())[:200])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    import compressed_tensors

    try:
        scheme = load(args.wheel)
    except Exception as error:
        print(f"sglang_predicates.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    version = pathlib.Path(args.wheel).name.split("-")[1]
    text = ""
    for weights, inputs, dynamic, inter, shards in cases():
        case = f"weights {weights}, inputs {inputs} {'dynamic' if dynamic else 'static'}, I={inter} of {shards} shard(s)"
        text += json.dumps(dict(engine="sglang", version=version, compressed_tensors=compressed_tensors.__version__,
                                dispatch="fused_moe compressed-tensors", case=case,
                                **ask(scheme, weights, inputs, dynamic, inter, shards))) + "\n"
    if args.json:
        pathlib.Path(args.json).write_text(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
