"""libmoejit.so through ctypes, the list of specs a bundle folder carries, and random operands with their exact product.

Knows torch tensors only by their addresses; used by reference.py and speed.py.
"""

import ctypes
import math
import re
from dataclasses import dataclass

import torch


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("row_stride", ctypes.c_int64)]


class Arguments(ctypes.Structure):
    """moejit_gemm_arguments."""

    _fields_ = [
        ("struct_bytes", ctypes.c_size_t),
        *[(name, Tensor) for name in ("x", "x_scales", "w", "w_scales", "offsets", "expert_ids",
                                      "counts", "expert_map", "y", "errors")],
        ("rows", ctypes.c_int64),
        ("expected_rows", ctypes.c_int64),
        ("workspace", ctypes.c_void_p),
        ("workspace_bytes", ctypes.c_uint64),
        ("sm_limit", ctypes.c_int64),
        ("workspace_is_clean", ctypes.c_int64),
    ]


class MoejitError(RuntimeError):
    pass


@dataclass
class Scales:
    """A scale layout: granule entries are ints, "*" or "expert"."""

    granule: list
    order: str
    align: int
    parts: int


@dataclass
class Spec:
    text: str
    dispatch: str
    experts: int
    n: int
    k: int
    out: str
    accumulate: str
    x: Scales
    w: Scales

    def is_plain(self):
        """Whether Data can make operands of it."""
        return (self.dispatch in ("grouped", "eager") and not self.quantizes()
                and self.is_usual())

    def is_usual(self):
        """Whether data and scales are of the types and layouts that Data makes, whatever the dispatch."""
        return (self.text.startswith("computes=gemm;") and ";x=f8E4M3FN;" in self.text
                and ";w=f8E4M3FN;" in self.text and self.text.count("type=f32") == 2
                and self.text.count("phase=[]") == 2 and self.w.parts == 1
                and self.w.order == "row_major" and self.w.align == 0
                and (self.x.order == "mn_major" or self.x.align == 0)
                and self.x.granule[0] in (1, "*", "expert"))

    def quantizes(self):
        """Whether the launch itself quantizes x."""
        return ";from=none;" not in self.text

    @property
    def out_type(self):
        return {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[self.out]


def parse_spec(text):
    """The fields of a canonical spec text that the tests need."""
    fields = dict(re.findall(r"(\w+)=(\{[^}]*\}|[^;]*)", text))

    def scales(value):
        inner = dict(re.findall(r"(\w+)=(\[[^\]]*\]|[^,}]*)", value))
        granule = [int(g) if g.isdigit() else g for g in inner["granule"].strip("[]").split(",")]
        return Scales(granule, inner["order"], int(inner["align"]),
                      int(inner["parts"]))

    return Spec(text, fields["dispatch"], int(fields["experts"]), int(fields["n"]),
                int(fields["k"]), fields["out"], fields["accumulate"], scales(fields["xScales"]),
                scales(fields["wScales"]))


def read_specs(folder):
    """[(name, groups, Spec)] of `folder`/specs.tsv."""
    with open(f"{folder}/specs.tsv") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines]
    return [(name, groups.split(), parse_spec(text)) for name, groups, text in rows]


class Library:
    """An opened bundle."""

    def __init__(self, path, folder):
        self.c = ctypes.CDLL(path)
        self.c.moejit_version.restype = ctypes.c_char_p
        self.c.moejit_status_name.restype = ctypes.c_char_p
        pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
        self.c.moejit_open.argtypes = [text, ctypes.c_int, text, ctypes.POINTER(pointer), text, size]
        self.c.moejit_gemm_find.argtypes = [pointer, text, ctypes.POINTER(pointer), text, size]
        self.c.moejit_gemm_workspace_bytes.argtypes = [
            pointer, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64), text, size]
        self.c.moejit_gemm_prepare.argtypes = [pointer, ctypes.c_int64, text, size]
        self.c.moejit_gemm_launch.argtypes = [
            pointer, ctypes.POINTER(Arguments), pointer, text, size]
        self.handle = pointer()
        self.call("moejit_open", f"{folder}/bundle".encode(), 0, None, ctypes.byref(self.handle))

    def call(self, name, *arguments):
        error = ctypes.create_string_buffer(2000)
        status = getattr(self.c, name)(*arguments, error, len(error))
        if status != 0:
            kind = self.c.moejit_status_name(status).decode()
            raise MoejitError(f"{name}: {kind}: {error.value.decode(errors='replace')}")

    def version(self):
        return self.c.moejit_version().decode()

    def find(self, spec):
        handle = ctypes.c_void_p()
        self.call("moejit_gemm_find", self.handle, spec.text.encode(), ctypes.byref(handle))
        return Gemm(self, handle, spec)


