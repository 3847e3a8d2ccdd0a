#!/usr/bin/env python3
"""Are the writer's files what ExecuTorch's own readers and runtime take them for?

usage: SCONCE_WRITE_DIR=DIR build/asan/sconce_tests --filter write
       python tools/export/check_written.py DIR

Needs the package `executorch`. The files come from tests/examples.c: change both.
"""

import usage  # noqa: F401  first of all

import pathlib
import sys

import torch
from executorch.backends.vulkan.serialization import vulkan_graph_schema as vk
from executorch.backends.vulkan.serialization.vulkan_graph_serialize import (
    VulkanDelegateHeader,
    extract_vk_flatbuffer,
    flatbuffer_to_vk_graph,
)
from executorch.exir import schema as et
from executorch.exir._serialize._cord import Cord
from executorch.exir._serialize._program import deserialize_pte_binary, serialize_pte_binary
from executorch.exir.scalar_type import ScalarType
from executorch.extension.flat_tensor.serialize.serialize import FlatTensorSerializer
from executorch.extension.pybindings.portable_lib import Verification, _load_for_executorch
from executorch.version import __version__

RAMP = torch.arange(1.0, 7.0).reshape(2, 3)
RAMP_BYTES = RAMP.numpy().tobytes()
KEY = "00112233445566778899aabbccddeeff" * 2


def same(what, got, want):
    if got != want:
        sys.exit(f"{what}:\n got  {got}\n want {want}")


def read(folder, name):
    data = (folder / name).read_bytes()
    pte = deserialize_pte_binary(data)
    # What the exporter's writer makes of it must read as the same program.
    again = deserialize_pte_binary(bytes(serialize_pte_binary(pte, extract_delegate_segments=True)))
    same(f"{name} written again", again.program.execution_plan, pte.program.execution_plan)
    return pte


def load(folder, name, data=None):
    path = str(folder / data) if data else None
    return _load_for_executorch(str(folder / name), path, program_verification=Verification.InternalConsistency)


def runs(module, inputs, want):
    (got,) = module.forward(inputs)
    same("forward", got.tolist(), want.tolist())


def check_portable(folder):
    x = torch.full((2, 3), 0.5)
    runs(load(folder, "add.pte"), [x, RAMP], x + RAMP)
    runs(load(folder, "segment.pte"), [x], x + RAMP)
    runs(load(folder, "mutable.pte"), [x], x + RAMP)
    runs(load(folder, "external.pte", "external.ptd"), [x], x + RAMP)
    for flag, factor in ((True, 2), (False, 3)):
        runs(load(folder, "branch.pte"), [x, torch.tensor([flag])], x * factor)
    module = load(folder, "segment.pte")
    for method, want in dict(get_max_seq_len=[128], use_kv_cache=[True], get_eos_ids=[2, 7], get_scale=[0.25]).items():
        same(method, module.run_method(method, []), want)


def check_programs(folder):
    for name in ("add.pte", "branch.pte", "external.pte"):
        read(folder, name)
    for name in ("segment.pte", "legacy.pte"):  # the runtime of the package no longer loads the latter
        sizes = [len(b.storage) for b in read(folder, name).program.constant_buffer]
        same(name, sizes, [0, 16 if name == "segment.pte" else 4, 24])
    same("mutable.pte", [bytes(b.storage) for b in read(folder, "mutable.pte").mutable_data], [b"", RAMP_BYTES])


def check_values(folder):
    (plan,) = read(folder, "values.pte").program.execution_plan
    tensor = et.Tensor(
        ScalarType.HALF, 0, [2, 3, 4, 5], [0, 2, 3, 1], False, 0, 0,
        et.AllocationDetails(1, 16, 4), et.TensorShapeDynamism.DYNAMIC_BOUND)
    scalar = et.Tensor(ScalarType.LONG, 0, [], [], False, 0, 0, None, et.TensorShapeDynamism.STATIC)
    want = [
        et.Int(-(2**63)), et.Null(), et.Bool(True), et.Double(-0.5), et.String("ω"), tensor, scalar,
        et.IntList([0, 0]), et.DoubleList([1.5, -2.0]), et.BoolList([True, False, True]),
        et.TensorList([5, 6]), et.OptionalTensorList([-1, 1, 5]),
    ]
    same("values", [v.val for v in plan.values], want)
    same("buffers", plan.non_const_buffer_sizes, [0, 5 << 32])
    same("chains", [[i.instr_args for i in c.instructions] for c in plan.chains], [[et.FreeCall(5)], []])


