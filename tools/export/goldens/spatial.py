"""Convolutions, pooling, resampling, the norms of images."""
import torch
import torch.nn.functional as F
from torch.export import Dim

from .dense import HALF, NEAR, kind, near
from .form import F16, F32, Form, over, rand
from .reduction import FLOATS

CONV = ("aten.convolution.default",)
CLAMPED = ("et_vk.conv_with_clamp.default",)


def conv(kind, *args, dtype=F32, **kwargs):
    """A layer with weights that are halves."""
    return kind(*args, **kwargs).half().to(dtype)


def conv2d():
    C, T = torch.nn.Conv2d, torch.nn.ConvTranspose2d
    layers = {
        "plain_3x3": (conv(C, 3, 5, 3), (1, 3, 6, 7)),
        "padded": (conv(C, 3, 5, 3, padding=1), (1, 3, 5, 7)),
        "strided": (conv(C, 4, 6, 3, stride=2, padding=1), (1, 4, 7, 9)),
        "dilated": (conv(C, 2, 3, 3, dilation=2, padding=(2, 1)), (1, 2, 7, 8)),
        "oblong": (conv(C, 3, 4, (1, 5), stride=(2, 1), padding=(0, 2)), (1, 3, 5, 6)),
        "pointwise": (conv(C, 5, 7, 1), (1, 5, 3, 4)),
        "pointwise_strided": (conv(C, 4, 8, 1, stride=2), (1, 4, 5, 6)),
        "pointwise_padded": (conv(C, 4, 3, 1, padding=1), (1, 4, 3, 3)),
        "depthwise": (conv(C, 6, 6, 3, padding=1, groups=6), (1, 6, 5, 5)),
        "depthwise_strided": (conv(C, 5, 5, 5, stride=2, padding=2, groups=5), (1, 5, 9, 8)),
        "depthwise_doubled": (conv(C, 4, 8, 3, groups=4), (1, 4, 5, 5)),
        "grouped": (conv(C, 6, 9, 3, padding=1, groups=3), (1, 6, 5, 4)),
        "no_bias": (conv(C, 3, 4, 3, bias=False), (1, 3, 5, 5)),
        "large_kernel": (conv(C, 2, 3, 7, stride=4, padding=3), (1, 2, 11, 13)),
        "one_channel": (conv(C, 1, 1, 2), (1, 1, 4, 3)),
        "transposed": (conv(T, 3, 5, 3), (1, 3, 4, 5)),
        "transposed_strided": (conv(T, 4, 3, 3, stride=2, padding=1, output_padding=1), (1, 4, 4, 3)),
        "transposed_grouped": (conv(T, 4, 6, 2, stride=2, groups=2), (1, 4, 3, 4)),
        "transposed_dilated": (conv(T, 2, 3, (2, 3), stride=(1, 3), dilation=2, output_padding=(0, 1)), (1, 2, 3, 3)),
    }
    for name, (layer, shape) in layers.items():
        yield Form(f"conv2d/{name}", layer, [(rand(*shape),), (rand(*shape),)], CONV, tol=NEAR)
    for dtype, forced in FLOATS[1:]:
        yield Form(f"conv2d/{kind(dtype, forced)}", conv(C, 3, 5, 3, padding=1, dtype=dtype), [(rand(1, 3, 5, 7, dtype=dtype),)], CONV,
                   fp16=forced, tol=HALF)
        yield Form(f"conv2d/depthwise_{kind(dtype, forced)}", conv(C, 6, 6, 3, padding=1, groups=6, dtype=dtype),
                   [(rand(1, 6, 5, 5, dtype=dtype),)], CONV, fp16=forced, tol=HALF)
        yield Form(f"conv2d/pointwise_{kind(dtype, forced)}", conv(C, 5, 7, 1, dtype=dtype),
                   [(rand(1, 5, 3, 5, dtype=dtype),)], CONV, fp16=forced, tol=HALF)
        yield Form(f"conv2d/transposed_{kind(dtype, forced)}", conv(T, 3, 5, 3, stride=2, dtype=dtype),
                   [(rand(1, 3, 4, 3, dtype=dtype),)], CONV, fp16=forced, tol=HALF)
    # The exporter must not have to tell whether an output's dim is 1.
    h, w = Dim("h", min=4, max=9), Dim("w", min=4, max=11)
    sizes = ((5, 6), (4, 4), (9, 11), (5, 4), (7, 10))
    yield Form("conv2d/live", conv(C, 3, 5, 3, padding=1), over(sizes, lambda s: rand(1, 3, *s)), CONV, ({2: h, 3: w},), tol=NEAR)
    yield Form("conv2d/live_depthwise", conv(C, 4, 4, 3, groups=4), over(sizes, lambda s: rand(1, 4, *s)), CONV,
               ({2: h, 3: w},), tol=NEAR)
    yield Form("conv2d/live_transposed", conv(T, 3, 4, 3, stride=2, padding=1), over(sizes, lambda s: rand(1, 3, *s)), CONV,
               ({2: h, 3: w},), tol=NEAR)
    yield Form("conv2d/rank_3", conv(C, 3, 5, 3), [(rand(3, 5, 6),)], tol=NEAR)


