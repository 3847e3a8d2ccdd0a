"""tests/data/ops: what PyTorch computes for every operator name that this build has."""

import ast
import functools
import json
import pathlib
import re
import tempfile

from support import ROOT, SCONCE, Skip, run

OPS = ROOT / "tests/data/ops"
PROGRAMS = ROOT / "tests/data/programs"
SWIFT = pathlib.Path("/usr/lib/chromium/vk_swiftshader_icd.json")

# Names that no exporter writes into a file, and why. Everything else in docs/operators.md has a golden. A family says
# the same of its own operators in NONE of its goldens.py, as a dict of texts.
SPELLING = "the exporter writes the other spelling, with or without the namespace; both are one row"
REMOVED = "the exporter removes it from every delegate, since it changes nothing"
FUSED = "made by this runtime of several nodes, or put behind a graph"
MUTATES = "changes its arguments and returns them: this exporter has no form for it"
TAKEN_APART = "the exporter takes it apart even where it is asked not to"
ASSERTED = "compares live integers in assertions, which the exporter removes"
OUTSIDE = "no partitioner takes it into a delegate: files have its portable name, which is the same row"
DEVICES = "for memory of several devices; this exporter puts none around a delegate of ours"
SCALARS = "a number of the program around delegates: checked against a table in tests/unit/test_graph.c"
NO_EAGER = "PyTorch has no kernel to make the numbers with: checked against loops in src/ops"
LOOPS = "not made by an exporter yet: checked against loops in src/ops"
NONE = {
    "adamw_step.default": MUTATES,
    "aten.__lshift__.Scalar": OUTSIDE,
    "aten.__lshift__.Tensor": OUTSIDE,
    "aten.__rshift__.Scalar": OUTSIDE,
    "aten.__rshift__.Tensor": OUTSIDE,
    "aten._cdist_forward.default": OUTSIDE,
    "aten._native_batch_norm_legit.default": MUTATES,
    "aten._pdist_forward.default": OUTSIDE,
    "aten.alias_copy.default": REMOVED,
    "aten.any.default": OUTSIDE,
    "aten.any.dim": OUTSIDE,
    "aten.any.dims": OUTSIDE,
    "aten.as_strided_copy.default": OUTSIDE,
    "aten.clamp.Tensor": OUTSIDE,
    "aten.convolution_backward.default": OUTSIDE,
    "aten.copy.default": REMOVED,
    "aten.detach_copy.default": OUTSIDE,
    "aten.diagonal_copy.default": OUTSIDE,
    "aten.empty.memory_format": OUTSIDE,
    "aten.fill.Scalar": OUTSIDE,
    "aten.fill.Tensor": OUTSIDE,
    "aten.glu.default": OUTSIDE,
    "aten.lift_fresh_copy.default": OUTSIDE,
    "aten.masked_fill.Scalar": OUTSIDE,
    "aten.masked_scatter.default": OUTSIDE,
    "aten.masked_select.default": OUTSIDE,
    "aten.max.default": OUTSIDE,
    "aten.mean.default": OUTSIDE,
    "aten.min.default": OUTSIDE,
    "aten.narrow_copy.default": OUTSIDE,
    "aten.native_dropout.default": OUTSIDE,
    "aten.nonzero.default": OUTSIDE,
    "aten.pixel_unshuffle.default": OUTSIDE,
    "aten.prod.default": OUTSIDE,
    "aten.prod.dim_int": OUTSIDE,
    "aten.reflection_pad1d.default": OUTSIDE,
    "aten.reflection_pad2d.default": OUTSIDE,
    "aten.reflection_pad3d.default": OUTSIDE,
    "aten.repeat_interleave.Tensor": OUTSIDE,
    "aten.replication_pad1d.default": OUTSIDE,
    "aten.replication_pad2d.default": OUTSIDE,
    "aten.replication_pad3d.default": OUTSIDE,
    "aten.roll.default": OUTSIDE,
    "aten.select_scatter.default": OUTSIDE,
    "aten.slice_scatter.default": OUTSIDE,
    "aten.split_copy.Tensor": OUTSIDE,
    "aten.squeeze_copy.dim": OUTSIDE,
    "aten.stack.default": OUTSIDE,
    "aten.tril.default": OUTSIDE,
    "aten.triu.default": OUTSIDE,
    "aten.unbind_copy.int": OUTSIDE,
    "aten.upsample_bilinear2d.default": TAKEN_APART,
    "aten::_native_batch_norm_legit.out": MUTATES,
    "aten::_upsample_bilinear2d_aa.vec_out": "the exporter has no such variant of the operator",
    "aten::arange.out": TAKEN_APART,
    "aten::empty.out": "what it gives means nothing",
    "aten::lift_fresh_copy.out": "the exporter removes it, since it changes nothing",
    "aten::triu.out": "ExecuTorch has no such kernel; it is the other half of tril",
    "aten::upsample_bilinear2d.out": TAKEN_APART,
    "conv_with_clamp.default": SPELLING,
    "custom_sdpa.default": SPELLING,
    "dim_order_ops._clone_dim_order.default": REMOVED,
    "dim_order_ops._empty_dim_order.default": OUTSIDE,
    "dim_order_ops::_empty_dim_order.out": "what it gives means nothing",
    "eq": ASSERTED,
    "et_copy::_d2h_copy.out": DEVICES,
    "et_copy::_h2d_copy.out": DEVICES,
    "et_vk.adamw_step.default": MUTATES,
    "et_vk.conv2d_q8ta_q8csw_q8to.default": LOOPS,
    "et_vk.conv2d_q8ta_q8csw_q8to_dw.default": LOOPS,
    "et_vk.linear_q8csw.default": LOOPS,
    "et_vk.q8ta_conv2d_general.default": LOOPS,
    "et_vk.q8ta_conv2d_im2col.default": LOOPS,
    "et_vk::conv_with_clamp.out": "the exporter makes it inside delegates alone",
    "ge": ASSERTED,
    "gt": ASSERTED,
    "le": ASSERTED,
    "llama.sdpa_with_kv_cache.default": SPELLING,
    "llama.update_cache.default": SPELLING,
    "lt": ASSERTED,
    "ne": ASSERTED,
    "neg": "torch.export folds the negation of a live integer into the sum around it",
    "quantized_decomposed.add.default": LOOPS,
    "quantized_decomposed.choose_qparams_per_token.default": LOOPS,
    "quantized_decomposed.choose_qparams_symmetric.tensor": LOOPS,
    "quantized_decomposed.dequantize_per_channel_group.default": LOOPS,
    "quantized_decomposed.embedding_2bit.default": LOOPS,
    "quantized_decomposed.embedding_2bit.dtype": LOOPS,
    "quantized_decomposed.mixed_linear.default": LOOPS,
    "quantized_decomposed.mixed_mm.default": LOOPS,
    "quantized_decomposed.quantize_per_channel_group.default": LOOPS,
    "quantized_decomposed::add.out": NO_EAGER,
    "quantized_decomposed::mixed_linear.out": NO_EAGER,
    "quantized_decomposed::mixed_mm.out": NO_EAGER,
    "sconce.attention": FUSED,
    "sconce.attention_step": FUSED,
    "sconce.conv": FUSED,
    "sconce.last_rows.default": FUSED,
    "sconce.linear": FUSED,
    "sconce.linear_cut": FUSED,
    "sconce.linear_q4": FUSED,
    "sconce.places": FUSED,
    "sconce.sample.default": FUSED,
    "sdpa.default": SPELLING,
    "torchao::choose_qparams_affine.out": LOOPS,
    "torchao::dequantize_affine.out": LOOPS,
    "torchao::quantize_affine.out": LOOPS,
}


