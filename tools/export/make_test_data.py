#!/usr/bin/env python3
"""Writes tests/data/format/: small real files for the readers' tests, and with --corpus the fuzzers' seeds.

    pip install executorch==1.5.1
    tools/export/make_test_data.py [--corpus]

delegated.pte       linear, view and add in a delegate, batch 1..8: ValueLists, SymInts, named data
inline.pte          the same kind of delegate, blob inside the flatbuffer, no dynamic shape
portable.pte        two methods and three constant methods without any delegate: lists, constants, mutable state
control.pte         a branch and a loop: MoveCall, JumpFalseCall
weights.pte/.ptd    constants in a data file, with layouts
delegated_ext.pte/.ptd   a delegate's constants in a data file, opaque
picture.pte         twice a picture of (1, 3, 4, 6)
classifier.pte      a small MobileNet-like net, (1, 3, 32, 32) to 10 classes; .json: what it says of one colour
every_kind.pte      made from portable.pte with ExecuTorch's own serializers: no header, inline constants as
                    old exporters wrote them, every kind of value and instruction, and an inline graph
                    with every kind of value and inline constants
expansion.pte       the same with a small graph whose one list of 600 items is an argument 600 times
"""
import usage  # noqa: F401  first of all

import json
import pathlib
import shutil
import sys

import torch
from executorch.backends.vulkan.serialization import vulkan_graph_schema as vk
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import serialize_vulkan_graph
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import schema
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from executorch.exir._serialize._flatbuffer_program import _program_to_flatbuffer
from executorch.exir._serialize._program import deserialize_pte_binary
from torch.export import Dim, export

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "tests/data/format"


class Linear(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)

    def forward(self, x):
        y = torch.relu(self.linear(x))
        return torch.cat([y.view(x.shape[0] * 2, 3), y.view(x.shape[0] * 2, 3)], dim=1) + 1.5


