"""Eight bits: static activations (q8ta), and what stays of quantisers' nodes where nothing fuses them.

Codes are compared exactly, so no real value may lie near a tie of its rounding: `settled` looks for numbers of that kind.
"""
import torch
import torch.nn.functional as F
from torch.export import Dim

from .form import F16, F32, I32, I64, I8, U8, Form, ints, over, rand

Q, DQ = "quantized_decomposed.quantize_per_tensor.default", "quantized_decomposed.dequantize_per_tensor.default"
decomposed = torch.ops.quantized_decomposed


def quantize(x, scale, zero):
    return decomposed.quantize_per_tensor(x, scale, zero, -128, 127, I8)


def dequantize(x, scale, zero):
    return decomposed.dequantize_per_tensor(x, scale, zero, -128, 127, I8)


class Static(torch.nn.Module):
    """Codes in, a float operation between, codes out: what the exporter fuses into one q8ta operator."""

    def __init__(self, operation, scales=((0.05, 3), ), out=(0.04, -5), relu=False, end=True):
        super().__init__()
        self.operation, self.scales, self.out, self.relu, self.end = operation, scales, out, relu, end

    def real(self, *inputs):
        codes = [quantize(x, *s) for x, s in zip(inputs, self.scales)]
        y = self.operation(*[dequantize(c, *s) for c, s in zip(codes, self.scales)])
        return F.relu(y) if self.relu else y

    def forward(self, *inputs):
        y = self.real(*inputs)
        return dequantize(quantize(y, *self.out), *self.out) if self.end else y


def steps(scale, *shape):
    """Reals that are clearly nearest to one code, some beyond the range."""
    return (ints(-140, 140, *shape).float() + torch.rand(shape) * 0.5 - 0.25) * scale[0] - scale[1] * scale[0]


def settled(module, *shapes):
    """Inputs whose results are no less than 0.004 of a step away from a tie."""
    for seed in range(5000):
        torch.manual_seed(seed)
        inputs = tuple(steps(s, *shape) for s, shape in zip(module.scales, shapes))
        with torch.no_grad():
            codes = module.real(*inputs).double() / module.out[0]
        if not module.end or ((codes - codes.floor() - 0.5).abs() > 0.004).all():
            return inputs
    raise ValueError("every result is near a tie")


class Weight(torch.nn.Module):
    """A weight of codes, a scale per output channel."""

    def __init__(self, *shape, axis=0, bias=False):
        super().__init__()
        self.axis = axis
        self.register_buffer("codes", ints(-127, 127, *shape, dtype=I8))
        self.register_buffer("scales", torch.rand(shape[axis]) * 0.01 + 0.002)
        self.register_buffer("zeros", torch.zeros(shape[axis], dtype=I64))
        self.bias = torch.nn.Parameter(rand(shape[axis])) if bias else None

    def real(self):
        return decomposed.dequantize_per_channel(self.codes, self.scales, self.zeros, self.axis, -127, 127, I8)


class Linear(Weight):
    def forward(self, x):
        return F.linear(x, self.real(), self.bias)


class Conv(Weight):
    def __init__(self, *shape, bias=True, transposed=False, **how):
        super().__init__(*shape, axis=1 if transposed else 0, bias=bias)
        self.transposed, self.how = transposed, how

    def forward(self, x):
        function = F.conv_transpose2d if self.transposed else F.conv2d
        return function(x, self.real(), self.bias, **self.how)


def case(name, operator, module, *shapes, **how):
    exact = (0, module.out[0] / 100) if module.end else (1e-4, 1e-4)
    return Form(name, module, [settled(module, *shapes)], (operator,), tol=exact, **how)


ALPHA = "the exporter writes 1 for alpha, whatever it was"


