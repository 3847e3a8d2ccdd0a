"""Rotary embeddings, attention, caches."""
import torch
from executorch.examples.models.llama.rope import apply_rotary_emb, hf_apply_rotary_emb
from executorch.exir.dialects._ops import ops as edge
from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401, registers llama::
from torch.export import Dim

from .dense import kind
from .form import F16, F32, Form, over, rand
from .reduction import FLOATS

LLAMA, HF = ("et_vk.apply_rotary_emb.default",), ("et_vk.apply_rotary_emb_hf.default",)


class Function(torch.nn.Module):
    """A function of inputs that have names, for dynamic shapes by position."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, a, b=None, c=None, d=None, e=None):
        return self.function(*[x for x in (a, b, c, d, e) if x is not None])


def angles(dtype, *shape):
    return (torch.rand(shape) * 2 - 1).half().to(dtype)


class Tables(torch.nn.Module):
    """Tables of the model's own, sliced at the position that an input says: what a language model does."""

    def __init__(self, rotate, rows, width):
        super().__init__()
        self.rotate, self.rows = rotate, rows
        self.register_buffer("cos", angles(F32, rows, width))
        self.register_buffer("sin", angles(F32, rows, width))

    def forward(self, q, k, pos):
        start, n = pos[0].item(), q.shape[1]
        torch._check(start >= 0)
        torch._check(start + n <= self.rows)
        return self.rotate(q, k, self.cos.narrow(0, start, n), self.sin.narrow(0, start, n))


def rotary_llama():
    n = Dim("n", min=1, max=9)
    q_and_k = lambda dtype, b, s, hq, hkv, d: (rand(b, s, hq, d, dtype=dtype), rand(b, s, hkv, d, dtype=dtype))
    for dtype, forced in ((F32, False), (F32, True)):  # halves have casts between, and stay apart
        calls = over((4, 1, 9, 2, 7), lambda s: (*q_and_k(dtype, 1, s, 4, 2, 6), angles(dtype, s, 3), angles(dtype, s, 3)))
        yield Form(f"rope/llama_{kind(dtype, forced)}", Function(apply_rotary_emb), calls, LLAMA, ({1: n}, {1: n}, {0: n}, {0: n}),
                   fp16=forced)
    yield Form("rope/llama_batch", Function(apply_rotary_emb), [(*q_and_k(F32, 2, 3, 3, 3, 4), angles(F32, 3, 2), angles(F32, 3, 2))], LLAMA)
    # Every head has angles of its own.
    calls = over((4, 1, 9, 2, 7), lambda s: (*q_and_k(F32, 2, s, 4, 4, 6), angles(F32, s, 4, 3), angles(F32, s, 4, 3)))
    yield Form("rope/llama_by_head", Function(apply_rotary_emb), calls, LLAMA, ({1: n}, {1: n}, {0: n}, {0: n}))
    calls = [(*q_and_k(F32, 1, s, 4, 2, 6), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 3), (2, 14), (7, 9))]
    yield Form("rope/llama_position", Tables(apply_rotary_emb, 16, 3), calls, (*LLAMA, "et_vk.select_as_symint.default"),
               ({1: n}, {1: n}, None))


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def transformers_rotary(q, k, cos, sin, unsqueeze=1, partial=True):
    """As Hugging Face's models have it: heads before positions, tables (B, S, W)."""
    cos, sin = cos.unsqueeze(unsqueeze), sin.unsqueeze(unsqueeze)
    w = cos.shape[-1]
    if not partial:
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
    (q, q_rest), (k, k_rest) = (q[..., :w], q[..., w:]), (k[..., :w], k[..., w:])
    return (torch.cat([q * cos + rotate_half(q) * sin, q_rest], dim=-1), torch.cat([k * cos + rotate_half(k) * sin, k_rest], dim=-1))