def conv1d():
    C, T = torch.nn.Conv1d, torch.nn.ConvTranspose1d
    layers = {
        "plain": (conv(C, 3, 5, 3), (1, 3, 8)),
        "padded": (conv(C, 3, 4, 5, padding=2, stride=2), (1, 3, 9)),
        "dilated": (conv(C, 2, 3, 3, dilation=3), (1, 2, 11)),
        "pointwise": (conv(C, 5, 7, 1), (1, 5, 6)),
        "depthwise": (conv(C, 6, 6, 3, padding=1, groups=6), (1, 6, 7)),
        "depthwise_no_bias": (conv(C, 4, 4, 4, groups=4, bias=False), (1, 4, 7)),
        "grouped": (conv(C, 4, 6, 3, groups=2), (1, 4, 7)),
        "batch": (conv(C, 3, 4, 3), (2, 3, 7)),
        "batch_pointwise": (conv(C, 3, 4, 1), (3, 3, 5)),
        "batch_depthwise": (conv(C, 4, 4, 3, groups=4), (2, 4, 5)),
    }
    for name, (layer, shape) in layers.items():
        yield Form(f"conv1d/{name}", layer, [(rand(*shape),), (rand(*shape),)], CONV, tol=NEAR)
    for dtype, forced in FLOATS[1:]:
        yield Form(f"conv1d/{kind(dtype, forced)}", conv(C, 3, 5, 3, dtype=dtype), [(rand(1, 3, 7, dtype=dtype),)], CONV, fp16=forced,
                   tol=HALF)
    n = Dim("n", min=4, max=17)
    for name, layer in (("live", conv(C, 3, 5, 3)), ("live_pointwise", conv(C, 3, 5, 1)), ("live_depthwise", conv(C, 3, 3, 3, groups=3))):
        yield Form(f"conv1d/{name}", layer, over((8, 4, 17, 5, 16), lambda k: rand(1, 3, k)), CONV, ({2: n},), tol=NEAR)


class Then(torch.nn.Module):
    def __init__(self, layer, then):
        super().__init__()
        self.layer, self.then = layer, then

    def forward(self, x):
        return self.then(self.layer(x))