class Gemm:
    def __init__(self, library, handle, spec):
        self.library, self.handle, self.spec = library, handle, spec

    def workspace_bytes(self, max_rows):
        count = ctypes.c_uint64()
        self.library.call("moejit_gemm_workspace_bytes", self.handle, max_rows,
                          ctypes.byref(count))
        return count.value

    def launcher(self, data, y, expected_rows=0, stream=0):
        """A function that launches the GEMM of `data` into `y`; everything it needs is made here."""
        bytes_needed = max(self.workspace_bytes(max(data.rows, expected_rows)), 16)
        workspace = torch.zeros((bytes_needed,), dtype=torch.uint8, device=y.device)
        arguments = Arguments()
        arguments.struct_bytes = ctypes.sizeof(Arguments)
        if self.spec.quantizes():
            arguments.x = Tensor(data.source.data_ptr(), data.source.stride(0))
        else:
            arguments.x = Tensor(data.x.data_ptr(), data.x.stride(0))
            arguments.x_scales = Tensor(data.x_scales.data_ptr(), data.x_scale_stride)
        arguments.w = Tensor(data.w.data_ptr(), 0)
        arguments.w_scales = Tensor(data.w_scales.data_ptr(), 0)
        if data.offsets is not None:
            arguments.offsets = Tensor(data.offsets.data_ptr(), 0)
        if data.expert_ids is not None:
            arguments.expert_ids = Tensor(data.expert_ids.data_ptr(), 0)
        arguments.y = Tensor(y.data_ptr(), y.stride(0))
        arguments.rows = data.rows
        arguments.expected_rows = expected_rows
        arguments.workspace = workspace.data_ptr()
        arguments.workspace_bytes = bytes_needed
        arguments.workspace_is_clean = 1  # zero from the start, and of this GEMM alone
        function, handle, reference = (self.library.c.moejit_gemm_launch, self.handle,
                                       ctypes.byref(arguments))
        error = ctypes.create_string_buffer(2000)
        kept = (arguments, workspace, data, y)

        def launch():
            if function(handle, reference, stream, error, 2000) != 0:
                raise MoejitError(error.value.decode(errors="replace"))
            return kept[3]

        return launch


