#!/usr/bin/env python3
"""Sconce inside ExecuTorch's runtime: loading, whole models, cases with PyTorch's results.

usage: PYTHONPATH=folder/of/sconce_executorch python3 test_runtime.py [--filter WORD] [--all]

Runs with a Python that has executorch. Cases are those of tests/data/ops and, with SCONCE_SHARED, a
collection of real files; a sample of both unless --all is given. One line per test; the last counts.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import traceback

import torch

import sconce_executorch
from executorch.runtime import Runtime

ROOT = pathlib.Path(__file__).resolve().parents[3]
FOLDER = pathlib.Path(sconce_executorch.__file__).resolve().parent
SHARED = pathlib.Path(os.environ.get("SCONCE_SHARED", "/nonexistent"))
FULL = False


def check(condition, says):
    if not condition:
        raise AssertionError(says)


def program(path, data=None):
    return Runtime.get().load_program(str(path), data_path=data)


def run_python(code, **env):
    """Another process: what is registered there is its own."""
    environment = {**os.environ, **env}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)


# ---- cases: model.pte, case.json and raw files ------------------------------------------------------


def ramp(spec):
    n = torch.Size(spec["shape"]).numel()
    i = torch.arange(n)
    x = ((i + spec["phase"]) % spec["mod"] - spec["off"]).float() / spec["denom"]
    return torch.where(i < spec.get("count", n), x, 0.0).reshape(spec["shape"])


def read(folder, spec, dtype):
    n = torch.Size(spec["shape"]).numel() * dtype.itemsize
    at = spec.get("offset", 0)
    raw = bytearray((folder / spec["file"]).read_bytes()[at:at + n])
    return torch.frombuffer(raw, dtype=dtype).reshape(spec["shape"]) if n else torch.zeros(spec["shape"], dtype=dtype)


def input_of(folder, spec, last):
    if "scalar" in spec:
        return spec["scalar"]
    dtype = getattr(torch, spec["dtype"])
    if "file" in spec:
        return read(folder, spec, dtype)
    if "gen" in spec:
        return ramp(spec)
    if "fill" in spec:
        return torch.full(spec["shape"], spec["fill"], dtype=dtype)
    return last[spec["prev_output"]].reshape(spec["shape"])


def compare(got, want, spec, where):
    check(tuple(got.shape) == tuple(want.shape), f"{where}: shape {tuple(got.shape)}, want {tuple(want.shape)}")
    if not want.is_floating_point():
        check(torch.equal(got.to(want.dtype), want), f"{where}: integers differ")
        return
    got, want = got.double(), want.double()
    finite = want.isfinite()
    check(torch.equal(got[~finite].nan_to_num(7), want[~finite].nan_to_num(7)), f"{where}: not finite elsewhere")
    off = (got - want).abs()[finite]
    relative = off / want[finite].abs().clamp(min=1e-6)
    wrong = (off > spec.get("atol", 0)) & (relative > spec.get("rtol", 0)) | off.isnan()
    check(not wrong.any(), f"{where}: {int(wrong.sum())} of {off.numel()} elements differ, by up to {off.max():g}"
          if off.numel() else where)


# ExecuTorch's runtime takes inputs in the order of dims that they were exported with, and looks at no strides.
CHANNELS_LAST = ("channels_last",)


def run_case(folder):
    case = json.loads((folder / "case.json").read_text())
    method, last = None, None
    for i, call in enumerate(case["calls"]):
        if method is None or call.get("reload"):
            method = program(folder / "model.pte").load_method(case.get("method", "forward"))
        inputs = [input_of(folder, spec, last) for spec in call["inputs"]]
        if folder.name in CHANNELS_LAST:
            inputs = [x.contiguous(memory_format=torch.channels_last) for x in inputs]
        if call.get("expect") == "error":
            try:
                method.execute(inputs)
            except RuntimeError:
                continue
            raise AssertionError(f"call {i}: no error")
        last = [t.clone() if isinstance(t, torch.Tensor) else t for t in method.execute(inputs)]
        for k, spec in enumerate(call["outputs"]):
            if spec.get("file"):
                compare(last[k], read(folder, spec, getattr(torch, spec["dtype"])), spec, f"call {i}, output {k}")


# Outputs whose dims are not in row-major order, live scalars, state.
OPS = ("move/transpose", "move/permute_view", "symint/add", "symint/slices", "symint/position", "state/mean_alias",
       "cache/gqa", "unary/float16", "binary/int64", "conv2d/live", "linear_q4/rank_3")

# One per kind of thing that crosses the border: dims that change, caches outside, several outputs, 64-bit integers.
FIXTURES = """
op_add/self op_argmax/* op_cat/* op_conv2d/* op_embedding/* op_layer_norm/* op_split_with_sizes_copy/*
op_to_copy_bool_to_float/* op_et_vk_sdpa/* op_linear_dq8ca_q4gsw/* dynamic_shape/combined_routes
dynamic_shape/dyn_linear__reused dynamic_shape/dyn_rms__grow dynamic_shape/dyn_rms_chain__reused
dynamic_shape/dyn_select__reused dynamic_shape/dyn_sigmoid__reused dynamic_shape/emb_dyn__reused
dynamic_shape/rope_dyn__reused dynamic_shape/sdpa_dyn__reused dynamic_shape/dyn_swiglu_graph_outputs
dynamic_shape/dyn_conv1d
""".split()


def refused(folder, code="0x12"):
    """The new contents of buffers are outputs of the delegate that no call takes: only a whole program can tell."""
    try:
        run_case(folder)
    except RuntimeError as error:
        check(code in str(error), str(error))
        return
    raise AssertionError("no error")


def static_memory(folder):
    """The rows of a loop are live, the memory that the exporter gives its results is not: ExecuTorch resizes nothing static."""
    refused(folder, "0x10")


def program_tests():
    """Branches, loops, a cache and many delegates, with ExecuTorch between them."""
    for name, run in (("bert_six", run_case), ("bert_small", run_case), ("cache", run_case), ("cond", run_case), ("map", static_memory),
                      ("scan", run_case)):
        yield f"program/{name}", lambda folder=ROOT / "tests/data/programs" / name, run=run: run(folder)


def case_tests():
    ops = sorted(p.parent for p in (ROOT / "tests/data/ops").glob("*/*/case.json"))
    ops = [folder for folder in ops if b"VH00" in (folder / "model.pte").read_bytes()]
    missing = [name for name in OPS if not (ROOT / "tests/data/ops" / name).exists()]
    check(not missing, f"no such cases: {missing}")
    for folder in ops:
        name = f"{folder.parent.name}/{folder.name}"
        hidden = folder.parent.name == "state" and not folder.name.endswith("_alias")
        if FULL or hidden or folder.parent.name == "border" or name in OPS:
            yield f"case/{name}", lambda folder=folder, run=refused if hidden else run_case: run(folder)
    if FULL:
        fixtures = sorted(p.parent for p in SHARED.glob("fixtures/*/*/case.json"))
    else:
        fixtures = [sorted(SHARED.glob(f"fixtures/{row}/case.json"))[:1] for row in FIXTURES]
        check(not SHARED.exists() or all(fixtures), "a row of FIXTURES names nothing")
        fixtures = [found[0].parent for found in fixtures if found]
    for folder in fixtures:
        yield f"fixture/{folder.parent.name}/{folder.name}", lambda folder=folder: run_case(folder)


