"""Matrix products, linear layers with weights of floats and of 4 and 8 bits, embeddings."""
import torch
import torch.nn.functional as F
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from .form import F16, F32, I32, I64, I8, U8, Form, ints, over, rand, word
from .reduction import FLOATS

NEAR = (1e-4, 1e-5)
HALF = (2e-3, 2e-3)


def near(dtype, forced):
    return NEAR if dtype == F32 and not forced else HALF


def kind(dtype, forced):
    return "float16" if forced else word(dtype)


def products():
    n = Dim("n", min=1, max=9)
    for dtype, forced in FLOATS:
        name = kind(dtype, forced)
        how = {"fp16": forced, "tol": near(dtype, forced)}
        yield Form(f"linear/mm_{name}", {"aten.mm.default": torch.mm},
                   over((4, 1, 9, 2, 7), lambda k: (rand(k, 5, dtype=dtype), rand(5, 7, dtype=dtype))), dynamic=({0: n}, None), **how)
        yield Form(f"linear/bmm_{name}", {"aten.bmm.default": torch.bmm},
                   over((4, 1, 9, 2, 7), lambda k: (rand(2, k, 5, dtype=dtype), rand(2, 5, 3, dtype=dtype))),
                   dynamic=({1: n}, None), **how)
    m = Dim("m", min=1, max=9)
    sizes = ((4, 2, 3), (1, 9, 1), (9, 1, 2), (2, 7, 9), (9, 9, 9))
    k = Dim("k", min=1, max=9)
    yield Form("linear/mm_all_live", {"aten.mm.default": torch.mm}, [(rand(a, b), rand(b, c)) for a, b, c in sizes],
               dynamic=({0: n, 1: m}, {0: m, 1: k}), tol=NEAR)
    yield Form("linear/bmm_all_live", {"aten.bmm.default": torch.bmm}, [(rand(c, a, b), rand(c, b, a)) for a, b, c in sizes],
               dynamic=({0: k, 1: n, 2: m}, {0: k, 1: m, 2: n}), tol=NEAR)
    yield Form("linear/matmul_broadcast", {"aten.bmm.default": torch.matmul}, [(rand(2, 3, 4, 5), rand(3, 5, 2))], tol=NEAR)
    yield Form("linear/mm_long", {"aten.mm.default": torch.mm}, [(rand(3, 260), rand(260, 5))], tol=(1e-4, 5e-5))
    yield Form("linear/mm_empty", {"aten.mm.default": torch.mm}, [(rand(0, 5), rand(5, 3))])
    sums = {"aten.addmm.default": torch.addmm, "aten.addmm.default factors":
            lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2)}
    yield Form("linear/addmm", sums, over((4, 1, 9, 2, 7), lambda k: (rand(7), rand(k, 5), rand(5, 7))),
               dynamic=(None, {0: n}, None), tol=NEAR)
    yield Form("linear/addmm_matrix", sums, [(rand(3, 7), rand(3, 5), rand(5, 7)), (rand(3, 7), rand(3, 5), rand(5, 7))], tol=NEAR)
    yield Form("linear/addmm_column", sums, [(rand(3, 1), rand(3, 5), rand(5, 7))], tol=NEAR)


class Constant(torch.nn.Module):
    """A product with a matrix of the model's own."""

    def __init__(self, function, *shape):
        super().__init__()
        self.function, self.matrix = function, torch.nn.Parameter(rand(*shape))

    def forward(self, x):
        return self.function(x, self.matrix)


