"""Models as people quantise them: torchao's configurations and the PT2E quantisers, on nets of a few layers."""
import copy

import torch
from torch.export import Dim, export

from .form import Form, over, rand

CLOSE = (1e-3, 1e-3)


class Net(torch.nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


def perceptron(bias=True):
    return Net(torch.nn.Linear(64, 32, bias=bias), torch.nn.ReLU(), torch.nn.Linear(32, 16, bias=bias)).eval()


def with_torchao():
    from torchao.quantization import quantize_
    from torchao.quantization.granularity import PerAxis, PerGroup
    from torchao.quantization.quant_api import Int8DynamicActivationIntxWeightConfig, IntxWeightOnlyConfig
    n = Dim("n", min=1, max=9)
    grow = over((4, 1, 9, 2, 7), lambda k: rand(k, 64))
    net = perceptron()
    quantize_(net, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)))
    yield Form("flow/torchao_4w", net, grow, ("et_vk.linear_q4gsw.default",), ({0: n},), tol=CLOSE)
    net = perceptron(bias=False)
    quantize_(net, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int4, weight_granularity=PerGroup(32)))
    yield Form("flow/torchao_8da4w", net, [(rand(4, 64),), (rand(4, 64),)], ("et_vk.linear_dq8ca_q4gsw.default",), tol=(5e-3, 2e-2))
    net = perceptron()
    quantize_(net, IntxWeightOnlyConfig(weight_dtype=torch.int8, granularity=PerAxis(0)))
    yield Form("flow/torchao_8w", net, grow, ("torchao.dequantize_affine.default",), ({0: n},), tol=CLOSE)
    net = Net(torch.nn.Embedding(20, 64), torch.nn.Linear(64, 12)).eval()
    quantize_(net, IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=PerGroup(32)),
              lambda m, name: isinstance(m, (torch.nn.Embedding, torch.nn.Linear)))
    yield Form("flow/torchao_embedding_4w", net, over((4, 1, 9, 2, 7), lambda k: torch.randint(0, 20, (1, k))),
               ("et_vk.embedding_q4gsw.default", "et_vk.linear_q4gsw.default"), ({1: n},), tol=CLOSE)


def converted(net, quantizer, *calibration):
    """PT2E: observe the calls, then a net with quantize and dequantize nodes."""
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    prepared = prepare_pt2e(export(net, calibration[0]).module(), quantizer)
    for inputs in calibration:
        prepared(*inputs)
    return convert_pt2e(prepared)


class Again(torch.nn.Module):
    """A converted net has no eval() of its own."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def eval(self):
        return self

    def __deepcopy__(self, memo):
        return Again(copy.copy(self.net))

    def forward(self, x):
        return self.net(x)


def with_pt2e():
    from executorch.backends.vulkan.quantizer.vulkan_quantizer import VulkanQuantizer, get_symmetric_quantization_config
    calls = [(rand(3, 64),), (rand(3, 64),)]
    for bits, name in ((8, "aten._weight_int8pack_mm.default"), (4, "et_vk.linear_qcs4w.default")):
        quantizer = VulkanQuantizer().set_global(get_symmetric_quantization_config(is_dynamic=False, weight_bits=bits))
        yield Form(f"flow/vulkan_{bits}w", Again(converted(perceptron(), quantizer, *calls)), calls, (name,), tol=CLOSE)
    quantizer = VulkanQuantizer().set_global(get_symmetric_quantization_config(is_dynamic=True, weight_bits=8))
    yield Form("flow/vulkan_8da8w", Again(converted(perceptron(), quantizer, *calls)), calls, tol=(5e-3, 2e-2))


def with_xnnpack():
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    quantizer = lambda: XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True))
    C = torch.nn.Conv2d
    plain = Net(C(3, 8, 3, padding=1), torch.nn.ReLU(), C(8, 8, 3, stride=2, padding=1, groups=8), torch.nn.ReLU(), C(8, 5, 1)).eval()

    class Residual(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = C(4, 4, 3, padding=1), C(4, 4, 3, padding=1)

        def forward(self, x):
            y = torch.relu(self.first(x))
            return torch.relu(self.second(y) + y)

    shuffle = Net(C(3, 8, 3, padding=1), torch.nn.PixelShuffle(2), C(2, 3, 3)).eval()
    mlp = perceptron()
    nets = {
        "convnet": (plain, (1, 3, 7, 9), ("et_vk.q8ta_conv2d.default", "et_vk.q8ta_conv2d_dw.default", "et_vk.q8ta_conv2d_pw.default")),
        "residual": (Residual().eval(), (1, 4, 5, 6), ("et_vk.q8ta_conv2d.default", "et_vk.q8ta_add.default")),
        "shuffle": (shuffle, (1, 3, 4, 5), ("et_vk.q8ta_conv2d.default",)),
        "mlp": (mlp, (3, 64), ("et_vk.q8ta_linear.default",)),
        "mlp_one_row": (mlp, (1, 64), ("et_vk.q8ta_linear_gemv.default",)),
    }
    for name, (net, shape, names) in nets.items():
        calls = [(rand(*shape),), (rand(*shape),)]
        # A code may fall to the other side of a tie, and the layers after it see one step more.
        yield Form(f"flow/xnnpack_{name}", Again(converted(net, quantizer(), *calls)), calls, names, tol=(0, 0.03))


def forms():
    for family in (with_torchao, with_pt2e, with_xnnpack):
        yield from family()
