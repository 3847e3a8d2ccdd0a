"""Dtypes and ranks that are rare and legitimate: half tensors with numbers, booleans that are added, tensors without dims."""
import torch
from torch.export import Dim

from .form import BOOL, F16, F32, I8, I32, I64, U8, Form, bools, ints, over, rand, word
from .portable import COMPARED_SCALARS, SCALARS, SCALARS_NEW, outside, whole

aten = torch.ops.aten


def numbers():
    """A number beside halves is a half."""
    yield outside("scalars_half", SCALARS, [(rand(3, 5, dtype=F16),)], tol=(2e-3, 1e-3))
    yield outside("compare_scalars_half", COMPARED_SCALARS, [(ints(-2, 2, 3, 5).to(F16),)])
    yield whole("scalars_new_half", SCALARS_NEW, [(ints(-9, 9, 3, 5).to(F16),)])


def booleans():
    both = {"aten::add.out": torch.add, "aten::maximum.out": torch.maximum, "aten::minimum.out": torch.minimum, "aten::mul.out": torch.mul,
            "aten::div.out": lambda x, y: torch.div(x, y | True)}
    yield outside("binary_bool", both, [(bools(3, 1), bools(5))])
    yield outside("binary_uint8", {k: both[k] for k in list(both)[:4]}, [(ints(0, 255, 3, 1, dtype=U8), ints(0, 255, 5, dtype=U8))])


def choices():
    """torch.where takes one dtype of two, as a sum does."""
    mixed = [(bools(4, 1), rand(3), ints(-9, 9, 4, 3))]
    yield outside("where_mixed", {"aten::where.self_out": torch.where}, mixed)
    yield outside("where_mixed_bool", {"aten::where.self_out": torch.where}, [(bools(4, 1), bools(3), ints(-9, 9, 4, 3))])
    yield outside("where_mixed_half", {"aten::where.self_out": torch.where}, [(bools(4, 1), rand(3, dtype=F16), torch.tensor(2))])


def joined():
    """torch.cat promotes as a sum does."""
    along = lambda *x: torch.cat(x, -1)
    mixed = (rand(2, 3), ints(-9, 9, 2, 2), rand(2, 1, dtype=F16), ints(-9, 9, 2, 3, dtype=I32))
    yield Form("move/cat_mixed", {"aten.cat.default": along}, [mixed])
    yield outside("cat_mixed", {"aten::cat.out": along}, [(*mixed, bools(2, 4), ints(0, 255, 2, 1, dtype=U8))])
    yield outside("cat_mixed_ints", {"aten::cat.out": along}, [(ints(0, 255, 2, 3, dtype=U8), bools(2, 2), ints(-9, 9, 2, 3))])
    yield outside("cat_mixed_empty", {"aten::cat.out": along}, [(ints(-9, 9, 2, 3), rand(2, 3, dtype=F16), torch.zeros(0, dtype=F16))])


class Sum(torch.nn.Module):
    """A product with a weight of the model's own, and a sum that need not be a row."""

    def __init__(self, bias):
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(rand(8, 6)), torch.nn.Parameter(bias)

    def forward(self, x):
        return torch.nn.functional.linear(x, self.weight, self.bias)


def sums():
    for name, bias in (("matrix", rand(3, 8)), ("column", rand(3, 1)), ("row", rand(1, 8)), ("one", rand(1)), ("number", torch.tensor(0.75))):
        yield Form(f"linear/sum_{name}", Sum(bias), [(rand(3, 6),)], ("aten.linear.default",), tol=(1e-4, 1e-5))


def tables():
    """Rows by index, of whatever elements; places in bytes."""
    at = lambda table, places: torch.nn.functional.embedding(places, table)
    for dtype, table in ((I64, ints(-99, 99, 5, 3)), (U8, ints(0, 255, 5, 3, dtype=U8)), (BOOL, bools(5, 3))):
        yield outside(f"embedding_{word(dtype)}", {"aten::embedding.out": at}, [(table, ints(0, 4, 2, 3))])
    both = {"aten::argmax.out": lambda x: x.argmax(1), "aten::argmin.out": lambda x: x.argmin(0, keepdim=True)}
    for dtype, low, high in ((U8, 0, 255), (I8, -128, 127)):
        yield outside(f"argmax_{word(dtype)}", both, [(ints(low, high, 5, 7, dtype=dtype),)])


