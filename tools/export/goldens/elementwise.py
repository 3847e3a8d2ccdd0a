"""Operators on single elements: unary, binary with broadcasting, comparisons, logic, where."""
import torch
import torch.nn.functional as F
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from .form import BOOL, F16, F32, I32, I64, Form, bools, ints, over, rand, word

UNARY = {
    "aten.abs.default": torch.abs,
    "aten.clamp.default": lambda x: torch.clamp(x, -0.5, 1.25),
    "aten.clamp.default min": lambda x: torch.clamp(x, min=-0.25),
    "aten.clamp.default max": lambda x: torch.clamp(x, max=0.25),
    "aten.cos.default": torch.cos,
    "aten.exp.default": torch.exp,
    "aten.gelu.default": F.gelu,
    "aten.gelu.default tanh": lambda x: F.gelu(x, approximate="tanh"),
    "aten.hardswish.default": F.hardswish,
    "aten.hardtanh.default": F.hardtanh,
    "aten.hardtanh.default -2 0.5": lambda x: F.hardtanh(x, -2.0, 0.5),
    "aten.leaky_relu.default": F.leaky_relu,
    "aten.leaky_relu.default 0.2": lambda x: F.leaky_relu(x, 0.2),
    "aten.neg.default": torch.neg,
    "aten.pow.Tensor_Scalar": lambda x: torch.pow(x, 3),
    "aten.pow.Tensor_Scalar 2": lambda x: x**2,
    "aten.pow.Tensor_Scalar -1": lambda x: torch.pow(x, -1.0),
    "aten.pow.Tensor_Scalar 0": lambda x: torch.pow(x, 0.0),
    "aten.relu.default": torch.relu,
    "aten.round.default": torch.round,
    "aten.sigmoid.default": torch.sigmoid,
    "aten.sin.default": torch.sin,
    "aten.tanh.default": torch.tanh,
}
POSITIVE = {
    "aten.log10.default": torch.log10,
    "aten.pow.Tensor_Scalar 0.5": lambda x: torch.pow(x, 0.5),
    "aten.pow.Tensor_Scalar 2.5": lambda x: torch.pow(x, 2.5),
    "aten.rsqrt.default": torch.rsqrt,
    "aten.sqrt.default": torch.sqrt,
}
# The stock partitioner leaves these outside, or the exporter takes them apart before; the runtime has them for
# delegates of others.
UNARY_OTHERS = {
    "aten.ceil.default": torch.ceil,
    "aten.floor.default": torch.floor,
    "aten.hardsigmoid.default": F.hardsigmoid,
    "aten.reciprocal.default": torch.reciprocal,
    "aten.silu.default": F.silu,
    "aten.tan.default": torch.tan,
    "aten.trunc.default": torch.trunc,
}
# What WGSL promises of trigonometry is an absolute error of 2^-11 near zero.
UNARY_TOL = {"aten.cos.default": (0, 2e-4), "aten.sin.default": (0, 2e-4), "aten.tan.default": (1e-3, 2e-4),
             "aten.tanh.default": (2e-5, 2e-6), "aten.exp.default": (5e-6, 1e-6), "aten.pow.Tensor_Scalar": (2e-5, 1e-6)}
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, -3.0, 20.0, -20.0,
           0.25, -0.25, 1.25, 60.0, -60.0, 1000.0, -1000.0, 1.0, -1.0]


def halves(tolerances):
    """The same in halves: rounding the result is all that may be worse."""
    return {k: (max(r, 1e-3), max(a, 1e-4)) for k, (r, a) in tolerances.items()}


def only(functions, *names):
    return {k: f for k, f in functions.items() if k.split(" ")[0] in names}


def without(functions, *names):
    return {k: f for k, f in functions.items() if k not in names}