def linears():
    for n, k, bias, relu in ((8, 12, True, False), (7, 16, False, False), (5, 8, True, True), (12, 64, False, True)):
        name = f"{n}x{k}{'_bias' if bias else ''}{'_relu' if relu else ''}"
        yield case(f"q8ta_linear/{name}", "et_vk.q8ta_linear.default", Static(Linear(n, k, bias=bias), out=(0.3, 4), relu=relu), (3, k))
        yield case(f"q8ta_linear_gemv/{name}", "et_vk.q8ta_linear_gemv.default",
                   Static(Linear(n, k, bias=bias), out=(0.3, 4), relu=relu), (1, k))
        if not relu:
            yield case(f"linear_q8ta_q8csw/{name}", "et_vk.linear_q8ta_q8csw.default", Static(Linear(n, k, bias=bias), end=False), (3, k))
    yield case("q8ta_linear/rank_3", "et_vk.q8ta_linear.default", Static(Linear(8, 12, bias=True), out=(0.3, 4)), (2, 3, 12))
    yield case("linear_q8ta_q8csw/rank_3", "et_vk.linear_q8ta_q8csw.default", Static(Linear(6, 12), end=False), (2, 3, 12))
    yield case("linear_q8ta_q8csw/one_row", "et_vk.linear_q8ta_q8csw.default", Static(Linear(6, 12), end=False), (1, 12))


def convolutions():
    forms = {
        "q8ta_conv2d/plain": (Conv(5, 3, 3, 3), (1, 3, 6, 7)),
        "q8ta_conv2d/padded": (Conv(8, 4, 3, 3, padding=1), (1, 4, 5, 8)),
        "q8ta_conv2d/strided": (Conv(6, 4, 3, 3, stride=2, padding=1), (1, 4, 7, 9)),
        "q8ta_conv2d/dilated": (Conv(4, 2, 3, 3, dilation=2), (1, 2, 7, 8)),
        "q8ta_conv2d/no_bias": (Conv(4, 3, 2, 3, bias=False), (1, 3, 5, 6)),
        "q8ta_conv2d/grouped": (Conv(8, 4, 3, 3, groups=2), (1, 8, 5, 5)),
        "q8ta_conv2d/pointwise_strided": (Conv(4, 8, 1, 1, stride=2), (1, 8, 5, 5)),
        "q8ta_conv2d_pw/plain": (Conv(8, 4, 1, 1), (1, 4, 3, 4)),
        "q8ta_conv2d_pw/odd": (Conv(7, 5, 1, 1), (1, 5, 3, 5)),
        "q8ta_conv2d_pw/no_bias": (Conv(4, 8, 1, 1, bias=False), (1, 8, 2, 3)),
        "q8ta_conv2d_dw/plain": (Conv(8, 1, 3, 3, groups=8), (1, 8, 5, 6)),
        "q8ta_conv2d_dw/padded": (Conv(4, 1, 3, 3, groups=4, padding=1), (1, 4, 5, 7)),
        "q8ta_conv2d_dw/strided": (Conv(12, 1, 5, 5, groups=12, stride=2, padding=2), (1, 12, 7, 9)),
        "q8ta_conv2d_dw/no_bias": (Conv(4, 1, 3, 1, groups=4, bias=False), (1, 4, 5, 3)),
        "q8ta_conv2d_transposed/plain": (Conv(3, 5, 3, 3, transposed=True), (1, 3, 4, 5)),
        "q8ta_conv2d_transposed/strided": (Conv(4, 8, 3, 3, transposed=True, stride=2, padding=1, output_padding=1), (1, 4, 4, 3)),
        "q8ta_conv2d_transposed/no_bias": (Conv(4, 4, 2, 2, transposed=True, stride=2, bias=False), (1, 4, 3, 4)),
    }
    for name, (layer, shape) in forms.items():
        for relu in (False, True):
            out = (0.35, 2) if not relu else (0.2, -128)
            yield case(name + ("_relu" if relu else ""), f"et_vk.{name.split('/')[0]}.default", Static(layer, out=out, relu=relu), shape,
                       small=not relu or name.endswith("padded") or name.endswith("plain"))