def conv_with_clamp():
    C, T = torch.nn.Conv2d, torch.nn.ConvTranspose2d
    layers = {
        "relu": (Then(conv(C, 3, 5, 3, padding=1), F.relu), (1, 3, 5, 6)),
        "relu6": (Then(conv(C, 4, 6, 1), F.relu6), (1, 4, 3, 5)),
        "hardtanh": (Then(conv(C, 3, 2, 3, stride=2, bias=False), lambda x: F.hardtanh(x, -0.5, 0.25)), (1, 3, 7, 5)),
        "conv1d": (Then(conv(torch.nn.Conv1d, 3, 5, 3), F.relu), (1, 3, 7)),
        "conv1d_depthwise": (Then(conv(torch.nn.Conv1d, 4, 4, 3, groups=4), F.relu6), (1, 4, 7)),
        "transposed": (Then(conv(T, 3, 4, 3, stride=2), F.relu), (1, 3, 4, 5)),
        "grouped": (Then(conv(C, 4, 8, 3, groups=2), F.relu), (1, 4, 5, 5)),
    }
    for name, (layer, shape) in layers.items():
        yield Form(f"conv_with_clamp/{name}", layer, [(rand(*shape),), (rand(*shape, scale=8),)], CLAMPED, tol=NEAR)
    yield Form("conv_with_clamp/float16", Then(conv(C, 3, 5, 3), F.relu), [(rand(1, 3, 5, 6),)], CLAMPED, fp16=True, tol=HALF)
    yield Form("conv_with_clamp/half", Then(conv(C, 3, 5, 3, dtype=F16), F.relu6), [(rand(1, 3, 5, 6, dtype=F16),)], CLAMPED, tol=HALF)
    yield Form("conv_with_clamp/apart", Then(conv(C, 4, 4, 3, groups=4), lambda x: torch.clamp(x, -0.25, 0.5)), [(rand(1, 4, 5, 5),)],
               (*CONV, "aten.clamp.default"), tol=NEAR)
    h = Dim("h", min=4, max=9)
    yield Form("conv_with_clamp/live", Then(conv(C, 3, 4, 3), F.relu), over((5, 4, 9, 6, 8), lambda k: rand(1, 3, k, 5)), CLAMPED,
               ({2: h},), tol=NEAR)


def pools():
    average = {
        "aten.avg_pool2d.default": lambda x: F.avg_pool2d(x, 2),
        "aten.avg_pool2d.default overlapping": lambda x: F.avg_pool2d(x, 3, stride=1, padding=1),
        "aten.avg_pool2d.default inside": lambda x: F.avg_pool2d(x, (2, 3), stride=2, padding=1, count_include_pad=False),
        "aten.avg_pool2d.default ceil": lambda x: F.avg_pool2d(x, 2, stride=2, ceil_mode=True),
        "aten.avg_pool2d.default ceil inside": lambda x: F.avg_pool2d(x, 3, stride=2, padding=1, ceil_mode=True, count_include_pad=False),
        "aten.avg_pool2d.default divisor": lambda x: F.avg_pool2d(x, 2, divisor_override=3),
    }
    h, w = Dim("h", min=4, max=9), Dim("w", min=4, max=11)
    sizes = ((5, 7), (4, 4), (9, 11), (4, 6), (8, 5))
    few = {k: average[k] for k in list(average)[:3]}
    for dtype, forced in FLOATS:
        calls = [(rand(2, 3, 5, 7, dtype=dtype),)]
        yield Form(f"pool/average_{kind(dtype, forced)}", average, calls, fp16=forced, tol=near(dtype, forced))
    yield Form("pool/average_live", few, over(sizes, lambda s: rand(1, 3, *s)), dynamic=({2: h, 3: w},), tol=NEAR)
    yield Form("pool/average_rank_3", {"aten.avg_pool2d.default": lambda x: F.avg_pool2d(x, 2)}, [(rand(3, 4, 5),)], tol=NEAR)
    largest = {
        "aten.max_pool2d_with_indices.default": lambda x: F.max_pool2d(x, 2, return_indices=True),
        "aten.max_pool2d_with_indices.default overlapping": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
        "aten.max_pool2d_with_indices.default dilated": lambda x: F.max_pool2d(x, 2, 1, dilation=2, return_indices=True),
        "aten.max_pool2d_with_indices.default ceil": lambda x: F.max_pool2d(x, (2, 3), 2, ceil_mode=True, return_indices=True),
        "aten.max_pool2d_with_indices.default values": lambda x: F.max_pool2d(x, 3, 1, 1),
    }
    for dtype, forced in FLOATS:
        yield Form(f"pool/max_{kind(dtype, forced)}", largest, [(rand(2, 3, 5, 7, dtype=dtype),)], fp16=forced)
    few = {k: largest[k] for k in list(largest)[:2]}
    yield Form("pool/max_live", few, over(sizes, lambda s: rand(1, 3, *s)), dynamic=({2: h, 3: w},))
    odd = rand(1, 1, 4, 4)
    odd[0, 0, 0, 0], odd[0, 0, 3, 3] = float("nan"), -float("inf")
    yield Form("pool/max_special", few, [(odd,), (torch.full((1, 1, 4, 4), -float("inf")),), (torch.ones(1, 1, 4, 4),)])
    yield Form("pool/max_alone", {"aten.max_pool2d.default": lambda x: F.max_pool2d(x, 2)}, [(rand(1, 3, 5, 6),)],
               keep=(torch.ops.aten.max_pool2d.default,))
    yield Form("pool/adaptive", {"aten.mean.dim": lambda x: F.adaptive_avg_pool2d(x, 1)}, [(rand(1, 3, 5, 6),)], tol=NEAR)


