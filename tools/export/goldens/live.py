"""Portable operators over live shapes and every dtype that they take: what `portable` has of one shape or of floats alone."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from .elementwise import halves, nonzero
from .form import F16, F32, I32, I64, I8, U8, bools, ints, over, rand, word
from .portable import (ABOVE, BINARY, BITS, BITS_NEW, COMPARED, COMPARED_SCALARS, DIVISIONS, EXTREMES, LARGEST, MOMENTS, MOVED, MOVED_NEW,
                       NEAR, POSITIVE, PRODUCTS, REDUCED, REMAINDERS, SCALARS, SCALARS_NEW, SHIFTS, TOL, UNARY, UNARY_NEW, UNIT, outside, whole)

aten = torch.ops.aten
SIZES = (4, 1, 9, 2, 7)
ROUGH = (3e-3, 2e-3)
n = Dim("n", min=1, max=9)


def live(name, functions, make, kept=False, **how):
    return (whole if kept else outside)(f"live_{name}", functions, over(SIZES, make), **how)


def unary():
    for dtype in (F32, F16):
        name, tol = word(dtype), NEAR if dtype == F32 else ROUGH
        yield live(f"unary_unit_{name}", UNIT, lambda k: (torch.rand(k, 3) * 1.8 - 0.9).to(dtype), dynamic=({0: n},), tol=(1e-3, 1e-4) if dtype == F32 else ROUGH)
        yield live(f"unary_above_{name}", ABOVE, lambda k: (torch.rand(k, 3) * 3 + 1.25).to(dtype), dynamic=({0: n},), tol=(1e-3, 1e-4) if dtype == F32 else ROUGH)
        yield live(f"unary_decimals_{name}", {"aten::round.decimals_out": lambda x: torch.round(x, decimals=1),
                                              "aten::round.decimals_out tens": lambda x: torch.round(x * 20, decimals=-1)},
                   lambda k: (ints(-90, 90, k, 3).float() / 8).to(dtype), dynamic=({0: n},), tol=tol)
        yield live(f"unary_exp2_{name}", {"aten::exp2.out": torch.exp2}, lambda k: rand(k, 3, dtype=dtype), dynamic=({0: n},), tol=tol)
        yield live(f"logit_{name}", {"aten::logit.out": lambda x: torch.logit(x, 1e-2)}, lambda k: (torch.rand(k, 3) * 0.8 + 0.1).to(dtype), True,
                   dynamic=({0: n},), tol=(1e-3, 1e-3) if dtype == F32 else (3e-3, 4e-3))
    yield live("unary_half", UNARY, lambda k: rand(k, 3, dtype=F16, scale=1.5) + 0.0625, dynamic=({0: n},), tol=halves(TOL))
    yield live("unary_new_half", UNARY_NEW, lambda k: rand(k, 3, dtype=F16), dynamic=({0: n},), tol=ROUGH)
    yield live("unary_positive_half", POSITIVE, lambda k: rand(k, 3, dtype=F16).abs() + 0.125, dynamic=({0: n},), tol=ROUGH)
    kinds = {"aten::isinf.out": torch.isinf, "aten::isnan.out": torch.isnan}
    for dtype in (F32, F16):
        yield live(f"is_special_{word(dtype)}", kinds, lambda k: (rand(k, 3) / ints(0, 1, k, 3)).to(dtype), dynamic=({0: n},))
    for dtype in (I32, I64):
        yield live(f"bitwise_not_{word(dtype)}", {"aten::bitwise_not.out": torch.bitwise_not}, lambda k: ints(-9, 9, k, 3, dtype=dtype), dynamic=({0: n},))
        yield live(f"to_float_{word(dtype)}", {"aten::sqrt.out": torch.sqrt, "aten::exp.out": torch.exp, "aten::sin.out": torch.sin,
                                               "aten::sigmoid.out": torch.sigmoid, "aten::log.out": torch.log}, lambda k: ints(1, 6, k, 3, dtype=dtype),
                   dynamic=({0: n},), tol=(1e-4, 2e-4))


def binary():
    both = ({0: n}, None)
    yield live("binary_half", {**BINARY}, lambda k: (rand(k, 3, dtype=F16), rand(3, dtype=F16)), dynamic=both, tol=ROUGH)
    yield live("compare_half", COMPARED, lambda k: (ints(-2, 2, k, 3).to(F16), ints(-2, 2, 3).to(F16)), dynamic=both)
    for dtype in (F32, F16):
        pairs = lambda k: ((ints(-40, 40, k, 3) + 0.5).to(dtype), nonzero(ints(-7, 7, 3)).to(dtype))
        yield live(f"div_{word(dtype)}", DIVISIONS, pairs, dynamic=both, tol=(1e-6, 1e-7) if dtype == F32 else ROUGH)
        yield live(f"remainder_{word(dtype)}", REMAINDERS, pairs, dynamic=both, tol=(1e-5, 1e-5) if dtype == F32 else ROUGH)
        yield live(f"atan2_{word(dtype)}", {"aten::atan2.out": torch.atan2}, lambda k: (rand(k, 3, dtype=dtype), rand(3, dtype=dtype) + 0.125), dynamic=both,
                   tol=(1e-3, 1e-4) if dtype == F32 else ROUGH)
        yield live(f"clamp_tensor_{word(dtype)}", {"aten::clamp.Tensor_out": lambda x, a, b: torch.clamp(x, a, b)},
                   lambda k: (rand(k, 3, dtype=dtype), rand(3, dtype=dtype) - 1, rand(k, 1, dtype=dtype) + 1), dynamic=({0: n}, None, {0: n}))
        yield live(f"masked_fill_{word(dtype)}", {"aten::masked_fill.Scalar_out": lambda x, m: aten.masked_fill.Scalar(x, m, -1e4)},
                   lambda k: (rand(k, 3, dtype=dtype), bools(3)), True, dynamic=both)
    yield live("scalars_half", SCALARS, lambda k: rand(k, 3, dtype=F16), dynamic=({0: n},), tol=ROUGH)
    yield live("compare_scalars_half", COMPARED_SCALARS, lambda k: ints(-2, 2, k, 3).to(F16), dynamic=({0: n},))
    yield live("scalars_new_half", SCALARS_NEW, lambda k: ints(-9, 9, k, 3).to(F16), True, dynamic=({0: n},), tol=ROUGH)
    for dtype in (I32, I64):
        yield live(f"shift_{word(dtype)}", SHIFTS, lambda k: (ints(-40, 40, k, 3, dtype=dtype), ints(0, 6, 3, dtype=dtype)), dynamic=both)
        yield live(f"shift_operators_{word(dtype)}", {"aten::__lshift__.Scalar_out": lambda x, y: x << 2, "aten::__rshift__.Scalar_out": lambda x, y: x >> 1,
                                                      "aten::__lshift__.Tensor_out": lambda x, y: x << y, "aten::__rshift__.Tensor_out": lambda x, y: x >> y},
                   lambda k: (ints(-40, 40, k, 3, dtype=dtype), ints(0, 6, 3, dtype=dtype)), dynamic=both)
        yield live(f"where_{word(dtype)}", {"aten::where.self_out": torch.where}, lambda k: (bools(k, 1), ints(-9, 9, 3, dtype=dtype), ints(-9, 9, k, 3, dtype=dtype)),
                   dynamic=({0: n}, None, {0: n}))
        yield live(f"clamp_tensor_{word(dtype)}", {"aten::clamp.Tensor_out": lambda x, a, b: torch.clamp(x, a, b)},
                   lambda k: (ints(-9, 9, k, 3, dtype=dtype), ints(-5, 0, 3, dtype=dtype), ints(0, 5, 3, dtype=dtype)), dynamic=({0: n}, None, None))
        yield live(f"masked_fill_{word(dtype)}", {"aten::masked_fill.Scalar_out": lambda x, m: aten.masked_fill.Scalar(x, m, -3)},
                   lambda k: (ints(-9, 9, k, 3, dtype=dtype), bools(3)), True, dynamic=both)
    yield live("where_half", {"aten::where.self_out": torch.where}, lambda k: (bools(k, 1), rand(3, dtype=F16), rand(k, 3, dtype=F16)), dynamic=({0: n}, None, {0: n}))
    yield live("bits_bool", {k: BITS[k] for k in list(BITS)[:2]} | {k: BITS_NEW[k] for k in list(BITS_NEW)[:1]}, lambda k: (bools(k, 3), bools(3)), dynamic=both)


def reductions():
    yield live("reduce_half", REDUCED, lambda k: rand(3, k, 5, dtype=F16), dynamic=({1: n},), tol=ROUGH)
    whole_numbers = {k: f for k, f in REDUCED.items() if "mean" not in k and "softmax" not in k}
    for dtype in (I32, I64):
        yield live(f"reduce_{word(dtype)}", whole_numbers, lambda k: ints(-9, 9, 3, k, 5, dtype=dtype), dynamic=({1: n},))
        yield live(f"products_{word(dtype)}", PRODUCTS, lambda k: ints(1, 2, k, 3, dtype=dtype), dynamic=({0: n},))
        yield live(f"cumsum_{word(dtype)}", {"aten::cumsum.out": lambda x: x.cumsum(0), "aten::cumsum.out last": lambda x: x.cumsum(-1)},
                   lambda k: ints(-9, 9, k, 3, dtype=dtype), dynamic=({0: n},))
        yield live(f"topk_{word(dtype)}", {"aten::topk.values": lambda x: torch.topk(x, 3)[0]}, lambda k: ints(-90, 90, k, 7, dtype=dtype), dynamic=({0: n},))
    for dtype in (F32, F16):
        tol = NEAR if dtype == F32 else ROUGH
        yield live(f"products_{word(dtype)}", PRODUCTS, lambda k: (1 + ints(-4, 4, k, 3) / 16).to(dtype), dynamic=({0: n},), tol=tol)
        yield live(f"topk_{word(dtype)}", {"aten::topk.values": lambda x: torch.topk(x, 3)}, lambda k: torch.stack([torch.randperm(7) for _ in range(k)]).to(dtype),
                   dynamic=({0: n},))
        yield live(f"mean_dtype_{word(dtype)}", {"aten::mean.dtype_out": lambda x: aten.mean(x)}, lambda k: rand(k, 3, dtype=dtype), dynamic=({0: n},), tol=tol)
        yield live(f"var_{word(dtype)}", {"aten::var.out": lambda x: aten.var.dim(x, [1], True, False)}, lambda k: rand(k, 5, dtype=dtype),
                   dynamic=({0: n},), keep=(aten.var.dim,), tol=tol)
    yield live("moments_half", MOMENTS, lambda k: rand(3, k + 1, 5, dtype=F16), dynamic=({1: Dim("m", min=2, max=10)},), tol=ROUGH)
    yield live("extremes_half", EXTREMES, lambda k: rand(3, k, 5, dtype=F16), dynamic=({1: n},))
    yield live("largest_half", LARGEST, lambda k: rand(3, k, 5, dtype=F16), dynamic=({1: n},))
    yield live("softmax_half", {"aten::_softmax.out": lambda x: F.softmax(x, -1), "aten::_log_softmax.out": lambda x: F.log_softmax(x, 1)},
               lambda k: rand(2, k, 5, dtype=F16), dynamic=({1: n},), tol=ROUGH)


def moves():
    for dtype in (F16, I32):
        yield live(f"move_{word(dtype)}", MOVED, lambda k: ints(-9, 9, k, 3, 5).to(dtype), dynamic=({0: n},))
    for label, function in MOVED_NEW.items():
        short = label.split("::")[1].split(".")[0] + ("_" + label.split(" ")[1] if " " in label else "")
        for dtype in (F32, F16, I64):
            yield live(f"{short}_{word(dtype)}", {label: function}, lambda k: ints(-9, 9, k + 2, 4, 5).to(dtype), True, dynamic=({0: Dim("m", min=3, max=11)},))


def quantized():
    """Where an application links ExecuTorch's kernels for them."""
    import executorch.kernels.quantized  # noqa: F401, registers the out variants
    import torch.ao.quantization.fx._decomposed  # noqa: F401, registers the operators
    q, row = torch.ops.quantized_decomposed, ({0: n},)
    scales, zeros = torch.tensor([0.25, 0.5, 0.125, 1, 0.0625]), torch.tensor([0, 3, -5, 7, -1])
    name = "quantized_decomposed::{}".format
    for dtype, low, high in ((I8, -128, 127), (U8, 0, 255)):
        zero = 3 if dtype == I8 else 130
        whole_tensor = {
            name("quantize_per_tensor.out"): lambda x: q.quantize_per_tensor(x, 0.125, zero, low, high, dtype),
            name("dequantize_per_tensor.out"): lambda x: q.dequantize_per_tensor(q.quantize_per_tensor(x, 0.125, zero, low, high, dtype), 0.125, zero, low,
                                                                                 high, dtype),
        }
        yield live(f"quantize_{word(dtype)}", whole_tensor, lambda k: rand(k, 5, scale=3), dynamic=row)
    one, three = torch.tensor([0.125]), torch.tensor([3])
    by_tensor = {
        name("quantize_per_tensor.Tensor_out"): lambda x: q.quantize_per_tensor.tensor(x, one, three, -128, 127, I8),
        name("dequantize_per_tensor.Tensor_out"): lambda x: q.dequantize_per_tensor.tensor(q.quantize_per_tensor.tensor(x, one, three, -128, 127, I8), one, three,
                                                                                           -128, 127, I8),
    }
    by_channel = {
        name("quantize_per_channel.out"): lambda x: q.quantize_per_channel(x, scales, zeros, 1, -128, 127, I8),
        name("dequantize_per_channel.out"): lambda x: q.dequantize_per_channel(q.quantize_per_channel(x, scales, zeros, 1, -128, 127, I8), scales, zeros, 1,
                                                                               -128, 127, I8),
    }
    yield live("quantize_by_tensors", by_tensor, lambda k: rand(k, 5, scale=3), dynamic=row)
    yield live("quantize_per_channel", by_channel, lambda k: rand(k, 5, scale=3), dynamic=row)
    yield live("choose_qparams", {name("choose_qparams.Tensor_out"): lambda x: q.choose_qparams.tensor(x, -128, 127, 1e-5, I8)}, lambda k: rand(k, 5),
               dynamic=row, tol=NEAR)

    def per_token(x):
        scale, zero = q.choose_qparams_per_token_asymmetric(x, I8)
        codes = q.quantize_per_token(x, scale, zero, -128, 127, I8)
        return q.dequantize_per_token(codes, scale, zero, -128, 127, I8, F32)

    yield live("quantize_per_token", {name("dequantize_per_token.out"): per_token}, lambda k: rand(1, k, 5), dynamic=({1: n},), tol=(1e-3, 2e-2),
               names=(name("choose_qparams_per_token_asymmetric.out"), name("quantize_per_token.out")))


def forms():
    for family in (unary, binary, reductions, moves, quantized):
        yield from family()