def rotary_hf():
    n = Dim("n", min=1, max=9)
    seq = lambda b, s, hq, hkv, d, w: (rand(b, s, hq, d), rand(b, s, hkv, d), angles(F32, s, w), angles(F32, s, w))
    for name, heads, w in (("full", (4, 2), 8), ("partial", (3, 3), 4)):
        for dtype, forced in FLOATS:
            calls = over((4, 1, 9, 2, 7), lambda s: [t.to(dtype) for t in seq(1, s, *heads, 8, w)])
            yield Form(f"rope/hf_{name}_{kind(dtype, forced)}", Function(hf_apply_rotary_emb), calls, HF, ({1: n}, {1: n}, {0: n}, {0: n}),
                       fp16=forced, dim_order=dtype == F32, small=name == "full" or not forced)
    calls = [(rand(1, s, 4, 8), rand(1, s, 2, 8), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 3), (2, 14), (7, 9))]
    for name, w in (("position", 8), ("position_partial", 4)):
        yield Form(f"rope/hf_{name}", Tables(hf_apply_rotary_emb, 16, w), calls, (*HF, "et_vk.select_as_symint.default"),
                   ({1: n}, {1: n}, None))
    heads = lambda b, hq, hkv, s, d, w: (rand(b, hq, s, d), rand(b, hkv, s, d), angles(F32, b, s, w), angles(F32, b, s, w))
    first = {
        "heads_first": heads(1, 4, 4, 6, 16, 8),
        "heads_first_grouped": heads(1, 4, 2, 6, 16, 8),
        "heads_first_short": heads(1, 6, 6, 3, 16, 8),
        "heads_first_batch": heads(2, 4, 4, 6, 16, 8),
        "heads_first_square": heads(1, 4, 4, 4, 16, 8),
    }
    for name, inputs in first.items():
        yield Form(f"rope/hf_{name}", Function(transformers_rotary), [inputs], HF)
    calls = over((4, 1, 9, 2, 7), lambda s: heads(2, 4, 2, s, 16, 8))
    yield Form("rope/hf_heads_first_live", Function(transformers_rotary), calls, HF, ({2: n}, {2: n}, {1: n}, {1: n}))
    yield Form("rope/hf_heads_first_whole", Function(transformers_rotary), [heads(1, 4, 4, 6, 8, 8)], HF)
    plain = lambda q, k, c, s: transformers_rotary(q, k, c, s, partial=False)
    yield Form("rope/unfused", Function(plain), [heads(1, 4, 4, 6, 8, 8)])


def rotary_interleaved():
    n = Dim("n", min=1, max=9)
    rotate = {"et_vk.apply_rotary_emb_interleaved.default": torch.ops.et_vk.apply_rotary_emb_interleaved}
    for dtype, forced in FLOATS:
        calls = over((4, 1, 9, 2, 7), lambda s: (rand(2, s, 6, dtype=dtype), angles(dtype, s, 6)))
        yield Form(f"rope/interleaved_{kind(dtype, forced)}", rotate, calls, dynamic=({1: n}, {0: n}), fp16=forced)
    yield Form("rope/interleaved_rank_4", rotate, [(rand(1, 5, 8), angles(F32, 1, 5, 4, 2))])


# ---- attention ----------------------------------------------------------------------------------