class Lists(torch.nn.Module):
    """Index lists of every kind, a constant, and a counter that starts at 3."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.full((1,), 3.0))
        self.register_buffer("table", torch.arange(12.0).reshape(3, 4))

    def forward(self, x, i):
        self.count.add_(1)
        a, b = torch.split(torch.cat([x, self.table], dim=0), [2, 3], dim=0)
        return torch.nn.functional.pad(a, [1, 1]), b[:, i], self.count.clone()


class Scale(torch.nn.Module):
    def forward(self, x):
        return x * 2.5


class Branch(torch.nn.Module):
    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda t: t + 1, lambda t: t * 2, [x])
        return torch._higher_order_ops.map(lambda row: row * row, y)


def delegated():
    batch = Dim("batch", min=1, max=8)
    program = export(Linear(), (torch.randn(3, 8),), dynamic_shapes={"x": {0: batch}}, strict=True)
    return to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner({"require_dynamic_shapes": True})]).to_executorch()


def inline():
    program = export(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Sigmoid()), (torch.randn(2, 4),))
    lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner({})])
    return lowered.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=False))


class Twice(torch.nn.Module):
    def forward(self, x):
        return x + x


def picture():
    return to_edge_transform_and_lower(export(Twice().eval(), (torch.randn(1, 3, 4, 6),)),
                                       partitioner=[VulkanPartitioner()]).to_executorch()


class Classifier(torch.nn.Module):
    """Strided, depthwise and pointwise convolutions, a residual, a mean and a linear."""

    def __init__(self):
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.wide = torch.nn.Conv2d(8, 24, 1)
        self.deep = torch.nn.Conv2d(24, 24, 3, padding=1, groups=24)
        self.narrow = torch.nn.Conv2d(24, 8, 1)
        self.head = torch.nn.Linear(8, 10)

    def forward(self, x):
        x = torch.nn.functional.relu6(self.stem(x))
        y = torch.nn.functional.relu6(self.deep(torch.nn.functional.relu6(self.wide(x))))
        x = x + self.narrow(y)
        return self.head(x.mean((2, 3))) * 8


COLOUR = (200, 30, 60)


def classifier():
    torch.manual_seed(2)
    net = Classifier().eval()
    mean, deviation = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    x = ((torch.tensor(COLOUR) / 255 - mean) / deviation).reshape(1, 3, 1, 1).expand(1, 3, 32, 32).contiguous()
    best = torch.topk(net(x).softmax(-1)[0], 5)
    said = {"colour": COLOUR, "best": [[i, round(100 * p, 4)] for p, i in zip(best.values.tolist(), best.indices.tolist())]}
    (OUT / "classifier.json").write_text(json.dumps(said) + "\n")
    return to_edge_transform_and_lower(export(net, (x,)), partitioner=[VulkanPartitioner()]).to_executorch()


def portable():
    methods = {
        "forward": export(Lists(), (torch.randn(2, 4), torch.tensor([1, 0]))),
        "scale": export(Scale(), (torch.randn(2, 2),)),
    }
    constants = {"get_max_seq_len": 128, "use_kv_cache": True, "get_eos_ids": [2, 7]}
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["count"])], emit_mutable_buffer_names=True)
    return to_edge(methods, constant_methods=constants).to_executorch(config)


def control():
    return to_edge(export(Branch(), (torch.randn(3, 2),))).to_executorch()


def weights():
    program = export(torch.nn.Linear(4, 3), (torch.randn(2, 4),))
    return to_edge(program).to_executorch(ExecutorchBackendConfig(external_constants=lambda node: "weights"))


def delegated_ext():
    program = export(torch.nn.Linear(4, 3), (torch.randn(2, 4),))
    options = {"external_constants_max_data_bytes": 1 << 20}
    return to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options)]).to_executorch()


def graph_of_every_kind():
    """y = where(...): four constants inline, one of them empty; the operators do not matter."""
    weights = [torch.arange(6.0).reshape(2, 3), torch.tensor([], dtype=torch.int8), torch.tensor([True, False]), torch.arange(3, dtype=torch.int32)]
    types = [vk.VkDataType.FLOAT32, vk.VkDataType.INT8, vk.VkDataType.BOOL, vk.VkDataType.INT32]
    values = [vk.VkTensor(t, list(w.shape), i, -1) for i, (t, w) in enumerate(zip(types, weights))]
    values += [vk.VkTensor(vk.VkDataType.FLOAT16, [2, 3], -1, k, staging_datatype=vk.VkDataType.FLOAT32) for k in (0, 1, 0)]
    values += [vk.Null(), vk.Int(-7), vk.Double(float("inf")), vk.Bool(True), vk.IntList([1, -2, 2**40]), vk.DoubleList([0.5, -0.25])]
    values += [vk.BoolList([True, False, True]), vk.String("none"), vk.SymInt(3), vk.ValueList([8, 15, 7]), vk.ValueList([5, 6])]
    chain = [
        vk.OperatorCall(1, "sym_size.int", [4, 8, 15]),
        vk.OperatorCall(2, "test.multi_output", [4, 0, 1, 2, 3, 7, 9, 10, 11, 12, 13, 14, 16, 17]),
        vk.OperatorCall(3, "test.in_place", [5, 6, 5]),
    ]
    graph = vk.VkGraph("0", chain, [vk.VkValue(v) for v in values], [4], [5, 15, 4], [], [])
    return serialize_vulkan_graph(graph, weights, [])


def graph_of_one_list():
    values = [vk.VkTensor(vk.VkDataType.FLOAT32, [1], -1, -1), vk.ValueList([0] * 600)]
    graph = vk.VkGraph("0", [vk.OperatorCall(0, "aten.cat.default", [1] * 600 + [0])], [vk.VkValue(v) for v in values], [0], [0], [], [])
    return serialize_vulkan_graph(graph, [], [])


def every_kind(graph):
    """Takes the delegates and constants of portable.pte back into the flatbuffer, then adds what no exporter writes."""
    program = deserialize_pte_binary((OUT / "portable.pte").read_bytes()).program
    program.constant_segment = schema.SubsegmentOffsets(0, [])
    plan = program.execution_plan[0]
    plan.values[0].val.data_buffer_idx = 0  # initial state needs a segment
    first = len(plan.values)
    plan.values += [schema.EValue(v) for v in (schema.Null(), schema.String("mode"), schema.DoubleList([1.5, -2.0]), schema.BoolList([True, False]))]
    plan.values.append(schema.EValue(schema.OptionalTensorList([-1, first, 3])))
    code = plan.chains[0].instructions
    code.append(schema.Instruction(schema.DelegateCall(0, [3, 10])))
    code.append(schema.Instruction(schema.JumpFalseCall(6, len(code) + 3)))
    code.append(schema.Instruction(schema.MoveCall(first, first + 1)))
    code.append(schema.Instruction(schema.FreeCall(10)))
    reference = schema.BackendDelegateDataReference(schema.DataLocation.INLINE, 0)
    specs = [schema.CompileSpec("option", b"\x01\x02")]
    plan.delegates = [schema.BackendDelegate("VulkanBackend", reference, specs)]
    program.backend_delegate_data = [schema.BackendDelegateInlineData(graph)]
    return bytes(_program_to_flatbuffer(program).data)


def write(name, manager):
    folder = OUT / "tmp"
    folder.mkdir(parents=True)
    (OUT / f"{name}.pte").write_bytes(manager.buffer)
    manager.write_tensor_data_to_file(str(folder))
    for file in folder.glob("*.ptd"):
        file.rename(OUT / f"{name}.ptd")
    shutil.rmtree(folder)


def blob(file):
    """The first delegate's bytes: it starts four bytes before its magic."""
    data = file.read_bytes()
    start = data.index(b"VH00") - 4
    header = data[start : start + 30]
    size = int.from_bytes(header[18:22], "little") + int.from_bytes(header[22:30], "little")
    return data[start : start + size]


def write_corpus():
    for target in ("pte", "ptd", "vkgraph"):
        (ROOT / "fuzz/corpus" / target).mkdir(parents=True, exist_ok=True)
    for file in sorted(OUT.glob("*.pt[ed]")):
        if file.stem == "expansion":  # large and refused
            continue
        shutil.copy(file, ROOT / "fuzz/corpus" / file.suffix[1:] / file.name)
        if b"VH00" in file.read_bytes():
            (ROOT / "fuzz/corpus/vkgraph" / f"{file.stem}.blob").write_bytes(blob(file))


if __name__ == "__main__":
    torch.manual_seed(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for make in (delegated, inline, portable, control, weights, delegated_ext, picture, classifier):
        write(make.__name__, make())
    (OUT / "every_kind.pte").write_bytes(every_kind(graph_of_every_kind()))
    (OUT / "expansion.pte").write_bytes(every_kind(graph_of_one_list()))
    if "--corpus" in sys.argv:
        write_corpus()