def extrema():
    """A NaN is the largest element and the smallest."""
    nan, inf = float("nan"), float("inf")
    of = {"aten::max.dim_max": lambda x: x.max(1), "aten::min.dim_min": lambda x: x.min(1), "aten::amin.out": lambda x: x.amin(1),
          "aten::argmin.out": lambda x: x.argmin(1)}
    yield outside("extrema_nan", of, [(torch.tensor([[1, nan, -inf, nan], [inf, 2, nan, -1], [3, -inf, 4, inf]]),)])


def orders():
    """Sorted along a dim: equal elements in their order, a NaN behind all numbers."""
    of = {"aten::sort.values": lambda x: x.sort(-1), "aten::sort.values down": lambda x: x.sort(0, descending=True),
          "aten::sort.values_stable": lambda x: x.sort(dim=1, stable=True), "aten::sort.values_stable down": lambda x: x.sort(dim=1, stable=True, descending=True)}
    for dtype in (F32, F16, I64, BOOL):
        make = lambda n: ints(-4, 4, 3, n).to(dtype) if dtype != BOOL else bools(3, n)
        yield outside(f"sort_{word(dtype)}", of, over((7, 1, 9, 2), make), dynamic=({1: Dim("n", min=1, max=9)},))
    nan, inf = float("nan"), float("inf")
    corners = torch.tensor([[1, nan, -inf, 0.0, -0.0, inf, nan, 1]])
    yield outside("sort_corners", {k: f for k, f in of.items() if k != "aten::sort.values down"}, [(corners,), (-corners,)])
    yield outside("quantile", {"aten::sort.values": lambda x: torch.quantile(x, 0.3, dim=1)}, [(rand(3, 8),)])
    yield outside("sort_number", {"aten::sort.values": lambda x: x.sort(-1)}, [(torch.tensor(2.5),)])


def without_dims():
    """A tensor without dims counts as one of one element wherever an operator takes a dim."""
    of = {
        "aten.amax.default": lambda x: x.amax(-1),
        "aten.sum.dim_IntList": lambda x: x.sum(0, keepdim=True),
        "aten._softmax.default": lambda x: x.softmax(-1),
    }
    reduced = {
        "aten::amax.out": lambda x: x.amax(-1),
        "aten::amin.out": lambda x: x.amin(0),
        "aten::sum.IntList_out": lambda x: x.sum(-1, keepdim=True),
        "aten::argmax.out": lambda x: x.argmax(-1),
        "aten::var.correction_out": lambda x: torch.var(x, -1, correction=0),
        "aten::cumsum.out": lambda x: x.cumsum(-1),
        "aten::max.dim_max": lambda x: x.max(-1),
        "aten::transpose_copy.int_out": lambda x: x.transpose(0, -1) * 2,
        "aten::flip.out": lambda x: x.flip(-1),
    }
    calls = [(torch.tensor(2.5),), (torch.tensor(-1.25),)]
    yield Form("reduce/without_dims", of, calls)
    yield outside("without_dims", {k: f for k, f in reduced.items() if "transpose" not in k}, calls)
    index = {
        "aten::gather.out": lambda x, i: torch.gather(x, -1, i),
        "aten::index_select.out": lambda x, i: torch.index_select(x, 0, i),
    }
    yield outside("gather_without_dims", index, [(torch.tensor(2.5), torch.tensor(0))])
    yield outside("gather_one", index, [(rand(5), torch.tensor(3)), (rand(5), torch.tensor(0))])


def integers():
    """Products of integers: counts, adjacency."""
    for dtype in (I32, I64):
        a, b, c = ints(-90, 90, 3, 5, dtype=dtype), ints(-90, 90, 5, 4, dtype=dtype), ints(-9, 9, 4, dtype=dtype)
        yield outside(f"mm_{word(dtype)}", {"aten::mm.out": lambda a, b, c: a @ b, "aten::addmm.out": lambda a, b, c: torch.addmm(c, a, b),
                                            "aten::addmm.out scaled": lambda a, b, c: torch.addmm(c, a, b, beta=3, alpha=-2)}, [(a, b, c)])
        yield outside(f"bmm_{word(dtype)}", {"aten::bmm.out": torch.bmm}, [(ints(-20000, 20000, 2, 3, 5, dtype=dtype), ints(-90, 90, 2, 5, 4, dtype=dtype))])


def forms():
    for family in (numbers, booleans, choices, joined, sums, tables, extrema, orders, without_dims, integers):
        yield from family()
