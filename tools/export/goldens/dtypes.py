"""Operators of the partitioner with the dtypes that the other families leave out, halves above all, and with live shapes."""
import torch
import torch.nn.functional as F
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from . import portable as p
from .attention import Uncached, Update
from .dense import HALF, Dynamic, Embedding4, Parameters, PerChannel, kind
from .elementwise import DIVISIONS, POSITIVE, POWERS, UNARY_OTHERS, UNARY_TOL, halves, nonzero, quotients
from .form import BOOL, F16, F32, I8, I32, I64, Form, bools, ints, over, rand, word
from .movement import some
from .others import POOLS, Backward, BatchStatistics, inner, inside, operator
from .quantized import Affine, Conv, Linear, PerChannel as ByChannel, Static, decomposed, settled
from .spatial import CLAMPED, CONV, Then, conv
from .whole import Loss

aten, N, SIZES = edge.edge.aten, Dim("n", min=1, max=9), (4, 1, 9, 2, 7)
OTHERS = (F16, I32, BOOL)  # than float32


def grows(name, functions, make, dynamic=({0: N},), **how):
    return Form(name, functions, over(SIZES, make), dynamic=dynamic, **how)


def elementwise():
    yield grows("unary/positive_live_half", POSITIVE, lambda k: rand(k, 3, dtype=F16).abs() + 0.125, tol=halves(UNARY_TOL))
    yield grows("binary/div_live_half", DIVISIONS, lambda k: quotients((k, 1, 3), (5, 1), F16), ({0: N}, None))
    yield grows("binary/pow_live_half", POWERS, lambda k: (rand(k, 3, dtype=F16).abs() + 0.25, rand(k, 3, dtype=F16)), ({0: N}, {0: N}),
                tol=(2e-3, 1e-4))
    for dtype in (I32, I64):
        pairs = lambda k: (ints(-40, 40, k, 3, dtype=dtype), nonzero(ints(-7, 7, 3, dtype=dtype)))
        yield grows(f"binary/ratio_{word(dtype)}", {"aten.div.Tensor": torch.div}, pairs, ({0: N}, None), tol=(1e-6, 1e-7))
    shrink = {"aten.hardshrink.default": F.leaky_relu, "aten.hardshrink.default 0.25": lambda x: F.leaky_relu(x, 0.25)}
    yield grows("unary/hardshrink_half", shrink, lambda k: rand(k, 5, dtype=F16), swap={aten.leaky_relu.default: aten.hardshrink.default},
                golden=lambda x: (F.hardshrink(x), F.hardshrink(x, 0.25)))


def another(tensor):
    """The same with one operation more, so that a view is none."""
    return tensor.logical_not() if tensor.dtype == BOOL else tensor * 1


def movement():
    for dtype in OTHERS:
        yield grows(f"move/permute_view_{word(dtype)}", {"aten.permute.default": lambda x: another(x.permute(2, 0, 1))},
                    lambda k: some(k, 2, 3, dtype=dtype), swap={aten.permute_copy.default: aten.permute.default})
        yield Form(f"move/t_copy_{word(dtype)}", {"aten.t_copy.default": lambda x: another(x.t())}, [(some(5, 3, dtype=dtype),)] * 2,
                   swap={aten.permute_copy.default: (aten.t_copy.default, lambda args: args[:1])})
        made = {
            "aten.ones.default": lambda x: torch.ones(3, dtype=dtype),
            "aten.ones_like.default": lambda x: torch.ones_like(x),
            "aten.zeros.default": lambda x: torch.zeros(2, 3, dtype=dtype),
            "aten.zeros_like.default": lambda x: torch.zeros_like(x),
        }
        yield Form(f"fill/kept_{word(dtype)}", made, [(some(3, 5, dtype=dtype),)], keep=tuple(getattr(torch.ops.aten, k.split(".")[1]).default for k in made))
    for dtype, value in ((F16, 2.5), (I32, 7)):
        yield Form(f"fill/scalar_tensor_{word(dtype)}", {"aten.scalar_tensor.default": lambda x: torch.full((), value, dtype=dtype) + x},
                   [(some(3, 5, dtype=dtype),)],
                   swap={aten.full.default: (aten.scalar_tensor.default, lambda args: args[1:2])})
    yield grows("fill/live_half", {"aten.arange.start_step": lambda x: torch.arange(x.shape[0], dtype=F16) * x[:, 0]}, lambda k: rand(k, 3, dtype=F16))
    yield grows("move/pixel_shuffle_live_half", {"aten.pixel_shuffle.default": lambda x: F.pixel_shuffle(x, 2)},
                lambda k: rand(1, 4, k, 3, dtype=F16), ({2: N},))
    yield Form("unfold/live_half", {"aten.unfold_copy.default": lambda x: x.unfold(1, 3, 2)},
               over((8, 5, 11, 7, 6), lambda k: rand(2, k, 3, dtype=F16)), dynamic=({1: Dim("w", min=5, max=11)},))


