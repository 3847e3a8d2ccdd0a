#!/usr/bin/env python3
"""How long a call of a method takes in ExecuTorch's runtime, and what crosses a delegate's border in it.

usage: time_runtime.py MODEL.pte [--repeat N] [--dims I=1x16]...

Inputs are zeros of the largest dims unless --dims says otherwise for input I. `sconce run MODEL.pte
--repeat N` is the same call with the whole program on the device.
"""

import argparse
import time

import torch

import sconce_executorch
from executorch.runtime import Runtime

DTYPES = {0: torch.uint8, 1: torch.int8, 3: torch.int32, 4: torch.int64, 5: torch.float16, 6: torch.float32,
          7: torch.float64, 11: torch.bool}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--dims", action="append", default=[])
    options = parser.parse_args()
    method = Runtime.get().load_program(options.model).load_method("forward")
    dims = {int(word.split("=")[0]): [int(n) for n in word.split("=")[1].split("x")] for word in options.dims}
    metas = [method.metadata.input_tensor_meta(i) for i in range(method.metadata.num_inputs())]
    inputs = [torch.zeros(dims.get(i, list(m.sizes())), dtype=DTYPES[m.dtype()]) for i, m in enumerate(metas)]
    ms = []
    before = sconce_executorch.counts()
    for _ in range(options.repeat + 1):
        start = time.perf_counter()
        method.execute(inputs)
        ms.append(1e3 * (time.perf_counter() - start))
    calls, went, came = ((b - a) // len(ms) for a, b in zip(before, sconce_executorch.counts()))
    first, rest = ms[0], sorted(ms[1:])
    print(f"{calls} calls of delegates, {went} bytes in, {came} bytes out")
    print(f"first run {first:.3f} ms; {len(rest)} runs: median {rest[len(rest) // 2]:.3f} ms, min {rest[0]:.3f} ms")


if __name__ == "__main__":
    main()
