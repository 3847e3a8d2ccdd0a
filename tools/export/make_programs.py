#!/usr/bin/env python3
"""Writes tests/data/programs/: whole programs with what PyTorch computes for them.

    pip install executorch==1.5.1
    tools/export/make_programs.py [NAME …]

cond          torch.cond whose condition the device computes
cond_given    …and whose condition is an input: the host knows it
map           torch.map: a loop over rows, as many as the input has
scan          a loop that carries a sum along
portable      no delegate at all
channels_last inputs and outputs in another dim order than they are computed in
encoder, decoder   two programs: what one gives the other takes
two_methods_encode, two_methods_decode   the same as two methods of one file, with one weight
three_ptd     weights in three data files

The exporter has no form for while_loop; tests/run/test_flow.c writes one.
"""
import pathlib
import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from make_cases import DATA, Case
from torch._higher_order_ops.map import map as torch_map
from torch._higher_order_ops.scan import scan as torch_scan
from torch.export import Dim, export

PROGRAMS = DATA / "programs"


def lower(programs, delegates=True, config=None):
    partitioner = [VulkanPartitioner({})] if delegates else None
    if isinstance(programs, dict) and partitioner:
        partitioner = {name: partitioner for name in programs}
    return to_edge_transform_and_lower(programs, partitioner=partitioner).to_executorch(config)


def write(name, module, inputs, calls=None, dynamic=None, delegates=True, config=None, tolerance=1e-5):
    """One program and a call for each of `calls`, or for the inputs that it was exported with."""
    folder = PROGRAMS / name
    folder.mkdir(parents=True, exist_ok=True)
    module.eval()
    made = lower(export(module, inputs, dynamic_shapes=dynamic, strict=True), delegates, config)
    (folder / "model.pte").write_bytes(made.buffer)
    if made._tensor_data:
        made.write_tensor_data_to_file(str(folder))
    case = Case(folder, tolerance)
    for given in calls or [inputs]:
        with torch.no_grad():
            out = module(*given)
        case.call(list(given), list(out) if isinstance(out, (tuple, list)) else [out])
    case.write()


class Cond(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8)

    def forward(self, x):
        y = torch.cond(x.sum() > 0, lambda t: self.a(t).relu(), lambda t: self.b(t) * 2 + t, (x,))
        return y + x


class CondGiven(Cond):
    def forward(self, x, flag):
        return torch.cond(flag, lambda t: self.a(t).relu(), lambda t: self.b(t) * 2 + t, (x,)) * 3


class Map(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(8, 4)

    def forward(self, x, y):
        rows = torch_map(lambda row, other: torch.sigmoid(self.a(row)) + other, x, y)
        return rows * 2


class Scan(torch.nn.Module):
    def forward(self, x, start):
        def step(carry, row):
            carry = carry * 0.5 + row
            return carry, carry * carry
        return torch_scan(step, start, x)


class Portable(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = torch.nn.Linear(6, 10), torch.nn.Linear(10, 4)

    def forward(self, x, y):
        z = self.b(torch.relu(self.a(x))).softmax(-1)
        return torch.cat([z, y], 1).permute(1, 0), z.mean(0, keepdim=True)


class Layout(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 5, 3, padding=1)

    def forward(self, x):
        return self.conv(x).relu(), x + 1


class Encoder(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table, self.a = table, torch.nn.Linear(8, 8)

    def forward(self, ids):
        return torch.tanh(self.a(torch.nn.functional.embedding(ids, self.table)))


class Decoder(torch.nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table, self.b = table, torch.nn.Linear(8, 8)

    def forward(self, states, ids):
        query = torch.nn.functional.embedding(ids, self.table)
        weights = torch.softmax(query @ states.transpose(-1, -2), -1)
        return self.b(weights @ states) @ self.table.t()


class Chain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.three = (torch.nn.Linear(5, 5) for _ in range(3))

    def forward(self, x):
        return self.three(self.two(self.one(x)))


def cond():
    calls = [(torch.full((2, 8), v) + torch.randn(2, 8),) for v in (1.0, -1.0, -1.0, 1.0)]
    write("cond", Cond(), calls[0], calls)


def cond_given():
    calls = [(torch.randn(2, 8), torch.tensor(flag)) for flag in (True, False, False, True)]
    write("cond_given", CondGiven(), calls[0], calls)


def loop_map():
    calls = [(torch.randn(n, 8), torch.randn(4)) for n in (9, 6, 6, 1, 3)]
    rows = Dim("rows", min=1, max=9)
    write("map", Map(), calls[0], calls, dynamic={"x": {0: rows}, "y": None})


def scan():
    calls = [(torch.randn(5, 7), torch.randn(7)) for _ in range(3)]
    write("scan", Scan(), calls[0], calls)


def portable():
    calls = [(torch.randn(3, 6), torch.randn(3, 2)) for _ in range(2)]
    write("portable", Portable(), calls[0], calls, delegates=False)


def channels_last():
    x = torch.randn(1, 3, 6, 4).to(memory_format=torch.channels_last)
    write("channels_last", Layout(), (x,), tolerance=1e-4)


def encoder_decoder():
    table = torch.nn.Parameter(torch.randn(12, 8))
    encoder, decoder = Encoder(table).eval(), Decoder(table).eval()
    given = [torch.tensor([[1, 5, 7, 2]]), torch.tensor([[3, 11, 0, 8]])]
    ids = torch.tensor([[4, 9]])
    with torch.no_grad():
        states = [encoder(i) for i in given]
    write("encoder", encoder, (given[0],), [(i,) for i in given])
    write("decoder", decoder, (states[0], ids), [(s, ids) for s in states])
    both = {"encode": export(encoder, (given[0],), strict=True), "decode": export(decoder, (states[0], ids), strict=True)}
    made = lower(both)
    for method, module, calls in (("encode", encoder, [(i,) for i in given]), ("decode", decoder, [(s, ids) for s in states])):
        folder = PROGRAMS / f"two_methods_{method}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.pte").write_bytes(made.buffer)
        case = Case(folder, 1e-5)
        for call in calls:
            with torch.no_grad():
                case.call(list(call), [module(*call)])
        case.write(method)


def three_ptd():
    names = {"one": "first", "two": "second", "three": "third"}
    config = ExecutorchBackendConfig(external_constants=lambda node: next(
        (file for part, file in names.items() if part in node.name), "third"))
    write("three_ptd", Chain(), (torch.randn(2, 5),), delegates=False, config=config)


ALL = {f.__name__.removeprefix("loop_"): f
       for f in (cond, cond_given, loop_map, scan, portable, channels_last, encoder_decoder, three_ptd)}
if __name__ == "__main__":
    for chosen in sys.argv[1:] or ALL:
        torch.manual_seed(7)
        ALL[chosen]()
        print(chosen, sorted(p.name for p in PROGRAMS.glob("*/*.p*")) and "written")