def wanted_graph():
    f32, plain = vk.VkDataType.FLOAT32, (-1, -1)
    values = [
        vk.VkTensor(f32, [2, 3], *plain), vk.VkTensor(f32, [2, 3], 0, -1), vk.VkTensor(f32, [2, 3], *plain), vk.Int(1),
        vk.VkTensor(f32, [2, 3], -1, 0, vk.VkStorageType.BUFFER, vk.VkMemoryLayout.TENSOR_WIDTH_PACKED, f32),
        vk.VkTensor(vk.VkDataType.UINT8, [3], 1, -1), vk.VkTensor(vk.VkDataType.FLOAT16, [0], 2, -1),
        vk.Null(), vk.Double(1e-6), vk.Bool(True), vk.String("none"), vk.IntList([-1, 2**63 - 1]),
        vk.DoubleList([0.1]), vk.BoolList([False, True]), vk.IntList([]), vk.SymInt(0), vk.ValueList([3, 15]),
        vk.VkTensor(vk.VkDataType.INT32, [], *plain),
    ]
    chain = [
        vk.OperatorCall(0, "et_vk.prepack.default", [1, 2]),
        vk.OperatorCall(1, "aten.add.Tensor", [0, 2, 3, 4]),
    ]
    constants = [vk.VkBytes(2**64 - 1, 24, KEY), vk.VkBytes(0, 3, ""), vk.VkBytes(16, 0, "")]
    return vk.VkGraph("0", chain, [vk.VkValue(v) for v in values], [0], [4], constants, [])


def check_delegates(folder):
    for name in ("delegate.pte", "delegate_inline.pte"):
        pte = read(folder, name)
        plan = pte.program.execution_plan[0]
        (delegate,) = plan.delegates
        same("backend", delegate.id, "VulkanBackend")
        same("call", plan.chains[0].instructions[0].instr_args, et.DelegateCall(0, [0, 1]))
        blob = bytes(pte.program.backend_delegate_data[delegate.processed.index].data)
        header = VulkanDelegateHeader.from_bytes(blob[:30])
        same("header", header.is_valid(), True)
        same("inline bytes", blob[header.bytes_offset :][: header.bytes_size], b"\1\2\3" + bytes(13))
        same("graph", flatbuffer_to_vk_graph(extract_vk_flatbuffer(blob)), wanted_graph())
        same("named data", pte.named_data.buffers[pte.named_data.pte_data[KEY].buffer_index], RAMP_BYTES)
    specs = read(folder, "delegate.pte").program.execution_plan[0].delegates[0].compile_specs
    same("compile specs", [(s.key, bytes(s.value)) for s in specs], [("require_dynamic_shapes", b"\1")])


def check_ptd(folder):
    payload = FlatTensorSerializer().deserialize(Cord((folder / "external.ptd").read_bytes()))
    same("buffers", payload.buffers, [b"opaque", RAMP_BYTES])
    entries = {k: (e.buffer_index, e.tensor_layout and (e.tensor_layout.scalar_type, e.tensor_layout.sizes, e.tensor_layout.dim_order))
               for k, e in payload.named_data.items()}
    layout = (ScalarType.FLOAT, [2, 3], [0, 1])
    same("entries", entries, {"blob": (0, None), "ramp": (1, layout), "ramp again": (1, layout)})


def graph_of(pte, method):
    plan = next(p for p in pte.program.execution_plan if p.name == method)
    blob = bytes(pte.program.backend_delegate_data[plan.delegates[0].processed.index].data)
    return plan, flatbuffer_to_vk_graph(extract_vk_flatbuffer(blob))


def check_handles(folder):
    """What sconce_write.h wrote: a cache that methods share, a ValueList, SymInts, numbers, weights elsewhere."""
    pte = read(folder, "written.pte")
    for method, kernels in (("put", 0), ("add", 1), ("read", 0)):
        plan, graph = graph_of(pte, method)
        (cache,) = [v.val for v in plan.values if isinstance(v.val, et.Tensor) and v.val.data_buffer_idx]
        same("place", (cache.allocation_info.memory_id, cache.allocation_info.memory_offset_low, cache.sizes), (2, 0, [1, 4, 1, 2]))
        same("memory", plan.non_const_buffer_sizes[2], 32)
        same("operators", [(o.name, o.overload) for o in plan.operators], [("aten::copy_", "")] * kernels)
        same("arguments", len(plan.chains[0].instructions[0].instr_args.args), len(graph.input_ids) + len(graph.output_ids))
    same("initial", [bytes(b.storage) for b in pte.mutable_data], [b"", torch.tensor([1.0, 2, 3, 4]).repeat_interleave(2).numpy().tobytes()])
    _, graph = graph_of(pte, "parts")
    same("chain", [c.name for c in graph.chain], ["aten.split_with_sizes_copy.default", "sym_size.int"])
    same("list", graph.values[graph.chain[0].args[-1]].value, vk.ValueList([1, 2]))
    same("live", graph.values[graph.output_ids[2]].value, vk.SymInt(0))
    constant = graph_of(pte, "read")[1].constants
    same("constant", constant, [vk.VkBytes(2**64 - 1, 8, "weight")])
    payload = FlatTensorSerializer().deserialize(Cord((folder / "written.ptd").read_bytes()))
    same("data", (list(payload.named_data), payload.buffers), (["weight"], [RAMP_BYTES[4:12]]))
    module = load(folder, "written.pte")
    for method, want in dict(get_eos_ids=[2, 7], get_scale=[0.25], use_kv_cache=[True]).items():
        same(method, module.run_method(method, []), want)


def main():
    folder = pathlib.Path(sys.argv[1])
    for check in (check_portable, check_programs, check_values, check_delegates, check_ptd, check_handles):
        check(folder)
        print(f"{check.__name__}: ok")
    print(f"executorch {__version__}, torch {torch.__version__}")


if __name__ == "__main__":
    main()
