"""Operators that move, copy, convert or make elements: exact in every dtype."""
import torch
import torch.nn.functional as F
from executorch.exir.dialects._ops import ops as edge
from torch.export import Dim

from .form import BOOL, F16, F32, I32, I64, I8, U8, Form, bools, ints, over, rand, word

DTYPES = (F32, F16, I32, I64, BOOL)


def some(*shape, dtype=F32):
    if dtype == BOOL:
        return bools(*shape)
    return rand(*shape, dtype=dtype) if dtype.is_floating_point else ints(-100, 100, *shape, dtype=dtype)


def each(name, functions, make, dynamic, sizes=(4, 1, 9, 2, 7), dtypes=DTYPES, **more):
    """One form per dtype, f32 also as force_fp16; the first and bool are in the repository."""
    for dtype in dtypes:
        calls = over(sizes, lambda k: make(k, dtype))
        yield Form(f"{name}_{word(dtype)}", functions, calls, dynamic=dynamic, small=dtype != I32, **more)
    calls = over(sizes, lambda k: make(k, F32))
    yield Form(f"{name}_float16", functions, calls, dynamic=dynamic, fp16=True, small=False, **more)


def views():
    n = Dim("n", min=1, max=9)
    functions = {
        "aten.view_copy.default rows": lambda x: x.reshape(x.shape[0] * 2, 3) + 0,
        "aten.view_copy.default": lambda x: x.reshape(x.shape[0], 6),
        "aten.view_copy.default flat": lambda x: x.reshape(-1),
        "aten.unsqueeze_copy.default": lambda x: x.unsqueeze(1),
        "aten.unsqueeze_copy.default last": lambda x: x.unsqueeze(-1),
        "aten.squeeze_copy.dims": lambda x: x.unsqueeze(0).permute(2, 0, 1, 3).squeeze(1),
    }
    moves = {k: f for k, f in functions.items() if "rows" not in k}
    yield from each("copy/view", moves, lambda k, d: some(k, 2, 3, dtype=d), ({0: n},))
    yield Form("copy/view_arithmetic", {**functions}, over((4, 1, 9, 2, 7), lambda k: rand(k, 2, 3)), dynamic=({0: n},))
    squeezes = {
        "aten.squeeze_copy.dims": lambda x: x.squeeze((0, -2)),
        "aten.squeeze_copy.dims one": lambda x: x.squeeze(3),
        "aten.unsqueeze_copy.default": lambda x: x.unsqueeze(0),
    }
    yield Form("copy/squeeze_static", squeezes, [(rand(1, 2, 3, 1, 5),)])
    yield Form("copy/squeeze_bool", squeezes, [(bools(1, 2, 3, 1, 5),)])
    yield Form("copy/view_empty", {"aten.view_copy.default": lambda x: x.reshape(0, 6)}, [(rand(2, 0, 3),)])
    yield Form("copy/view_rank_0", {"aten.view_copy.default": lambda x: (x + 1).reshape(()),
                                    "aten.unsqueeze_copy.default": lambda x: x.sum().reshape(()).unsqueeze(0)}, [(rand(1, 1, 1),)])


CASTS = {F32: (F16, I32, BOOL), F16: (F32, I32), I32: (F32, I64, BOOL), I64: (F32, I32), BOOL: (F32, I32)}


def cast_inputs(dtype, k):
    if dtype.is_floating_point:  # away from ties: 2.5 is truncated
        return (ints(-40, 40, k, 3).to(F32) / 4).to(dtype)
    return bools(k, 3) if dtype == BOOL else ints(-40, 40, k, 3, dtype=dtype)


def casts():
    n = Dim("n", min=1, max=9)
    for source, targets in CASTS.items():
        calls = over((4, 1, 9, 2, 7), lambda k: cast_inputs(source, k))
        for dim_order, name in ((True, "dim_order_ops._to_dim_order_copy.default"), (False, "aten._to_copy.default")):
            functions = {f"{name} {word(t)}": (lambda x, t=t: x.to(t)) for t in targets}
            kind = "cast" if dim_order else "to_copy"
            yield Form(f"copy/{kind}_{word(source)}", functions, calls, dynamic=({0: n},), dim_order=dim_order)
    odd = torch.tensor([0.0, -0.0, 1e-30, float("nan"), float("inf"), -float("inf"), -2.0, 70000])
    for dtype, why in ((BOOL, ""), (F16, "infinity in half is NaN on SwiftShader")):
        yield Form(f"copy/cast_special_{word(dtype)}", {"dim_order_ops._to_dim_order_copy.default": lambda x: x.to(dtype)},
                   [(odd,)], pending=why)