def unary():
    n = Dim("n", min=1, max=9)
    rows = over((4, 1, 9, 2, 7, 9), lambda k: rand(k, 3, 5, scale=1.5))
    yield Form("unary/float32", UNARY, rows, dynamic=({0: n},), tol=UNARY_TOL)
    yield Form("unary/float16", UNARY, [(rand(3, 7, scale=1.5),), (rand(3, 7, scale=4),)], fp16=True, tol=halves(UNARY_TOL))
    rows = over((4, 1, 9, 2, 7), lambda k: rand(2, k, dtype=F16, scale=1.5))
    yield Form("unary/half", UNARY, rows, dynamic=({1: n},), tol=halves(UNARY_TOL))
    rows = over((4, 1, 9, 2, 7), lambda k: rand(k).abs() + 0.125)
    yield Form("unary/positive_float32", POSITIVE, rows, dynamic=({0: n},), tol=UNARY_TOL)
    yield Form("unary/positive_half", POSITIVE, [(rand(2, 3, 1, 3, dtype=F16).abs() + 0.125,)])
    yield Form("unary/positive_float16", POSITIVE, [(rand(3, 3).abs() + 0.125,)], fp16=True)
    # PyTorch's own gelu of infinity depends on where in the tensor it stands.
    exponential = only({**UNARY, **POSITIVE}, "aten.exp.default", "aten.sigmoid.default", "aten.log10.default")
    kept = without({**UNARY, **POSITIVE}, "aten.gelu.default", "aten.gelu.default tanh", *exponential)
    yield Form("unary/exp_special", exponential, [(torch.tensor(SPECIAL),)], tol=UNARY_TOL,
               pending="exp of NaN and log of negatives are no NaN on SwiftShader")
    yield Form("unary/special", kept, [(torch.tensor(SPECIAL),)],
               tol={**UNARY_TOL, "aten.cos.default": (0, 1e-3), "aten.sin.default": (0, 1e-3)})
    int_clamps = {"aten.clamp.default": lambda x: torch.clamp(x, -3, 4), "aten.clamp.default min": lambda x: torch.clamp(x, min=2)}
    for dtype in (I32, I64):
        rows = over((4, 1, 9, 2, 7), lambda k: ints(-9, 9, k, 3, dtype=dtype))
        yield Form(f"unary/clamp_{word(dtype)}", int_clamps, rows, dynamic=({0: n},))
    kept = (torch.ops.aten.silu.default, torch.ops.aten.hardsigmoid.default)
    extended = tuple(getattr(edge.edge.aten, k.split(".")[1]).default for k in UNARY_OTHERS)
    rows = over((4, 1, 9, 2, 7), lambda k: rand(k, 5) + 0.01)
    yield Form("unary/others_float32", UNARY_OTHERS, rows, dynamic=({0: n},), tol=UNARY_TOL, keep=kept, extend=extended)
    # The exporter takes hardshrink apart in every case.
    shrink = {"aten.hardshrink.default": F.leaky_relu, "aten.hardshrink.default 0.25": lambda x: F.leaky_relu(x, 0.25)}
    yield Form("unary/hardshrink_float32", shrink, over((4, 1, 9, 2, 7), lambda k: rand(k, 5)), dynamic=({0: n},),
               swap={edge.edge.aten.leaky_relu.default: edge.edge.aten.hardshrink.default},
               golden=lambda x: (F.hardshrink(x), F.hardshrink(x, 0.25)))
    log = {"aten.log.default": torch.log}
    yield Form("unary/log_float32", log, over((4, 1, 9, 2, 7), lambda k: rand(k, 5).abs() + 0.125), dynamic=({0: n},),
               extend=(edge.edge.aten.log.default,))


BINARY = {
    "aten.add.Tensor": torch.add,
    "aten.add.Tensor alpha": lambda x, y: torch.add(x, y, alpha=2.5),
    "aten.sub.Tensor": torch.sub,
    "aten.sub.Tensor alpha": lambda x, y: torch.sub(x, y, alpha=0.5),
    "aten.mul.Tensor": torch.mul,
    "aten.minimum.default": torch.minimum,
    "aten.eq.Tensor": torch.eq,
    "aten.ge.Tensor": torch.ge,
    "aten.gt.Tensor": torch.gt,
    "aten.le.Tensor": torch.le,
    "aten.lt.Tensor": torch.lt,
}
DIVISIONS = {
    "aten.div.Tensor": torch.div,
    "aten.div.Tensor_mode floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "aten.div.Tensor_mode trunc": lambda x, y: torch.div(x, y, rounding_mode="trunc"),
}
POWERS = {"aten.pow.Tensor_Tensor": torch.pow}
BINARY_TOL = {"aten.pow.Tensor_Tensor": (2e-5, 1e-6), "aten.div.Tensor": (1e-6, 1e-7)}


def integral(functions):
    """Integers take whole factors."""
    whole = {"aten.add.Tensor alpha": lambda x, y: torch.add(x, y, alpha=3),
             "aten.sub.Tensor alpha": lambda x, y: torch.sub(x, y, alpha=-2)}
    return {k: whole.get(k, f) for k, f in functions.items()}


def nonzero(tensor):
    return torch.where(tensor == 0, torch.ones_like(tensor), tensor)


# Quotients that are not whole, so that rounding first or last makes no difference.
def quotients(shape_x, shape_y, dtype=F32):
    return ints(-40, 40, *shape_x).to(dtype) + 0.5, nonzero(ints(-7, 7, *shape_y)).to(dtype)


