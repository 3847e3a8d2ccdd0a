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
"""
import pathlib
import shutil
import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
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
    size = int.from_bytes(data[start + 18 : start + 22], "little")
    return data[start : start + size]


def write_corpus():
    for target in ("pte", "ptd", "vkgraph"):
        (ROOT / "fuzz/corpus" / target).mkdir(parents=True, exist_ok=True)
    for file in sorted(OUT.glob("*.pt[ed]")):
        shutil.copy(file, ROOT / "fuzz/corpus" / file.suffix[1:] / file.name)
        if b"VH00" in file.read_bytes():
            (ROOT / "fuzz/corpus/vkgraph" / f"{file.stem}.blob").write_bytes(blob(file))


if __name__ == "__main__":
    torch.manual_seed(1)
    OUT.mkdir(parents=True, exist_ok=True)
    for make in (delegated, inline, portable, control, weights, delegated_ext):
        write(make.__name__, make())
    if "--corpus" in sys.argv:
        write_corpus()
