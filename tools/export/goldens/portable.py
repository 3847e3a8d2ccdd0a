"""Portable operators: what a program calls outside its delegates. Nothing is delegated in these forms."""
import torch
import torch.nn.functional as F
from executorch.exir import ExecutorchBackendConfig
from executorch.exir.dialects._ops import ops as edge
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch.export import Dim

from .elementwise import SPECIAL, UNARY_TOL, halves, nonzero
from .form import BOOL, F16, F32, I8, I32, I64, U8, Form, bools, ints, over, rand, word

aten = torch.ops.aten
NEAR = (1e-4, 1e-5)


def outside(name, functions, calls, **how):
    return Form(f"portable/{name}", functions, calls, delegate=False, **how)


def whole(name, functions, calls, **how):
    """The same with operators that the exporter takes apart unless it is asked not to (preserve_ops)."""
    return outside(name, functions, calls, keep=tuple({overload(label) for label in functions if "::" in label}), **how)


def overload(label):
    name, kind = label.split(" ")[0].removeprefix("aten::").split(".")
    return getattr(getattr(aten, name), "default" if kind == "out" else kind.removesuffix("_out"))


UNARY = {
    "aten::abs.out": torch.abs,
    "aten::ceil.out": torch.ceil,
    "aten::clamp.out": lambda x: torch.clamp(x, -0.5, 1.25),
    "aten::cos.out": torch.cos,
    "aten::exp.out": torch.exp,
    "aten::floor.out": torch.floor,
    "aten::gelu.out": F.gelu,
    "aten::gelu.out tanh": lambda x: F.gelu(x, approximate="tanh"),
    "aten::hardtanh.out": lambda x: F.hardtanh(x, -0.5, 0.75),
    "aten::leaky_relu.out": lambda x: F.leaky_relu(x, 0.2),
    "aten::neg.out": torch.neg,
    "aten::pow.Tensor_Scalar_out": lambda x: torch.pow(x, 3),
    "aten::reciprocal.out": torch.reciprocal,
    "aten::relu.out": torch.relu,
    "aten::round.out": torch.round,
    "aten::sigmoid.out": torch.sigmoid,
    "aten::sin.out": torch.sin,
    "aten::tan.out": torch.tan,
    "aten::tanh.out": torch.tanh,
    "aten::trunc.out": torch.trunc,
}
POSITIVE = {"aten::log.out": torch.log, "aten::log10.out": torch.log10, "aten::rsqrt.out": torch.rsqrt, "aten::sqrt.out": torch.sqrt}
UNARY_NEW = {
    "aten::asinh.out": torch.asinh,
    "aten::atan.out": torch.atan,
    "aten::cosh.out": torch.cosh,
    "aten::elu.out": lambda x: F.elu(x, 0.75),
    "aten::erf.out": torch.erf,
    "aten::expm1.out": torch.expm1,
    "aten::sign.out": torch.sign,
    "aten::sinh.out": torch.sinh,
}
UNIT = {"aten::acos.out": torch.acos, "aten::asin.out": torch.asin, "aten::atanh.out": torch.atanh, "aten::log1p.out": torch.log1p}
ABOVE = {"aten::acosh.out": torch.acosh, "aten::log2.out": torch.log2}
TOL = {k.replace("aten.", "aten::").replace(".default", ".out"): v for k, v in UNARY_TOL.items()}
TOL["aten::pow.Tensor_Scalar_out"] = TOL["aten::tan.out"] = (1e-3, 2e-4)


def unary():
    n = Dim("n", min=1, max=9)
    grow = over((4, 1, 9, 2, 7), lambda k: rand(k, 3, scale=1.5) + 0.01)
    yield outside("unary_float32", UNARY, grow, dynamic=({0: n},), tol=TOL)
    yield outside("unary_half", UNARY, [(rand(3, 5, dtype=F16, scale=1.5) + 0.0625,)], tol=halves(TOL))
    yield outside("unary_positive", POSITIVE, over((4, 1, 9, 2, 7), lambda k: rand(k, 3).abs() + 0.125), dynamic=({0: n},))
    # WGSL promises of asin and its kin an absolute error of 6.77e-5.
    yield outside("unary_new", UNARY_NEW, grow, dynamic=({0: n},), tol=(1e-4, 1e-5))
    yield outside("unary_unit", UNIT, [((torch.rand(3, 5) * 1.9 - 0.95),)], tol=(1e-4, 7e-5))
    yield outside("unary_above", ABOVE, [(torch.rand(3, 5) * 3 + 1.1,)], tol=(1e-4, 7e-5))
    odd = torch.tensor(SPECIAL)
    yield outside("is_special", {"aten::isinf.out": torch.isinf, "aten::isnan.out": torch.isnan}, [(odd,)])
    yield whole("logit", {"aten::logit.out": lambda x: torch.logit(x, 1e-6)}, [(torch.rand(3, 5),)], tol=(1e-4, 1e-4))
    integral = {
        "aten::abs.out": torch.abs,
        "aten::clamp.out": lambda x: torch.clamp(x, -3, 4),
        "aten::neg.out": torch.neg,
        "aten::relu.out": torch.relu,
        "aten::logical_not.out": torch.logical_not,
    }
    for dtype in (I32, I64):
        yield outside(f"unary_{word(dtype)}", integral, over((4, 1, 9, 2, 7), lambda k: ints(-9, 9, k, 3, dtype=dtype)), dynamic=({0: n},))
        yield outside(f"bitwise_not_{word(dtype)}", {"aten::bitwise_not.out": torch.bitwise_not}, [(ints(-9, 9, 5, 3, dtype=dtype),)])
    flags = {"aten::bitwise_not.out": torch.bitwise_not, "aten::logical_not.out": torch.logical_not}
    yield outside("unary_bool", flags, over((4, 1, 9, 2, 7), lambda k: bools(k, 3)), dynamic=({0: n},))
    yield outside("unary_to_float", {"aten::sqrt.out": torch.sqrt, "aten::exp.out": torch.exp, "aten::cos.out": torch.cos,
                                     "aten::reciprocal.out": torch.reciprocal}, [(ints(1, 6, 3, 5),)], tol=(1e-4, 2e-4))