def binary_float():
    n = Dim("n", min=1, max=9)
    both = {**BINARY, **DIVISIONS}
    # Rank 3 against rank 2, the live dim against 1 and against itself.
    grow = over((4, 1, 9, 2, 7, 9), lambda k: (rand(2, k, 1), rand(k, 5)))
    yield Form("binary/float32", BINARY, grow, dynamic=({1: n}, {0: n}))
    grow = over((4, 1, 9, 2, 7), lambda k: quotients((k, 1, 3), (4, 1)))
    yield Form("binary/div_float32", DIVISIONS, grow, dynamic=({0: n}, None), tol=BINARY_TOL)
    grow = over((4, 1, 9, 2, 7), lambda k: (rand(k, 3).abs() + 0.25, rand(k, 3)))
    yield Form("binary/pow_float32", POWERS, grow, dynamic=({0: n}, {0: n}), tol=BINARY_TOL)
    yield Form("binary/pow_of_negatives", POWERS, [(torch.tensor([-2.0, -2, -2, -1.5, 0, 0, 0, -1]),
                                                    torch.tensor([3.0, 2, 0.5, -3, 0, 2, -1, 0]))], tol=BINARY_TOL)
    grow = over((4, 1, 9, 2, 7), lambda k: (rand(k, 3, dtype=F16), rand(3, dtype=F16)))
    yield Form("binary/half", BINARY, grow, dynamic=({0: n}, None))
    yield Form("binary/float16", {**BINARY, **POWERS}, [(rand(3, 1, 5).abs() + 0.25, rand(2, 5))], fp16=True,
               tol={"aten.pow.Tensor_Tensor": (2e-3, 1e-4)})
    yield Form("binary/div_half", DIVISIONS, [quotients((2, 3, 1, 3), (5, 1), F16)])
    yield Form("binary/div_float16", DIVISIONS, [quotients((3,), (2, 1, 3))], fp16=True)
    yield Form("binary/rank_0", both, [(torch.tensor(2.5), torch.tensor(-0.75))])
    yield Form("binary/empty", both, [(rand(0, 3), rand(1, 3))])
    odd = torch.tensor(SPECIAL)
    yield Form("binary/special", BINARY, [(odd, odd.flip(0)), (odd, torch.full_like(odd, float("nan"))), (odd, odd)])
    yield Form("binary/div_special", only(DIVISIONS, "aten.div.Tensor"), [(odd, torch.zeros_like(odd)), (odd, odd.roll(3))])
    scalars = {
        "aten.add.Tensor": lambda x: x + 1.5,
        "aten.sub.Tensor": lambda x: x - 0.25,
        "aten.mul.Tensor": lambda x: 3 * x,
        "aten.div.Tensor": lambda x: x / 3,
    }
    yield Form("binary/scalars", scalars, over((4, 1, 9, 2, 7), lambda k: rand(k, 3)), dynamic=({0: n},), tol=BINARY_TOL)
    wide = {"aten.add.Tensor": torch.add, "aten.mul.Tensor": torch.mul, "aten.lt.Tensor": torch.lt}
    yield Form("binary/rank_6", wide, [(rand(2, 1, 2, 1, 3, 1), rand(1, 2, 1, 2, 1, 3))])


def binary_int():
    n = Dim("n", min=1, max=9)
    whole = integral(BINARY)
    for dtype in (I32, I64):
        name = word(dtype)
        grow = over((4, 1, 9, 2, 7), lambda k: (ints(-5, 5, k, 1, 3, dtype=dtype), ints(-5, 5, 2, 1, dtype=dtype)))
        yield Form(f"binary/{name}", whole, grow, dynamic=({0: n}, None))
        grow = over((4, 1, 9, 2, 7), lambda k: (ints(-40, 40, k, 3, dtype=dtype), nonzero(ints(-7, 7, k, 3, dtype=dtype))))
        yield Form(f"binary/div_{name}", DIVISIONS, grow, dynamic=({0: n}, {0: n}), tol=BINARY_TOL)
        grow = over((4, 1, 9, 2, 7), lambda k: (ints(-4, 4, k, dtype=dtype), ints(0, 5, k, dtype=dtype)))
        yield Form(f"binary/pow_{name}", POWERS, grow, dynamic=({0: n}, {0: n}))
    yield Form("binary/int32_and_float32", {**BINARY, "aten.div.Tensor": torch.div},
               [(ints(-5, 5, 4, 3, dtype=I32), rand(3) + 0.01)])
    far = {"aten.mul.Tensor": torch.mul, "aten.add.Tensor": torch.add, "aten.lt.Tensor": torch.lt, "aten.eq.Tensor": torch.eq}
    yield Form("binary/int32_large", far, [(torch.tensor([2**24 + 1, -(2**31), 2**31 - 1, 46341], dtype=I32),
                                            torch.tensor([1, -1, 1, 46341], dtype=I32))])