# Models as published and probes, by the stock exporter. These two change a buffer that is no output of theirs and was
# exported without alias_buffer_mutations, which only a whole program can run.
PLAIN = {"cache_where_plain", "lfm2_4w"}


def published_tests():
    folders = sorted(p.parent for p in SHARED.glob("wild/*/case.json"))
    missing = PLAIN - {folder.name for folder in folders}
    check(not SHARED.exists() or not missing, f"no such cases: {missing}")
    for folder in folders:
        yield f"published/{folder.name}", lambda folder=folder: (refused if folder.name in PLAIN else run_case)(folder)


# ---- whole models -----------------------------------------------------------------------------------


def run_llm(pte, golden, atol, cases):
    if pte.stem == "4w-emb8":  # its embedding is ExecuTorch's own
        import executorch.kernels.quantized  # noqa: F401
    said = json.loads(golden.read_text())
    method = program(pte).load_method("forward")
    n = 0
    for case in said["cases"]:
        if case["name"] not in cases:
            continue
        for call in case["calls"]:
            logits = method.execute((torch.tensor([call["tokens"]]), torch.tensor([call["pos"]])))[0]
            row = logits.float().reshape(-1, said["vocab"])[-1]
            where = f"case {case['name']}, position {call['pos']}"
            top = dict(call["top5"])
            best = max(top.values())
            check(best - top.get(int(row.argmax()), -1e9) <= 2 * atol, f"{where}: token {int(row.argmax())}, want one of {top}")
            for token, logit in top.items():
                check(abs(float(row[token]) - logit) <= atol, f"{where}: logit {float(row[token])}, want {logit}")
            n += 1
    check(n > 0, "no calls")