def others():
    """Those that the partitioner leaves outside."""
    close, live = (2e-3, 1e-3), {"dynamic": ({0: N},)}
    some_rows = over(SIZES, lambda k: rand(k, 3, scale=1.5, dtype=F16) + 0.0625)
    yield inside("unary_half", p.UNARY_NEW, some_rows, tol=close, **live)
    yield inside("unary_unit_half", p.UNIT, [((torch.rand(3, 5) * 1.9 - 0.95).half(),)], tol=close)
    yield inside("unary_above_half", p.ABOVE, [((torch.rand(3, 5) * 3 + 1.125).half(),)], tol=close)
    kept = (torch.ops.aten.silu.default, torch.ops.aten.hardsigmoid.default)
    named = {**UNARY_OTHERS, "aten.log.default": lambda x: torch.log(x.abs())}
    yield Form("unary/others_half", named, some_rows, tol=close, keep=kept,
               extend=tuple(getattr(aten, k.split(".")[1]).default for k in named), **live)
    yield inside("scalars_half", p.SCALARS, over(SIZES, lambda k: ints(-5, 5, k, 3).half()), tol=close, **live)
    yield inside("scalars_whole_half", p.SCALARS_NEW, over(SIZES, lambda k: ints(-5, 5, k, 3).half()), whole=True, tol=close, **live)
    pairs = lambda k: ((ints(-40, 40, k, 3) + 0.5).half(), nonzero(ints(-7, 7, 3)).half())
    yield grown("remainder_half", p.REMAINDERS, pairs, tol=close)
    yield grown("atan2_half", {"aten::atan2.out": torch.atan2}, pairs, tol=close)
    yield grown("floor_divide_half", {"aten::floor_divide.out": torch.ops.aten.floor_divide}, pairs, whole=True)
    yield inside("pow_scalar_half", {"aten::pow.Scalar_out": lambda x: torch.pow(2.5, x)}, some_rows, tol=close, **live)
    lines = {"aten::cumsum.out": lambda x: x.cumsum(1), "aten::topk.values": lambda x: torch.topk(x, 2), **p.EXTREMES}
    order = lambda k: torch.stack([torch.randperm(15).reshape(3, 5) for _ in range(k)], 1).half()
    yield Form("others/lines_half", {inner(k): f for k, f in lines.items()}, over(SIZES, order), dynamic=({1: N},),
               extend=tuple({operator(aten, inner(k)) for k in lines}))
    yield inside("moments_half", p.MOMENTS, over((4, 2, 9, 3, 7), lambda k: rand(3, k, 5, dtype=F16)), dynamic=({1: Dim("m", min=2, max=9)},), tol=close)
    put = {"aten::index_put.out": lambda x, i, v: torch.ops.aten.index_put(x, [i], v),
           "aten::index_put.out add": lambda x, i, v: torch.ops.aten.index_put(x, [i], v, True)}
    yield inside("index_put_half", put, [(rand(5, 3, dtype=F16), torch.tensor([4, 0, 3]), rand(3, 3, dtype=F16))])
    scatters = {"aten::scatter.src_out": lambda x, i, v: torch.ops.aten.scatter.src(x, 0, i, v),
                "aten::scatter.value_out": lambda x, i, v: torch.ops.aten.scatter.value(x, 0, i, 7),
                "aten::scatter_add.out": lambda x, i, v: torch.scatter_add(x, 0, i, v)}
    unique = torch.stack([torch.randperm(5)[:2] for _ in range(3)], 1)
    yield inside("scatter_half", scatters, [(rand(5, 3, dtype=F16), unique, rand(2, 3, dtype=F16))])
    more = {"aten.maximum.default": torch.maximum, "aten.ne.Tensor": torch.ne}
    yield Form("binary/others_half", more, over(SIZES, lambda k: (ints(-3, 3, k, 3).half(), ints(-3, 3, 3).half())), dynamic=({0: N}, None),
               extend=(aten.maximum.default, aten.ne.Tensor))
    yield inside("var_half", {"aten::var.out": lambda x: torch.ops.aten.var.dim(x, [1], True, False)}, [(rand(3, 5, dtype=F16),)], whole=True, tol=close)
    for label, target in {"aten.transpose_copy.int": aten.transpose_copy.int, "aten.transpose.int": aten.transpose.int}.items():
        yield grows(f"move/{label.split('.')[1]}_half", {label: lambda x: x.transpose(0, 2) * 1}, lambda k: rand(k, 2, 3, dtype=F16), extend=(target,),
                    swap={aten.permute_copy.default: (target, lambda args: (args[0], 0, -1))})
    largest = lambda x, g: torch.ops.aten.max_pool2d_with_indices_backward(g, x, [2, 2], [2, 2], [0, 0], [1, 1], False,
                                                                          F.max_pool2d(x, 2, return_indices=True)[1])
    yield inside("max_pool2d_backward_half", {"aten::max_pool2d_with_indices_backward.grad_input": largest},
                 [(torch.randperm(40).half().reshape(1, 2, 4, 5), rand(1, 2, 2, 2, dtype=F16))])
    yield Form("others/batch_norm_no_stats_half", BatchStatistics().half(), [(rand(2, 4, 3, 3, dtype=F16),)],
               ("aten._native_batch_norm_legit.no_stats",), extend=(aten._native_batch_norm_legit.no_stats,), tol=(4e-3, 4e-3))
    for label, (function, shape) in POOLS.items():
        short = label.split("::")[1].replace(".vec_out", "_vec").split(".")[0].strip("_")
        forced = "avg_pool3d" in label or "bilinear" in label  # PyTorch has these for floats alone
        yield inside(f"{short}_{kind(F16, forced)}", {label: function}, [(rand(*shape, dtype=F32 if forced else F16),)], whole=True, fp16=forced, tol=close)