NONE |= {"aten::_local_scalar_dense": SCALARS, "aten::sym_numel": SCALARS,
         "executorch_prim::et_view.default": "aten::view_copy.out under another name, where a view has live dims"}
NONE |= {f"executorch_prim::{name}": SCALARS for name in (
    "ceil.Scalar", "floordiv.Scalar", "floordiv.int", "ge.Scalar", "gt.Scalar", "le.Scalar", "lt.Scalar", "mod.Scalar", "mod.int",
    "mul.Scalar", "neg.Scalar", "round.Scalar", "sym_float.Scalar", "sym_int.Scalar", "sym_ite.Scalar", "sym_max.Scalar",
    "sym_min.Scalar", "sym_not.Scalar", "truediv.Scalar", "trunc.Scalar")}


def said_by_families(folder=ROOT / "src/ops"):
    """Read, not run: making goldens takes PyTorch, which is not needed here."""
    found = {}
    for path in sorted(folder.glob("*/goldens.py")):
        for line in ast.parse(path.read_text()).body:
            if isinstance(line, ast.Assign) and [getattr(t, "id", None) for t in line.targets] == ["NONE"]:
                found |= ast.literal_eval(line.value)
    return found


NONE |= said_by_families()


# Delegates' names with goldens of float32 and none of float16, and why.
NO_HALVES = {
    "aten.logical_not.default": "of masks, in graphs of float32",
    "quantized_decomposed.embedding_4bit.default": "PyTorch gives float32, whatever its scales are",
    "quantized_decomposed.embedding_byte.default": "PyTorch gives float32, whatever its scales are",
    "quantized_decomposed.embedding_byte.dtype": "beside embedding_4bit.dtype, whose row it is, which has one",
}


