"""Asks vLLM's own predicates which FP8 expert kernels take which pair of weight and activation quantization on Hopper, and
which kernel it chooses, and prints one JSON line a case. vLLM's modules run as they are, from a wheel's Python files, with
a platform that says it is an H200; its compiled parts and most of what it needs are absent, so what depends on an
installed package (DeepGEMM, FlashInfer) is told apart: `scheme` is the predicate on the pair alone.

usage: vllm_predicates.py VLLM_WHEEL [--json FILE]   (needs torch, transformers, pydantic and vLLM's small dependencies;
what is missing of the names in ABSENT is stood in for)
exit code: 0, or 2 when the modules could not be loaded
"""
import argparse
import json
import logging
import pathlib
import sys
import tempfile
import zipfile

import stand_ins

ABSENT = """cachetools psutil sentencepiece requests blake3 cpuinfo fastapi starlette aiohttp multidict openai orjson
prometheus_client PIL prometheus_fastapi_instrumentator tiktoken lmformatenforcer llguidance outlines_core lark xgrammar
partial_json_parser jsonschema zmq msgspec mistral_common cv2 einops depyf cloudpickle watchfiles pythonjsonlogger pybase64
cbor2 ijson setproctitle openai_harmony anthropic mcp opentelemetry numba gguf uvloop pynvml tilelang""".split()


def hopper():
    """A platform that is an H200, for predicates."""
    from vllm.platforms.interface import DeviceCapability, Platform, PlatformEnum

    class Hopper(Platform):
        _enum = PlatformEnum.CUDA
        device_name = device_type = "cuda"
        dispatch_key = "CUDA"

        @classmethod
        def get_device_capability(cls, device_id=0):
            return DeviceCapability(9, 0)

        @classmethod
        def get_device_name(cls, device_id=0):
            return "NVIDIA H200"

        @classmethod
        def supports_fp8(cls):
            return True

        @classmethod
        def support_deep_gemm(cls):
            return True

    return Hopper()


def answer_for_compiled_parts():
    """What the compiled parts, which are absent, would say of an H200."""
    import torch

    for name, answer in (("cutlass_scaled_mm_supports_fp8", True), ("cutlass_scaled_mm_supports_block_fp8", True),
                         ("cutlass_group_gemm_supported", True), ("cutlass_scaled_mm_supports_fp4", False)):
        setattr(torch.ops._C, name, lambda capability, answer=answer: answer)


def pairs(q):
    """Pairs of names and keys of weights and activations."""
    import torch

    def block(rows, columns):
        return q.create_fp8_quant_key(static=True, group_shape=q.GroupShape(rows, columns))

    return [
        ("block 128x128", q.kFp8Static128BlockSym, "groups of 128, dynamic", q.kFp8Dynamic128Sym),
        ("block 64x64", block(64, 64), "groups of 128, dynamic", q.kFp8Dynamic128Sym),
        ("block 128x128", q.kFp8Static128BlockSym, "tensor, static", q.kFp8StaticTensorSym),
        ("block 128x128", q.kFp8Static128BlockSym, "token, dynamic", q.kFp8DynamicTokenSym),
        ("channel", q.kFp8StaticChannelSym, "token, dynamic", q.kFp8DynamicTokenSym),
        ("channel", q.kFp8StaticChannelSym, "tensor, static", q.kFp8StaticTensorSym),
        ("channel", q.kFp8StaticChannelSym, "tensor, dynamic", q.kFp8DynamicTensorSym),
        ("tensor", q.kFp8StaticTensorSym, "tensor, static", q.kFp8StaticTensorSym),
        ("tensor", q.kFp8StaticTensorSym, "tensor, dynamic", q.kFp8DynamicTensorSym),
        ("tensor", q.kFp8StaticTensorSym, "token, dynamic", q.kFp8DynamicTokenSym),
        ("tensor", q.kFp8StaticTensorSym, "groups of 128, dynamic", q.kFp8Dynamic128Sym),
    ]


def said(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel")
    parser.add_argument("--json", default="")
    args = parser.parse_args()
    version = pathlib.Path(args.wheel).name.split("-")[1]
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(args.wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.endswith((".py", ".json"))])
        sys.path.insert(0, folder)
        stand_ins.install(ABSENT)
        logging.disable(logging.WARNING)
        try:
            import vllm.platforms

            vllm.platforms._current_platform = hopper()
            answer_for_compiled_parts()
            sys.modules["vllm.vllm_flash_attn"] = stand_ins.StandInModule("vllm.vllm_flash_attn")
            import vllm.model_executor.layers.fused_moe.config as moe
            import vllm.model_executor.layers.fused_moe.modular_kernel as kernels
            import vllm.model_executor.layers.fused_moe.oracle.fp8 as oracle
            import vllm.model_executor.layers.quantization.utils.quant_utils as q
            from vllm.config import VllmConfig, set_current_vllm_config
        except Exception as error:
            print(f"vllm_predicates.py: {said(error)}", file=sys.stderr)
            return 2
        import torch

        config = moe.FusedMoEConfig(
            num_experts=8, experts_per_token=2, hidden_dim=1024, intermediate_size=512, num_local_experts=8,
            num_logical_experts=8, activation=moe.MoEActivation.SILU, device="cpu",
            routing_method=moe.RoutingMethodType.Renormalize, moe_parallel_config=moe.FusedMoEParallelConfig.make_no_parallel(),
            in_dtype=torch.bfloat16)
        text = ""

        def put(case, dispatch, **found):
            nonlocal text
            text += json.dumps(dict(engine="vllm", version=version, torch=torch.__version__, dispatch=dispatch, case=case,
                                    **found)) + "\n"

        hopper_backends = ["TRITON", "DEEPGEMM", "VLLM_CUTLASS", "FLASHINFER_CUTLASS", "MARLIN", "BATCHED_DEEPGEMM",
                           "BATCHED_TRITON", "BATCHED_VLLM_CUTLASS"]
        for weights, w, inputs, x in pairs(q):
            case = f"weights {weights}, inputs {inputs}"
            for name in hopper_backends:
                try:
                    classes = oracle.backend_to_kernel_cls(oracle.Fp8MoeBackend[name])
                except Exception as error:
                    put(case, name, outcome="unknown", message="not importable here: " + said(error))
                    continue
                for cls in classes:
                    found = {}
                    try:
                        found["scheme"] = bool(cls._supports_quant_scheme(w, x))
                    except Exception as error:
                        found["scheme"] = said(error)
                    try:
                        layout = (kernels.FusedMoEActivationFormat.BatchedExperts if name.startswith("BATCHED")
                                  else kernels.FusedMoEActivationFormat.Standard)
                        takes, reason = cls.is_supported_config(cls, config, w, x, layout)
                        found.update(outcome="ok" if takes else "refused", message=reason or "")
                    except Exception as error:
                        found.update(outcome="raises", message=said(error))
                    put(case, f"{name}: {cls.__name__}", **found)
            try:
                with set_current_vllm_config(VllmConfig()):
                    backend, cls = oracle.select_fp8_moe_backend(config, w, x, allow_vllm_cutlass=True)
                put(case, "choice", outcome="ok", message=f"{backend.value}: {cls.__name__}")
            except Exception as error:
                put(case, "choice", outcome="raises", message=said(error))
    if args.json:
        pathlib.Path(args.json).write_text(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