def moves():
    n = Dim("n", min=1, max=9)
    functions = {
        "aten.permute_copy.default": lambda x, y: x.permute(2, 0, 1),
        "aten.permute_copy.default negative": lambda x, y: x.permute(-1, 1, -3),
        "aten.permute_copy.default transpose": lambda x, y: x.transpose(0, -1),
        "aten.slice_copy.Tensor": lambda x, y: x[:, 1:3],
        "aten.slice_copy.Tensor step": lambda x, y: x[..., ::2],
        "aten.slice_copy.Tensor negative": lambda x, y: x[..., -2:],
        "aten.select_copy.int": lambda x, y: x[:, 1],
        "aten.select_copy.int last": lambda x, y: x[-1],
        "aten.split_with_sizes_copy.default": lambda x, y: torch.split(x, [1, 3, 1], dim=-1),
    }
    yield from each("move/small", functions, lambda k, d: (some(k, 3, 5, dtype=d), some(k, 2, 5, dtype=d)), ({0: n}, {0: n}))
    cats = {"aten.cat.default": lambda x, y: torch.cat([x, y], dim=1),
            "aten.cat.default three": lambda x, y: torch.cat([y, x, y], dim=-2)}
    yield from each("move/cat", cats, lambda k, d: (some(k, 3, 5, dtype=d), some(k, 2, 5, dtype=d)), ({0: n}, {0: n}),
                    dtypes=(F32, F16, I32, I64))
    m = Dim("m", min=1, max=9)
    grow = [(rand(a, 3), rand(b, 3)) for a, b in ((4, 2), (1, 9), (9, 1), (9, 9), (3, 4))]
    yield Form("move/cat_grows", {"aten.cat.default": lambda x, y: torch.cat([x, y])}, grow, dynamic=({0: n}, {0: m}))
    yield Form("move/cat_empty", {"aten.cat.default": lambda x, y: torch.cat([x, y], dim=1)}, [(rand(2, 0, 3), rand(2, 4, 3))])
    yield Form("move/cat_many", {"aten.cat.default": lambda *t: torch.cat(t, dim=-1)}, [tuple(rand(2, k) for k in range(1, 12))])


def pads():
    n = Dim("n", min=1, max=9)
    pads = {
        "aten.constant_pad_nd.default": lambda x: F.pad(x, (1, 2)),
        "aten.constant_pad_nd.default two": lambda x: F.pad(x, (0, 1, 2, 0), value=2),
        "aten.constant_pad_nd.default crop": lambda x: F.pad(x, (-1, 1)),
    }
    yield from each("move/pad", pads, lambda k, d: some(k, 3, 5, dtype=d), ({0: n},), dtypes=(F32, F16, I32, I64))
    flags = {"aten.constant_pad_nd.default": lambda x: F.pad(x, (1, 2, 0, 1), value=True)}
    yield from each("move/pad", flags, lambda k, d: some(k, 3, dtype=d), ({0: n},), dtypes=(BOOL,))
    yield Form("move/pad_rank_1", {"aten.constant_pad_nd.default": lambda x: F.pad(x, (3, 0), value=-0.5)}, [(rand(5),)])
    yield Form("move/pad_rank_4", {"aten.constant_pad_nd.default": lambda x: F.pad(x, (1, 0, 0, 2, 1, 1, 0, 1), value=float("-inf"))},
               [(rand(2, 1, 3, 2),)])
    yield Form("move/pad_empty", {"aten.constant_pad_nd.default": lambda x: F.pad(x, (1, 2), value=1.5)}, [(rand(3, 0),)])
    shuffles = {"aten.pixel_shuffle.default": lambda x: F.pixel_shuffle(x, 2), "aten.pixel_shuffle.default 3":
                lambda x: F.pixel_shuffle(torch.cat([x, x, x], dim=-3)[..., :9, :, :], 3)}
    grow = over((4, 1, 9, 2, 7), lambda k: rand(2, 4, k, 3))
    yield Form("move/pixel_shuffle_float32", shuffles, grow, dynamic=({2: n},))
    yield Form("move/pixel_shuffle_half", {"aten.pixel_shuffle.default": lambda x: F.pixel_shuffle(x, 2)}, [(rand(12, 2, 3, dtype=F16),)])
    yield Form("move/pixel_shuffle_float16", {"aten.pixel_shuffle.default": lambda x: F.pixel_shuffle(x, 3)}, [(rand(1, 9, 2, 3),)], fp16=True)


