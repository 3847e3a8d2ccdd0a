"""The large set: every family over dtypes, ranks and random dims, each with several live shapes. Not in the repository."""
import itertools
import random

import torch
import torch.nn.functional as F
from torch.export import Dim

from .attention import Cached, Function, angles
from .dense import Dynamic, Embedding4, Grouped, PerChannel, kind
from .elementwise import (BINARY, BINARY_TOL, DIVISIONS, LOGIC, POSITIVE, UNARY, UNARY_TOL, against, halves, integral, nonzero, quotients)
from .form import BOOL, F16, F32, I32, I64, Form, bools, flat, ints, over, rand, word
from .movement import some
from .quantized import Conv, Linear, Static, case
from .reduction import FLOATS, LayerNorm, RmsNorm
from .spatial import Then, conv

CLOSE, ROUGH = (1e-4, 2e-5), (3e-3, 3e-3)


def close(dtype, forced):
    return CLOSE if dtype == F32 and not forced else ROUGH


class Shapes:
    """Dims to export with and dims to call with: one dim of a rank is live, up to `most`."""

    def __init__(self, rng, rank, most=19):
        self.dims = [rng.choice((1, 2, 3, 4, 5, 7, 8, 9)) for _ in range(rank)]
        if rank > 2:  # where the exporter drops a 1 around gelu it fails
            self.dims[:-1] = [max(2, d) for d in self.dims[:-1]]
        self.live = rng.randrange(rank)
        self.dim = Dim("n", min=1, max=most)
        self.sizes = [rng.randint(2, most), 1, most, *(rng.randint(1, most) for _ in range(3))]
        if self.sizes[0] == self.dims[self.live]:
            self.sizes[0] += 1 if self.sizes[0] < most else -1

    def at(self, size):
        return [size if i == self.live else d for i, d in enumerate(self.dims)]

    @property
    def dynamic(self):
        return {self.live: self.dim}

    def calls(self, make):
        return [flat(make(self.at(s))) for s in self.sizes]


def broad(name, functions, calls, *args, **how):
    return Form(f"broad/{name}", functions, calls, *args, small=False, **how)


def elementwise(rng):
    for rank, (dtype, forced) in itertools.product((1, 2, 3, 4), FLOATS):
        s, name = Shapes(rng, rank), f"rank_{rank}_{kind(dtype, forced)}"
        precise = dtype == F32 and not forced
        tol = UNARY_TOL if precise else halves(UNARY_TOL)
        yield broad(f"unary_{name}", UNARY, s.calls(lambda d: rand(*d, dtype=dtype, scale=1.5)), dynamic=(s.dynamic,), fp16=forced, tol=tol)
        yield broad(f"positive_{name}", POSITIVE, s.calls(lambda d: rand(*d, dtype=dtype).abs() + 0.125), dynamic=(s.dynamic,), fp16=forced,
                    tol=tol)
        # One operand has 1 where the other has the live dim, or fewer dims.
        fewer = lambda d: [1 if i == s.live or rng.random() < 0.3 else x for i, x in enumerate(d)]
        other = fewer(s.at(1))[rng.randrange(rank):] if rank > 1 else [1]
        both = {**BINARY, **DIVISIONS}
        calls = s.calls(lambda d: quotients(d, other, dtype))
        yield broad(f"binary_{name}", both, calls, dynamic=(s.dynamic, None), fp16=forced, tol=BINARY_TOL if precise else None)
        calls = s.calls(lambda d: quotients(d, d, dtype)[::-1])
        same = {k: f for k, f in both.items() if "div" not in k}
        yield broad(f"binary_same_{name}", same, calls, dynamic=(s.dynamic, s.dynamic), fp16=forced)
        yield broad(f"scalars_{name}", against(0.5), s.calls(lambda d: (ints(-3, 3, *d).float() / 2).to(dtype)), dynamic=(s.dynamic,), fp16=forced)
        yield broad(f"where_{name}", {"aten.where.self": torch.where},
                    s.calls(lambda d: (bools(*d), rand(*other, dtype=dtype), rand(*d, dtype=dtype))), dynamic=(s.dynamic, None, s.dynamic),
                    fp16=forced)
    for rank, dtype in itertools.product((1, 2, 3, 4), (I32, I64)):
        s = Shapes(rng, rank)
        calls = s.calls(lambda d: (ints(-40, 40, *d, dtype=dtype), nonzero(ints(-7, 7, *d[-1:], dtype=dtype)) if s.live < rank - 1 else
                                   nonzero(ints(-7, 7, *d, dtype=dtype))))
        dynamic = (s.dynamic, None) if s.live < rank - 1 else (s.dynamic, s.dynamic)
        yield broad(f"binary_rank_{rank}_{word(dtype)}", {**integral(BINARY), **DIVISIONS}, calls, dynamic=dynamic, tol=BINARY_TOL)
        yield broad(f"scalars_rank_{rank}_{word(dtype)}", against(2), s.calls(lambda d: ints(-4, 4, *d, dtype=dtype)), dynamic=(s.dynamic,))
    for rank in (1, 2, 3, 4):
        s = Shapes(rng, rank)
        yield broad(f"logic_rank_{rank}", LOGIC, s.calls(lambda d: (bools(*d), bools(*d))), dynamic=(s.dynamic,) * 2)