def binary_others():
    n = Dim("n", min=1, max=9)
    others = {"aten.maximum.default": torch.maximum, "aten.ne.Tensor": torch.ne}
    extended = (edge.edge.aten.maximum.default, edge.edge.aten.ne.Tensor)
    grow = over((4, 1, 9, 2, 7), lambda k: (rand(2, k, 1), rand(k, 5)))
    yield Form("binary/others_float32", others, grow, dynamic=({1: n}, {0: n}), extend=extended)
    yield Form("binary/others_int32", others, [(ints(-3, 3, 4, 5, dtype=I32), ints(-3, 3, 5, dtype=I32))], extend=extended)
    grow = over((4, 1, 9, 2, 7), lambda k: (bools(k, 3), bools(3)))
    yield Form("logic/xor", {"aten.logical_xor.default": torch.logical_xor}, grow, dynamic=({0: n}, None),
               extend=(edge.edge.aten.logical_xor.default,))


LOGIC = {
    "aten.logical_and.default": torch.logical_and,
    "aten.logical_or.default": torch.logical_or,
    "aten.bitwise_and.Tensor": torch.bitwise_and,
    "aten.bitwise_or.Tensor": torch.bitwise_or,
    "aten.bitwise_not.default": lambda a, b: torch.bitwise_not(a),
    "aten.logical_not.default": lambda a, b: torch.logical_not(b),
}
SCALARS = {f"aten.{name}.Scalar": getattr(torch, name) for name in ("eq", "ge", "gt", "le", "lt", "ne")}


def against(value):
    return {k: (lambda x, f=f: f(x, value)) for k, f in SCALARS.items()}


def logic():
    n = Dim("n", min=1, max=9)
    yield Form("logic/bool", LOGIC, over((4, 1, 9, 2, 7), lambda k: (bools(k, 3), bools(k, 1))), dynamic=({0: n}, {0: n}))
    yield Form("logic/bool_rank_1", LOGIC, over((5, 1, 67, 3), lambda k: (bools(k), bools(k))),
               dynamic=({0: Dim("m", min=1, max=67)},) * 2)
    yield Form("logic/bool_rank_4", LOGIC, [(bools(2, 1, 3, 5), bools(3, 1))])
    for dtype, value in ((F32, 0.5), (F16, 0.5), (I32, 2), (I64, -1)):
        make = (lambda k: ints(-3, 3, k, 3).to(dtype) / 2) if dtype.is_floating_point else (lambda k: ints(-3, 3, k, 3, dtype=dtype))
        yield Form(f"compare/scalar_{word(dtype)}", against(value), over((4, 1, 9, 2, 7), make), dynamic=({0: n},))
    yield Form("compare/scalar_float16", against(0.5), [(ints(-3, 3, 5, 3).float() / 2,)], fp16=True)
    odd = torch.tensor(SPECIAL)
    yield Form("compare/scalar_special", against(float("inf")), [(odd,)])
    yield Form("compare/scalar_zero", against(0), [(odd,)])


def where():
    n = Dim("n", min=1, max=9)
    grow = over((4, 1, 9, 2, 7), lambda k: (bools(k, 1, 3), rand(2, 1), rand(k, 1, 3)))
    plain = {"aten.where.self": torch.where}
    yield Form("where/float32", plain, grow, dynamic=({0: n}, None, {0: n}))
    yield Form("where/half", plain, [(bools(5), rand(3, 5, dtype=F16), rand(3, 1, dtype=F16))])
    yield Form("where/float16", plain, [(bools(3, 1, 5), rand(1), rand(2, 5))], fp16=True)
    odd = torch.tensor(SPECIAL)
    yield Form("where/special", plain, [(torch.isfinite(odd), odd, odd.flip(0)), (torch.isfinite(odd).logical_not(), odd, odd)])
    scalars = {"aten.where.self": lambda c, x: torch.where(c, x, 0.0), "aten.where.self masked_fill":
               lambda c, x: x.masked_fill(c, float("-inf"))}
    yield Form("where/scalars", scalars, over((4, 1, 9, 2, 7), lambda k: (bools(k, 3), rand(k, 3))), dynamic=({0: n}, {0: n}))
    yield Form("where/empty", plain, [(bools(0, 3), rand(3), rand(1, 3))])


def forms():
    for family in (unary, binary_float, binary_int, binary_others, logic, where):
        yield from family()
