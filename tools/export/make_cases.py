#!/usr/bin/env python3
"""Writes tests/data/cases/ and tests/data/goldens/: small models with what PyTorch computes for them.

    pip install executorch==1.5.1
    tools/export/make_cases.py

Everything in cases/right passes; what is in cases/wrong must fail. docs/checking.md describes the files.

right/add             static shapes; a ramp, a fill, files
right/mul_dynamic     1 to 8 rows in any order; 9 rows are an error, and the method goes on
right/add_int64       int64 in and out
right/chain           the host threads an output back in; a reload starts again
wrong/add_golden      one element of the golden is off by 0.5
goldens/mul           goldens beside a model: inputs as numbers and from the .bin
"""
import json
import pathlib
import shutil

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import Dim, export

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data"


class Add(torch.nn.Module):
    def forward(self, x, y):
        return x + y


class Mul(torch.nn.Module):
    def forward(self, x, y):
        return x * y


class Step(torch.nn.Module):
    """A state that the host keeps: what comes out goes in again."""

    def forward(self, state, x):
        return state + x


def write_model(folder, module, inputs, dynamic=None):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = export(module, inputs, dynamic_shapes=dynamic, strict=True)
    options = {"require_dynamic_shapes": dynamic is not None}
    lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options)])
    (folder / "model.pte").write_bytes(lowered.to_executorch().buffer)


class Case:
    """Collects calls; tensors become files, numbered in the order they are used."""

    def __init__(self, folder, tolerance=1e-6):
        self.folder, self.calls, self.tolerance, self.n_files = folder, [], tolerance, 0

    def file(self, tensor):
        name = f"{self.n_files}.bin"
        self.n_files += 1
        (self.folder / name).write_bytes(tensor.contiguous().numpy().tobytes())
        return {"file": name, **described(tensor)}

    def call(self, inputs, outputs, **more):
        outputs = [{**self.file(t), "rtol": self.tolerance, "atol": self.tolerance} for t in outputs]
        inputs = [self.file(t) if isinstance(t, torch.Tensor) else t for t in inputs]
        self.calls.append({**more, "inputs": inputs, "outputs": outputs})

    def write(self):
        text = json.dumps({"name": self.folder.name, "method": "forward", "calls": self.calls}, indent=1)
        (self.folder / "case.json").write_text(text + "\n")


def described(tensor):
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def ramp(shape, mod, off, denom, phase=0):
    """The tensor, and the JSON that says the same."""
    n = torch.Size(shape).numel()
    tensor = (((torch.arange(n) + phase) % mod - off).float() / denom).reshape(shape)
    return tensor, {"gen": "ramp", "mod": mod, "off": off, "denom": denom, "phase": phase, **described(tensor)}


def add():
    folder = DATA / "cases/right/add"
    write_model(folder, Add(), (torch.randn(3, 5), torch.randn(5)))
    case = Case(folder)
    x, y = torch.randn(3, 5), torch.randn(5)
    case.call([x, y], [x + y])
    r, r_json = ramp((3, 5), 7, 3, 4.0, 2)
    ones = torch.full((5,), -1.5)
    case.call([r_json, {"fill": -1.5, **described(ones)}], [r + ones])
    special = x.clone()
    special[0, 0], special[1, 1], special[2, 2] = float("inf"), float("-inf"), float("nan")
    case.call([special, y], [special + y])
    case.write()


def mul_dynamic():
    folder = DATA / "cases/right/mul_dynamic"
    rows = Dim("rows", min=1, max=8)
    write_model(folder, Mul(), (torch.randn(4, 6), torch.randn(4, 6)), {"x": {0: rows}, "y": {0: rows}})
    case = Case(folder)
    for n in (4, 1, 8, 3, 9, 8, 9):
        x, y = torch.randn(n, 6), torch.randn(n, 6)
        case.call([x, y], [x * y] if n < 9 else [], **({"expect": "error"} if n == 9 else {}))
    case.write()


def add_int64():
    folder = DATA / "cases/right/add_int64"
    x, y = torch.tensor([[1, -2, 3], [1 << 30, 0, -7]]), torch.tensor([[5, 6, -7], [8, 0, 7]])
    write_model(folder, Add(), (x, y))
    case = Case(folder)
    case.call([x, y], [x + y])
    case.write()


def chain():
    folder = DATA / "cases/right/chain"
    write_model(folder, Step(), (torch.zeros(2, 3), torch.zeros(2, 3)))
    case, state = Case(folder), torch.zeros(2, 3)
    for i in range(4):
        x = torch.randn(2, 3)
        before = {"prev_output": 0, **described(x)} if i % 2 else {"fill": 0, **described(x)}
        state = (state if i % 2 else torch.zeros(2, 3)) + x
        case.call([before, x], [state], **({"reload": True} if i == 2 else {}))
    case.write()


def wrong():
    folder = DATA / "cases/wrong/add_golden"
    write_model(folder, Add(), (torch.randn(3, 5), torch.randn(5)))
    case = Case(folder)
    x, y = torch.arange(15.0).reshape(3, 5), torch.zeros(5)
    golden = x + y
    golden[1, 2] += 0.5
    case.call([x, y], [golden])
    case.write()


def goldens():
    folder = DATA / "goldens"
    write_model(folder, Mul(), (torch.randn(2, 3), torch.randn(2, 3)))
    (folder / "model.pte").rename(folder / "mul.pte")
    blob, cases = bytearray(), []

    def put(tensor):
        blob.extend(tensor.contiguous().numpy().tobytes())
        return len(blob) - tensor.numel() * 4

    for name, n in (("numbers", 1), ("file", 2)):
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        inputs = [{"data": x.flatten().tolist(), **described(x)},
                  {"offset": put(y), **described(y)} if n == 2 else {"data": y.flatten().tolist(), **described(y)}]
        cases.append({"name": name, "inputs": inputs, "output": put(x * y), "shape": [2, 3]})
    (folder / "mul.golden.bin").write_bytes(blob)
    text = json.dumps({"pte": "mul.pte", "variant": "fp32", "output_bin": "mul.golden.bin", "cases": cases}, indent=1)
    (folder / "mul.golden.json").write_text(text + "\n")


torch.manual_seed(1)
for make in (add, mul_dynamic, add_int64, chain, wrong, goldens):
    make()