def attention():
    n = Dim("n", min=1, max=9)
    sdpa = torch.ops.et_vk.sdpa
    name, close = "et_vk.sdpa.default", (1e-4, 1e-5)
    for dtype, forced in FLOATS:
        calls = over((4, 1, 9, 2, 7), lambda s: [rand(1, 3, s, 8, dtype=dtype) for _ in range(3)])
        yield Form(f"sdpa/{kind(dtype, forced)}", {name: lambda q, k, v: sdpa(q, k, v)}, calls, dynamic=({2: n},) * 3, fp16=forced,
                   tol=close if dtype == F32 and not forced else (4e-3, 2e-3))
    cross = (rand(2, 2, 3, 5), rand(2, 2, 7, 5), rand(2, 2, 7, 5))
    yield Form("sdpa/cross", {name: lambda q, k, v: sdpa(q, k, v), f"{name} scale": lambda q, k, v: sdpa(q, k, v, None, 0.7),
                              f"{name} one": lambda q, k, v: sdpa(q, k, v, None, 1.0)}, [cross], tol=close)
    # Values wider and narrower than keys, and more than one workgroup takes.
    wide = {f"{name} {i}": lambda q, k, *v, i=i: sdpa(q, k, v[i]) for i in range(3)}
    for dtype in (F32, F16):
        inputs = [rand(2, 2, 3, 4), rand(2, 2, 5, 4), rand(2, 2, 5, 6), rand(2, 2, 5, 3), rand(2, 2, 5, 300)]
        yield Form(f"sdpa/value_width_{kind(dtype, False)}", wide, [[t.to(dtype) for t in inputs]], tol=close if dtype == F32 else (4e-3, 2e-3))
    yield Form("sdpa/rank_2", {name: lambda q, k, v, m: sdpa(q, k, v), f"{name} mask": lambda q, k, v, m: sdpa(q, k, v, m)},
               [(rand(3, 4), rand(7, 4), rand(7, 5), rand(3, 7))], tol=close)
    five = [rand(2, 3, 2, 4, 8), *(rand(2, 3, 2, 5, 8) for _ in range(2))]
    masks = [rand(2, 3, 2, 4, 5), rand(3, 1, 4, 5), rand(2, 1, 1, 1, 5), rand(1, 3, 2, 4, 1), rand(2, 3, 1, 1, 5)]
    by_mask = {f"{name} {i}": lambda q, k, v, *m, i=i: sdpa(q, k, v, m[i]) for i in range(5)}
    yield Form("sdpa/rank_5", by_mask, [(*five, *masks)], tol=close, extend=(edge.edge.et_vk.sdpa.default,))
    masked = lambda q, k, v, m: sdpa(q, k, v, m)
    hidden = torch.where(torch.rand(3, 7) < 0.4, -float("inf"), 0.0)
    hidden[:, 2] = 0
    masks = {"whole": rand(2, 2, 3, 7), "broadcast": rand(1, 1, 3, 7), "by_batch": rand(2, 1, 1, 7), "rank_2": rand(3, 7), "hidden": hidden}
    for short, mask in masks.items():
        yield Form(f"sdpa/mask_{short}", {name: masked}, [(*cross, mask)], tol=close)
    hidden = hidden.clone()
    hidden[1] = -float("inf")
    yield Form("sdpa/mask_row_hidden", {name: masked}, [(*cross, hidden)], tol=close)
    grow = over((4, 1, 9, 2, 7), lambda s: (rand(1, 2, s, 8), rand(1, 2, 5, 8), rand(1, 2, 5, 8), rand(1, 1, s, 5)))
    yield Form("sdpa/mask_live", {name: masked}, grow, dynamic=({2: n}, None, None, {2: n}), tol=close)
    large = [t * 12 for t in cross]
    yield Form("sdpa/large_scores", {name: lambda q, k, v: sdpa(q, k, v)}, [large], tol=(1e-3, 1e-3))
    yield Form("sdpa/wide_heads", {name: lambda q, k, v: sdpa(q, k, v)}, [[rand(1, 1, 5, 132) for _ in range(3)]], tol=close)


class Cached(torch.nn.Module):
    def __init__(self, rows, heads, width, scale=None, fill=0.0):
        super().__init__()
        self.rows, self.scale = rows, scale
        self.register_buffer("keys", torch.full((1, rows, heads, width), fill))
        self.register_buffer("values", torch.full((1, rows, heads, width), fill))

    def forward(self, q, k, v, pos):
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + q.shape[1] <= self.rows)
        torch.ops.llama.update_cache(k, self.keys, start)
        torch.ops.llama.update_cache(v, self.values, start)
        return torch.ops.llama.custom_sdpa(q, self.keys, self.values, start, None, 0.0, True, self.scale)


class Update(torch.nn.Module):
    def __init__(self, rows, heads, width):
        super().__init__()
        self.rows = rows
        self.register_buffer("cache", torch.zeros(1, rows, heads, width))

    def forward(self, x, pos):
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + x.shape[1] <= self.rows)
        torch.ops.llama.update_cache(x, self.cache, start)
        return self.cache * 2