BINARY = {
    "aten::add.out": lambda x, y: torch.add(x, y, alpha=2),
    "aten::sub.out": torch.sub,
    "aten::mul.out": torch.mul,
    "aten::maximum.out": torch.maximum,
    "aten::minimum.out": torch.minimum,
}
DIVISIONS = {
    "aten::div.out": torch.div,
    "aten::div.out_mode": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "aten::div.out_mode trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}
COMPARED = {f"aten::{name}.Tensor_out": getattr(torch, name) for name in ("eq", "ge", "gt", "le", "lt", "ne")}
REMAINDERS = {"aten::fmod.Tensor_out": torch.fmod, "aten::remainder.Tensor_out": torch.remainder}
SCALARS = {
    "aten::add.Scalar_out": lambda x: aten.add.Scalar(x, 2, 3),
    "aten::sub.Scalar_out": lambda x: aten.sub.Scalar(x, 3),
    "aten::mul.Scalar_out": lambda x: aten.mul.Scalar(x, -2),
    "aten::div.Scalar_out": lambda x: aten.div.Scalar(x, 4),
    "aten::div.Scalar_mode_out": lambda x: aten.div.Scalar_mode(x, 3, rounding_mode="floor"),
}
COMPARED_SCALARS = {f"aten::{name}.Scalar_out": (lambda x, f=getattr(aten, name).Scalar: f(x, 1))
                    for name in ("eq", "ge", "gt", "le", "lt", "ne")}
SCALARS_NEW = {
    "aten::fmod.Scalar_out": lambda x: aten.fmod.Scalar(x, 3),
    "aten::remainder.Scalar_out": lambda x: aten.remainder.Scalar(x, 3),
    "aten::rsub.Scalar_out": lambda x: aten.rsub.Scalar(x, 5, 2),
}
BITS = {
    "aten::bitwise_and.Tensor_out": torch.bitwise_and,
    "aten::bitwise_or.Tensor_out": torch.bitwise_or,
    "aten::bitwise_and.Scalar_out": lambda x, y: aten.bitwise_and.Scalar(x, 6),
    "aten::bitwise_or.Scalar_out": lambda x, y: aten.bitwise_or.Scalar(x, 6),
}
BITS_NEW = {
    "aten::bitwise_xor.Tensor_out": torch.bitwise_xor,
    "aten::bitwise_xor.Scalar_out": lambda x, y: aten.bitwise_xor.Scalar(x, 5),
}
SHIFTS = {
    "aten::bitwise_left_shift.Tensor_out": torch.bitwise_left_shift,
    "aten::bitwise_right_shift.Tensor_out": torch.bitwise_right_shift,
    "aten::bitwise_left_shift.Tensor_Scalar_out": lambda x, y: aten.bitwise_left_shift.Tensor_Scalar(x, 2),
    "aten::bitwise_right_shift.Tensor_Scalar_out": lambda x, y: aten.bitwise_right_shift.Tensor_Scalar(x, 1),
}
LOGIC = {f"aten::logical_{name}.out": getattr(torch, f"logical_{name}") for name in ("and", "or", "xor")}


def binary():
    n = Dim("n", min=1, max=9)
    grow = over((4, 1, 9, 2, 7), lambda k: (rand(2, k, 1), rand(k, 5)))
    yield outside("binary_float32", BINARY, grow, dynamic=({1: n}, {0: n}))
    yield outside("binary_half", BINARY, [(rand(3, 1, dtype=F16), rand(2, 1, 5, dtype=F16))])
    yield outside("compare_float32", COMPARED, over((4, 1, 9, 2, 7), lambda k: (ints(-2, 2, k, 3).float(), ints(-2, 2, k, 1).float())),
                  dynamic=({0: n}, {0: n}))
    for dtype in (I32, I64):
        pairs = over((4, 1, 9, 2, 7), lambda k: (ints(-40, 40, k, 3, dtype=dtype), nonzero(ints(-7, 7, 3, dtype=dtype))))
        yield outside(f"binary_{word(dtype)}", {**BINARY, **DIVISIONS}, pairs, dynamic=({0: n}, None))
        yield outside(f"compare_{word(dtype)}", COMPARED, pairs, dynamic=({0: n}, None))
        yield outside(f"remainder_{word(dtype)}", REMAINDERS, pairs, dynamic=({0: n}, None))
        yield outside(f"bits_{word(dtype)}", BITS, pairs, dynamic=({0: n}, None))
        yield outside(f"xor_{word(dtype)}", BITS_NEW, pairs, dynamic=({0: n}, None))
        yield outside(f"shift_{word(dtype)}", SHIFTS, [(ints(-40, 40, 5, dtype=dtype), ints(0, 6, 5, dtype=dtype))])
    yield outside("div_float32", DIVISIONS, [(ints(-40, 40, 3, 5) + 0.5, nonzero(ints(-7, 7, 5)).float())], tol=(1e-6, 1e-7))
    yield outside("remainder_float32", REMAINDERS, [(ints(-40, 40, 3, 5) + 0.5, nonzero(ints(-7, 7, 5)).float())], tol=(1e-5, 1e-5))
    powers = {"aten::pow.Tensor_Tensor_out": torch.pow, "aten::pow.Scalar_out": lambda x, y: torch.pow(2.5, y)}
    for label, function in powers.items():
        yield outside(label.split("::")[1].replace(".", "_"), {label: function}, [(rand(3, 5).abs() + 0.25, rand(5))], tol=(2e-5, 1e-6))
    yield outside("atan2", {"aten::atan2.out": torch.atan2}, [(rand(3, 5), rand(3, 5))], tol=(1e-4, 1e-4))
    yield whole("floor_divide", {"aten::floor_divide.out": lambda x, y: aten.floor_divide(x, y)},
                  [(ints(-40, 40, 3, 5) + 0.5, nonzero(ints(-7, 7, 5)).float())])
    yield outside("logic", LOGIC, over((4, 1, 9, 2, 7), lambda k: (bools(k, 3), bools(3))), dynamic=({0: n}, None))
    yield outside("bits_bool", {**{k: BITS[k] for k in list(BITS)[:2]}}, [(bools(3, 5), bools(5))])
    yield outside("xor_bool", {k: BITS_NEW[k] for k in list(BITS_NEW)[:1]}, [(bools(3, 5), bools(5))])
    for dtype in (F32, I64):
        make = lambda k: ints(-5, 5, k, 3).to(dtype)
        yield outside(f"scalars_{word(dtype)}", SCALARS, over((4, 1, 9, 2, 7), make), dynamic=({0: n},))
        yield outside(f"compare_scalars_{word(dtype)}", COMPARED_SCALARS, over((4, 1, 9, 2, 7), make), dynamic=({0: n},))
        yield whole(f"scalars_new_{word(dtype)}", SCALARS_NEW, over((4, 1, 9, 2, 7), make), dynamic=({0: n},))
    yield outside("mixed", {"aten::add.out": torch.add, "aten::mul.out": torch.mul, "aten::div.out": torch.div},
                  [(ints(-5, 5, 3, 4), rand(4) + 0.01)], tol=(1e-5, 1e-6))
    yield outside("where", {"aten::where.self_out": torch.where}, over((4, 1, 9, 2, 7), lambda k: (bools(k, 1), rand(3), rand(k, 3))),
                  dynamic=({0: n}, None, {0: n}))
    yield outside("where_int64", {"aten::where.self_out": torch.where}, [(bools(4, 1), ints(-9, 9, 3), ints(-9, 9, 4, 3))])
    yield outside("clamp_tensor", {"aten::clamp.Tensor_out": lambda x, a, b: torch.clamp(x, a, b)}, [(rand(3, 5), rand(5) - 1, rand(3, 1) + 1)])
    yield whole("masked_fill", {"aten::masked_fill.Scalar_out": lambda x, m: aten.masked_fill.Scalar(x, m, -1e4)}, [(rand(3, 5), bools(5))])


REDUCED = {
    "aten::sum.IntList_out": lambda x: x.sum(1),
    "aten::sum.IntList_out all": lambda x: x.sum(),
    "aten::mean.out": lambda x: x.mean((0, 2)),
    "aten::mean.out keep": lambda x: x.mean(-1, keepdim=True),
    "aten::amax.out": lambda x: x.amax((0, 1)),
    "aten::amin.out": lambda x: x.amin(-2),
    "aten::argmax.out": lambda x: x.argmax(1),
    "aten::argmin.out": lambda x: x.argmin(),
    "aten::_softmax.out": lambda x: F.softmax(x, 1),
    "aten::_log_softmax.out": lambda x: F.log_softmax(x, -1),
}
ANY = {"aten::any.out": lambda x: x.any(-1), "aten::any.all_out": lambda x: x.any(), "aten::any.dims_out": lambda x: aten.any.dims(x, [0, 1])}
EXTREMES = {
    "aten::max.dim_max": lambda x: x.max(-1),
    "aten::min.dim_min": lambda x: x.min(0, keepdim=True),
}
LARGEST = {"aten::max.unary_out": lambda x: x.max(), "aten::min.unary_out": lambda x: x.min()}
MOMENTS = {
    "aten::var.correction_out": lambda x: torch.var(x, -1, correction=1),
    "aten::var.correction_out none": lambda x: torch.var(x, (0, 2), correction=0, keepdim=True),
    "aten::var_mean.correction_out": lambda x: torch.var_mean(x, -1),
}
PRODUCTS = {"aten::prod.int_out": lambda x: x.prod(1), "aten::prod.out": lambda x: x.prod()}


def reductions():
    n = Dim("n", min=1, max=9)
    grow = over((4, 1, 9, 2, 7), lambda k: rand(3, k, 5))
    yield outside("reduce_float32", REDUCED, grow, dynamic=({1: n},))
    yield outside("reduce_half", REDUCED, [(rand(3, 4, 5, dtype=F16),)])
    integral = {"aten::sum.IntList_out": lambda x: x.sum(1), "aten::amax.out": lambda x: x.amax(-1), "aten::amin.out": lambda x: x.amin((0, 2)),
             "aten::argmax.out": lambda x: x.argmax(1), "aten::argmin.out": lambda x: x.argmin(-1)}
    yield outside("reduce_int64", integral, [(ints(-9, 9, 3, 4, 5),)])
    yield outside("sum_of_bools", {"aten::sum.IntList_out": lambda x: x.sum(-1)}, [(bools(3, 5),)])
    yield outside("any_bool", ANY, over((4, 1, 9, 2, 7), lambda k: torch.rand(3, k, 5) < 0.1), dynamic=({1: n},))
    yield outside("any_float32", ANY, [(torch.where(torch.rand(3, 2, 5) < 0.2, 1.5, 0.0),)])
    for dtype in (F32, I64):
        make = lambda k: ints(-20, 20, 3, k, 5).to(dtype)
        yield outside(f"extremes_{word(dtype)}", EXTREMES, over((4, 1, 9, 2, 7), make), dynamic=({1: n},))
        yield outside(f"largest_{word(dtype)}", LARGEST, over((4, 1, 9, 2, 7), make), dynamic=({1: n},))
    yield outside("moments", MOMENTS, over((4, 2, 9, 3, 7), lambda k: rand(3, k, 5)), dynamic=({1: Dim("m", min=2, max=9)},), tol=NEAR)
    yield outside("var", {"aten::var.out": lambda x: aten.var.dim(x, [1], True, False)}, [(rand(3, 4),)], keep=(aten.var.dim,), tol=NEAR)
    yield outside("products", PRODUCTS, [(rand(3, 4),)], tol=NEAR)
    for dtype in (F32, I64):
        yield outside(f"cumsum_{word(dtype)}", {"aten::cumsum.out": lambda x: x.cumsum(1), "aten::cumsum.out last": lambda x: x.cumsum(-1)},
                      over((4, 1, 9, 2, 7), lambda k: ints(-9, 9, 2, k, 3).to(dtype)), dynamic=({1: n},))
    yield outside("cumsum_bool", {"aten::cumsum.out": lambda x: x.cumsum(-1)}, [(bools(2, 7),)])
    tops = {"aten::topk.values": lambda x: torch.topk(x, 3), "aten::topk.values smallest": lambda x: torch.topk(x, 2, dim=0, largest=False)}
    yield outside("topk", tops, [(torch.randperm(20).float().reshape(4, 5),)])
    yield outside("mean_dtype", {"aten::mean.dtype_out": lambda x: aten.mean(x)}, [(rand(3, 4),)])


MOVED = {
    "aten::permute_copy.out": lambda x: x.permute(2, 0, 1),
    "aten::select_copy.int_out": lambda x: x[:, 1],
    "aten::slice_copy.Tensor_out": lambda x: x[..., 1::2],
    "aten::squeeze_copy.dims_out": lambda x: x.unsqueeze(1).squeeze((1,)),
    "aten::unsqueeze_copy.out": lambda x: aten.unsqueeze_copy(x, -1),
    "aten::repeat.out": lambda x: x.repeat(2, 1, 3),
    "aten::expand_copy.out": lambda x: aten.expand_copy(x[:, :1], [-1, 4, -1]),
    "aten::cat.out": lambda x: torch.cat([x, x[..., :2]], dim=-1),
    "aten::constant_pad_nd.out": lambda x: F.pad(x, (1, 2, 0, 1)),
}
FLIPPED = {"aten::flip.out": lambda x: x.flip((0, -1))}
SPLIT = {"aten::split_with_sizes_copy.out": lambda x: torch.split(x, [1, 4], dim=-1)}
MOVED_NEW = {
    "aten::roll.out": lambda x: aten.roll(x, [1, -2], [0, 2]),
    "aten::narrow_copy.out": lambda x: aten.narrow_copy(x, 2, 1, 3),
    "aten::stack.out": lambda x: aten.stack([x, x], 1),
    "aten::unbind_copy.int_out": lambda x: aten.unbind_copy.int(x, 1),
    "aten::split_copy.Tensor_out": lambda x: aten.split_copy.Tensor(x, 2, 2),
    "aten::tril.out": lambda x: torch.tril(x, -1),
    "aten::diagonal_copy.out": lambda x: aten.diagonal_copy(x, 1, 1, 2),
    "aten::unfold_copy.out": lambda x: aten.unfold_copy(x, 2, 3, 2),
    "aten::slice_scatter.out": lambda x: torch.slice_scatter(x, x[:, 1:] * 2, 1, 1),
    "aten::select_scatter.out": lambda x: torch.select_scatter(x, x[:, 0] * 3, 1, 1),
}


def moves():
    n = Dim("n", min=1, max=9)
    for dtype in (F32, I64):
        make = lambda k: ints(-20, 20, k, 3, 5).to(dtype)
        calls = over((4, 1, 9, 2, 7), make)
        yield outside(f"move_{word(dtype)}", MOVED, calls, dynamic=({0: n},))
        yield outside(f"flip_{word(dtype)}", FLIPPED, calls, dynamic=({0: n},), small=dtype == F32)
        yield outside(f"split_with_sizes_{word(dtype)}", SPLIT, calls, dynamic=({0: n},), small=dtype == F32)
        for label, function in MOVED_NEW.items():
            short = label.split("::")[1].split(".")[0]
            yield whole(f"{short}_{word(dtype)}", {label: function}, [(make(4),), (make(4),)], small=dtype == F32)
    yield outside("move_bool", MOVED, over((4, 1, 9, 2, 7), lambda k: bools(k, 3, 5)), dynamic=({0: n},))
    yield outside("view_copy", {"aten::view_copy.out": lambda x: x.reshape(-1, 3)}, [(rand(2, 6),), (rand(2, 6),)],
                  config=ExecutorchBackendConfig(remove_view_copy=False))
    yield outside("view", {"aten::view_copy.out": lambda x: (x + 1).reshape(x.shape[0] * 3, 5)},
                  over((4, 1, 9, 2, 7), lambda k: rand(k, 3, 5)), dynamic=({0: n},))
    copies = {"aten::clone.out": lambda x: aten.clone(x), "aten::alias_copy.out": lambda x: aten.alias_copy(x)}
    yield outside("copies", {k: copies[k] for k in ("aten::alias_copy.out",)}, [(rand(3, 5),)])
    yield outside("clone", {"aten::clone.out": copies["aten::clone.out"]}, [(rand(3, 5),)], dim_order=False)
    yield outside("clone_dim_order", {"dim_order_ops::_clone_dim_order.out": lambda x: aten.clone(x)}, [(rand(3, 5),)])
    for dim_order, label in ((True, "dim_order_ops::_to_dim_order_copy.out"), (False, "aten::_to_copy.out")):
        casts = {f"{label} {word(t)}": (lambda x, t=t: x.to(t)) for t in (I64, I32, F16, BOOL)}
        yield outside(f"cast_{'dim_order' if dim_order else 'to_copy'}", casts, [(ints(-40, 40, 3, 5).float() / 4,)], dim_order=dim_order)
        casts = {f"{label} {word(t)}": (lambda x, t=t: x.to(t)) for t in (F32, I32, BOOL)}
        yield outside(f"cast_int64_{'dim_order' if dim_order else 'to_copy'}", casts, [(ints(-4, 4, 3, 5),)], dim_order=dim_order)
    turned = {"aten::t_copy.out": lambda x: aten.t_copy(x), "aten::transpose_copy.int_out": lambda x: aten.transpose_copy.int(x, 0, -1)}
    for label, function in turned.items():
        yield whole(label.split("::")[1].split(".")[0], {label: function}, over((4, 1, 9, 2, 7), lambda k: rand(k, 5)), dynamic=({0: n},))
    yield whole("squeeze_dim", {"aten::squeeze_copy.dim_out": lambda x: aten.squeeze_copy.dim(x, 1)}, [(rand(3, 1, 5),)])
    yield outside("detach", {"aten::detach_copy.out": lambda x: aten.detach_copy(x)}, [(rand(3, 5),)])
    yield whole("pixel_shuffle", {"aten::pixel_shuffle.out": lambda x: aten.pixel_shuffle(x, 2)}, [(rand(1, 8, 2, 3),)])
    yield whole("pixel_unshuffle", {"aten::pixel_unshuffle.out": lambda x: aten.pixel_unshuffle(x, 2)}, [(rand(1, 2, 4, 6),)])
    yield outside("as_strided", {"aten::as_strided_copy.out": lambda x: aten.as_strided_copy(x, [2, 3], [1, 4], 1)}, [(rand(3, 5),)])
    for k, shape in ((1, (2, 3, 7)), (2, (1, 2, 4, 5)), (3, (1, 2, 3, 4, 3))):
        pad = [1, 2] * k
        for mode in ("reflection", "replication"):
            function = getattr(aten, f"{mode}_pad{k}d")
            yield whole(f"{mode}_pad{k}d", {f"aten::{mode}_pad{k}d.out": lambda x: function(x, pad)}, [(rand(*shape),)])


class Put(torch.nn.Module):
    def __init__(self, accumulate):
        super().__init__()
        self.accumulate = accumulate

    def forward(self, x, i, v):
        return aten.index_put(x, [i], v, self.accumulate)


def indexing():
    n = Dim("n", min=1, max=9)
    for dtype in (F32, I64):
        table = lambda *shape: ints(-20, 20, *shape).to(dtype)
        yield outside(f"index_{word(dtype)}", {"aten::index.Tensor_out": lambda x, i: x[i]},
                      over((4, 1, 9, 2, 7), lambda k: (table(6, 3), ints(-6, 5, k))), dynamic=(None, {0: n}))
        two = {"aten::index.Tensor_out two": lambda x, i, j: x[i, j], "aten::index.Tensor_out apart": lambda x, i, j: x[i, :, j],
               "aten::index.Tensor_out behind": lambda x, i, j: x[:, i, j]}
        yield outside(f"index_two_{word(dtype)}", two, over((4, 1, 9, 2, 7), lambda k: (table(4, 5, 6), ints(-4, 3, k, 1), ints(-4, 3, 3))),
                      dynamic=(None, {0: n}, None))
        yield outside(f"gather_{word(dtype)}", {"aten::gather.out": lambda x, i: torch.gather(x, 1, i),
                                                "aten::index_select.out": lambda x, i: torch.index_select(x, 0, i[0])},
                      [(table(5, 5), ints(0, 4, 5, 3))])
        yield outside(f"index_put_{word(dtype)}", Put(False), [(table(6, 3), torch.tensor([4, 0, -1]), table(3, 3))], names=("aten::index_put.out",))
        yield outside(f"index_put_add_{word(dtype)}", Put(True), [(table(6, 3), torch.tensor([4, 0, 4]), table(3, 3))],
                      names=("aten::index_put.out",))
        scatters = {
            "aten::scatter.src_out": lambda x, i, v: aten.scatter.src(x, 0, i, v),
            "aten::scatter.value_out": lambda x, i, v: aten.scatter.value(x, 1, i % 3, 7),
            "aten::scatter_add.out": lambda x, i, v: torch.scatter_add(x, 0, i, v),
        }
        unique = torch.stack([torch.randperm(5)[:2] for _ in range(3)], 1)
        for label, function in scatters.items():
            short = label.split("::")[1].replace(".", "_")
            yield outside(f"{short}_{word(dtype)}", {label: function}, [(table(5, 3), unique, table(2, 3))], small=dtype == F32)
    yield outside("index_mask", {"aten::index.Tensor_out": lambda x, m: aten.index.Tensor(x, [m])},
                  [(rand(5, 3), torch.tensor([True, False, True, True, False]))])
    for dtype in (U8, I8, BOOL):  # sums wrap around; those of booleans are whether one is true
        table = lambda *shape: (bools(*shape) if dtype == BOOL else ints(-128, 127, *shape).to(dtype))
        adds = {
            "aten::scatter_add.out": lambda x, y, i, p: torch.scatter_add(x, 0, i, y),
            "aten::index_put.out add": lambda x, y, i, p: aten.index_put(x, [i[:, 0]], y, True),
            "aten::index_put.out mask": lambda x, y, i, p: aten.index_put(x, [i > 2], x[i > 2], True),
        }
        others = {
            "aten::mm.out": lambda x, y, i, p: x.mm(y),
            "aten::bmm.out": lambda x, y, i, p: p.bmm(p),
            "aten::addmm.out": lambda x, y, i, p: torch.addmm(x, x, y),
            "aten::max_pool2d_with_indices.out": lambda x, y, i, p: F.max_pool2d(p, 3, 2, 1, return_indices=True),
        }
        yield outside(f"bytes_{word(dtype)}", adds if dtype == BOOL else adds | others, [(table(4, 4), table(4, 4), ints(0, 3, 4, 4), table(2, 4, 4))])
    yield outside("embedding", {"aten::embedding.out": lambda w, i: F.embedding(i, w)}, over((4, 1, 9, 2, 7), lambda k: (rand(11, 5), ints(0, 10, 2, k))),
                  dynamic=(None, {1: n}))
    yield outside("repeat_interleave", {"aten::repeat_interleave.Tensor_out": lambda r: aten.repeat_interleave.Tensor(r, output_size=6)},
                  [(torch.tensor([1, 3, 0, 2]),)])
    masks = [torch.tensor(m) for m in ([True, False, True, True, False], [False, True, True, False, True])]
    put = lambda x, i, v, **how: aten.index_put(x.clone(), i, v, **how)
    by_mask = {
        "aten::index_put.out rows": lambda x, y, m, i, v: put(x, [m], y[m]),
        "aten::index_put.out elements": lambda x, y, m, i, v: put(x, [x > y], y[x > y]),
        "aten::index_put.out add": lambda x, y, m, i, v: put(x, [m], y[m], accumulate=True),
        "aten::index_put.out beside": lambda x, y, m, i, v: put(x, [m, i], v[0]),
        "aten::index_put.out in order": lambda x, y, m, i, v: put(x, [m, i], v),
        "aten::index_put.out number": lambda x, y, m, i, v: put(x, [m], v[:1, None]),
    }
    calls = [(rand(5, 4), rand(5, 4), m, ints(0, 3, 3), rand(3)) for m in masks]
    yield outside("index_put_mask", by_mask, calls)
    yield outside("nonzero", {"aten::nonzero.out": torch.nonzero}, [(bools(3, 5),)])
    yield outside("masked_select", {"aten::masked_select.out": torch.masked_select}, [(rand(3, 5), bools(3, 5))])
    yield outside("masked_scatter", {"aten::masked_scatter.out": lambda x, m, s: aten.masked_scatter(x, m, s)}, [(rand(3, 5), bools(3, 5), rand(15))])


def fills():
    n = Dim("n", min=1, max=9)
    made = {
        "aten::full.out": lambda x: torch.full((2, 3), 1.5) + x,
        "aten::full_like.out": lambda x: torch.full_like(x, -0.25),
        "aten::scalar_tensor.out": lambda x: torch.scalar_tensor(2.5) + x,
    }
    yield outside("fill", made, [(rand(2, 3),)])
    yield outside("fill_int64", {"aten::full.out": lambda x: torch.full((3,), 7) + x, "aten::full_like.out": lambda x: torch.full_like(x, -2)},
                  [(ints(-5, 5, 3),)])
    kept = {"aten::zeros.out": lambda x: torch.zeros(2, 3) + x, "aten::ones.out": lambda x: torch.ones(3) * x}
    yield whole("zeros_ones", kept, [(rand(2, 3),)])
    yield outside("arange", {"aten::arange.start_out": lambda x: torch.arange(1, 12, 3), "aten::arange.start_out float":
                             lambda x: torch.arange(0.5, 4.0, 0.75) * x}, [(rand(1),)])
    yield outside("arange_live", {"aten::arange.start_out": lambda x: torch.arange(x.shape[0]) * 2}, over((4, 1, 9, 2, 7), lambda k: rand(k, 2)),
                  dynamic=({0: n},))
    yield whole("fill_scalar", {"aten::fill.Scalar_out": lambda x: aten.fill.Scalar(x, 2.5)}, [(rand(2, 3),)])
    yield whole("fill_tensor", {"aten::fill.Tensor_out": lambda x, v: aten.fill.Tensor(x, v)}, [(rand(2, 3), torch.tensor(1.5))])
    yield outside("copy", {"aten::copy.out": lambda x, y: aten.copy(x, y)}, [(rand(2, 3), rand(3))])


def dense():
    n = Dim("n", min=1, max=9)
    yield outside("mm", {"aten::mm.out": torch.mm}, over((4, 1, 9, 2, 7), lambda k: (rand(k, 5), rand(5, 7))), dynamic=({0: n}, None), tol=NEAR)
    yield outside("bmm", {"aten::bmm.out": torch.bmm}, over((4, 1, 9, 2, 7), lambda k: (rand(2, k, 5), rand(2, 5, 3))), dynamic=({1: n}, None), tol=NEAR)
    yield outside("addmm", {"aten::addmm.out": torch.addmm, "aten::addmm.out factors": lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2)},
                  over((4, 1, 9, 2, 7), lambda k: (rand(7), rand(k, 5), rand(5, 7))), dynamic=(None, {0: n}, None), tol=NEAR)
    yield outside("linear", torch.nn.Linear(5, 7), over((4, 1, 9, 2, 7), lambda k: rand(k, 5)), names=("aten::linear.out",), dynamic=({0: n},),
                  keep=(aten.linear.default,), tol=NEAR)
    yield outside("matmul_half", {"aten::mm.out": torch.mm}, [(rand(3, 5, dtype=F16), rand(5, 7, dtype=F16))], tol=(2e-3, 2e-3))
    norm = torch.nn.LayerNorm(5)
    norm.weight.data, norm.bias.data = rand(5), rand(5)
    yield outside("layer_norm", norm, over((4, 1, 9, 2, 7), lambda k: rand(2, k, 5)), names=("aten::native_layer_norm.out",), dynamic=({1: n},), tol=NEAR)
    group = torch.nn.GroupNorm(2, 4)
    group.weight.data, group.bias.data = rand(4), rand(4)
    yield outside("group_norm", group, [(rand(2, 4, 3, 3),)], names=("aten::native_group_norm.out",), tol=NEAR)
    batch = torch.nn.BatchNorm2d(4).eval()
    batch.running_mean, batch.running_var = rand(4), rand(4).abs() + 0.25
    yield outside("batch_norm", batch, [(rand(2, 4, 3, 3),)], names=("aten::_native_batch_norm_legit_no_training.out",), tol=NEAR)
    conv = torch.nn.Conv2d(3, 4, 3, padding=1)
    yield outside("convolution", conv, [(rand(2, 3, 5, 4),)], names=("aten::convolution.out",), tol=NEAR)
    yield outside("convolution_1d", torch.nn.Conv1d(3, 4, 3, stride=2), [(rand(2, 3, 7),)], names=("aten::convolution.out",), tol=NEAR)
    yield outside("convolution_transposed", torch.nn.ConvTranspose1d(3, 4, 3, stride=2), [(rand(1, 3, 5),)], names=("aten::convolution.out",), tol=NEAR)
    backward = lambda g, x, w: aten.convolution_backward(g, x, w, [4], [2, 2], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True])
    yield outside("convolution_backward", {"aten::convolution_backward.out": backward},
                  [(rand(2, 4, 3, 4), rand(2, 3, 5, 7), rand(4, 3, 3, 3))], tol=NEAR)
    yield whole("dropout", {"aten::native_dropout.out": lambda x: aten.native_dropout(x, 0.5, False)}, [(rand(3, 4),)])
    yield outside("cdist", {"aten::_cdist_forward.out": lambda x, y: aten._cdist_forward(x, y, 2.0, None)}, [(rand(2, 4, 3), rand(2, 5, 3))], tol=NEAR)
    yield outside("pdist", {"aten::_pdist_forward.out": lambda x: aten._pdist_forward(x, 2.0)}, [(rand(5, 3),)], tol=NEAR)
    mixed = {  # halves with floats of the model's own
        "aten::native_layer_norm.out": lambda x, w, b: aten.native_layer_norm(x, [6], w, b, 1e-5)[0],
        "aten::native_group_norm.out": lambda x, w, b: aten.native_group_norm(x, w, b, 2, 6, 6, 3, 1e-5)[0],
        "aten::_native_batch_norm_legit_no_training.out":
            lambda x, w, b: aten._native_batch_norm_legit_no_training(x, w, b, b, w.abs(), 0.1, 1e-5)[0],
    }
    yield outside("mixed_norms", mixed, [(rand(2, 6, 6, dtype=F16), rand(6), rand(6))], tol=(2e-3, 2e-3))
    yield whole("glu", {"aten::glu.out": lambda x: aten.glu(x, -1)}, [(rand(3, 6),)])
    half = Dim("half", min=1, max=5)
    yield whole("live_glu", {"aten::glu.out": lambda x: aten.glu(x, 0)}, over((2, 1, 5, 3, 4), lambda k: (rand(2 * k, 3),)), dynamic=({0: 2 * half},))
    pools = {
        "aten::avg_pool2d.out": lambda x: F.avg_pool2d(x, 3, 2, 1),
        "aten::max_pool2d_with_indices.out": lambda x: F.max_pool2d(x, 2, return_indices=True),
        "aten::_adaptive_avg_pool2d.out": lambda x: F.adaptive_avg_pool2d(x, (2, 3)),
    }
    for label, function in pools.items():
        yield outside(label.split("::")[1].split(".")[0].strip("_"), {label: function}, [(rand(1, 2, 5, 7),)], tol=NEAR)
    for mode, label in (("nearest", "aten::upsample_nearest2d.vec_out"), ("bilinear", "aten::upsample_bilinear2d.vec_out")):
        yield outside(f"upsample_{mode}", {label: lambda x: F.interpolate(x, scale_factor=1.7, mode=mode)}, [(rand(1, 2, 3, 4),)],
                      keep=(aten.upsample_nearest2d.vec,), tol=NEAR)
    yield outside("upsample_antialias", {"aten::_upsample_bilinear2d_aa.out": lambda x: aten._upsample_bilinear2d_aa(x, [3, 4], False)},
                  [(rand(1, 2, 6, 7),)], tol=NEAR)
    yield outside("grid_sampler", {"aten::grid_sampler_2d.out": lambda x, g: aten.grid_sampler_2d(x, g, 0, 0, False)},
                  [(rand(1, 2, 4, 5), torch.rand(1, 3, 3, 2) * 2.4 - 1.2)], tol=NEAR)


