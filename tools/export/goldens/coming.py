"""Operators on their way in ExecuTorch: this exporter has neither them nor patterns for them, so they are defined here and the
partitioner is told to take them. What they compute is PyTorch's."""
import copy

import torch
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from .attention import Function, angles
from .dense import Dynamic
from .form import F16, F32, Form, over, rand, word

SCHEMAS = {
    "apply_rotary_emb_hf_single": "(Tensor x, Tensor freqs_cos, Tensor freqs_sin, SymInt start_pos) -> Tensor",
    "gemma4_sdpa": "(Tensor q, Tensor k, Tensor v, SymInt start_pos, Tensor? mask, float dropout, bool is_causal, float? scale) -> Tensor",
    "scatter_src_unique": "(Tensor x, int dim, Tensor index, Tensor src) -> Tensor",
}


def rotated(x, cos, sin, start):
    """x (batch, seq, heads, dim), tables (positions, dim)."""
    rows = slice(start, start + x.shape[1])
    first, second = x.chunk(2, -1)
    turned = torch.cat([-second, first], -1)
    return x * cos[rows].unsqueeze(1) + turned * sin[rows].unsqueeze(1)


def attention(q, k, v, start, mask, dropout, causal, scale):
    """q (1, queries, heads, dim), k and v (1, keys, kv heads, dim), mask (queries, keys)."""
    group = q.shape[2] // k.shape[2]
    q, k, v = (t.transpose(1, 2) for t in (q, k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)))
    weights = torch.softmax(q @ k.transpose(2, 3) * scale + mask, -1)
    return (weights @ v).transpose(1, 2).contiguous()


def define():
    library = torch.library.Library("et_vk", "FRAGMENT")
    eager = {"apply_rotary_emb_hf_single": rotated, "gemma4_sdpa": attention, "scatter_src_unique": lambda x, dim, i, s: x.scatter(dim, i, s)}
    for name, schema in SCHEMAS.items():
        if not hasattr(torch.ops.et_vk, name):
            library.define(name + schema)
            library.impl(name, eager[name], "CPU")
            library.impl(name, lambda x, *_: torch.empty_like(x), "Meta")
    return library  # while it lives


LIBRARY = define()


class Twice(torch.nn.Module):
    """Two products by equal weights, whose bytes are in the file once."""

    def __init__(self, product):
        super().__init__()
        self.first, self.second = product, copy.deepcopy(product)

    def forward(self, x, y):
        return self.first(x), self.second(y)


class Rotation(torch.nn.Module):
    def __init__(self, rows, width, dtype):
        super().__init__()
        self.rows = rows
        self.register_buffer("cos", angles(dtype, rows, width))
        self.register_buffer("sin", angles(dtype, rows, width))

    def forward(self, x, pos):
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= self.rows)
        return torch.ops.et_vk.apply_rotary_emb_hf_single(x, self.cos, self.sin, start)


def coming(name, module, calls, operator, dynamic, **how):
    return Form(f"coming/{name}", module, calls, (f"et_vk.{operator}.default",), dynamic, extend=(getattr(edge.edge.et_vk, operator).default,), **how)


def forms():
    yield Form("coming/shared_8da4w", Twice(Dynamic(12, 64, 32)), [(rand(4, 64), rand(3, 64)), (rand(4, 64), rand(3, 64, scale=4))],
               ("et_vk.linear_dq8ca_q4gsw.default",), tol=(1e-3, 1e-3))
    n = Dim("n", min=1, max=9)
    for dtype in (F32, F16):
        tol = (1e-4, 1e-5) if dtype == F32 else (3e-3, 3e-3)
        calls = [(rand(1, s, 3, 6, dtype=dtype), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 3), (2, 14), (7, 9))]
        yield coming(f"rotary_hf_single_{word(dtype)}", Rotation(16, 6, dtype), calls, "apply_rotary_emb_hf_single", ({1: n}, None), tol=tol)
        # Each query sees one key more than the one before.
        kept = lambda k: (torch.arange(5) <= 5 - k + torch.arange(k).unsqueeze(1)).to(dtype).log().clamp(min=-1e4)
        attend = Function(lambda q, k, v, m: torch.ops.et_vk.gemma4_sdpa(q, k, v, 0, m, 0.0, False, 0.0625))
        yield coming(f"gemma4_sdpa_{word(dtype)}", attend,
                     over((4, 1, 5), lambda k: (rand(1, k, 2, 256, dtype=dtype), rand(1, 5, 1, 256, dtype=dtype), rand(1, 5, 1, 256, dtype=dtype), kept(k))),
                     "gemma4_sdpa", ({1: n}, None, None, {0: n}), tol=tol)
        put = Function(lambda x, i, s: torch.ops.et_vk.scatter_src_unique(x, 1, i, s))
        index = lambda k: torch.stack([torch.randperm(7)[:3] for _ in range(k)])
        yield coming(f"scatter_src_unique_{word(dtype)}", put, over((4, 1, 9, 2, 7), lambda k: (rand(k, 7, dtype=dtype), index(k), rand(k, 3, dtype=dtype))),
                     "scatter_src_unique", ({0: n},) * 3)
