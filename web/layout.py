#!/usr/bin/env python3
"""Turns web/src/layout.js into C that compiles only where webgpu.h lies as it says, and the table of gpu/api.h into
the list of functions that sconce.wasm may leave to its host.

usage: layout.py LAYOUT_JS API_H OUT_C OUT_LIST
"""

import pathlib
import re
import sys

layout_js, api_h, out_c, out_list = map(pathlib.Path, sys.argv[1:])
# Flags are constants of C, not of its preprocessor: clang knows them all the same.
lines = ['/* Generated from web/src/layout.js. */', "#include <stddef.h>", '#include "webgpu.h"',
         '#pragma clang diagnostic ignored "-Wgnu-folding-constant"']
for struct, fields in re.findall(r"^  (WGPU\w+): \{(.*?)\}", layout_js.read_text(), re.S | re.M):
    for name, at in re.findall(r"(\w+): (\d+)", fields):
        what = f"sizeof({struct})" if name == "sizeof" else f"offsetof({struct}, {name})"
        if name[0].isupper():  # a number of an enum or of flags
            what = f"{struct}_{name}"
        lines.append(f'_Static_assert({what} == {at}, "{struct}.{name}");')
out_c.write_text("\n".join(lines) + "\n")

table = re.search(r"#define WEBGPU_FUNCTIONS\(X\)(.*?)\n\n", api_h.read_text(), re.S).group(1)
names = [f"wgpu{name}" for name in re.findall(r"X\((\w+)\)", table)]
out_list.write_text("\n".join([*names, "wgpuDeviceCreateComputePipelineAsync"]) + "\n")