@functools.cache
def names_in_files():
    found = set()
    for path in [*sorted(OPS.glob("*/*/model.pte")), *sorted(PROGRAMS.glob("*/model.pte"))]:
        report = json.loads(run(SCONCE, "inspect", "--json", path)[0])
        found |= {op["name"] for method in report["methods"] for op in method["operators"]}
    return found


def dtypes_in_files():
    """{name: dtypes} of the tensors that operators of delegates have as arguments and results."""
    found = {}
    for path in sorted(OPS.glob("*/*/model.pte")):
        text, _ = run(SCONCE, "inspect", "--graph", path)
        dtypes = dict(re.findall(r"([%c]\d+) (\w+) \[", text))
        for results, name, arguments in re.findall(r"^ +\d+  (.*%.*?) = ([\w.]+)\((.*)\)$", text, re.M):
            found.setdefault(name, set()).update(dtypes.get(v) for v in re.findall(r"[%c]\d+", results + arguments))
    return found


def names_of_this_build():
    table = (ROOT / "docs/operators.md").read_text().split("|---|---|")[1].split("Refused")[0]
    return set(re.findall(r"`([^`]+)`", table))


def test_every_golden_passes():
    cases = len(list(OPS.glob("*/*/case.json")))
    out, _ = run(SCONCE, "check", OPS)
    assert cases > 200 and out.splitlines()[-1] == f"{cases} passed, 0 failed", out


def check_programs(env=None):
    cases = len(list(PROGRAMS.glob("*/case.json")))
    out, _ = run(SCONCE, "check", PROGRAMS, env=env)
    assert cases > 9 and out.splitlines()[-1] == f"{cases} passed, 0 failed", out


def test_every_program_passes():
    check_programs()


def test_every_program_passes_on_swiftshader():
    if not SWIFT.exists():
        raise Skip(f"no SwiftShader: {SWIFT} is not there")
    env = {"VK_ICD_FILENAMES": str(SWIFT)}
    devices, _ = run(SCONCE, "devices", env=env)
    assert "SwiftShader" in devices, devices
    check_programs(env)


def test_every_operator_has_a_golden():
    names = names_of_this_build()
    assert len(names) > 150
    without = sorted(names - names_in_files() - set(NONE))
    assert not without, f"no golden: {', '.join(without)} (tools/export/make_op_goldens.py)"


def test_a_family_says_what_no_exporter_writes():
    with tempfile.TemporaryDirectory() as folder:
        family = pathlib.Path(folder) / "unary"
        family.mkdir()
        (family / "goldens.py").write_text('import torch\n\nNONE = {"aten.frobnicate.default": "nobody writes it"}\nMORE = {}\n')
        assert said_by_families(pathlib.Path(folder)) == {"aten.frobnicate.default": "nobody writes it"}


def test_what_has_a_golden_of_floats_has_one_of_halves():
    dtypes = dtypes_in_files()
    assert "float16" in dtypes["aten.relu.default"] and len(dtypes) > 150
    without = sorted(name for name, of in dtypes.items() if "float32" in of and "float16" not in of)
    assert without == sorted(NO_HALVES), without


def test_the_list_of_exceptions_is_not_longer_than_it_must_be():
    assert not sorted(set(NONE) & names_in_files()) and not sorted(set(NONE) - names_of_this_build())


def test_cases_are_whole():
    """A folder has a model, its calls and their tensors, and no more than a few kilobytes."""
    for folder in sorted(OPS.glob("*/*")):
        assert sorted(f.name for f in folder.iterdir()) == ["case.json", "data.bin", "model.pte"], folder
        assert sum(f.stat().st_size for f in folder.iterdir()) < 80_000, folder
        for call in json.loads((folder / "case.json").read_text())["calls"]:
            assert call.get("expect") == "error" or all(o["file"] for o in call["outputs"]), folder
