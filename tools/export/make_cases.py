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
goldens/toy           the calls of a language model, 1 to 7 tokens each, logits of every token
goldens/toy-static    the same model for one token a call; its goldens have several
"""
import usage  # noqa: F401  first of all

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


class Toy(torch.nn.Module):
    """As much of a language model as its interface has."""

    def __init__(self):
        super().__init__()
        self.token, self.place = torch.nn.Embedding(8, 8), torch.nn.Embedding(16, 8)

    def forward(self, tokens, input_pos):
        return self.token(tokens) + self.place(input_pos)


def write_model(folder, module, inputs, dynamic=None):
    folder.mkdir(parents=True, exist_ok=True)
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

    def write(self, method="forward"):
        text = json.dumps({"name": self.folder.name, "method": method, "calls": self.calls}, indent=1)
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


class Golden:
    def __init__(self, name, bin_key, **more):
        self.name, self.blob, self.cases = name, bytearray(), []
        self.root = {"pte": f"{name}.pte", "variant": "fp32", bin_key: f"{name}.golden.bin", **more}

    def put(self, tensor):
        self.blob.extend(tensor.detach().contiguous().numpy().tobytes())
        return len(self.blob) - tensor.numel() * tensor.element_size()

    def write(self):
        folder = DATA / "goldens"
        (folder / "model.pte").rename(folder / f"{self.name}.pte")
        (folder / f"{self.name}.golden.bin").write_bytes(self.blob)
        text = json.dumps({**self.root, "cases": self.cases}, indent=1)
        (folder / f"{self.name}.golden.json").write_text(text + "\n")


def golden_mul():
    write_model(DATA / "goldens", Mul(), (torch.randn(2, 3), torch.randn(2, 3)))
    golden = Golden("mul", "output_bin")
    for name in ("numbers", "file"):
        x, y = torch.randn(2, 3), torch.randn(2, 3)
        where = {"offset": golden.put(y)} if name == "file" else {"data": y.flatten().tolist()}
        inputs = [{"data": x.flatten().tolist(), **described(x)}, {**where, **described(y)}]
        golden.cases.append({"name": name, "inputs": inputs, "output": golden.put(x * y), "shape": [2, 3]})
    golden.write()


def golden_toy(name, static):
    toy, example = Toy(), (torch.zeros(1, 1 if static else 4, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))
    dynamic = None if static else {"tokens": {1: Dim("n", min=1, max=7)}, "input_pos": None}
    write_model(DATA / "goldens", toy, example, dynamic)
    golden = Golden(name, "logits_bin", vocab=8)

    def call(tokens, pos, keep):
        parts = [[t] for t in tokens] if static else [tokens]
        rows = torch.cat([toy(torch.tensor([t]), torch.tensor([pos + i]))[0] for i, t in enumerate(parts)])
        value, index = rows[-1].topk(5)
        more = {"logits": golden.put(rows), "rows": len(rows)} if keep else {}
        return {"tokens": tokens, "pos": pos, "top5": [[int(i), float(v)] for i, v in zip(index, value)], **more}

    golden.cases = [{"name": "prompt", "calls": [call([1, 5, 2], 0, True), call([7], 3, True)]},
                    {"name": "long", "calls": [call([6, 0, 3, 3, 1, 2, 4], 5, True), call([2, 2], 9, False)]}]
    golden.write()


if __name__ == "__main__":
    torch.manual_seed(1)
    for folder in ("cases", "goldens"):
        shutil.rmtree(DATA / folder, ignore_errors=True)
    for make in (add, mul_dynamic, add_int64, chain, wrong, golden_mul):
        make()
    golden_toy("toy", static=False)
    golden_toy("toy-static", static=True)
