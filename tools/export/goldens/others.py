"""Delegate operators that the stock partitioner leaves outside: the runtime has them under both names, and another
exporter, or this one with a longer list, may write them. The functions are those of the portable forms."""
import torch
import torch.nn.functional as F
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from . import portable as p
from .dense import Grouped
from .elementwise import nonzero
from .form import F32, I32, I64, Form, ints, over, rand

aten = torch.ops.aten
SPECIAL = {"aten::max.dim_max": "max.dim", "aten::min.dim_min": "min.dim", "aten::topk.values": "topk.default", "aten::var.out": "var.dim",
           "aten::max_pool2d_with_indices_backward.grad_input": "max_pool2d_with_indices_backward.default"}


def inner(label):
    """aten.acos.default of aten::acos.out, with what follows a blank."""
    first, blank, rest = label.partition(" ")
    name, kind = first.removeprefix("aten::").split(".")
    inside = SPECIAL.get(first, f"{name}.{'default' if kind == 'out' else kind.removesuffix('_out')}")
    return f"aten.{inside}{blank}{rest}"


def operator(namespace, label):
    _, name, overload = label.split(" ")[0].split(".")
    return getattr(getattr(namespace, name), overload)


def inside(name, functions, calls, whole=False, **how):
    """Portable forms as delegates; `whole`: operators that the exporter would take apart."""
    labels = {inner(k): f for k, f in functions.items()}
    extend = tuple({operator(edge.edge.aten, k) for k in labels})
    keep = tuple({operator(aten, k) for k in labels}) if whole else ()
    return Form(f"others/{name}", labels, calls, extend=extend, keep=keep, **how)


def elementwise():
    n = Dim("n", min=1, max=9)
    live = {"dynamic": ({0: n},)}
    grow = over((4, 1, 9, 2, 7), lambda k: rand(k, 3, scale=1.5) + 0.01)
    yield inside("unary", p.UNARY_NEW, grow, tol=(1e-4, 1e-5), **live)
    yield inside("unary_unit", p.UNIT, [((torch.rand(3, 5) * 1.9 - 0.95),)], tol=(1e-4, 7e-5))
    yield inside("unary_above", p.ABOVE, [(torch.rand(3, 5) * 3 + 1.1,)], tol=(1e-4, 7e-5))
    for dtype in (F32, I64):
        make = lambda k: ints(-5, 5, k, 3).to(dtype)
        yield inside(f"scalars_{'float32' if dtype == F32 else 'int64'}", p.SCALARS, over((4, 1, 9, 2, 7), make), **live)
        yield inside(f"scalars_whole_{'float32' if dtype == F32 else 'int64'}", p.SCALARS_NEW, over((4, 1, 9, 2, 7), make), whole=True, **live)
    pairs = over((4, 1, 9, 2, 7), lambda k: (ints(-40, 40, k, 3, dtype=I32), nonzero(ints(-7, 7, 3, dtype=I32))))
    yield inside("remainder_int32", p.REMAINDERS, pairs, dynamic=({0: n}, None))
    yield inside("remainder_float32", p.REMAINDERS, [(ints(-40, 40, 3, 5) + 0.5, nonzero(ints(-7, 7, 5)).float())], tol=(1e-5, 1e-5))
    scalars = {k: f for k, f in {**p.BITS, **p.BITS_NEW}.items() if "Scalar" in k or "xor" in k}
    yield inside("bits_int32", scalars, pairs, dynamic=({0: n}, None))
    yield inside("shift_int32", p.SHIFTS, [(ints(-40, 40, 5, dtype=I32), ints(0, 6, 5, dtype=I32))])
    yield inside("atan2", {"aten::atan2.out": torch.atan2}, [(rand(3, 5), rand(3, 5))], tol=(1e-4, 1e-4))
    yield inside("pow_scalar", {"aten::pow.Scalar_out": lambda x: torch.pow(2.5, x)}, grow, tol=(2e-5, 1e-6), **live)
    yield inside("floor_divide", {"aten::floor_divide.out": aten.floor_divide}, [(ints(-40, 40, 3, 5) + 0.5, nonzero(ints(-7, 7, 5)).float())], whole=True)


def reductions():
    n = Dim("n", min=1, max=9)
    for dtype in (F32, I32):
        make = lambda k: ints(-20, 20, 3, k, 5).to(dtype)
        kind = "float32" if dtype == F32 else "int32"
        yield inside(f"extremes_{kind}", p.EXTREMES, over((4, 1, 9, 2, 7), make), dynamic=({1: n},))
        sums = {"aten::cumsum.out": lambda x: x.cumsum(1), "aten::cumsum.out last": lambda x: x.cumsum(-1)}
        yield inside(f"cumsum_{kind}", sums, over((4, 1, 9, 2, 7), make), dynamic=({1: n},))
    tops = {"aten::topk.values": lambda x: torch.topk(x, 3), "aten::topk.values smallest": lambda x: torch.topk(x, 2, dim=0, largest=False)}
    yield inside("topk", tops, [(torch.randperm(20).float().reshape(4, 5),)])
    yield inside("moments", p.MOMENTS, over((4, 2, 9, 3, 7), lambda k: rand(3, k, 5)), dynamic=({1: Dim("m", min=2, max=9)},), tol=p.NEAR)
    yield inside("var", {"aten::var.out": lambda x: aten.var.dim(x, [1], True, False)}, [(rand(3, 4),)], whole=True, tol=p.NEAR)
    put = {"aten::index_put.out": lambda x, i, v: aten.index_put(x, [i], v), "aten::index_put.out add": lambda x, i, v: aten.index_put(x, [i], v, True)}
    yield inside("index_put", put, [(rand(6, 3), torch.tensor([4, 0, 5]), rand(3, 3))])
    scatters = {
        "aten::scatter.src_out": lambda x, i, v: aten.scatter.src(x, 0, i, v),
        "aten::scatter.value_out": lambda x, i, v: aten.scatter.value(x, 0, i, 7),
        "aten::scatter_add.out": lambda x, i, v: torch.scatter_add(x, 0, i, v),
    }
    unique = torch.stack([torch.randperm(5)[:2] for _ in range(3)], 1)
    yield inside("scatter", scatters, [(rand(5, 3), unique, rand(2, 3))])