def run_image(pte, golden, atol):
    said = json.loads(golden.read_text())
    raw = golden.with_name(golden.name.replace(".json", ".bin")).read_bytes()
    method = program(pte).load_method("forward")

    def floats(spec, offset):
        n = torch.Size(spec).numel()
        return torch.frombuffer(bytearray(raw[offset:offset + 4 * n]), dtype=torch.float32).reshape(spec)

    for i, case in enumerate(said["cases"]):
        inputs = [floats(spec["shape"], spec["offset"]) for spec in case["inputs"]]
        got = method.execute(inputs)[0]
        compare(got, floats(case["shape"], case["output"]), {"atol": atol}, f"case {i}")


def run_external():
    """Weights in a .ptd: ExecuTorch finds them, and hands them over by key."""
    folder = SHARED / "models/foreign"
    data = next(folder.glob("*.ptd"))
    method = program(folder / "linear-external.pte", data).load_method("forward")
    shape = method.metadata.input_tensor_meta(0).sizes()
    x = torch.frombuffer(bytearray((folder / "linear-external.in0.bin").read_bytes()), dtype=torch.float32)
    y = torch.frombuffer(bytearray((folder / "linear-external.out0.bin").read_bytes()), dtype=torch.float32)
    got = method.execute((x.reshape(shape),))[0]
    compare(got.flatten(), y, {"atol": 1e-5}, "output 0")


def model_tests():
    short, long = ("greedy-prompt",), ("greedy", "chunks", "rewind", "edge", "after-edge")
    story = ROOT / "models/stories15M"
    yield "model/stories15M", lambda: run_llm(story / "stories15M-4w.pte", story / "stories15M-4w.golden.json", 1e-3, short)
    # The tolerances are those of the goldens' own table.
    for name, atol in (("4w", 1e-3), ("fp32", 1e-3), ("8w", 1e-3), ("4w-emb8", 1e-3), ("4w-static", 1e-3),
                       ("4w-full-logits", 1e-3), ("4w-f16", 0.1), ("fp32-f16", 0.1), ("8da4w", 0.5)):
        pte = SHARED / f"models/stories260K/{name}.pte"
        if pte.exists():
            cases = ("greedy",) if name == "8da4w" else long
            yield f"model/stories260K-{name}", lambda pte=pte, atol=atol, cases=cases: run_llm(
                pte, pte.with_name(pte.stem + ".golden.json"), atol, cases)
    for name, atol in (("fp32-f16", 2e-3), ("int8", 0.02)):
        pte = SHARED / f"models/mobilenet_v2/{name}.pte"
        if pte.exists():
            yield f"model/mobilenet_v2-{name}", lambda pte=pte, atol=atol: run_image(
                pte, pte.with_name(pte.stem + ".golden.json"), atol)
    if SHARED.exists():
        yield "model/external-weights", run_external


# ---- loading ----------------------------------------------------------------------------------------


def one_line_is_enough():
    """Before or after executorch was imported."""
    line = f"import ctypes; ctypes.CDLL({str(FOLDER / sconce_executorch.NAME)!r})"
    runtime = "from executorch.runtime import Runtime"
    names = "print(Runtime.get().backend_registry.is_available('VulkanBackend'))"
    for code in (f"{line}\n{runtime}\n{names}", f"{runtime}\n{line}\n{names}"):
        done = run_python(code)
        check(done.stdout.strip() == "True", done.stdout + done.stderr)