def movement(rng):
    for rank, dtype in itertools.product((1, 2, 3, 4), (F32, F16, I32, I64, BOOL)):
        s, name = Shapes(rng, rank), f"rank_{rank}_{word(dtype)}"
        moves = {"aten.unsqueeze_copy.default": lambda x, k=rng.randint(-rank - 1, rank): x.unsqueeze(k)}
        for i, order in enumerate(rng.sample(list(itertools.permutations(range(rank))), min(3, rank))):
            if order != tuple(range(rank)):
                moves[f"aten.permute_copy.default {order}"] = lambda x, order=order: x.permute(order)
        still = [i for i in range(rank) if i != s.live]
        for i in still:
            size = s.dims[i]
            first = rng.randrange(size)
            last, step = rng.randint(first + 1, size), rng.randint(1, 3)
            index = [slice(None)] * rank
            index[i] = slice(first, last, step)
            if (first, step) != (0, 1) or last != size:
                moves[f"aten.slice_copy.Tensor {i}"] = lambda x, index=tuple(index): x[index]
            moves[f"aten.select_copy.int {i}"] = lambda x, i=i, at=rng.randrange(-size, size): x.select(i, at)
        yield broad(f"move_{name}", moves, s.calls(lambda d: some(*d, dtype=dtype)), dynamic=(s.dynamic,))
        if dtype != BOOL:
            axis, extra = rng.choice(still) if still else 0, rng.randint(1, 4)
            wide = lambda d: [extra if i == axis else x for i, x in enumerate(d)]
            if still:
                cats = {"aten.cat.default": lambda x, y: torch.cat([x, y], axis), "aten.cat.default three":
                        lambda x, y: torch.cat([y, x, y], axis - rank)}
                yield broad(f"cat_{name}", cats, s.calls(lambda d: (some(*d, dtype=dtype), some(*wide(d), dtype=dtype))),
                            dynamic=(s.dynamic, s.dynamic))
            pads = {}
            for i in range(2):
                pad = [rng.randint(0, 3) for _ in range(2 * rng.randint(1, rank))]
                if any(pad):
                    pads[f"aten.constant_pad_nd.default {pad}"] = lambda x, pad=pad: F.pad(x, pad, value=3)
            if pads:
                yield broad(f"pad_{name}", pads, s.calls(lambda d: some(*d, dtype=dtype)), dynamic=(s.dynamic,))
        dims = [rng.choice((2, 3, 4, 5)) for _ in range(rank)]
        for_flip = rng.sample(range(rank), rng.randint(1, rank))
        repeats = [rng.randint(1, 3) for _ in range(rank + rng.randint(0, 1) if rank < 4 else rank)]
        repeats[-1] = 2
        axis = rng.randrange(rank)
        statics = {"aten.flip.default": lambda x, i, g: x.flip(for_flip), "aten.repeat.default": lambda x, i, g: x.repeat(repeats),
                   "aten.index_select.default": lambda x, i, g: torch.index_select(x, axis, i),
                   "aten.gather.default": lambda x, i, g: torch.gather(x, axis, g)}
        picked = [dims[i] if i != axis else 6 for i in range(rank)]
        yield broad(f"static_{name}", statics, [(some(*dims, dtype=dtype), ints(0, dims[axis] - 1, 5), ints(0, dims[axis] - 1, *picked))])


