"""Reductions, softmax and the norms."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from .form import F16, F32, Form, flat, over, rand, word

FLOATS = ((F32, False), (F16, False), (F32, True))  # dtype of the model, force_fp16


def floats(name, functions, make, dynamic, sizes=(4, 1, 9, 2, 7), **more):
    """A form of each kind of float: of 32 bits, of 16, and of 16 inside alone."""
    for dtype, forced in FLOATS:
        calls = over(sizes, lambda k: [t.to(dtype) if t.is_floating_point() else t for t in flat(make(k))])
        yield Form(f"{name}_{'float16' if forced else word(dtype)}", functions, calls, dynamic=dynamic, fp16=forced, **more)


REDUCTIONS = {
    "aten.sum.dim_IntList": lambda x: x.sum(-1),
    "aten.sum.dim_IntList keep": lambda x: x.sum(1, keepdim=True),
    "aten.sum.dim_IntList two": lambda x: x.sum((0, 2), keepdim=True),
    "aten.mean.dim": lambda x: x.mean(2),
    "aten.mean.dim keep": lambda x: x.mean(-3, keepdim=True),
    "aten.mean.dim two": lambda x: x.mean((-1, -2), keepdim=True),
    "aten.amax.default": lambda x: x.amax(-1),
    "aten.amax.default keep": lambda x: x.amax(1, keepdim=True),
    "aten.amin.default": lambda x: x.amin(-1),
    "aten.amin.default keep": lambda x: x.amin((0, 1), keepdim=True),
    "aten.argmax.default": lambda x: x.argmax(-1),
    "aten.argmax.default keep": lambda x: x.argmax(1, keepdim=True),
    "aten.argmin.default": lambda x: x.argmin(-1),
    "aten.argmin.default keep": lambda x: x.argmin(0, keepdim=True),
}


def reductions():
    n = Dim("n", min=1, max=9)
    yield from floats("reduce/small", REDUCTIONS, lambda k: rand(3, k, 7), ({1: n},))
    lasts = {k: f for k, f in REDUCTIONS.items() if " " not in k and k != "aten.mean.dim"}
    m = Dim("m", min=1, max=300)
    yield Form("reduce/long_float32", {**lasts, "aten.mean.dim": lambda x: x.mean(-1)},
               over((64, 1, 300, 257, 2), lambda k: rand(2, k)), dynamic=({1: m},), tol=(1e-5, 2e-5))
    yield Form("reduce/rank_1", {**lasts, "aten.mean.dim": lambda x: x.mean(-1)}, over((5, 1, 9, 2, 7), lambda k: rand(k)),
               dynamic=({0: n},))
    wide = {k: f for k, f in REDUCTIONS.items() if k.endswith("keep")}
    yield Form("reduce/rank_4", wide, [(rand(2, 3, 2, 5),)])
    ties = torch.tensor([[1.0, 3, 3, 1], [-1, -1, -1, -1], [0, -0.0, 0, 0], [2, 1, 1, 2]])
    arg = {k: REDUCTIONS[k] for k in ("aten.argmax.default", "aten.argmin.default", "aten.amax.default", "aten.amin.default")}
    yield Form("reduce/ties", arg, [(ties,)])
    odd = torch.tensor([[1.0, float("nan"), 3, 0], [float("inf"), 1, -float("inf"), 2], [-float("inf")] * 4,
                        [float("nan"), 7, float("nan"), 9], [-5.0, -6, -7, -8]])
    yield Form("reduce/special", arg, [(odd,)])
    yield Form("reduce/sum_special", {k: REDUCTIONS[k] for k in ("aten.sum.dim_IntList",)}, [(odd,)])
    yield Form("reduce/all", {"aten.sum.dim_IntList": lambda x: x.sum((0, 1), keepdim=True)}, [(rand(3, 5),)])


SOFTMAX = {
    "aten._softmax.default": lambda x: F.softmax(x, -1),
    "aten._softmax.default first": lambda x: F.softmax(x, 0),
    "aten._softmax.default middle": lambda x: F.softmax(x, 1),
    "aten._log_softmax.default": lambda x: F.log_softmax(x, -1),
    "aten._log_softmax.default middle": lambda x: F.log_softmax(x, -2),
}


def softmax():
    n = Dim("n", min=1, max=9)
    yield from floats("softmax/small", SOFTMAX, lambda k: rand(3, k, 5, scale=3), ({1: n},))
    lasts = {k: f for k, f in SOFTMAX.items() if " " not in k}
    m = Dim("m", min=1, max=300)
    yield Form("softmax/long_float32", lasts, over((64, 1, 300, 257, 2), lambda k: rand(2, k, scale=4)), dynamic=({1: m},))
    yield Form("softmax/rank_1", lasts, [(rand(7, scale=3),)])
    yield Form("softmax/rank_4", {**lasts, "aten._softmax.default second": lambda x: F.softmax(x, 1)}, [(rand(2, 3, 2, 5),)])
    masked = rand(4, 6)
    masked[0, 2:] = -float("inf")
    masked[1, 0], masked[2] = 177.0, 3.0
    masked[3] = torch.tensor([-1000.0, -1001, -1002, -999, -5000, -1000])
    yield Form("softmax/masked", lasts, [(masked,)])
    empty = rand(3, 4)
    empty[1] = -float("inf")
    yield Form("softmax/all_masked", lasts, [(empty,)])


class LayerNorm(torch.nn.Module):
    def __init__(self, shape, weight=True, bias=True, dtype=F32):
        super().__init__()
        self.shape = shape
        self.weight = torch.nn.Parameter(rand(*shape, dtype=dtype)) if weight else None
        self.bias = torch.nn.Parameter(rand(*shape, dtype=dtype)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.shape, self.weight, self.bias, 1e-5)


def layer_norms():
    n = Dim("n", min=1, max=9)
    names = ("aten.native_layer_norm.default",)
    near = (1e-4, 1e-5)
    for dtype, forced in FLOATS:
        calls = over((4, 1, 9, 2, 7), lambda k: rand(2, k, 5, dtype=dtype))
        kind = "float16" if forced else word(dtype)
        yield Form(f"layer_norm/{kind}", LayerNorm((5,), dtype=dtype), calls, names, ({1: n},), fp16=forced,
                   tol=near if dtype == F32 and not forced else (2e-3, 1e-3))
    calls = over((4, 1, 9, 2, 7), lambda k: rand(k, 3, 2, 5))
    yield Form("layer_norm/two_dims", LayerNorm((2, 5)), calls, names, ({0: n},), tol=near)
    yield Form("layer_norm/weight_alone", LayerNorm((7,), bias=False), [(rand(3, 7),)], names, tol=near)
    yield Form("layer_norm/plain", LayerNorm((7,), False, False), [(rand(3, 7),)], names, tol=near)
    yield Form("layer_norm/far_from_zero", LayerNorm((33,)), [(rand(3, 33) + 1000,)], names, tol=(2e-3, 2e-3))
    yield Form("layer_norm/rank_1", LayerNorm((9,)), [(rand(9),)], names, tol=near)
    yield Form("layer_norm/long", LayerNorm((513,)), [(rand(2, 513),)], names, tol=near, small=False)


class RmsNorm(torch.nn.Module):
    """As Llama's: a sum of squares, in floats, then a weight of any shape that the product takes."""

    def __init__(self, weight, eps=1e-5, square=False, swap=False):
        super().__init__()
        self.weight = torch.nn.Parameter(weight) if isinstance(weight, torch.Tensor) else None
        self.given, self.eps, self.square, self.swap = weight, eps, square, swap

    def forward(self, x, y=None):
        wide = x.float()
        squares = wide.pow(2) if self.square else wide * wide
        normed = (wide * torch.rsqrt(squares.mean(-1, keepdim=True) + self.eps)).type_as(x)
        weight = self.weight if self.weight is not None else self.given(x, y)
        return weight * normed if self.swap else normed * weight