def static_moves():
    """Those that the partitioner takes with static shapes alone."""
    functions = {
        "aten.expand_copy.default": lambda x: x.expand(2, 3, 4, 5).clone(),
        "aten.expand_copy.default keep": lambda x: x.expand(-1, 7, -1),
        "aten.repeat.default": lambda x: x.repeat(1, 2, 3),
        "aten.repeat.default more": lambda x: x.repeat(2, 1, 2, 1),
        "aten.flip.default": lambda x: x.flip((0, -1)),
        "aten.flip.default one": lambda x: x.flip(1),
    }
    for dtype in DTYPES:
        x = some(3, 1, 5, dtype=dtype)
        kept = {**functions, "aten.expand_copy.default": lambda x: x.expand(2, 3, 4, 5)}
        yield Form(f"move/static_{word(dtype)}", kept, [(x,), (some(3, 1, 5, dtype=dtype),)], small=dtype != I64)
    yield Form("move/static_float16", kept, [(rand(3, 1, 5),)], fp16=True)
    yield Form("move/static_rank_1", {"aten.flip.default": lambda x: x.flip(0), "aten.repeat.default": lambda x: x.repeat(3),
                                      "aten.expand_copy.default": lambda x: x.expand(3, 7)}, [(rand(7),)])


def move_others():
    """What the partitioner leaves out, or the exporter writes as permute_copy."""
    n = Dim("n", min=1, max=9)
    ops = edge.edge.aten
    calls = over((4, 1, 9, 2, 7), lambda k: rand(k, 2, 3))
    yield Form("move/permute_view", {"aten.permute.default": lambda x: x.permute(2, 0, 1) * 1}, calls, dynamic=({0: n},),
               swap={ops.permute_copy.default: ops.permute.default})
    turns = {"aten.transpose_copy.int": ops.transpose_copy.int, "aten.transpose.int": ops.transpose.int}
    for label, target in turns.items():
        yield Form(f"move/{label.split('.')[1]}", {label: lambda x: x.transpose(0, 2) * 1}, calls, dynamic=({0: n},), extend=(target,),
                   swap={ops.permute_copy.default: (target, lambda args: (args[0], 0, -1))})
    yield Form("move/t_copy", {"aten.t_copy.default": lambda x: x.t() * 1}, [(rand(4, 3),), (rand(4, 3),)],
               swap={ops.permute_copy.default: (ops.t_copy.default, lambda args: args[:1])})