def linears():
    n = Dim("n", min=1, max=9)
    names = ("aten.linear.default",)
    for dtype, forced in FLOATS:
        name, how = kind(dtype, forced), {"fp16": forced, "tol": near(dtype, forced)}
        for bias in (True, False):
            layer = torch.nn.Linear(5, 7, bias=bias).half().to(dtype)
            yield Form(f"linear/{'bias' if bias else 'plain'}_{name}", layer,
                       over((4, 1, 9, 2, 7), lambda k: rand(k, 5, dtype=dtype)), names, ({0: n},), **how)
    yield Form("linear/rank_3", torch.nn.Linear(6, 4), over((4, 1, 9, 2, 7), lambda k: rand(2, k, 6)), names, ({1: n},), tol=NEAR)
    yield Form("linear/rank_1", torch.nn.Linear(6, 5), [(rand(6),)], tol=NEAR)
    yield Form("linear/wide", torch.nn.Linear(260, 33), over((4, 1, 9, 2, 7), lambda k: rand(k, 260)), names, ({0: n},), tol=(1e-4, 5e-5))
    yield Form("linear/one_column", torch.nn.Linear(9, 1), [(rand(3, 9),)], names, tol=NEAR)
    yield Form("linear/constant_mm", Constant(torch.mm, 5, 7), over((4, 1, 9, 2, 7), lambda k: rand(k, 5)), (), ({0: n},), tol=NEAR)
    yield Form("linear/constant_bmm", Constant(torch.bmm, 2, 5, 7), over((4, 1, 9, 2, 7), lambda k: rand(2, k, 5)),
               ("aten.bmm.default",), ({1: n},), tol=NEAR)


# ---- 4 bits in groups ---------------------------------------------------------------------------


