"""Operators that the stock partitioner leaves outside of delegates. tools/export/goldens has the others."""
import torch
from goldens.form import F16, over, rand
from goldens.others import inside
from torch.export import Dim

MORE = {
    "aten::exp2.out": torch.exp2,
    "aten::isinf.out": torch.isinf,
    "aten::isnan.out": torch.isnan,
    "aten::logit.out": lambda x: torch.logit(x, 1e-6),
    "aten::round.decimals_out": lambda x: torch.round(x, decimals=1),
}


def forms():
    rows = over((4, 1, 9, 2, 7), lambda k: rand(k, 3, scale=0.25).abs() + 0.03125)
    yield inside("unary_more", MORE, rows, whole=True, dynamic=({0: Dim("n", min=1, max=9)},), tol=(1e-4, 1e-4))
    halves = over((4, 1, 9, 2, 7), lambda k: rand(k, 3, scale=0.25, dtype=F16).abs() + 0.03125)
    yield inside("unary_more_half", MORE, halves, whole=True, dynamic=({0: Dim("n", min=1, max=9)},), tol=(2e-3, 1e-3))
    odd = torch.tensor([0.0, -0.0, 1.5, float("inf"), -float("inf"), float("nan")])
    special = {k: f for k, f in MORE.items() if "::is" in k}
    yield inside("unary_is_special", special, [(odd,)])
