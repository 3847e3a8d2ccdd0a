"""What concerns a graph rather than an operator: live integers, state, static shapes, training steps."""
import operator

import torch
import torch.nn.functional as F
from torch.export import Dim

from .form import I32, Form, ints, over, rand, word


class Position(torch.nn.Module):
    """A row of a table and what follows it: a position that an input says, read on the host."""

    def __init__(self, rows, index):
        super().__init__()
        self.rows, self.index = rows, index
        self.register_buffer("table", rand(rows, 3))

    def forward(self, x, pos):
        start = pos[self.index].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[0] <= self.rows)
        return x + self.table.narrow(0, start, x.shape[0])


def live_integers():
    n = Dim("n", min=1, max=9)
    double = 2 * Dim("half", min=1, max=5)
    views = {
        "mul": lambda x: x.reshape(x.shape[0] * 2, 3),
        "floordiv": lambda x: x.reshape(x.shape[0] // 2, 12),
        "add": lambda x: F.pad(x, (0, 0, 0, 1)).reshape((x.shape[0] + 1) * 6),
        "sub": lambda x: x[: x.shape[0] - 1].reshape((x.shape[0] - 1) * 6),
    }
    even = over((4, 2, 10, 6, 8), lambda k: rand(k, 6))
    name = ("sym_size.int",)
    for label, function in views.items():
        yield Form(f"symint/{label}", {f"{label} view": function}, even, (*name, label), ({0: double},))
    calls = [(rand(k, 3), torch.tensor([p])) for k, p in ((4, 0), (1, 16), (9, 3), (2, 15), (7, 9))]
    yield Form("symint/position", Position(17, 0), calls, ("et_vk.select_as_symint.default", "add", "sym_size.int"), ({0: n}, None))
    calls = [(rand(k, 3), torch.tensor([1, p])) for k, p in ((4, 0), (1, 16), (9, 3), (2, 15), (7, 9))]
    yield Form("symint/position_last", Position(17, -1), calls, ("et_vk.select_as_symint.default",), ({0: n}, None))
    # The size of an intermediate, not of an input.
    shrunk = lambda x: x[::2].reshape(x[::2].shape[0] * 2, 3)
    yield Form("symint/of_a_result", {"view": shrunk}, even, name, ({0: double},))
    halves = lambda x: x[: x.shape[0] // 2] - x[x.shape[0] // 2 :]
    yield Form("symint/slices", {"aten.slice_copy.Tensor": halves}, even, name, ({0: double},))
    # Operators that the stock partitioner leaves outside.
    others = {
        "mod": (lambda x: x[: x.shape[0] % 3 + 1] * 2, operator.mod),
        "sym_max": (lambda x: F.pad(x, (0, 0, 0, torch.sym_max(x.shape[0], 5) - x.shape[0])), torch.sym_max),
        "sym_min": (lambda x: x[: torch.sym_min(x.shape[0], 5)] * 2, torch.sym_min),
    }
    for label, (function, target) in others.items():
        yield Form(f"symint/{label}", {f"{label} other": function}, even, (label,), ({0: double},), extend=(target,))


class State(torch.nn.Module):
    """A buffer that each call changes; `how` says in which way."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.register_buffer("h", rand(2, 3))

    def forward(self, x):
        if self.how == "sum":
            self.h.add_(x)
        elif self.how == "mean":
            self.h.copy_(self.h * 0.75 + x * 0.25)
        elif self.how == "where":
            self.h.copy_(torch.where(x > 0, x, self.h))
        elif self.how == "minimum":
            self.h.copy_(torch.minimum(self.h, x))
        elif self.how == "roll":
            self.h.copy_(torch.cat([self.h[1:], x[:1]]))
        return self.h * 2 + x


class Two(torch.nn.Module):
    """Two states of equal shape and dtype, each from itself and from the other."""

    def __init__(self):
        super().__init__()
        self.register_buffer("a", rand(2, 3))
        self.register_buffer("b", rand(2, 3))

    def forward(self, x):
        a, b = self.a + x, self.b * 0.5 - self.a
        self.a.copy_(a)
        self.b.copy_(b)
        return a + b


def states():
    calls = [(rand(2, 3),) for _ in range(4)]
    calls = [*calls[:2], dict(inputs=calls[2], reload=True), calls[3]]
    for how in ("sum", "mean", "where", "minimum", "roll"):
        yield Form(f"state/{how}_alias", State(how), calls, options={"alias_buffer_mutations": True})
        yield Form(f"state/{how}", State(how), calls)
    # With alias_buffer_mutations the exporter lets b read the new a: no runtime can be right.
    yield Form("state/two", Two(), calls)


def static_shapes():
    layer, x = torch.nn.Linear(5, 4), rand(3, 5)
    wrong = [dict(inputs=(rand(2, 5),), error=True), dict(inputs=(rand(4, 5),), error=True), dict(inputs=(rand(5),), error=True)]
    yield Form("static/linear", layer, [(x,), *wrong, (rand(3, 5),)], tol=(1e-4, 1e-5))
    sum_of = {"aten.add.Tensor": lambda x, y: x + y}
    wrong = [dict(inputs=(rand(1, 5), rand(5)), error=True), dict(inputs=(rand(3, 5), rand(1)), error=True)]
    yield Form("static/broadcast", sum_of, [(rand(3, 5), rand(5)), *wrong, (rand(3, 5), rand(5))])
    last = {"aten.select_copy.int": lambda x: x[-1] * 2}
    yield Form("static/last_row", last, [(rand(4, 4),), dict(inputs=(rand(3, 4),), error=True)])
    n = Dim("n", min=1, max=6)
    # A file does not say which dims of a tensor are live, only the largest.
    mixed = [(rand(4, 3),), dict(inputs=(rand(4, 4),), error=True), (rand(6, 3),), dict(inputs=(rand(7, 3),), error=True), (rand(1, 3),)]
    yield Form("static/beyond", {"aten.mul.Tensor": lambda x: x * x}, mixed, dynamic=({0: n},))


class Loss(torch.nn.Module):
    def forward(self, logits, labels):
        return torch.ops.et_vk.fused_ce(logits, labels, 3.0)


def training():
    labels = torch.tensor([2, -100, 0, 4], dtype=I32)
    yield Form("training/fused_ce", Loss(), [(rand(4, 5, scale=3), labels), (rand(4, 5, scale=30), labels.flip(0).contiguous())],
               ("et_vk.fused_ce.default",), tol=(1e-4, 1e-5))
    step = {"et_vk.linear_dW.default": torch.ops.et_vk.linear_dW}
    yield Form("training/linear_dW", step, [(rand(4, 5), rand(4, 7))], tol=(1e-4, 1e-5))
    yield Form("training/linear_dW_rank_3", step, [(rand(2, 4, 5), rand(2, 4, 7))], tol=(1e-4, 1e-5))


class Cloned(torch.nn.Module):
    """A delegate's integer, two tensors of equal dims, and one twice, which the exporter names once."""

    def forward(self, x):
        one_more = x.shape[0] + 1
        y, z = x * 2 + 1, x - 3
        both = torch.cat([y, z], 1)
        again = both.clone()
        return x.fmod(one_more), y.fmod(3.0), z.fmod(3.0), both.fmod(3.0), again.fmod(2.0)


class ChannelsLast(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(x)


def edges():
    """What lies at the borders of a method: dtypes, dims of zero, dims in another order."""
    n = Dim("n", min=0, max=6)
    calls = over((3, 0, 6, 1, 0, 5), lambda k: rand(k, 3))
    plain = {
        "aten.add.Tensor": lambda x: x + 1,
        "aten.relu.default": torch.relu,
        "aten.permute_copy.default": lambda x: x.t(),
        "aten.cat.default": lambda x: torch.cat([x, x], 1),
        "aten.mean.dim": lambda x: x.mean(-1),
    }
    yield Form("border/empty_live", plain, calls, dynamic=({0: n},))
    yield Form("border/empty_linear", torch.nn.Linear(3, 5), calls, ("aten.linear.default",), ({0: n},), tol=(1e-4, 1e-5))
    yield Form("border/empty_softmax", {"aten._softmax.default": lambda x: F.softmax(x, -1), "aten.sum.dim_IntList": lambda x: x.sum(0, keepdim=True)},
               calls, dynamic=({0: n},))
    yield Form("border/double", {"sum": lambda x, y: x + y * 2}, [(rand(3, 5).double(), rand(5).double())])
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.float64):
        x = ints(0, 100, 3, 5).to(dtype)
        why = "integers of 16 bits" if dtype == torch.int16 else ""
        yield Form(f"border/cast_of_{word(dtype)}", {"cast": lambda x: x.to(torch.float32) / 4}, [(x,), (x.flip(0),)], pending=why)
        yield Form(f"border/cast_to_{word(dtype)}", {"cast": lambda x: (x * 4).to(dtype)}, [(ints(0, 30, 3, 5).float(),)], pending=why)
    yield Form("border/passed_on", {"aten.add.Tensor": lambda x, y: (x + y, x, y)}, [(rand(3, 5), rand(5)), (rand(3, 5), rand(5))])
    yield Form("border/twice", {"aten.add.Tensor": lambda x, y: (lambda z: (z, z))(x + y)}, [(rand(3, 5), rand(5))])
    yield Form("border/clone_returned", Cloned(), over((4, 1, 6, 3), lambda k: rand(k, 3)), ("aten::fmod.Scalar_out",), ({0: n},))
    yield Form("border/constant", {"aten.add.Tensor": lambda x: (x + 1, torch.arange(3.0))}, [(rand(3, 5),)])
    yield Form("border/unused", {"aten.add.Tensor": lambda x, y: x + 1}, [(rand(3, 5), rand(2))])
    last = rand(1, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    yield Form("border/channels_last", ChannelsLast(), [(last,)], tol=(1e-4, 1e-5))
    inside = {"dim_order": lambda x: (x + 1).contiguous(memory_format=torch.channels_last) * 2}
    yield Form("border/channels_last_inside", inside, [(rand(1, 3, 4, 5),)])


def forms():
    for family in (live_integers, states, static_shapes, edges, training):
        yield from family()