def pointwise():
    two = ((0.05, 3), (0.1, -7))
    yield case("q8ta_add/plain", "et_vk.q8ta_add.default", Static(torch.add, two, (0.12, 6)), (1, 3, 4, 5), (1, 3, 4, 5))
    yield case("q8ta_add/alpha", "et_vk.q8ta_add.default", Static(lambda a, b: torch.add(a, b, alpha=0.5), two, (0.09, -1)), (2, 7), (2, 7), pending=ALPHA)
    yield case("q8ta_add/alpha_2", "et_vk.q8ta_add.default", Static(lambda a, b: torch.add(a, b, alpha=2), two, (0.2, 0)), (1, 4, 4), (1, 4, 4), pending=ALPHA)
    yield case("q8ta_add/odd", "et_vk.q8ta_add.default", Static(torch.add, two, (0.12, 6)), (1, 1, 3, 3), (1, 1, 3, 3))
    # The exporter drops this relu: the codes' own range must stand for it, zero being the lowest code.
    yield case("q8ta_add/relu", "et_vk.q8ta_add.default", Static(torch.add, two, (0.08, -128), relu=True), (1, 4, 3, 4), (1, 4, 3, 4))
    yield case("q8ta_add/broadcast", "et_vk.q8ta_add.default", Static(torch.add, two, (0.12, 6)), (1, 3, 4, 5), (1, 3, 1, 1))
    yield case("q8ta_relu/plain", "et_vk.q8ta_relu.default", Static(F.relu, ((0.05, 3),), (0.03, -128)), (1, 4, 3, 5))
    yield case("q8ta_relu/same_scale", "et_vk.q8ta_relu.default", Static(F.relu, ((0.05, -10),), (0.05, -10)), (2, 7))
    shuffle = "et_vk.q8ta_pixel_shuffle.default"
    yield case("q8ta_pixel_shuffle/by_2", shuffle, Static(lambda x: F.pixel_shuffle(x, 2), ((0.05, 3),), (0.07, -4)), (1, 8, 3, 5))
    yield case("q8ta_pixel_shuffle/by_3", shuffle, Static(lambda x: F.pixel_shuffle(x, 3), ((0.05, 3),), (0.05, 3)), (1, 9, 2, 3))


# A pair of quantize and dequantize is dropped by the exporter as if it were nothing, so each has forms of its own.
def borders():
    scale, ends = (0.05, 3), {"small": True}
    odd = torch.tensor([0.0, -0.0, 0.025, -0.025, 0.075, 0.125, 1e30, -1e30, float("inf"), -float("inf"), 6.2, -6.6, 0.0249, 0.0251])
    down = {Q: lambda x: quantize(x, *scale), f"{Q} narrow": lambda x: decomposed.quantize_per_tensor(x, 0.1, 0, -8, 7, I8)}
    up = {DQ: lambda x: dequantize(x, *scale), f"{DQ} plain": lambda x: dequantize(x, 0.125, 0)}
    for shape in ((3, 5), (1,), (2, 1, 3, 3)):
        yield Form(f"quantize/rank_{len(shape)}", down, [(steps(scale, *shape),), (steps(scale, *shape),)], **ends)
        yield Form(f"dequantize/rank_{len(shape)}", up, [(ints(-128, 127, *shape, dtype=I8),), (ints(-128, 127, *shape, dtype=I8),)], **ends)
    yield Form("quantize/ties", down, [(odd,)])
    yield Form("quantize/half", down, [(steps(scale, 3, 5).half(),)])
    yield Form("quantize/float16", down, [(steps(scale, 3, 5),)], fp16=True)
    yield Form("dequantize/float16", up, [(ints(-128, 127, 3, 5, dtype=I8),)], fp16=True)
    yield Form("quantize/unsigned", {Q: lambda x: decomposed.quantize_per_tensor(x, 0.05, 120, 0, 255, U8)}, [(steps((0.05, -8), 3, 5),)])
    yield Form("dequantize/unsigned", {DQ: lambda x: decomposed.dequantize_per_tensor(x, 0.05, 120, 0, 255, U8)},
               [(ints(0, 255, 3, 5, dtype=U8),)])
    yield Form("quantize/dropped", Static(lambda x: x), [(steps(scale, 3, 5),)], golden=lambda x: x)


class PerChannel(torch.nn.Module):
    def __init__(self, n, axis, function, *more):
        super().__init__()
        self.axis, self.function, self.more = axis, function, more
        self.register_buffer("scales", torch.rand(n) * 0.1 + 0.02)
        self.register_buffer("zeros", ints(-5, 5, n))

    def forward(self, x):
        return self.function(x, self.scales, self.zeros, self.axis, -128, 127, I8)