class Uncached(torch.nn.Module):
    def __init__(self, rows, causal, masked, scale=None):
        super().__init__()
        self.rows, self.causal, self.masked, self.scale = rows, causal, masked, scale

    def forward(self, q, k, v, pos, mask=None):
        start = pos[0].item()
        torch._check(start >= 0)
        torch._check(start + q.shape[1] <= self.rows)
        return torch.ops.llama.custom_sdpa(q, k, v, start, mask, 0.0, self.causal, self.scale)


def caches():
    n = Dim("n", min=1, max=9)
    names = ("sdpa_with_kv_cache.default", "et_vk.select_as_symint.default")
    walk = ((4, 0), (1, 4), (1, 5), (9, 6), (2, 15), (3, 0), (1, 3), (7, 10))  # on, to the end, back to the start
    step = lambda s, p, hq, hkv, d: (rand(1, s, hq, d), rand(1, s, hkv, d), rand(1, s, hkv, d), torch.tensor([p]))
    dynamic = ({1: n},) * 3 + (None,)
    close = (1e-4, 1e-5)
    for name, hq, hkv, d in (("mha", 3, 3, 8), ("gqa", 6, 2, 8), ("mqa", 4, 1, 4), ("odd_width", 2, 2, 6)):
        yield Form(f"cache/{name}", Cached(17, hkv, d), [step(s, p, hq, hkv, d) for s, p in walk], names, dynamic, tol=close)
    few = [step(s, p, 2, 1, 132) for s, p in ((4, 0), (1, 4), (2, 15))]
    yield Form("cache/wide", Cached(17, 1, 132), few, names, dynamic, tol=close)
    yield Form("cache/scale", Cached(17, 2, 8, scale=0.25), [step(s, p, 4, 2, 8) for s, p in walk], names, dynamic, tol=close)
    yield Form("cache/float16", Cached(17, 2, 8), [step(s, p, 4, 2, 8) for s, p in walk], names, dynamic, fp16=True, tol=(4e-3, 2e-3))
    one = [step(1, p, 4, 2, 8) for p in (0, 1, 2, 3, 16, 0)]
    yield Form("cache/one_token", Cached(17, 2, 8), one, names, tol=close)
    again = [dict(inputs=step(s, p, 4, 2, 8), reload=i == 2) for i, (s, p) in enumerate(((4, 0), (1, 4), (3, 2), (1, 5)))]
    yield Form("cache/reload", Cached(17, 2, 8), again, names, dynamic, tol=close)
    # As the exporter's own tests do: what was written before counts.
    calls = [(rand(1, s, 2, 6), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 8), (2, 1), (7, 10))]
    yield Form("cache/update", Update(17, 2, 6), calls, ("update_cache.default",), ({1: n}, None))
    calls = [(rand(1, s, 4, 8), rand(1, 17, 2, 8), rand(1, 17, 2, 8), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 8), (2, 15), (7, 3))]
    for name, causal, scale in (("causal", True, None), ("scaled", True, 0.3)):
        yield Form(f"cache/custom_sdpa_{name}", Uncached(17, causal, False, scale), calls, ("llama.custom_sdpa.default",), ({1: n}, None, None, None),
                   unfuse=("causal_sdpa",), tol=close)
    batch = [(rand(3, s, 4, 8), rand(3, 17, 2, 8), rand(3, 17, 2, 8), torch.tensor([p])) for s, p in ((4, 0), (1, 4), (9, 8), (2, 15), (7, 3))]
    yield Form("cache/custom_sdpa_batch", Uncached(17, True, False), batch, ("llama.custom_sdpa.default",), ({1: n}, None, None, None),
               unfuse=("causal_sdpa",), tol=close)
    masked = [(*c[:3], torch.tensor([0]), rand(c[0].shape[1], 17)) for c in calls]
    yield Form("cache/custom_sdpa_mask", Uncached(17, False, True), masked, ("llama.custom_sdpa.default",), ({1: n}, None, None, None, {0: n}),
               unfuse=("causal_sdpa",), tol=close)


def forms():
    for family in (rotary_llama, rotary_hf, rotary_interleaved, attention, caches):
        yield from family()
