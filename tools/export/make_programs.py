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
channels_last_net     …a convolutional net: a delegate and, with a batch of 2, portable convolutions
channels_last_rows    …and a batch of 1 to 6
channels_last_state   …a buffer that calls change, constants in three orders, an int64 one too
channels_last_3d      …and five dims
encoder, decoder   two programs: what one gives the other takes
two_methods_encode, two_methods_decode   the same as two methods of one file, with one weight
buffers       what calls change, beginning with zeros: floats, a counter, a flag, rows that move up
cond_buffer   …by branches
cache         a KV cache outside delegates, 1 to 8 new rows at any place
nonzero       a result whose rows the host learns during the call, column by column in the file
shared_cache  three methods of one file that change and look at the same buffers, one of which has initial values
three_ptd     weights in three data files

The exporter has no form for while_loop; tests/run/test_flow.c writes one.
"""
import usage  # noqa: F401  first of all

import pathlib
import sys

import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import ExecutorchBackendConfig, to_edge_transform_and_lower
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
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


class LayoutNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Conv2d(4, 6, 3, stride=2)
        self.norm, self.last = torch.nn.BatchNorm2d(4), torch.nn.Linear(6, 5)
        self.norm.running_mean.normal_()
        self.norm.running_var.uniform_(0.5, 2)

    def forward(self, x):
        y = self.norm(self.one(x.to(memory_format=torch.channels_last))).relu()
        z = self.two(torch.nn.functional.max_pool2d(y, 2))
        return self.last(z.mean((2, 3))), y, z.contiguous()


class LayoutRows(Layout):
    def forward(self, x):
        y = self.conv(x)
        return y.flatten(2).softmax(-1), y.sum(1), y.mean((2, 3))


class LayoutState(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.randn(1, 3, 2, 4).to(memory_format=torch.channels_last))
        self.register_buffer("other", torch.randn(4, 3, 2).permute(2, 0, 1).unsqueeze(0).transpose(1, 2))
        self.register_buffer("whole", torch.arange(24).reshape(1, 3, 2, 4).to(memory_format=torch.channels_last))

    def forward(self, x):
        self.state.mul_(0.5).add_(x)
        added = x + self.other.permute(0, 3, 2, 1)[:, :3, :, :1].to(memory_format=torch.channels_last)
        return self.state + self.whole, self.state.flatten(1), added, self.whole + 1


class LayoutVolume(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv3d(2, 3, 3, padding=1)
        self.register_buffer("other", torch.randn(1, 3, 3, 4, 5).to(memory_format=torch.channels_last_3d))

    def forward(self, x):
        return self.conv(x).relu() + self.other, x * 2, (x + 1).contiguous()


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


class Cache(torch.nn.Module):
    """Rows that calls put somewhere; tests/run/test_common.c knows the arithmetic."""

    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(1, 6, 4))
        self.register_buffer("count", torch.full((1,), 3.0))


class Prefill(Cache):
    def forward(self, x, pos):
        self.cache.index_copy_(1, pos, x * 2)
        self.count.add_(x[0, 0, :1])
        return self.cache.sum(1)


class Decode(Cache):
    def forward(self, x, pos):
        self.cache.index_copy_(1, pos, x * 3)
        return self.cache.sum(1), self.count * x[0, 0, :1]


class Peek(Cache):
    def forward(self, y):
        return self.cache * y, self.count + y


class Buffers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", torch.zeros(1, dtype=torch.int64))
        self.register_buffer("h", torch.zeros(2, 3))
        self.register_buffer("ring", torch.zeros(4, 3))
        self.register_buffer("flag", torch.zeros(1, dtype=torch.bool))

    def forward(self, x):
        self.n.add_(1)
        self.h.mul_(0.9).add_(x)
        moved = torch.cat([self.ring[1:], x[:1]])
        self.ring.copy_(moved)
        self.flag.logical_not_()
        return self.n * 2, self.h.sum(), moved, self.ring.mean(0), self.flag.to(torch.int64)


class CondBuffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("h", torch.zeros(3))
        self.a, self.b = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
        self.requires_grad_(False)

    def forward(self, x, flag):
        y, h = torch.cond(flag, lambda x, h: (self.a(x) + h, h + 1), lambda x, h: (self.b(x) - h, h * 2), (x, self.h))
        self.h.copy_(h)
        return y


class Attend(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("k", torch.zeros(1, 2, 8, 4))
        self.register_buffer("v", torch.zeros(1, 2, 8, 4))
        self.qkv = torch.nn.Linear(8, 24)
        self.requires_grad_(False)

    def forward(self, x, pos):
        q, k, v = self.qkv(x).view(1, -1, 2, 12).transpose(1, 2).split(4, -1)
        self.k.index_copy_(2, pos, k)
        self.v.index_copy_(2, pos, v)
        mask = torch.arange(8)[None, :] <= pos[:, None]
        return torch.nn.functional.scaled_dot_product_attention(q, self.k, self.v, attn_mask=mask)


class Nonzero(torch.nn.Module):
    def forward(self, x):
        return torch.nonzero(x > 0) + 1


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


def last(*dims):
    return torch.randn(*dims).to(memory_format=torch.channels_last if len(dims) == 4 else torch.channels_last_3d)


def channels_last_net():
    calls = [(last(2, 3, 8, 8),) for _ in range(2)]
    write("channels_last_net", LayoutNet().to(memory_format=torch.channels_last), calls[0], calls, tolerance=1e-4)


def channels_last_rows():
    calls = [(last(n, 3, 6, 4),) for n in (4, 2, 6, 1)]
    rows = {"x": {0: Dim("rows", min=1, max=6)}}
    write("channels_last_rows", LayoutRows().to(memory_format=torch.channels_last), calls[0], calls, rows, tolerance=1e-4)


def channels_last_state():
    calls = [(last(1, 3, 2, 4),) for _ in range(3)]
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["state"])])
    write("channels_last_state", LayoutState(), calls[0], calls, delegates=False, config=config)


def channels_last_3d():
    calls = [(last(1, 2, 3, 4, 5),) for _ in range(2)]
    write("channels_last_3d", LayoutVolume().to(memory_format=torch.channels_last_3d), calls[0], calls, tolerance=1e-4)


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


def buffers():
    calls = [(torch.randn(2, 3),) for _ in range(4)]
    write("buffers", Buffers(), calls[0], calls, delegates=False)


def cond_buffer():
    calls = [(torch.randn(2, 3), torch.tensor(flag)) for flag in (True, False, True, True)]
    write("cond_buffer", CondBuffer(), calls[0], calls)


def cache():
    calls = [(torch.randn(1, len(at), 8), torch.tensor(at)) for at in ([0, 1, 2], [3], [4, 5], [2])]
    rows = Dim("rows", min=1, max=8)
    write("cache", Attend(), calls[0], calls, {"x": {1: rows}, "pos": {0: rows}}, tolerance=1e-4)


def nonzero():
    calls = [(torch.randn(3, 4) + more,) for more in (0, 0, -9, 9)]
    write("nonzero", Nonzero(), calls[0], calls, delegates=False)


def shared_cache():
    methods = {"prefill": (Prefill(), (torch.randn(1, 3, 4), torch.arange(3))),
               "decode": (Decode(), (torch.randn(1, 1, 4), torch.tensor([3]))), "peek": (Peek(), (torch.randn(1),))}
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["count"])],
                                     memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True))
    made = lower({name: export(module, inputs) for name, (module, inputs) in methods.items()}, False, config)
    folder = PROGRAMS / "shared_cache"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(made.buffer)
    case = Case(folder)
    for start in (0, 2, 3):
        x, pos = torch.randn(1, 3, 4), torch.arange(start, start + 3)
        case.call([x, pos], [methods["prefill"][0](x, pos)])
    case.write("prefill")


def three_ptd():
    names = {"one": "first", "two": "second", "three": "third"}
    config = ExecutorchBackendConfig(external_constants=lambda node: next(
        (file for part, file in names.items() if part in node.name), "third"))
    write("three_ptd", Chain(), (torch.randn(2, 5),), delegates=False, config=config)


ALL = {f.__name__.removeprefix("loop_"): f
       for f in (cond, cond_given, loop_map, scan, portable, channels_last, channels_last_net, channels_last_rows,
                 channels_last_state, channels_last_3d, encoder_decoder, buffers, cond_buffer, cache, nonzero,
                 shared_cache, three_ptd)}
if __name__ == "__main__":
    for chosen in sys.argv[1:] or ALL:
        torch.manual_seed(7)
        ALL[chosen]()
        print(chosen, sorted(p.name for p in PROGRAMS.glob("*/*.p*")) and "written")