def resampling():
    nearest = {
        "aten.upsample_nearest2d.vec": lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
        "aten.upsample_nearest2d.vec size": lambda x: F.interpolate(x, size=(7, 5), mode="nearest"),
        "aten.upsample_nearest2d.vec fraction": lambda x: F.interpolate(x, scale_factor=(1.7, 2.3), mode="nearest"),
        "aten.upsample_nearest2d.vec down": lambda x: F.interpolate(x, scale_factor=0.5, mode="nearest"),
        "aten.upsample_nearest2d.vec recomputed": lambda x: F.interpolate(x, scale_factor=1.7, mode="nearest", recompute_scale_factor=True),
    }
    bilinear = {
        "aten.upsample_bilinear2d.vec": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        "aten.upsample_bilinear2d.vec aligned": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
        "aten.upsample_bilinear2d.vec size": lambda x: F.interpolate(x, size=(7, 9), mode="bilinear"),
        "aten.upsample_bilinear2d.vec size aligned": lambda x: F.interpolate(x, size=(1, 9), mode="bilinear", align_corners=True),
        "aten.upsample_bilinear2d.vec fraction": lambda x: F.interpolate(x, scale_factor=(1.7, 2.3), mode="bilinear"),
        "aten.upsample_bilinear2d.vec down": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"),
    }
    for dtype, forced in FLOATS:
        x = rand(2, 3, 5, 4, dtype=dtype)
        yield Form(f"upsample/nearest_{kind(dtype, forced)}", nearest, [(x,)], fp16=forced)
        yield Form(f"upsample/bilinear_{kind(dtype, forced)}", bilinear, [(x,)], fp16=forced, tol=near(dtype, forced))
    # PyTorch looks at the sizes first: a dim that stays is copied, one that doubles is doubled, whatever the factor.
    same = {"aten.upsample_nearest2d.vec stays": lambda x: F.interpolate(x, scale_factor=(1.7, 1.2), mode="nearest"),
            "aten.upsample_nearest2d.vec doubles": lambda x: F.interpolate(x, scale_factor=(2.15, 2.2), mode="nearest")}
    yield Form("upsample/nearest_sizes_first", same, [(rand(1, 2, 5, 4),)])
    sample = {"aten.grid_sampler_2d.default": lambda x, g: F.grid_sample(x, g, "bilinear", "border", align_corners=True)}
    far = lambda h, w: (torch.rand(1, h, w, 2) * 3 - 1.5).half().float()
    yield Form("grid/sampler_float32", sample, [(rand(1, 3, 5, 4), far(3, 7)), (rand(1, 3, 5, 4), far(3, 7))], tol=NEAR)
    yield Form("grid/sampler_half", sample, [(rand(1, 3, 5, 4, dtype=F16), far(3, 7).half())], tol=(4e-3, 4e-3))
    yield Form("grid/sampler_float16", sample, [(rand(1, 3, 5, 4), far(3, 7))], fp16=True, tol=(4e-3, 4e-3))
    h = Dim("h", min=1, max=9)
    yield Form("grid/sampler_live", sample, over((4, 1, 9, 2, 7), lambda k: (rand(1, 2, 4, 5), far(k, 3))), dynamic=(None, {1: h}), tol=NEAR)
    priors = {"et_vk.grid_priors.default": lambda x: torch.ops.et_vk.grid_priors(x, 8, 0.5)}
    yield Form("grid/priors", priors, [(rand(1, 2, 3, 5),)])
    yield Form("grid/priors_float16", {"et_vk.grid_priors.default": lambda x: torch.ops.et_vk.grid_priors(x, 3, 0.25)}, [(rand(1, 2, 4, 3),)], fp16=True)