# ---- quantised, where an application links ExecuTorch's kernels for them -------------------------


class Lookup(torch.nn.Module):
    """An embedding of 4 or 8 bits; 4-bit codes lie two a byte, the first in the high nibble."""

    def __init__(self, bits, groups, dtype, typed, width=12):
        super().__init__()
        self.operator = getattr(torch.ops.quantized_decomposed, "embedding_byte" if bits == 8 else f"embedding_{bits}bit")
        self.range, self.dtype = (-(2**(bits - 1)), 2**(bits - 1) - 1), dtype if typed else None
        codes = ints(-128, 127, 9, width, dtype=torch.int8) if bits == 8 else ints(0, 255, 9, width * bits // 8, dtype=torch.uint8)
        self.register_buffer("codes", codes)
        self.register_buffer("scales", (rand(9, groups).abs() / 8 + 0.0625).half().to(dtype))

    def forward(self, ids):
        given = (self.codes, self.scales, None, *self.range, ids)
        return self.operator.dtype(*given, dtype=self.dtype) if self.dtype else self.operator(*given)


def lookups():
    import executorch.kernels.quantized  # noqa: F401, registers the out variants
    n = Dim("n", min=1, max=9)
    inside = edge.edge.quantized_decomposed
    for bits, typed, target in ((4, False, inside.embedding_4bit.default), (8, False, inside.embedding_byte.default),
                                (8, True, inside.embedding_byte.dtype)):
        yield Form(f"embedding/other_{bits}_bits{'_typed' if typed else ''}", Lookup(bits, 3, F32, typed),
                   over((4, 1, 9, 2, 7), lambda k: ints(0, 8, 1, k)), (target.__name__,), ({1: n},), extend=(target,))
    grow = over((4, 1, 9, 2, 7), lambda k: ints(0, 8, 1, k))
    for bits, groups in ((4, 1), (4, 3), (8, 1), (8, 2), (2, 1)):
        short = "embedding_byte" if bits == 8 else f"embedding_{bits}bit"
        for typed in (False, True):
            label = f"quantized_decomposed::{short}.{'dtype_out' if typed else 'out'}"
            yield outside(f"{short}_in_{groups}{'_typed' if typed else ''}", Lookup(bits, groups, F32, typed), grow, names=(label,),
                          dynamic=({1: n},))
    yield outside("embedding_byte_half", Lookup(8, 1, F16, True), grow, names=("quantized_decomposed::embedding_byte.dtype_out",), dynamic=({1: n},))


class Step(torch.nn.Module):
    """Integers that only the host sees: sizes that go into sizes."""

    def forward(self, x):
        n = x.shape[0]
        return torch.full(((n * 3 + 4) // 2, 2), 1.5), torch.zeros(n + 1), torch.ones(n % 3 + 2)


class Scaled(torch.nn.Module):
    """A size that becomes a number of the graph."""

    def forward(self, x):
        return x / x.shape[0] + x.numel()


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", rand(2, 3))

    def forward(self, x):
        self.h.add_(x)
        return self.h * 2


class Ring(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", rand(5, 3))

    def forward(self, x, at):
        self.h[at] = x
        return self.h * 2


class Branch(torch.nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t * 2, [x])


class Each(torch.nn.Module):
    def forward(self, x):
        return torch._higher_order_ops.map(lambda row: row * row + 1, x)


class Attention(torch.nn.Module):
    """What F.scaled_dot_product_attention leaves outside its delegates."""

    def __init__(self, causal):
        super().__init__()
        self.causal = causal

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


def programs():
    n = Dim("n", min=1, max=9)
    yield outside("sizes", Step(), over((4, 1, 9, 2, 7), lambda k: rand(k, 2)), dynamic=({0: n},))
    yield outside("sizes_as_numbers", Scaled(), over((4, 1, 9, 2, 7), lambda k: rand(k, 2)), dynamic=({0: n},))
    yield outside("view_static", {"view": lambda x: (x * 2).reshape(3, 4) + 1}, [(rand(2, 6),), (rand(2, 6),)])
    started = {"passes": [InitializedMutableBufferPass(["h"])]}  # without it nobody knows what a buffer begins with
    yield outside("state", Counter(), [(rand(2, 3),) for _ in range(3)], names=("aten::copy_",), config=ExecutorchBackendConfig(**started))
    yield outside("state_at", Ring(), [(rand(2, 3), torch.tensor(i)) for i in ([0, 3], [4, 1], [3, 2])], names=("aten::index_put_",),
                  config=ExecutorchBackendConfig(run_reinplace_pass=True, **started))
    sign = torch.tensor([[1.0, 2, 3], [4, 5, 6]])
    yield outside("cond", Branch(), [(sign,), (-sign,), (sign,)])
    yield outside("map", Each(), [(sign,), (-sign,)])
    for causal in (False, True):
        qkv = lambda s: tuple(rand(1, 2, s, 8) for _ in range(3))
        yield Form(f"portable/attention{'_causal' if causal else ''}", Attention(causal), [qkv(5), qkv(5)], tol=NEAR)
        yield Form(f"portable/attention{'_causal' if causal else ''}_live", Attention(causal), over((4, 2, 9, 3, 7), qkv),
                   dynamic=({2: Dim("s", min=2, max=9)},) * 3, tol=NEAR)
    norm = torch.nn.RMSNorm(6)
    norm.weight.data = rand(6)
    yield Form("portable/rms_norm", norm, over((4, 1, 9, 2, 7), lambda k: rand(k, 6)), names=("aten::add.Scalar_out",), dynamic=({0: n},), tol=NEAR)


def forms():
    for family in (unary, binary, reductions, moves, indexing, fills, dense, lookups, programs):
        yield from family()
