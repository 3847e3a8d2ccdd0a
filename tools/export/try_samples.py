#!/usr/bin/env python3
"""Tries the sample inputs of PyTorch's own operator tests: other dtypes, ranks and broadcasts than anybody here thought of.

    tools/export/try_samples.py '^(add|where|gather)$'              nothing delegated: portable calls
    tools/export/try_samples.py --delegate '^nn.functional.conv'    with the stock partitioner
    tools/export/try_samples.py --samples 8 --keep build/samples '^sum$'

One line for each operator and dtype: right, wrong with what `sconce check` says, or not exportable. Files that are right
are removed. A sample that is wrong becomes a form in tools/export/goldens once it is mended.
"""
import argparse
import logging
import pathlib
import re
import shutil
import subprocess
import warnings

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils._pytree import tree_flatten, tree_unflatten

from goldens import form as golden_form
from goldens.form import BOOL, F16, F32, I32, I64, U8, Form, word

DTYPES = (F32, F16, I64, I32, BOOL, U8)


def tensors(outputs):
    return [t for t in tree_flatten(outputs)[0] if isinstance(t, torch.Tensor)]


class Samples(torch.nn.Module):
    """Functions one after another, each with its own part of the inputs."""

    def __init__(self, functions):
        super().__init__()
        self.functions = functions

    def forward(self, *inputs):
        results, at = [], 0
        for function, count in self.functions:
            results.extend(tensors(function(*inputs[at:at + count])))
            at += count
        return tuple(results)


def function_of(operator, sample):
    """What is no tensor in the sample is fixed."""
    leaves, spec = tree_flatten((sample.input, sample.args, sample.kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]

    def function(*inputs):
        given = list(leaves)
        for i, tensor in zip(places, inputs):
            given[i] = tensor
        first, args, kwargs = tree_unflatten(given, spec)
        return operator.op(first, *args, **kwargs)

    return function, [leaves[i].detach().clone().contiguous() for i in places]


def samples_of(operator, dtype, most):
    found = []
    for sample in operator.sample_inputs("cpu", dtype, requires_grad=False):
        function, inputs = function_of(operator, sample)
        if inputs and all(not t.is_complex() and t.numel() < 200000 for t in inputs) and tensors(function(*inputs)):
            found.append((function, inputs))
        if len(found) == most:
            break
    return found


def attempt(name, samples, delegate, folder):
    module = Samples([(f, len(inputs)) for f, inputs in samples])
    inputs = tuple(t for _, given in samples for t in given)
    form = Form(name, module, [inputs], delegate=delegate, tol=(5e-3, 5e-3) if any(t.dtype == F16 for t in inputs) else (1e-3, 1e-4))
    shutil.rmtree(folder, ignore_errors=True)
    try:
        golden_form.write(form, folder)
    except Exception as error:
        return f"not exportable: {type(error).__name__}: {str(error).splitlines()[0][:120]}"
    done = subprocess.run([golden_form.SCONCE, "check", folder], capture_output=True, text=True)
    if done.returncode == 0:
        shutil.rmtree(folder)
        return "right"
    return "WRONG " + done.stdout.splitlines()[0]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pattern", help="of the operators' names in PyTorch's tests")
    parser.add_argument("--delegate", action="store_true")
    parser.add_argument("--samples", type=int, default=4, help="of each dtype")
    parser.add_argument("--keep", type=pathlib.Path, default=golden_form.ROOT / "build/goldens/samples")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    for operator in op_db:
        if not re.search(options.pattern, operator.name):
            continue
        for dtype in DTYPES:
            torch.manual_seed(1)
            samples = samples_of(operator, dtype, options.samples) if dtype in operator.supported_dtypes("cpu") else []
            name = "_".join(filter(None, (operator.name, operator.variant_test_name, word(dtype))))
            if samples:
                print(f"{name}: {len(samples)} samples, {attempt(name, samples, options.delegate, options.keep / name)}", flush=True)


if __name__ == "__main__":
    main()