def gathers():
    n = Dim("n", min=1, max=9)
    for dtype in DTYPES:
        calls = over((4, 1, 9, 2, 7), lambda k: (some(k, 3, 5, dtype=dtype), ints(0, 2, k, 4, 5)))
        yield Form(f"gather/gather_{word(dtype)}", {"aten.gather.default": lambda x, i: torch.gather(x, 1, i)}, calls,
                   dynamic=({0: n}, {0: n}), small=dtype != I64)
    calls = over((4, 1, 9, 2, 7), lambda k: (rand(k, 3), ints(0, 2, k, 2, dtype=I64)))
    yield Form("gather/gather_last", {"aten.gather.default": lambda x, i: torch.gather(x, -1, i)}, calls, dynamic=({0: n}, {0: n}))
    yield Form("gather/gather_smaller", {"aten.gather.default": lambda x, i: torch.gather(x, 0, i)},
               [(rand(4, 5, 3), ints(0, 3, 2, 3, 3))])
    for dtype in (F32, F16, I32, I64):
        calls = over((4, 1, 9, 2, 7), lambda k: (some(6, 3, dtype=dtype), ints(-6, 5, k)))
        yield Form(f"gather/index_{word(dtype)}", {"aten.index.Tensor": lambda x, i: x[i]}, calls, dynamic=(None, {0: n}),
                   small=dtype != I32)
    calls = over((4, 1, 9, 2, 7), lambda k: (rand(7), ints(-7, 6, k, dtype=I32)))
    yield Form("gather/index_rank_1", {"aten.index.Tensor": lambda x, i: x[i]}, calls, dynamic=(None, {0: n}))
    yield Form("gather/index_dim_1", {"aten.index.Tensor": lambda x, i: x[:, i]}, [(rand(2, 5, 3), ints(-5, 4, 4))])
    yield Form("gather/index_empty", {"aten.index.Tensor": lambda x, i: x[i]}, [(rand(2, 5), ints(0, 1, 0))])
    for dtype in DTYPES:
        yield Form(f"gather/index_select_{word(dtype)}", {
            "aten.index_select.default": lambda x, i: torch.index_select(x, 1, i),
            "aten.index_select.default last": lambda x, i: torch.index_select(x, -1, i)},
            [(some(2, 5, 6, dtype=dtype), ints(0, 4, 4)) for _ in range(2)], small=dtype != I64)
    yield Form("gather/index_select_float16", {"aten.index_select.default": lambda x, i: torch.index_select(x, 0, i)},
               [(rand(5, 3), ints(0, 4, 7, dtype=I32))], fp16=True)


def fills():
    n = Dim("n", min=1, max=9)
    statics = {
        "aten.full.default": lambda x: torch.full((2, 3), 1.5) + x,
        "aten.full.default int": lambda x: torch.full((5,), 7),
        "aten.full.default bool": lambda x: torch.full((3, 1), True),
        "aten.full_like.default": lambda x: torch.full_like(x, -0.25),
        "aten.arange.start_step": lambda x: torch.arange(1, 12, 3),
        "aten.arange.start_step float": lambda x: torch.arange(0.5, 4.0, 0.75),
        "aten.arange.start_step down": lambda x: torch.arange(5, -4, -2, dtype=torch.int32),
    }
    yield Form("fill/float32", statics, [(rand(2, 3),)])
    yield Form("fill/float16", statics, [(rand(2, 3),)], fp16=True)
    # The exporter writes full for all of these.
    whole = {
        "aten.ones.default": lambda x: torch.ones(3),
        "aten.ones_like.default": lambda x: torch.ones_like(x),
        "aten.zeros.default": lambda x: torch.zeros(2, 3, dtype=torch.int32),
        "aten.zeros_like.default": lambda x: torch.zeros_like(x),
    }
    kept = tuple(getattr(torch.ops.aten, k.split(".")[1]).default for k in whole)
    yield Form("fill/kept", whole, [(rand(2, 3),)], keep=kept)
    like = {"aten.full_like.default": lambda x: torch.full_like(x, 1)}
    for dtype in (F16, I32, I64, BOOL):
        yield Form(f"fill/like_{word(dtype)}", like, [(some(2, 3, dtype=dtype),)], small=dtype != I64)
    whole = {"aten.scalar_tensor.default": lambda x: torch.full((), 2.5) + x}
    yield Form("fill/scalar_tensor", whole, [(rand(2, 3),)],
               swap={edge.edge.aten.full.default: (edge.edge.aten.scalar_tensor.default, lambda args: args[1:2])})
    live = {"aten.arange.start_step": lambda x: torch.arange(x.shape[0]) + 0 * x[:, 0].to(torch.int64),
            "aten.arange.start_step float": lambda x: torch.arange(x.shape[0], dtype=torch.float32) * x[:, 0]}
    yield Form("fill/live", live, over((4, 1, 9, 2, 7), lambda k: rand(k, 3)), dynamic=({0: n},))


def forms():
    for family in (views, casts, moves, pads, static_moves, move_others, gathers, fills):
        yield from family()