def reductions(rng):
    for rank, (dtype, forced) in itertools.product((1, 2, 3, 4), FLOATS):
        s, name = Shapes(rng, rank, most=37), f"rank_{rank}_{kind(dtype, forced)}"
        found = {}
        for op in ("sum.dim_IntList", "mean.dim", "amax.default", "amin.default"):
            function = getattr(torch.Tensor, op.split(".")[0])
            for axis in range(rank):
                found[f"aten.{op} {axis}"] = lambda x, f=function, axis=axis: f(x, axis, keepdim=True)
            for pair in list(itertools.combinations(range(rank), 2))[:3]:
                found[f"aten.{op} {pair}"] = lambda x, f=function, pair=pair: f(x, pair, keepdim=True)
            found[f"aten.{op} last"] = lambda x, f=function: f(x, -1)
        for op in ("argmax", "argmin"):
            for axis in range(rank):
                found[f"aten.{op}.default {axis}"] = lambda x, f=getattr(torch, op), axis=axis: f(x, axis, keepdim=True)
        tol = (1e-5, 2e-5) if dtype == F32 and not forced else (1e-3, 2e-3)
        yield broad(f"reduce_{name}", found, s.calls(lambda d: rand(*d, dtype=dtype)), dynamic=(s.dynamic,), fp16=forced, tol=tol)
        soft = {}
        for axis in range(rank):
            soft[f"aten._softmax.default {axis}"] = lambda x, axis=axis: F.softmax(x, axis)
            soft[f"aten._log_softmax.default {axis}"] = lambda x, axis=axis: F.log_softmax(x, axis - rank)
        yield broad(f"softmax_{name}", soft, s.calls(lambda d: rand(*d, dtype=dtype, scale=3)), dynamic=(s.dynamic,), fp16=forced,
                    tol=(2e-5, 2e-6) if dtype == F32 and not forced else (2e-3, 2e-3))
    n = Dim("n", min=1, max=19)
    for width, (dtype, forced) in itertools.product((1, 2, 3, 31, 64, 129, 300), FLOATS):
        calls = over((4, 1, 19, 2, 7, 13), lambda k: rand(k, width, dtype=dtype))
        name = f"{width}_{kind(dtype, forced)}"
        tol = (1e-4, 1e-4) if dtype == F32 and not forced else (3e-3, 3e-3)
        yield broad(f"layer_norm_{name}", LayerNorm((width,), rng.random() < 0.7, rng.random() < 0.7, dtype), calls,
                    ("aten.native_layer_norm.default",), ({0: n},), fp16=forced, tol=tol)
        yield broad(f"rms_norm_{name}", RmsNorm(rand(width, dtype=dtype)), calls, ("et_vk.rms_norm.default",), ({0: n},), fp16=forced, tol=tol,
                    dim_order=dtype == F32)