def a_taken_id_is_told():
    """A second library wants the id: it says so, and the first keeps it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "copy.so"
        shutil.copy(FOLDER / sconce_executorch.NAME, copy)
        done = run_python(f"import ctypes; ctypes.CDLL({str(copy)!r})\nimport sconce_executorch")
    check(done.returncode != 0, "no error")
    check("ImportError: another library has registered a backend as VulkanBackend already" in done.stderr, done.stderr)
    check("sconce: another library has registered" in done.stdout + done.stderr, "nothing in the log")


def no_device_is_told():
    pte = ROOT / "models/stories15M/stories15M-4w.pte"
    done = run_python("import sconce_executorch\nfrom executorch.runtime import Runtime\n"
                      f"Runtime.get().load_program({str(pte)!r}).load_method('forward')", SCONCE_ADAPTER="no such GPU")
    check(done.returncode == 1, f"exit status {done.returncode}")
    check("no such GPU" in done.stdout + done.stderr, done.stdout + done.stderr)


def a_lost_device_is_replaced_at_the_next_load():
    """What was loaded fails from then on; ExecuTorch must load it again, and finds another device."""
    case = ROOT / "tests/data/ops/border/twice"
    done = run_python(f"""
import os, sys, torch, sconce_executorch
from executorch.runtime import Runtime
def run():
    method = Runtime.get().load_program({str(case / "model.pte")!r}).load_method("forward")
    try:
        for _ in range(20):
            method.execute((torch.ones(3, 5), torch.ones(5)))
    except RuntimeError:
        return "lost"
    return "ran"
first = run()
del os.environ["SCONCE_LOSE_AFTER"]
print(first, run(), file=sys.stderr)
""", SCONCE_LOSE_AFTER="25")
    check(done.returncode == 0, done.stdout + done.stderr)
    check("sconce: device lost" in done.stdout + done.stderr, "nothing in the log")
    check("lost ran" in done.stderr, done.stderr)


def a_module_tells_a_story():
    golden = json.loads((ROOT / "models/stories15M/stories15M-4w.golden.json").read_text())
    case = next(c for c in golden["cases"] if c["name"] == "greedy-prompt")
    n = 12
    done = subprocess.run([str(FOLDER / "story"), str(ROOT / "models/stories15M/stories15M-4w.pte"), str(n),
                           *map(str, case["prompt"])], capture_output=True, text=True)
    check(done.returncode == 0, done.stderr)
    got = [int(word) for word in done.stdout.split()]
    check(got == case["generated"][:n], f"{got}, want {case['generated'][:n]}")


def a_key_in_two_data_files_is_refused_by_both():
    """ExecuTorch merges data files into one map in which a key is once, whatever its bytes are: so does Sconce by itself."""
    folder = ROOT / "tests/data/programs/three_ptd"
    files = [folder / name for name in ("first.ptd", "second.ptd", "third.ptd")]
    for data, says in ((files, None), ([*files, files[0]], "is in data file 0 and in data file 3")):
        theirs = subprocess.run([str(FOLDER / "data_files"), str(folder / "model.pte"), *map(str, data)], capture_output=True, text=True)
        check(theirs.returncode == 0 and (theirs.stdout.strip() != "0") == bool(says), theirs.stdout + theirs.stderr)
        options = [word for path in data for word in ("--data", str(path))]
        ours = subprocess.run([str(ROOT / "build/sconce"), "run", str(folder / "model.pte"), *options, "--input", "ones:2x5"],
                              capture_output=True, text=True)
        check(not says or (ours.returncode == 1 and says in ours.stderr), ours.stderr)
        check(says or ours.returncode == 0, ours.stderr)


def tests():
    for function in (one_line_is_enough, a_taken_id_is_told, no_device_is_told,
                     a_lost_device_is_replaced_at_the_next_load, a_module_tells_a_story,
                     a_key_in_two_data_files_is_refused_by_both):
        yield f"load/{function.__name__}", function
    yield from model_tests()
    yield from program_tests()
    yield from case_tests()
    yield from published_tests()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--filter", default="")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    global FULL
    FULL = options.all
    passed = failed = 0
    for name, function in tests():
        if options.filter not in name:
            continue
        try:
            function()
            passed += 1
            print(f"ok   {name}", flush=True)
        except Exception as error:  # a test must not stop the others
            failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
            if not isinstance(error, (AssertionError, RuntimeError)):
                traceback.print_exc()
    print(f"executorch: {passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