POOLS = {
    "aten::_adaptive_avg_pool2d.out": (lambda x: F.adaptive_avg_pool2d(x, (2, 3)), (1, 2, 5, 7)),
    "aten::_adaptive_avg_pool3d.out": (lambda x: F.adaptive_avg_pool3d(x, (2, 3, 1)), (1, 2, 3, 5, 4)),
    "aten::adaptive_max_pool2d.out": (lambda x: aten.adaptive_max_pool2d(x, [2, 3]), (1, 2, 5, 7)),
    "aten::adaptive_max_pool3d.out": (lambda x: aten.adaptive_max_pool3d(x, [2, 3, 1]), (1, 2, 3, 5, 4)),
    "aten::avg_pool1d.out": (lambda x: aten.avg_pool1d(x, [3], [2], [1]), (2, 3, 8)),
    "aten::avg_pool3d.out": (lambda x: F.avg_pool3d(x, 2, 1, 1, count_include_pad=False), (1, 2, 3, 4, 5)),
    "aten::max_pool1d.out": (lambda x: aten.max_pool1d(x, [3], [2], [1]), (2, 3, 8)),
    "aten::max_pool3d.out": (lambda x: aten.max_pool3d(x, [2, 2, 2]), (1, 2, 4, 4, 5)),
    "aten::max_pool3d_with_indices.out": (lambda x: F.max_pool3d(x, 2, 1, return_indices=True), (1, 2, 3, 4, 5)),
    "aten::upsample_nearest2d.out": (lambda x: aten.upsample_nearest2d(x, [5, 7], None, None), (1, 2, 3, 4)),
    "aten::_upsample_bilinear2d_aa.out": (lambda x: aten._upsample_bilinear2d_aa(x, [3, 4], False), (1, 2, 6, 7)),
    "aten::_upsample_bilinear2d_aa.vec_out": (lambda x: aten._upsample_bilinear2d_aa.vec(x, None, False, [0.5, 0.6]), (1, 2, 6, 7)),
}


class BatchStatistics(torch.nn.Module):
    """Normalised by the batch's own mean and variance."""

    def __init__(self):
        super().__init__()
        self.register_buffer("weight", rand(4))
        self.register_buffer("bias", rand(4))

    def forward(self, x):
        return aten._native_batch_norm_legit.no_stats(x, self.weight, self.bias, True, 0.1, 1e-5)[0]


def spatial():
    for label, (function, shape) in POOLS.items():
        short = label.split("::")[1].replace(".vec_out", "_vec").split(".")[0].strip("_")
        calls = [(rand(*shape),), (rand(*shape),)]
        yield inside(short, {label: function}, calls, whole=True, tol=p.NEAR)
        if label not in ("aten::max_pool1d.out", "aten::max_pool3d.out", "aten::_upsample_bilinear2d_aa.vec_out"):  # composites
            yield p.whole(short, {label: function}, calls, tol=p.NEAR)
    largest = lambda x, g: aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False, F.max_pool2d(x, 2, return_indices=True)[1])
    label = "aten::max_pool2d_with_indices_backward.grad_input"
    calls = [(torch.randperm(40).float().reshape(1, 2, 4, 5), rand(1, 2, 2, 2))]
    yield inside("max_pool2d_backward", {label: largest}, calls)
    yield p.outside("max_pool2d_backward", {label: largest}, calls)
    yield Form("others/batch_norm_no_stats", BatchStatistics(), [(rand(2, 4, 3, 3),)], ("aten._native_batch_norm_legit.no_stats",),
               extend=(edge.edge.aten._native_batch_norm_legit.no_stats,), tol=p.NEAR)
    yield p.outside("batch_norm_no_stats", BatchStatistics(), [(rand(2, 4, 3, 3),)], tol=p.NEAR,
                    names=("aten::_native_batch_norm_legit.no_stats_out",))


class Backward(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layer = Grouped(8, 32, 16)
        packed = (layer.codes[:, 1::2].to(I32) + 8) * 16 + layer.codes[:, ::2].to(I32) + 8
        self.register_buffer("codes", packed.to(torch.uint8))
        self.register_buffer("scales", layer.scales.t().contiguous())

    def forward(self, g):
        return torch.ops.et_vk.linear_q4gsw_backward(g, self.codes, self.scales, 16)


def training():
    yield Form("training/linear_q4gsw_backward", Backward(), [(rand(3, 8),)], ("et_vk.linear_q4gsw_backward.default",),
               extend=(edge.edge.et_vk.linear_q4gsw_backward.default,), tol=(1e-4, 1e-4))
    yield Form("training/q4gsw_requant", {"et_vk.q4gsw_requant.default": lambda x, s: torch.ops.et_vk.q4gsw_requant(x, s, 4)},
               [(rand(8, 16), rand(4, 8).abs() / 4 + 0.1)], extend=(edge.edge.et_vk.q4gsw_requant.default,))


def forms():
    for family in (elementwise, reductions, spatial, training):
        yield from family()