def random_codes(shape, device, generator):
    """e4m3 codes of normal numbers, a quarter of the range wide; never zeros alone."""
    out = torch.empty(shape, dtype=torch.float8_e4m3fn, device=device)
    flat = out.view(-1, shape[-1])
    step = max(1, (1 << 26) // shape[-1])
    for begin in range(0, flat.shape[0], step):
        part = flat[begin:begin + step]
        values = torch.empty(part.shape, dtype=torch.bfloat16 if device != "cpu" else torch.float32,
                             device=device)
        values.normal_(0, 112, generator=generator).clamp_(-448, 448)
        part.copy_(values)
    return out


def random_scales(shape, device, generator):
    """Positive, all different, over 2^-3 to 2^3, around what makes results moderate."""
    exponent = torch.rand(shape, device=device, generator=generator) * 6 - 3
    return torch.exp2(exponent) * 2.0**-8


def make_context_current(device):
    """torch's own context; for a dry run on the CPU, that of the stand-in driver."""
    if device != "cpu":
        torch.cuda.init()
        torch.zeros(1, device=device)
        return
    driver = ctypes.CDLL("libcuda.so.1")
    context = ctypes.c_void_p()
    driver.cuInit(0)
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxSetCurrent(context)


def ceil_div(a, b):
    return -(-a // b)


class Data:
    """Random operands of `spec`; expert e owns `counts[e]` rows, in order. `weights`: codes to use for w."""

    def __init__(self, spec, counts, device, seed, weights=None):
        generator = torch.Generator(device=device)
        generator.manual_seed(seed)
        self.spec, self.device, self.counts = spec, device, list(counts)
        self.rows = sum(self.counts)
        self.starts = [0]
        for count in self.counts:
            self.starts.append(self.starts[-1] + count)
        e, n, k, rows = spec.experts, spec.n, spec.k, self.rows
        self.x = random_codes((rows, k), device, generator)
        self.w = random_codes((e, n, k), device, generator) if weights is None else weights
        self.offsets = self.expert_ids = None
        if spec.dispatch == "grouped":
            self.offsets = torch.tensor(self.starts, dtype=torch.int32, device=device)
        if spec.dispatch == "batched":
            self.expert_ids = torch.repeat_interleave(
                torch.arange(e, dtype=torch.int32, device=device),
                torch.tensor(self.counts, device=device))

        group = spec.x.granule[-1]
        first = spec.x.granule[0]
        logical_rows = {"*": 1, "expert": e}.get(first, rows)
        logical_k = 1 if group == "*" else ceil_div(k, group)
        # Of logical shape [rows or experts or 1, groups]; stored as the layout says.
        logical = random_scales((logical_rows, logical_k), device, generator)
        self.x_logical = logical
        if spec.x.order == "mn_major":
            step = max(1, spec.x.align // 4)
            stride = ceil_div(rows, step) * step
            self.x_scales = torch.full((logical_k, stride), math.nan, device=device)
            self.x_scales[:, :rows] = logical.t()
            self.x_scale_stride = stride
        else:
            self.x_scales = logical.contiguous()
            self.x_scale_stride = 0

        granule = spec.w.granule if spec.dispatch != "eager" else [1] + spec.w.granule
        we = 1 if granule[0] == "*" else e
        wn = 1 if granule[1] == "*" else ceil_div(n, granule[1])
        wk = 1 if granule[2] == "*" else ceil_div(k, granule[2])
        self.w_scales = random_scales((we, wn, wk), device, generator)
        self.w_granule = granule

    @property
    def source(self):
        """x as a launch that quantizes is given it, in bf16: near the product of codes and scales."""
        if not hasattr(self, "_source"):
            scales = self.x_logical.repeat_interleave(self.spec.x.granule[-1], dim=1)
            self._source = (self.x.to(torch.float32) * scales[:, :self.spec.k]).to(torch.bfloat16)
        return self._source

    def rows_of(self, expert):
        return slice(self.starts[expert], self.starts[expert + 1])

    def x_scales_of(self, expert):
        """Scales of the rows of `expert`, expanded to [rows, K]."""
        first, group = self.spec.x.granule[0], self.spec.x.granule[-1]
        if first == "*":
            scales = self.x_logical[0:1]
        elif first == "expert":
            scales = self.x_logical[expert:expert + 1]
        else:
            scales = self.x_logical[self.rows_of(expert)]
        if group != "*":
            scales = scales.repeat_interleave(group, dim=1)[:, :self.spec.k]
        return scales

    def w_scales_of(self, expert):
        """Scales of the weights of `expert`, expanded to broadcast over [N, K]."""
        scales = self.w_scales[0 if self.w_scales.shape[0] == 1 else expert]
        _, gn, gk = self.w_granule
        if gn not in ("*", 1):
            scales = scales.repeat_interleave(gn, dim=0)[:self.spec.n]
        if gk != "*":
            scales = scales.repeat_interleave(gk, dim=1)[:, :self.spec.k]
        return scales

    def product(self, expert, dtype=torch.float64):
        """The dequantised product of the rows of `expert`: [rows, N]."""
        x = self.x[self.rows_of(expert)].to(dtype) * self.x_scales_of(expert).to(dtype)
        w = self.w[expert].to(dtype) * self.w_scales_of(expert).to(dtype)
        return x @ w.t()


def relative_error(out, reference):
    """‖out − reference‖ / ‖reference‖; NaN never passes a comparison."""
    difference = (out.to(torch.float64) - reference.to(torch.float64)).norm()
    return float(difference / reference.to(torch.float64).norm())


def error_limit(spec):
    """What docs/numerics.md lets a right kernel's relative error be."""
    rounding = {"bf16": 2.0**-9, "f16": 2.0**-12, "f32": 2.0**-25}[spec.out]
    accumulation = 1e-3 if spec.accumulate == "exact" else 5e-3
    return math.sqrt(rounding**2 + accumulation**2)


def draw_counts(experts, rows, seed, skew=0.0):
    """Rows of each expert; they sum to `rows`. skew 0: each row picks its expert; more: Zipf-like."""
    generator = torch.Generator().manual_seed(seed)
    weights = 1.0 / torch.arange(1, experts + 1, dtype=torch.float64)**skew
    weights = weights[torch.randperm(experts, generator=generator)]
    picks = torch.multinomial(weights, rows, replacement=True, generator=generator)
    return torch.bincount(picks, minlength=experts).tolist()