def image_norms():
    for affine in (True, False):
        layer = torch.nn.GroupNorm(3, 6, affine=affine)
        if affine:
            layer.weight.data, layer.bias.data = rand(6), rand(6)
        yield Form(f"group_norm/{'affine' if affine else 'plain'}", layer, [(rand(2, 6, 3, 5),), (rand(2, 6, 3, 5) + 100,)],
                   ("aten.native_group_norm.default",), tol=(1e-3, 1e-3))
    layer = torch.nn.GroupNorm(2, 4)
    layer.weight.data, layer.bias.data = rand(4), rand(4)
    yield Form("group_norm/rank_3", layer, [(rand(2, 4, 7),)], ("aten.native_group_norm.default",), tol=NEAR)
    yield Form("group_norm/float16", layer, [(rand(1, 4, 3, 3),)], ("aten.native_group_norm.default",), fp16=True, tol=HALF)
    yield Form("group_norm/one_group", torch.nn.GroupNorm(1, 5), [(rand(1, 5, 3, 3),)], ("aten.native_group_norm.default",), tol=NEAR)
    names = ("aten._native_batch_norm_legit_no_training.default",)
    for dtype, forced in FLOATS:
        layer = torch.nn.BatchNorm2d(5)
        layer.weight.data, layer.bias.data = rand(5), rand(5)
        layer.running_mean, layer.running_var = rand(5), rand(5).abs() + 0.25
        yield Form(f"batch_norm/{kind(dtype, forced)}", layer.eval().to(dtype), [(rand(2, 5, 3, 4, dtype=dtype),)], names, fp16=forced,
                   tol=near(dtype, forced))
    plain = torch.nn.BatchNorm2d(4, affine=False)
    plain.running_mean, plain.running_var = rand(4), rand(4).abs() + 0.25
    yield Form("batch_norm/plain", plain.eval(), [(rand(1, 4, 3, 3),)], names, tol=NEAR)
    h = Dim("h", min=1, max=9)
    yield Form("batch_norm/live", plain.eval(), over((4, 1, 9, 2, 7), lambda k: rand(1, 4, k, 3)), names, ({2: h},), tol=NEAR)
    line = torch.nn.BatchNorm1d(4)
    line.running_mean, line.running_var = rand(4), rand(4).abs() + 0.25
    yield Form("batch_norm/rank_3", line.eval(), [(rand(2, 4, 5),)], names, tol=NEAR)
    yield Form("batch_norm/rank_2", line.eval(), [(rand(3, 4),)], names, tol=NEAR)


def windows():
    n = Dim("n", min=5, max=12)
    unfold = {"aten.unfold_copy.default": lambda x: x.unfold(1, 3, 2), "aten.unfold_copy.default last": lambda x: x.unfold(-1, 2, 1)}
    for dtype, forced in FLOATS:
        yield Form(f"unfold/{kind(dtype, forced)}", unfold, [(rand(2, 7, 4, dtype=dtype),)], fp16=forced)
    yield Form("unfold/live", unfold, over((8, 5, 12, 7, 6), lambda k: rand(2, k, 4)), dynamic=({1: n},))


def forms():
    for family in (conv2d, conv1d, conv_with_clamp, pools, resampling, image_norms, windows):
        yield from family()