def grown(name, functions, make, **how):
    return inside(name, functions, over(SIZES, make), dynamic=({0: N}, None), **how)


def stepped(rows, width):
    """Rows whose scale and zero point for codes of 8 bits are the same in halves and in floats."""
    low = ints(-180, -40, rows, 1)
    x = torch.cat([low, low + 255, low + ints(0, 255, rows, width - 2)], 1)
    return x.float() / 2.0 ** ints(5, 7, rows, 1)


def products():
    sums = {"aten.addmm.default": torch.addmm, "aten.addmm.default factors": lambda b, x, y: torch.addmm(b, x, y, beta=0.5, alpha=2)}
    yield grows("linear/addmm_half", sums, lambda k: (rand(7, dtype=F16), rand(k, 5, dtype=F16), rand(5, 7, dtype=F16)), (None, {0: N}, None), tol=HALF)
    for bits, name in ((8, "aten._weight_int8pack_mm.default"), (4, "et_vk.linear_qcs4w.default")):
        short = "int8pack_mm" if bits == 8 else "qcs4w"
        yield Form(f"linear_{short}/live_float16", PerChannel(7, 12, bits, True), over(SIZES, lambda m: rand(m, 12)), (name,), ({0: N},), fp16=True, tol=HALF)
    yield Form("linear_dq8/live_float16", Dynamic(12, 64, 32), over(SIZES, lambda m: stepped(m, 64)), ("et_vk.linear_dq8ca_q4gsw.default",), ({0: N},),
               fp16=True, tol=(4e-3, 2e-2))
    yield Form("embedding/4bit_half", Embedding4(9, 24, 1, F16), [(ints(0, 8, 5),)], ("quantized_decomposed.embedding_4bit.dtype",), tol=HALF)
    yield Form("embedding/4bit_live", Embedding4(9, 24, 1), over(SIZES, lambda k: ints(0, 8, k)), ("quantized_decomposed.embedding_4bit.dtype",), ({0: N},))