def dense(rng):
    n = Dim("n", min=1, max=37)
    for i, (dtype, forced) in itertools.product(range(5), FLOATS):
        k, cols = rng.choice((1, 3, 4, 8, 17, 32, 65, 128)), rng.choice((1, 2, 5, 8, 16, 33, 64))
        name = f"{cols}x{k}_{kind(dtype, forced)}_{i}"
        sizes = (4, 1, 37, 2, 16, 33)
        tol = (1e-4, 1e-4) if dtype == F32 and not forced else (4e-3, 1e-2)
        layer = torch.nn.Linear(k, cols, bias=i % 2 == 0).half().to(dtype)
        yield broad(f"linear_{name}", layer, over(sizes, lambda m: rand(m, k, dtype=dtype)), ("aten.linear.default",), ({0: n},), fp16=forced, tol=tol)
        yield broad(f"mm_{name}", {"aten.mm.default": torch.mm}, over(sizes, lambda m: (rand(m, k, dtype=dtype), rand(k, cols, dtype=dtype))),
                    dynamic=({0: n}, None), fp16=forced, tol=tol)
        b = rng.choice((1, 2, 5))
        yield broad(f"bmm_{name}", {"aten.bmm.default": torch.bmm},
                    over(sizes, lambda m: (rand(b, m, k, dtype=dtype), rand(b, k, cols, dtype=dtype))), dynamic=({1: n}, None), fp16=forced, tol=tol)
    for group, groups, rows, bias, forced in ((32, 1, 4, True, False), (32, 5, 12, False, False), (64, 2, 36, True, False), (128, 1, 8, False, False),
                                              (32, 8, 64, True, False), (16, 3, 20, False, False), (32, 4, 32, False, True), (64, 2, 16, True, True)):
        k = group * groups
        name = f"{rows}x{k}_by_{group}{'_bias' if bias else ''}{'_float16' if forced else ''}"
        calls = over((4, 1, 37, 2, 16, 33), lambda m: rand(1, m, k))
        tol = (1e-4, 2e-4) if not forced else (4e-3, 2e-2)
        yield broad(f"linear_q4_{name}", Grouped(rows, k, group, bias), calls, ("et_vk.linear_q4gsw.default",), ({1: n},), fp16=forced, tol=tol)
        if not forced:
            yield broad(f"linear_dq8_{name}", Dynamic(rows, k, group, bias), over((4, 8, 4), lambda m: rand(4, k)),
                        ("et_vk.linear_dq8ca_q4gsw.default",), tol=(1e-3, 5e-3))
            if groups < 5:
                yield broad(f"per_channel_8_{name}", PerChannel(rows, k, 8, bias), calls, ("aten._weight_int8pack_mm.default",), ({1: n},), tol=(1e-4, 2e-4))
                yield broad(f"per_channel_4_{name}", PerChannel(rows, k, 4, bias), calls, ("et_vk.linear_qcs4w.default",), ({1: n},), tol=(1e-4, 2e-4))
    for width, groups in ((32, 1), (64, 1), (128, 4), (160, 5), (256, 2)):
        yield broad(f"embedding_q4_{width}_in_{groups}", Embedding4(33, width, groups), over((4, 1, 37, 2, 16), lambda k: ints(0, 32, 1, k)),
                    ("et_vk.embedding_q4gsw.default",), ({1: n},))
    for width in (1, 2, 3, 64, 130):
        yield broad(f"embedding_{width}", torch.nn.Embedding(33, width), over((4, 1, 37, 2, 16), lambda k: ints(0, 32, 2, k)),
                    ("aten.embedding.default",), ({1: n},))