def rms_norms():
    n = Dim("n", min=1, max=9)
    names = ("et_vk.rms_norm.default",)
    near = (2e-5, 2e-6)
    for dtype, forced in FLOATS:
        calls = over((4, 1, 9, 2, 7), lambda k: rand(1, k, 12, dtype=dtype))
        yield Form(f"rms_norm/{'float16' if forced else word(dtype)}", RmsNorm(rand(12, dtype=dtype)), calls, names,
                   ({1: n},), fp16=forced, tol=near if dtype == F32 and not forced else None, dim_order=dtype == F32)
    yield Form("rms_norm/odd_width", RmsNorm(rand(7), 1e-6, square=True, swap=True), over((4, 1, 9, 2, 7), lambda k: rand(k, 7)),
               names, ({0: n},), tol=near)
    yield Form("rms_norm/rank_4", RmsNorm(rand(6)), [(rand(2, 3, 5, 6),)], names, tol=near)
    yield Form("rms_norm/rank_1", RmsNorm(rand(6)), [(rand(6),)], names, tol=near)
    weights = {
        "scalar": (RmsNorm(torch.tensor(0.75)), lambda k: rand(2, k, 6), ({1: n},)),
        "one": (RmsNorm(rand(1)), lambda k: rand(2, k, 6), ({1: n},)),
        "by_head": (RmsNorm(rand(3, 1)), lambda k: rand(k, 3, 6), ({0: n},)),
        "by_head_and_width": (RmsNorm(rand(3, 6)), lambda k: rand(k, 3, 6), ({0: n},)),
        "with_a_row": (RmsNorm(rand(1, 1, 6)), lambda k: rand(2, k, 6), ({1: n},)),
        "gate": (RmsNorm(lambda x, y: y), lambda k: (rand(2, k, 6), rand(2, k, 6)), ({1: n}, {1: n})),
        "modulation": (RmsNorm(lambda x, y: 1 + y), lambda k: (rand(2, k, 6), rand(2, 1, 6)), ({1: n}, None)),
        "itself": (RmsNorm(lambda x, y: x), lambda k: rand(2, k, 6), ({1: n},)),
        "given_vector": (RmsNorm(lambda x, y: y), lambda k: (rand(2, k, 6), rand(6)), ({1: n}, None)),
        "wider": (RmsNorm(lambda x, y: y), lambda k: (rand(k, 6), rand(3, k, 6)), ({0: n}, {1: n})),
    }
    for name, (module, make, dynamic) in weights.items():
        yield Form(f"rms_norm/weight_{name}", module, over((4, 1, 9, 2, 7), make), names, dynamic, tol=near)


def forms():
    for family in (reductions, softmax, layer_norms, rms_norms):
        yield from family()
