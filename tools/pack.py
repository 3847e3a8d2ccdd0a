#!/usr/bin/env python3
"""Turns every .wgsl file below SRC into C: its text, its parameter struct, its bindings.

usage: pack.py SRC OUT [TEXT]

A shader is a real WGSL file. This script reads three things from it and nothing else:
  // uses: grid attn_rows       libraries to append: files without an entry point, beside the shader or in src/wgsl
  struct Params { … }           becomes `struct <kernel>_params` with the same layout; kernels that share one
                                use a library <name>_params, which becomes `struct <name>_params`
  @group(0) @binding(i) var<…>  becomes the kernel's binding kinds
so that host and shader cannot drift apart. OUT gets <kernel>.wgsl.h for each kernel, <name>_params.wgsl.h and wgsl.c.
The embedded text has no comments and no blanks around its lines; SCONCE_WGSL_DIR reads the files as they are. A file
that contains TEXT is left empty: for a build whose devices never have what it asks for.
"""

import pathlib
import re
import sys

# WGSL type -> (C type, count, size, alignment) in the uniform address space
TYPES = {
    "u32": ("uint32_t", 1, 4, 4),
    "i32": ("int32_t", 1, 4, 4),
    "f32": ("float", 1, 4, 4),
    "vec2<u32>": ("uint32_t", 2, 8, 8),
    "vec4<u32>": ("uint32_t", 4, 16, 16),
    "vec4<i32>": ("int32_t", 4, 16, 16),
    "vec4<f32>": ("float", 4, 16, 16),
}
KINDS = {"storage, read": "BIND_READ", "storage, read_write": "BIND_WRITE", "uniform": "BIND_PARAMS"}


def stop(path, message):
    sys.exit(f"{path}: {message}")


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def params_fields(path, code):
    """[(name, C type, count, offset)] and the struct's size."""
    match = re.search(r"\bstruct\s+Params\s*\{([^}]*)\}", code)
    if not match:
        return [], 0
    fields, at = [], 0
    for part in re.split(r",(?![^<]*>)", match.group(1)):
        if not part.strip():
            continue
        name, _, kind = (s.strip() for s in part.partition(":"))
        array = re.fullmatch(r"array<\s*(vec4<[uif]32>)\s*,\s*(\d+)\s*>", kind)
        base, repeat = (array.group(1), int(array.group(2))) if array else (kind, 1)
        if base not in TYPES:
            stop(path, f"Params.{name}: type {kind} is not one of {', '.join(TYPES)} or an array of vec4")
        ctype, count, size, align = TYPES[base]
        if at % align:
            stop(path, f"Params.{name}: at byte {at}, needs a multiple of {align}: reorder or pad")
        fields.append((name, ctype, count * repeat, at))
        at += size * repeat
    size = (at + 15) // 16 * 16
    if size > 256:
        stop(path, f"Params has {size} bytes, a slot of the parameter buffer has 256")
    return fields, size


def bindings(path, code):
    found = re.findall(r"@group\((\d+)\)\s*@binding\((\d+)\)\s*var<([^>]*)>\s*(\w+)", code)
    kinds = []
    for i, (group, index, space, name) in enumerate(found):
        space = re.sub(r"\s*,\s*", ", ", space.strip())
        if int(group) != 0 or int(index) != i:
            stop(path, f"binding of '{name}' is ({group}, {index}), expected (0, {i})")
        if space not in KINDS:
            stop(path, f"binding of '{name}' has address space '{space}'")
        kinds.append(KINDS[space])
    if "BIND_PARAMS" in kinds[:-1]:
        stop(path, "the parameters must be the last binding")
    return kinds


