"""A form: a module, the calls made on it, and the operator names that its file must hold.

A family is a function that yields forms. `write` exports a form with the stock partitioner, makes sure that the
names are in the file, and writes a case folder with what PyTorch computes (docs/checking.md).
"""
import copy
import dataclasses
import functools
import json
import pathlib
import re
import subprocess

import torch
from executorch.backends.vulkan import patterns
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge, to_edge_transform_and_lower
from executorch.exir.pass_base import ExportPass
from torch.export import export

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCONCE = ROOT / "build/sconce"

F32, F16, I32, I64, BOOL, I8, U8 = (torch.float32, torch.float16, torch.int32, torch.int64, torch.bool, torch.int8,
                                    torch.uint8)


# The graphs of the patterns are the same every time, and most of an export's time.
for entry in patterns.fusable_patterns.values():
    if entry.get_graphs_fn:
        entry.get_graphs_fn = functools.cache(entry.get_graphs_fn)


class Many(torch.nn.Module):
    """Functions of the same inputs, each with an output of its own. Keys are operator names; what follows a blank
    tells forms of one operator apart."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        results = []
        for function in self.functions.values():
            result = function(*inputs)
            results.extend(result if isinstance(result, (tuple, list)) else [result])
        return tuple(results)

    def labels(self, inputs):
        found = []
        for label, function in self.functions.items():
            result = function(*inputs)
            many = isinstance(result, (tuple, list))
            found.extend([f"{label} #{i}" for i in range(len(result))] if many else [label])
        return found


@dataclasses.dataclass
class Form:
    """`calls` are made in order on one loaded method; the first one is the exporter's example.
    An input is a tensor, or ("prev", k): output k of the call before, whose golden is then the input.
    A call may be a dict(inputs=…, reload=True) or dict(inputs=…, error=True)."""

    name: str  # family/form
    module: object  # a torch.nn.Module, or a dict for Many
    calls: list
    names: tuple = ()  # beside those in the keys of a dict
    dynamic: object = None  # torch.export's dynamic_shapes, a tuple by input
    fp16: bool = False  # force_fp16: halves inside, floats at the border
    options: dict = dataclasses.field(default_factory=dict)  # the partitioner's others
    delegate: bool = True  # False: nothing is delegated, all calls are portable ones
    dim_order: bool = True  # False: aten._to_copy instead of dim_order_ops'
    small: bool = True  # in the repository
    pending: str = ""  # why a form that ought to work is not checked yet
    tol: object = None  # (rtol, atol), or a dict by label's first word
    golden: object = None  # function(inputs) where eager is not the truth
    config: object = None  # ExecutorchBackendConfig
    keep: tuple = ()  # composite operators that shall not be decomposed
    extend: tuple = ()  # operators that the stock partitioner would leave out
    unfuse: tuple = ()  # the exporter's patterns that are not looked for
    swap: dict = dataclasses.field(default_factory=dict)  # one edge operator for another, where none is kept whole


def word(dtype):
    """float16 is what force_fp16 makes of floats, half what a model has of its own."""
    return "half" if dtype == F16 else str(dtype).removeprefix("torch.")


def described(tensor):
    return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}


def rand(*shape, dtype=F32, scale=1.0):
    """Normal numbers that are halves: what is computed with halves starts from the same."""
    return (torch.randn(shape) * scale).half().to(dtype)


def ints(low, high, *shape, dtype=I64):
    """low to high, both included."""
    return torch.randint(low, high + 1, shape).to(dtype)


def bools(*shape):
    return torch.rand(shape) < 0.5


def over(sizes, make):
    """A call for each live size."""
    return [flat(make(n)) for n in sizes]


def call_inputs(call):
    return call["inputs"] if isinstance(call, dict) else call


# ---- exporting ----------------------------------------------------------------------------------


class Extended:
    """While open, the partitioner takes `operators` too, of any shape and dtype, and does not look for the patterns
    `unfuse`. For names that this runtime has and that other exporters may write."""

    def __init__(self, form):
        self.operators, self.keep, self.unfuse = form.extend, form.keep, form.unfuse

    def __enter__(self):
        from executorch.backends.vulkan import op_registry, utils
        from executorch.backends.vulkan.partitioner import vulkan_partitioner
        self.registry, self.kept = op_registry.vulkan_supported_ops, vulkan_partitioner.ops_not_to_decompose
        features = op_registry.OpFeatures(inputs_storage=utils.ANY_STORAGE, supports_resize=True, supports_highdim=True)
        self.before = {operator: self.registry.get(operator) for operator in self.operators}
        self.registry.update({operator: features for operator in self.operators})
        self.kept.extend(self.keep)
        self.unfused = {name: patterns.fusable_patterns.pop(name) for name in self.unfuse}

    def __exit__(self, *_):
        patterns.fusable_patterns.update(self.unfused)
        for operator, features in self.before.items():
            self.registry.pop(operator)
            if features:
                self.registry[operator] = features
        del self.kept[len(self.kept) - len(self.keep):]


class Swap(ExportPass):
    """Writes other operators instead, of the same arguments or of those that a function makes of them."""

    def __init__(self, operators):
        super().__init__()
        self.operators = operators

    def call_operator(self, op, args, kwargs, meta):
        other = self.operators.get(op, op)
        if isinstance(other, tuple):
            other, args = other[0], other[1](args)
        return super().call_operator(other, args, kwargs, meta)


def exported(form, module):
    example = tuple(call_inputs(form.calls[0]))
    dynamic = (form.dynamic,) if form.dynamic and isinstance(module, Many) else form.dynamic  # *inputs are one tuple
    program = export(module, example, dynamic_shapes=dynamic, strict=False)
    options = {"require_dynamic_shapes": form.dynamic is not None, **form.options}
    if form.fp16:
        options["force_fp16"] = True
    how = {"_skip_dim_order": not form.dim_order, "_check_ir_validity": False}
    if form.delegate:
        with Extended(form):
            lowered = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options)],
                                                  compile_config=EdgeCompileConfig(**how),
                                                  transform_passes=[Swap(form.swap)] if form.swap else None)
    else:
        lowered = to_edge(program, compile_config=EdgeCompileConfig(preserve_ops=list(form.keep), **how))
    return bytes(lowered.to_executorch(form.config or ExecutorchBackendConfig()).buffer)


def operators(pte):
    """{name: portable} of every operator in a file."""
    report = json.loads(subprocess.run([SCONCE, "inspect", "--json", pte], check=True, capture_output=True).stdout)
    return {op["name"]: op["portable"] for m in report["methods"] for op in m["operators"]}


def known():
    """The names that this build has."""
    page = (ROOT / "docs/operators.md").read_text()
    return {"et_vk.prepack.default", *re.findall(r"`([^`]+)`", page.split("|---|---|")[1].split("Refused")[0])}


# ---- goldens ------------------------------------------------------------------------------------


def widened(value):
    return value.float() if value.dtype == F16 else value


def goldens(form, module):
    """The outputs of each call. Halves are computed in float and rounded once: the best that a half can be."""
    halves = any(t.dtype == F16 for c in form.calls for t in call_inputs(c) if isinstance(t, torch.Tensor))
    fresh = copy.deepcopy(module)
    model, before, found = copy.deepcopy(fresh), None, []
    for call in form.calls:
        if isinstance(call, dict) and call.get("reload"):
            model = copy.deepcopy(fresh)
        if isinstance(call, dict) and call.get("error"):
            found.append([])
            continue
        inputs = [before[t[1]] if isinstance(t, tuple) else t for t in call_inputs(call)]
        inputs = [t.clone() for t in inputs]
        with torch.no_grad():
            if form.golden:
                outputs = form.golden(*inputs)
            elif halves:
                types = [t.dtype for t in flat(model(*[t.clone() for t in inputs]))]
                wide = copy.deepcopy(model).float()(*[widened(t) for t in inputs])
                outputs = [t.to(d) for t, d in zip(flat(wide), types)]
            else:
                outputs = model(*inputs)
        before = [t.detach().clone().contiguous() for t in flat(outputs)]
        found.append(before)
    return found


def flat(outputs):
    return list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]


# ---- writing ------------------------------------------------------------------------------------


class Blob:
    """One file for all tensors; equal bytes are kept once."""

    def __init__(self):
        self.bytes, self.where = bytearray(), {}

    def put(self, tensor):
        raw = tensor.contiguous().numpy().tobytes()
        if raw not in self.where:
            self.where[raw] = len(self.bytes)
            self.bytes.extend(raw)
        return {"file": "data.bin", "offset": self.where[raw], **described(tensor)}


def tolerance(form, label, dtype):
    rtol, atol = (1e-3, 1e-4) if form.fp16 or dtype == F16 else (1e-5, 1e-6)
    if isinstance(form.tol, tuple):
        rtol, atol = form.tol
    elif form.tol:
        rtol, atol = form.tol.get(label, form.tol.get(label.split(" ")[0], (rtol, atol)))
    return {"rtol": rtol, "atol": atol} if dtype.is_floating_point else {}


def call_json(form, call, outputs, labels, blob):
    inputs = []
    for given in call_inputs(call):
        inputs.append(blob.put(given) if isinstance(given, torch.Tensor) else given)
    entry = {key: True for key in ("reload",) if isinstance(call, dict) and call.get(key)}
    if isinstance(call, dict) and call.get("error"):
        entry["expect"] = "error"
    names = labels if labels else [None] * len(outputs)
    entry["inputs"] = inputs
    entry["outputs"] = [{**({"name": n} if n else {}), **blob.put(t), **tolerance(form, n or "", t.dtype)}
                        for n, t in zip(names, outputs, strict=True)]
    return entry


def resolved(call, before):
    """("prev", k) as JSON."""
    given = [{"prev_output": t[1], **described(before[t[1]])} if isinstance(t, tuple) else t for t in call_inputs(call)]
    return {**call, "inputs": given} if isinstance(call, dict) else given


def case_text(form, labels, found, blob):
    lines, before = [], None
    for call, outputs in zip(form.calls, found):
        got = labels if outputs else None
        lines.append("  " + json.dumps(call_json(form, resolved(call, before), outputs, got, blob)))
        before = outputs or before
    head = json.dumps({"name": form.name, "method": "forward"})[:-1]
    return head + ', "calls": [\n' + ",\n".join(lines) + "]}\n"


def rounded(call):
    """Floats that survive the way through halves: the border's rounding is not what is tested."""
    given = [t.half().float() if isinstance(t, torch.Tensor) and t.dtype == F32 else t for t in call_inputs(call)]
    return {**call, "inputs": given} if isinstance(call, dict) else given


class Missing(Exception):
    """The exporter did not put a name where it belongs."""


def required(form):
    names = set(form.names)
    if isinstance(form.module, dict):
        names |= {label.split(" ")[0] for label in form.module if "." in label}
    return names


def write(form, folder):
    """Writes the case; returns the names of its operators."""
    if form.fp16:
        form.calls = [rounded(call) for call in form.calls]
    module = (Many(form.module) if isinstance(form.module, dict) else form.module).eval()
    labels = module.labels(call_inputs(form.calls[0])) if isinstance(module, Many) else None
    pte = exported(form, copy.deepcopy(module))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(pte)
    found = operators(folder / "model.pte")
    for name in required(form):
        if name not in found:
            raise Missing(f"no {name}, only {', '.join(sorted(found))}")
        if found[name] != ("::" in name):
            raise Missing(f"{name} is {'outside' if found[name] else 'inside'} the delegate")
    blob = Blob()
    text = case_text(form, labels, goldens(form, module), blob)
    (folder / "case.json").write_text(text)
    (folder / "data.bin").write_bytes(blob.bytes)
    return set(found)