def planes():
    h, w = Dim("h", min=4, max=9), Dim("w", min=4, max=11)
    some_planes = over(((5, 7), (4, 4), (9, 11), (4, 6), (8, 5)), lambda s: rand(1, 3, *s, dtype=F16))
    both = {"dynamic": ({2: h, 3: w},)}
    average = {"aten.avg_pool2d.default": lambda x: F.avg_pool2d(x, 2),
               "aten.avg_pool2d.default inside": lambda x: F.avg_pool2d(x, (2, 3), stride=2, padding=1, count_include_pad=False)}
    yield Form("pool/average_live_half", average, some_planes, tol=HALF, **both)
    largest = {"aten.max_pool2d_with_indices.default": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True)}
    yield Form("pool/max_live_half", largest, some_planes, **both)
    for dtype in (F32, F16):
        yield Form(f"pool/max_alone_live_{word(dtype)}", {"aten.max_pool2d.default": lambda x: F.max_pool2d(x, 2)},
                   [(x.to(dtype),) for (x,) in some_planes], keep=(torch.ops.aten.max_pool2d.default,), **both)
    yield Form("conv2d/live_half", conv(torch.nn.Conv2d, 3, 5, 3, padding=1, dtype=F16), some_planes, CONV, tol=HALF, **both)
    yield Form("conv_with_clamp/live_half", Then(conv(torch.nn.Conv2d, 3, 4, 3, dtype=F16), F.relu), some_planes, CLAMPED, tol=HALF, **both)
    lines = over((8, 4, 17, 5, 16), lambda k: rand(1, 3, k, dtype=F16))
    yield Form("conv1d/live_half", conv(torch.nn.Conv1d, 3, 5, 3, dtype=F16), lines, CONV, ({2: Dim("n", min=4, max=17)},), tol=HALF)
    plain = torch.nn.BatchNorm2d(3, affine=False).half()
    plain.running_mean, plain.running_var = rand(3, dtype=F16), rand(3, dtype=F16).abs() + 0.25
    yield Form("batch_norm/live_half", plain.eval(), some_planes, ("aten._native_batch_norm_legit_no_training.default",), tol=HALF, **both)
    sample = {"aten.grid_sampler_2d.default": lambda x, g: F.grid_sample(x, g, "bilinear", "border", align_corners=True)}
    yield grows("grid/sampler_live_half", sample, lambda k: (rand(1, 2, 4, 5, dtype=F16), (torch.rand(1, k, 3, 2) * 3 - 1.5).half()), (None, {1: N}),
                tol=(4e-3, 4e-3))


def attention():
    calls = [(rand(1, s, 2, 6), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 8), (2, 1), (7, 10))]
    yield Form("cache/update_float16", Update(17, 2, 6), calls, ("update_cache.default",), ({1: Dim("n", min=1, max=9)}, None), fp16=True)
    calls = [(rand(1, s, 4, 8), rand(1, 17, 2, 8), rand(1, 17, 2, 8), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 8), (2, 15), (7, 3))]
    yield Form("cache/custom_sdpa_float16", Uncached(17, True, False), calls, ("llama.custom_sdpa.default",),
               ({1: Dim("n", min=1, max=9)}, None, None, None), unfuse=("causal_sdpa",), fp16=True, tol=(4e-3, 2e-3))


def steps(scale, *shape):
    """Halves that are clearly nearest to one code."""
    return ((ints(-100, 100, *shape) + torch.rand(shape) * 0.25) * scale).half()