class Grouped(torch.nn.Module):
    """A linear layer whose weight is 4-bit codes in groups, as torchao leaves it in the graph. The exporter fails
    where the rows of the weight are no multiple of 4."""

    def __init__(self, n, k, group, bias=False, dtype=F32):
        super().__init__()
        self.group = group
        self.register_buffer("codes", ints(-8, 7, n, k, dtype=I8))
        self.register_buffer("scales", (rand(n, k // group).abs() / 8 + 0.0625).half().to(dtype))
        self.register_buffer("zeros", torch.zeros(n, k // group, dtype=I32))
        self.bias = torch.nn.Parameter(rand(n, dtype=dtype)) if bias else None

    def forward(self, x):
        weight = torch.ops.torchao.dequantize_affine(self.codes, [1, self.group], self.scales, self.zeros, I8, -8, 7,
                                                     output_dtype=self.scales.dtype)
        return F.linear(x, weight, self.bias)


class HalfChain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Grouped(32, 64, 32, True, F16), Grouped(12, 32, 32, False, F16)

    def forward(self, x):
        x = torch.relu(self.first(x)) / 64
        return self.second(x) + 1, torch.cumsum(x, 1)


def linear_q4():
    n = Dim("n", min=1, max=9)
    names = ("et_vk.linear_q4gsw.default",)
    close = (1e-4, 1e-4)
    for group, k, rows, bias in ((32, 64, 12, False), (32, 96, 20, True), (64, 128, 4, True), (128, 128, 8, False), (16, 48, 36, False),
                                 (8, 24, 4, True), (4, 12, 12, False), (20, 20, 8, True)):
        layer = Grouped(rows, k, group, bias)
        yield Form(f"linear_q4/group_{group}_{rows}x{k}{'_bias' if bias else ''}", layer,
                   over((4, 1, 9, 2, 7), lambda m: rand(m, k)), names, ({0: n},), tol=close)
    yield Form("linear_q4/rank_3", Grouped(8, 64, 32, True), over((4, 1, 9, 2, 7), lambda m: rand(1, m, 64)), names, ({1: n},), tol=close)
    yield Form("linear_q4/rank_3_batch", Grouped(8, 32, 32), [(rand(2, 3, 32),)], names, tol=close)
    yield Form("linear_q4/rank_1", Grouped(8, 32, 32), [(rand(32),)], tol=close)
    yield Form("linear_q4/float16", Grouped(12, 64, 32, True), over((4, 1, 9, 2, 7), lambda m: rand(m, 64)), names, ({0: n},),
               fp16=True, tol=(2e-3, 4e-3))
    yield Form("linear_q4/half", Grouped(12, 64, 32, True, F16), over((4, 1, 9, 2, 7), lambda m: rand(m, 64, dtype=F16)), names,
               ({0: n},), tol=(2e-3, 4e-3))
    # The exporter takes what the first gives for float32, and the method's own operator reads halves.
    yield Form("linear_q4/half_chain", HalfChain(), over((4, 1, 9, 2, 7), lambda m: rand(m, 64, dtype=F16)), (*names, "aten::cumsum.out"),
               ({0: n},), tol=(4e-3, 8e-3))


class Dynamic(Grouped):
    """The same with activations of 8 bits, a scale and a zero point per row."""

    def forward(self, x):
        block = [1] * (x.dim() - 1) + [x.shape[-1]]
        scale, zero = torch.ops.torchao.choose_qparams_affine(x, "ASYMMETRIC", block, I8, -128, 127, 1e-5, F32, I8)
        codes = torch.ops.torchao.quantize_affine(x, block, scale, zero, I8, -128, 127)
        return super().forward(torch.ops.torchao.dequantize_affine(codes, block, scale, zero, I8, -128, 127))


class Parameters(torch.nn.Module):
    def forward(self, x):
        block = [1] * (x.dim() - 1) + [x.shape[-1]]
        return torch.ops.torchao.choose_qparams_affine(x, "ASYMMETRIC", block, I8, -128, 127, 1e-5, F32, I8)


def linear_dq8():
    n = Dim("n", min=1, max=9)
    names = ("et_vk.linear_dq8ca_q4gsw.default", "torchao.choose_qparams_affine.default")
    close = (1e-3, 1e-3)
    for group, k, rows, bias in ((32, 64, 12, False), (32, 96, 20, True), (64, 64, 8, False), (16, 48, 4, True)):
        yield Form(f"linear_dq8/group_{group}_{rows}x{k}{'_bias' if bias else ''}", Dynamic(rows, k, group, bias),
                   [(rand(4, k),), (rand(4, k, scale=10),)], names, tol=close)
    yield Form("linear_dq8/one_row", Dynamic(12, 64, 32, True), [(rand(1, 64),), (rand(1, 64),)], names, tol=close)
    yield Form("linear_dq8/five_rows", Dynamic(12, 64, 32), [(rand(5, 64),)], names, tol=close)
    yield Form("linear_dq8/rank_3", Dynamic(12, 64, 32), [(rand(1, 3, 64),)], names, tol=close)
    yield Form("linear_dq8/float16", Dynamic(12, 64, 32), [(rand(4, 64),)], names, fp16=True, tol=(4e-3, 0.05))
    yield Form("linear_dq8/live", Dynamic(12, 64, 32), over((4, 1, 9, 2, 7), lambda m: rand(m, 64)), names, ({0: n},), tol=close)
    rows = torch.stack([rand(8), rand(8).abs(), -rand(8).abs(), torch.zeros(8), torch.full((8,), 1e-7), torch.full((8,), 3.0)])
    yield Form("linear_dq8/choose_qparams", Parameters(), [(rows,), (rows.flip(0) * 100,)], ("torchao.choose_qparams_affine.default",),
               tol=(1e-6, 1e-9))


# ---- 8 bits and 4 bits per channel, activations in floats ---------------------------------------


class PerChannel(torch.nn.Module):
    """Weight-only, as VulkanQuantizer leaves it: a dequantize_per_channel before a linear."""

    def __init__(self, n, k, bits, bias=False, dtype=F32):
        super().__init__()
        low = -(2**(bits - 1))
        codes = ints(low, -low - 1, n, k, dtype=I8)
        codes[0, 0], codes[-1, -1] = low, -low - 1  # all bits are used
        self.range = (low, -low - 1)
        self.register_buffer("codes", codes)
        self.register_buffer("scales", (rand(n).abs() / 2**bits + 2.0**-bits).half().to(dtype))
        self.register_buffer("zeros", torch.zeros(n, dtype=I64))
        self.bias = torch.nn.Parameter(rand(n, dtype=dtype)) if bias else None

    def forward(self, x):
        weight = torch.ops.quantized_decomposed.dequantize_per_channel(self.codes, self.scales, self.zeros, 0, *self.range, I8)
        return F.linear(x, weight, self.bias)


def per_channel():
    n = Dim("n", min=1, max=9)
    for bits, name in ((8, "aten._weight_int8pack_mm.default"), (4, "et_vk.linear_qcs4w.default")):
        short = "int8pack_mm" if bits == 8 else "qcs4w"
        for rows, k, bias in ((12, 16, False), (7, 12, True), (5, 20, False), (1, 64, True)):
            yield Form(f"linear_{short}/{rows}x{k}{'_bias' if bias else ''}", PerChannel(rows, k, bits, bias),
                       over((4, 1, 9, 2, 7), lambda m: rand(m, k)), (name,), ({0: n},), tol=NEAR)
        yield Form(f"linear_{short}/rank_3", PerChannel(8, 16, bits, True), over((4, 1, 9, 2, 7), lambda m: rand(2, m, 16)), (name,),
                   ({1: n},), tol=NEAR)
        yield Form(f"linear_{short}/float16", PerChannel(12, 16, bits, True), [(rand(3, 16),)], (name,), fp16=True, tol=HALF)


# ---- embeddings ---------------------------------------------------------------------------------


class Embedding4(torch.nn.Module):
    """ExecuTorch's 4-bit embedding: two codes a byte, the first in the high nibble."""

    def __init__(self, rows, width, groups, dtype=F32):
        super().__init__()
        self.dtype = dtype
        self.register_buffer("codes", ints(0, 255, rows, width // 2, dtype=U8))
        self.register_buffer("scales", (rand(rows, groups).abs() / 8 + 0.0625).half().to(dtype))

    def forward(self, ids):
        return torch.ops.quantized_decomposed.embedding_4bit.dtype(self.codes, self.scales, None, -8, 7, ids, dtype=self.dtype)


class EmbeddingAffine(torch.nn.Module):
    """torchao's: codes of a byte each, dequantised whole before the lookup."""

    def __init__(self, rows, width, group):
        super().__init__()
        self.group = group
        self.register_buffer("codes", ints(-8, 7, rows, width, dtype=I8))
        self.register_buffer("scales", rand(rows, width // group).abs() / 8 + 0.0625)
        self.register_buffer("zeros", torch.zeros(rows, width // group, dtype=I32))

    def forward(self, ids):
        table = torch.ops.torchao.dequantize_affine(self.codes, [1, self.group], self.scales, self.zeros, I8, -8, 7)
        return F.embedding(ids, table)


def embeddings():
    import executorch.exir.passes._quant_patterns_and_replacements  # noqa: F401, registers embedding_4bit
    n = Dim("n", min=1, max=9)
    names = ("aten.embedding.default",)
    for dtype, forced in FLOATS:
        table = torch.nn.Embedding(11, 7).half().to(dtype)
        yield Form(f"embedding/{kind(dtype, forced)}", table, over((4, 1, 9, 2, 7), lambda k: ints(0, 10, k)), names, ({0: n},), fp16=forced)
    yield Form("embedding/rank_2_int32", torch.nn.Embedding(11, 5), over((4, 1, 9, 2, 7), lambda k: ints(0, 10, 2, k, dtype=I32)),
               names, ({1: n},))
    yield Form("embedding/rank_3", torch.nn.Embedding(11, 6, padding_idx=2), [(ints(0, 10, 2, 1, 3),)], names)
    yield Form("embedding/empty", torch.nn.Embedding(11, 6), [(ints(0, 10, 0, 3),)], names)
    q4 = ("et_vk.embedding_q4gsw.default",)
    for width, groups in ((32, 1), (64, 2), (96, 3), (64, 4)):
        yield Form(f"embedding/q4_{width}_in_{groups}", Embedding4(9, width, groups), over((4, 1, 9, 2, 7), lambda k: ints(0, 8, 1, k)),
                   q4, ({1: n},))
    yield Form("embedding/q4_float16", Embedding4(9, 64, 2), [(ints(0, 8, 5),)], q4, fp16=True)
    yield Form("embedding/q4_torchao", EmbeddingAffine(9, 64, 32), over((4, 1, 9, 2, 7), lambda k: ints(0, 8, k)), q4, ({0: n},))
    for width, groups in ((24, 1), (40, 2), (8, 1)):
        yield Form(f"embedding/4bit_{width}_in_{groups}", Embedding4(9, width, groups), [(ints(0, 8, 2, 3),)],
                   ("quantized_decomposed.embedding_4bit.dtype",))


def forms():
    for family in (products, linears, linear_q4, linear_dq8, per_channel, embeddings):
        yield from family()