class Affine(torch.nn.Module):
    def __init__(self, function, block, *scale_shape):
        super().__init__()
        self.function, self.block = function, block
        self.register_buffer("scales", torch.rand(scale_shape) * 0.1 + 0.02)
        self.register_buffer("zeros", ints(-3, 3, *scale_shape, dtype=I32))

    def forward(self, x):
        return self.function(x, self.block, self.scales, self.zeros, I8, -128, 127)


class AffineWeight(torch.nn.Module):
    """8-bit weight-only, torchao's: the codes are dequantised in the graph, since nothing fuses them."""

    def __init__(self, n, k):
        super().__init__()
        self.register_buffer("codes", ints(-128, 127, n, k, dtype=I8))
        self.register_buffer("scales", torch.rand(n, 1) * 0.01 + 0.002)
        self.register_buffer("zeros", torch.zeros(n, 1, dtype=I64))

    def forward(self, x):
        return F.linear(x, torch.ops.torchao.dequantize_affine(self.codes, [1, x.shape[-1]], self.scales, self.zeros, I8, -128, 127))


def leftovers():
    n = Dim("n", min=1, max=9)
    qd = "quantized_decomposed"
    codes = lambda *shape: ints(-128, 127, *shape, dtype=I8)
    yield Form("quantize/per_channel", PerChannel(3, 1, decomposed.quantize_per_channel), over((4, 1, 9, 2, 7), lambda k: rand(k, 3, 5)),
               (f"{qd}.quantize_per_channel.default",), ({0: n},))
    yield Form("dequantize/per_channel", PerChannel(3, 1, decomposed.dequantize_per_channel), over((4, 1, 9, 2, 7), lambda k: codes(k, 3, 5)),
               (f"{qd}.dequantize_per_channel.default",), ({0: n},))
    tokens = {f"{qd}.quantize_per_token.default": lambda x, c, s, z: decomposed.quantize_per_token(x, s, z, -128, 127, I8),
              f"{qd}.dequantize_per_token.default": lambda x, c, s, z: decomposed.dequantize_per_token(c, s, z, -128, 127, I8, F32)}
    grow = over((4, 1, 9, 2, 7), lambda k: (rand(k, 8), codes(k, 8), torch.rand(k, 1).double() * 0.1 + 0.02, ints(-5, 5, k, 1)))
    yield Form("quantize/per_token", tokens, grow, dynamic=({0: n},) * 4)
    choices = {f"{qd}.choose_qparams_per_token_asymmetric.default": lambda x: decomposed.choose_qparams_per_token_asymmetric(x, I8),
               f"{qd}.choose_qparams.tensor": lambda x: decomposed.choose_qparams.tensor(x, -128, 127, 1e-6, I8)}
    yield Form("quantize/choose_qparams", choices, [(rand(3, 8),), (rand(3, 8, scale=9).abs(),), (torch.zeros(3, 8),)])
    tensors = {f"{qd}.quantize_per_tensor.tensor": lambda x, c, s, z: decomposed.quantize_per_tensor.tensor(x, s, z, -128, 127, I8),
               f"{qd}.dequantize_per_tensor.tensor": lambda x, c, s, z: decomposed.dequantize_per_tensor.tensor(c, s, z, -128, 127, I8)}
    yield Form("quantize/per_tensor_tensors", tensors, [(rand(3, 5), codes(3, 5), torch.tensor(0.06), torch.tensor(4))])
    ao = torch.ops.torchao
    for name, block, shape in (("rows", [1, 8], (3, 1)), ("groups", [1, 4], (3, 2)), ("tensor", [3, 8], (1, 1))):
        yield Form(f"quantize/affine_{name}", Affine(ao.quantize_affine, block, *shape), [(rand(3, 8),)], ("torchao.quantize_affine.default",))
        yield Form(f"dequantize/affine_{name}", Affine(ao.dequantize_affine, block, *shape), [(codes(3, 8),)],
                   ("torchao.dequantize_affine.default",))
    yield Form("dequantize/affine_weight", AffineWeight(8, 12), over((4, 1, 9, 2, 7), lambda k: rand(k, 12)),
               ("torchao.dequantize_affine.default",), ({0: n},), tol=(1e-4, 1e-4))


def forms():
    for family in (linears, convolutions, pointwise, borders, leftovers):
        yield from family()