def attention(rng):
    n = Dim("n", min=1, max=37)
    sdpa = torch.ops.et_vk.sdpa
    for d, heads, b in ((1, 1, 1), (4, 2, 1), (7, 3, 2), (32, 2, 1), (64, 1, 2), (96, 2, 1)):
        calls = over((4, 1, 37, 2, 16, 33), lambda s: tuple(rand(b, heads, s, d) for _ in range(3)))
        yield broad(f"sdpa_{d}", {"et_vk.sdpa.default": lambda q, k, v: sdpa(q, k, v)}, calls, dynamic=({2: n},) * 3, tol=(2e-4, 2e-5))
        calls = over((4, 1, 37, 2, 16, 33), lambda s: (rand(b, heads, s, d), rand(b, heads, 11, d), rand(b, heads, 11, d), rand(s, 11)))
        yield broad(f"sdpa_mask_{d}", {"et_vk.sdpa.default": lambda q, k, v, m: sdpa(q, k, v, m, 0.5)}, calls,
                    dynamic=({2: n}, None, None, {0: n}), tol=(2e-4, 2e-5))
    walk = ((5, 0), (1, 5), (1, 6), (37, 7), (2, 44), (16, 46), (1, 62), (1, 63), (3, 0), (1, 3), (33, 30))
    for hq, hkv, d, forced in ((1, 1, 4, False), (8, 2, 16, False), (6, 6, 32, False), (4, 1, 64, False), (3, 1, 10, False), (2, 2, 128, False),
                               (9, 3, 64, False), (4, 2, 32, True), (6, 6, 48, True)):
        calls = [(rand(1, s, hq, d), rand(1, s, hkv, d), rand(1, s, hkv, d), torch.tensor([p])) for s, p in walk]
        yield broad(f"cache_{hq}_{hkv}_{d}{'_float16' if forced else ''}", Cached(64, hkv, d), calls, ("sdpa_with_kv_cache.default",),
                    ({1: n},) * 3 + (None,), fp16=forced, tol=(2e-4, 2e-5) if not forced else (5e-3, 3e-3))
    from executorch.examples.models.llama.rope import apply_rotary_emb, hf_apply_rotary_emb
    for hq, hkv, d, w in ((1, 1, 2, 2), (8, 2, 16, 16), (3, 1, 10, 4), (2, 2, 64, 64), (5, 5, 12, 6)):
        for name, rotate, width, operator in (("llama", apply_rotary_emb, d // 2, "et_vk.apply_rotary_emb.default"),
                                              ("hf", hf_apply_rotary_emb, w, "et_vk.apply_rotary_emb_hf.default")):
            calls = over((4, 1, 37, 2, 16), lambda s: (rand(2, s, hq, d), rand(2, s, hkv, d), angles(F32, s, width), angles(F32, s, width)))
            yield broad(f"rope_{name}_{hq}_{hkv}_{d}_{w}", Function(rotate), calls, (operator,), ({1: n}, {1: n}, {0: n}, {0: n}))


def spatial(rng):
    for i in range(40):
        transposed, one = rng.random() < 0.25, rng.random() < 0.3
        groups = rng.choice((1, 1, 1, 2, 3))
        cin, cout = groups * rng.randint(1, 5), groups * rng.randint(1, 6)
        if rng.random() < 0.25:
            groups = cin
            cout = cin
        kernel = [rng.choice((1, 1, 2, 3, 5)) for _ in range(1 if one else 2)]
        stride, dilation = [rng.randint(1, 3) for _ in kernel], [rng.choice((1, 1, 2)) for _ in kernel]
        padding = [rng.randint(0, k // 2) for k in kernel]
        spread = [(k - 1) * d + 1 for k, d in zip(kernel, dilation)]
        size = [s + rng.randint(1, 8) for s in spread]
        if one:
            transposed = False
        layer = {(False, True): torch.nn.Conv1d, (False, False): torch.nn.Conv2d, (True, False): torch.nn.ConvTranspose2d}[(transposed, one)]
        module = conv(layer, cin, cout, kernel, stride=stride, padding=padding, dilation=dilation, groups=groups, bias=rng.random() < 0.8)
        names = ("aten.convolution.default",)
        if rng.random() < 0.3:
            module, names = Then(module, rng.choice((F.relu, F.relu6))), ("et_vk.conv_with_clamp.default",)
        x = [(rand(1, cin, *size),) for _ in range(2)]
        yield broad(f"conv_{i}", module, x, names, tol=(1e-4, 1e-4))
        yield broad(f"conv_{i}_float16", module, x, names, fp16=True, tol=(4e-3, 1e-2))
    for i in range(12):
        k = (rng.randint(1, 4), rng.randint(1, 4))
        stride, pad = (rng.randint(1, 3), rng.randint(1, 3)), (rng.randint(0, k[0] // 2), rng.randint(0, k[1] // 2))
        ceil, count = rng.random() < 0.5, rng.random() < 0.5
        pools = {"aten.avg_pool2d.default": lambda x: F.avg_pool2d(x, k, stride, pad, ceil, count),
                 "aten.max_pool2d_with_indices.default": lambda x: F.max_pool2d(x, k, stride, pad, 1, ceil, return_indices=True)}
        yield broad(f"pool_{i}", pools, [(rand(rng.randint(1, 2), rng.randint(1, 5), rng.randint(5, 12), rng.randint(5, 12)),)], tol=(1e-5, 1e-5))
    for i in range(8):
        size = (rng.randint(1, 13), rng.randint(1, 13))
        factor = (rng.choice((0.5, 1.5, 2.0, 2.6, 3.0)), rng.choice((0.7, 1.0, 1.3, 2.0)))
        aligned = rng.random() < 0.5
        both = {"aten.upsample_bilinear2d.vec": lambda x: F.interpolate(x, size=size, mode="bilinear", align_corners=aligned),
                "aten.upsample_bilinear2d.vec factor": lambda x: F.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=aligned),
                "aten.upsample_nearest2d.vec": lambda x: F.interpolate(x, size=size, mode="nearest"),
                "aten.upsample_nearest2d.vec factor": lambda x: F.interpolate(x, scale_factor=factor, mode="nearest")}
        yield broad(f"upsample_{i}", both, [(rand(rng.randint(1, 2), rng.randint(1, 3), rng.randint(2, 9), rng.randint(2, 9)),)], tol=(1e-4, 1e-5))
    for i in range(5):
        groups = rng.randint(1, 4)
        layer = torch.nn.GroupNorm(groups, groups * rng.randint(1, 4))
        layer.weight.data, layer.bias.data = rand(layer.num_channels), rand(layer.num_channels)
        yield broad(f"group_norm_{i}", layer, [(rand(rng.randint(1, 3), layer.num_channels, rng.randint(1, 9), rng.randint(1, 9)),)],
                    ("aten.native_group_norm.default",), tol=(1e-3, 1e-3))


def eight_bits(rng):
    for i in range(20):
        cin, cout, k = rng.randint(1, 9), rng.randint(1, 9), (rng.choice((1, 3)), rng.choice((1, 2, 3)))
        how = {"stride": rng.randint(1, 2), "padding": rng.choice((0, 1)), "bias": rng.random() < 0.8}
        depthwise, transposed = rng.random() < 0.25, rng.random() < 0.2
        if depthwise:
            cin = cout = 4 * rng.randint(1, 3)
            layer, operator = Conv(cout, 1, *k, groups=cin, **how), "et_vk.q8ta_conv2d_dw.default"
        elif transposed:
            layer, operator = Conv(cin, cout, *k, transposed=True, **how), "et_vk.q8ta_conv2d_transposed.default"
        else:
            layer = Conv(cout, cin, *k, **how)
            plain = k == (1, 1) and how["stride"] == 1 and how["padding"] == 0
            operator = "et_vk.q8ta_conv2d_pw.default" if plain else "et_vk.q8ta_conv2d.default"
            if cin == 1 and cout == 1:
                continue  # both depthwise and not
        relu = rng.random() < 0.5
        shape = (1, cin, rng.randint(3, 7), rng.randint(3, 7))
        yield case(f"broad/q8ta_conv_{i}", operator, Static(layer, ((0.05, rng.randint(-20, 20)),), (0.4, rng.randint(-20, 20)), relu), shape, small=False)
    for i in range(6):
        rows, k = rng.randint(1, 20), 4 * rng.randint(1, 12)
        yield case(f"broad/q8ta_linear_{i}", "et_vk.q8ta_linear.default", Static(Linear(rows, k, bias=i % 2 == 0), ((0.05, 7),), (0.5, -3), i % 3 == 0),
                   (rng.randint(2, 6), k), small=False)


def forms():
    for i, family in enumerate((elementwise, movement, reductions, dense, attention, spatial, eight_bits)):
        yield from family(random.Random(i))