def eight_bits():
    qd, ao = "quantized_decomposed", "torchao"
    layers = {"q8ta_linear": (Linear(7, 16), (3, 16)), "q8ta_linear_gemv": (Linear(7, 16), (1, 16)), "q8ta_conv2d": (Conv(5, 3, 3, 3), (1, 3, 5, 6)),
              "q8ta_conv2d_pw": (Conv(7, 5, 1, 1), (1, 5, 3, 5)), "q8ta_conv2d_dw": (Conv(4, 1, 3, 3, groups=4, padding=1), (1, 4, 5, 7)),
              "q8ta_conv2d_transposed": (Conv(3, 5, 3, 3, transposed=True), (1, 3, 4, 5))}
    for name, (layer, shape) in layers.items():
        layer.scales = 2.0 ** -ints(6, 8, *layer.scales.shape).float()  # the same in halves
        module = Static(layer, out=(0.35, 2))
        yield Form(f"{name}/float16", module, [settled(module, shape)], (f"et_vk.{name}.default",), fp16=True, tol=(1e-3, 0.08))
    module = Static(Linear(7, 16), end=False)
    yield Form("linear_q8ta_q8csw/float16", module, [settled(module, (3, 16))], ("et_vk.linear_q8ta_q8csw.default",), fp16=True, tol=(4e-3, 4e-3))
    by_channel = ByChannel(3, 1, decomposed.quantize_per_channel)
    by_channel.scales, by_channel.zeros = torch.tensor([0.0625, 0.125, 0.03125]), torch.tensor([3, -5, 0])
    yield Form("quantize/per_channel_half", by_channel, over(SIZES, lambda k: steps(0.03125, k, 3, 5)), (f"{qd}.quantize_per_channel.default",), ({0: N},))
    choices = {f"{qd}.choose_qparams_per_token_asymmetric.default": lambda x: decomposed.choose_qparams_per_token_asymmetric(x, I8),
               f"{qd}.choose_qparams.tensor": lambda x: decomposed.choose_qparams.tensor(x, -128, 127, 1e-6, I8)}
    yield grows("quantize/choose_qparams_live", choices, lambda k: rand(k, 8))
    yield grows("quantize/choose_qparams_float16", choices, lambda k: stepped(k, 8), fp16=True)
    codes, scale, zero = ints(-128, 127, 3, 8, dtype=I8), torch.tensor([[0.0625], [0.125], [0.03125]]), torch.tensor([[3], [-5], [0]])
    tokens = {f"{qd}.quantize_per_token.default": lambda x, c, s, z: decomposed.quantize_per_token(x, s, z, -128, 127, I8),
              f"{qd}.dequantize_per_token.default": lambda x, c, s, z: decomposed.dequantize_per_token(c, s, z, -128, 127, I8, F32)}
    yield Form("quantize/per_token_float16", tokens, [(steps(0.03125, 3, 8).float(), codes, scale.double(), zero)], fp16=True, tol=HALF)
    whole = {f"{qd}.quantize_per_tensor.tensor": lambda x, c, s, z: decomposed.quantize_per_tensor.tensor(x, s, z, -128, 127, I8),
             f"{qd}.dequantize_per_tensor.tensor": lambda x, c, s, z: decomposed.dequantize_per_tensor.tensor(c, s, z, -128, 127, I8)}
    yield Form("quantize/per_tensor_tensors_float16", whole, [(steps(0.03125, 3, 8).float(), codes, torch.tensor(0.0625), torch.tensor(4))], fp16=True, tol=HALF)
    back = ByChannel(3, 0, decomposed.dequantize_per_channel)
    yield Form("dequantize/per_channel_float16", back, [(codes,)], (f"{qd}.dequantize_per_channel.default",), fp16=True, tol=HALF)
    affine = Affine(torch.ops.torchao.dequantize_affine, [1, 4], 3, 2)
    yield Form("dequantize/affine_float16", affine, [(codes,)], (f"{ao}.dequantize_affine.default",), fp16=True, tol=HALF)
    yield grows("quantize/affine_parameters_live_float16", Parameters(), lambda k: stepped(k, 8), fp16=True, names=(f"{ao}.choose_qparams_affine.default",))
    rows = Affine(torch.ops.torchao.quantize_affine, [1, 8], 3, 1)
    rows.scales = torch.tensor([[0.0625], [0.125], [0.03125]])
    yield Form("quantize/affine_half", rows, [(steps(0.03125, 3, 8),)], (f"{ao}.quantize_affine.default",))


def training():
    labels = torch.tensor([2, -100, 0, 4], dtype=I32)
    yield Form("training/fused_ce_float16", Loss(), [(rand(4, 5, scale=3), labels)], ("et_vk.fused_ce.default",), fp16=True, tol=HALF)
    step = {"et_vk.linear_dW.default": torch.ops.et_vk.linear_dW}
    yield Form("training/linear_dW_half", step, [(rand(4, 5, dtype=F16), rand(4, 7, dtype=F16))], tol=HALF)
    yield Form("training/linear_q4gsw_backward_float16", Backward(), [(rand(3, 8),)], ("et_vk.linear_q4gsw_backward.default",),
               extend=(edge.edge.et_vk.linear_q4gsw_backward.default,), fp16=True, tol=(4e-3, 1e-2))
    scales = (2.0 ** -ints(1, 4, 4, 8)).half()
    yield Form("training/q4gsw_requant_half", {"et_vk.q4gsw_requant.default": lambda x, s: torch.ops.et_vk.q4gsw_requant(x, s, 4)},
               [(rand(8, 16, dtype=F16), scales)], extend=(edge.edge.et_vk.q4gsw_requant.default,))


def forms():
    for family in (elementwise, movement, others, products, planes, attention, eight_bits, training):
        yield from family()