def c_string(text):
    if len(sys.argv) > 3 and sys.argv[3] in without_comments(text):
        return '    ""'
    lines = (line.strip() for line in without_comments(text).splitlines())
    quoted = (line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return "\n".join(f'    "{line}\\n"' for line in quoted)


def write(path, text):
    """Leaves the file alone if nothing changed, so that nothing is rebuilt."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def c_struct(name, fields, size):
    lines, at = [f"struct {name} {{"], 0
    for field, ctype, count, offset in fields:
        lines.append(f"  {ctype} {field}{f'[{count}]' if count > 1 else ''};")
        at = offset + 4 * count
    if at < size:
        lines.append(f"  uint32_t pad_[{(size - at) // 4}];")
    return lines + ["};", f"_Static_assert(sizeof(struct {name}) == {size}, \"{name}\");"]


def write_header(src, path, out, lines):
    guard = f"GEN_{path.stem.upper()}_H"
    head = [f"/* Generated from {path.relative_to(src)}. */", f"#ifndef {guard}", f"#define {guard}"]
    write(out / f"{path.stem}.wgsl.h", "\n".join([*head, '#include "graph/wgsl.h"', *lines, "#endif"]) + "\n")


def pack_library(src, path, out):
    fields, size = params_fields(path, without_comments(path.read_text()))
    if path.stem.endswith("_params") != bool(size):
        stop(path, "a library with struct Params is called <name>_params")
    if size:
        write_header(src, path, out, c_struct(path.stem, fields, size))
    return f'    {{"{path.stem}", "{path.relative_to(src).as_posix()}",\n{c_string(path.read_text())}}},'


def library_path(src, path, library):
    for folder in (path.parent, src / "wgsl"):
        if (folder / f"{library}.wgsl").exists():
            return folder / f"{library}.wgsl"
    stop(path, f"uses '{library}', but neither {path.parent.relative_to(src)} nor wgsl has {library}.wgsl")


def used_libraries(src, path, text):
    """{name: path}, in the order in which they are appended."""
    uses = re.search(r"^//\s*uses:\s*(.*)$", text, re.M)
    return {library: library_path(src, path, library) for library in (uses.group(1).split() if uses else [])}


def pack_kernel(src, path, out):
    text = path.read_text()
    code = without_comments(text)
    name = path.stem
    uses = used_libraries(src, path, text)
    shared = [library for library in uses if library.endswith("_params")]
    fields, size = params_fields(path, code)
    if len(shared) + bool(size) > 1:
        stop(path, "more than one struct Params")
    header = c_struct(f"{name}_params", fields, size) if size else []
    for library in shared:
        fields, size = params_fields(path, without_comments(uses[library].read_text()))
        header.append(f'#include "{library}.wgsl.h"')
    kinds = bindings(path, code)
    if ("BIND_PARAMS" in kinds) != bool(size):
        stop(path, "struct Params and its uniform binding come together")
    write_header(src, path, out, header + [f"extern const struct wgsl {name}_wgsl;"])
    kinds_of = {"uint32_t": "u", "int32_t": "i", "float": "f"}
    listed = [f"{field}:{kinds_of[ctype]}{count if count > 1 else ''}" for field, ctype, count, _ in fields]
    return (
        f"const struct wgsl {name}_wgsl = {{\n    .name = \"{name}\",\n"
        f"    .path = \"{path.relative_to(src).as_posix()}\",\n    .uses = \"{' '.join(uses)}\",\n"
        f"    .params_size = {size},\n    .fields = \"{' '.join(listed)}\",\n    .n_bindings = {len(kinds)},\n"
        f"    .bindings = {{{', '.join(kinds) or '0'}}},\n    .text =\n{c_string(text)}}};\n"
    )


def main():
    src, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    # C99 promises string literals of 4,095 characters only; every compiler that we use takes more.
    body = ['#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "-Woverlength-strings"\n#endif\n#include "graph/wgsl.h"\n']
    seen, names, libraries = {}, [], []
    for path in sorted(src.rglob("*.wgsl")):
        if path.stem in seen:
            stop(path, f"{seen[path.stem].relative_to(src)} has this name")
        seen[path.stem] = path
        if "@compute" not in without_comments(path.read_text()):
            libraries.append(pack_library(src, path, out))
        else:
            names.append(path.stem)
            body.append(f"extern const struct wgsl {path.stem}_wgsl;\n" + pack_kernel(src, path, out))
    body.append("const struct wgsl_library wgsl_libraries[] = {\n" + "\n".join(libraries) + "\n    {0},\n};\n")
    rows = "".join(f"    &{n}_wgsl,\n" for n in names)
    body.append(f"const struct wgsl *const wgsl_all[] = {{\n{rows}    0,\n}};\n")
    write(out / "wgsl.c", "\n".join(body))


main()
