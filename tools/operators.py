#!/usr/bin/env python3
"""Writes docs/operators.md from the operator tables: operators.py [--check]."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/operators.md"
HEAD = """# Operators

What this build runs, by family (a folder of `src/ops`). Names without `::` are those of delegate graphs, names with it are portable
operators that a program calls outside its delegates. `et_vk.prepack.default` is no operator here: it makes a constant.
`sconce.` marks what no exporter writes: this runtime puts it behind a graph, or makes it of several nodes, itself.
A file with another operator is refused at load, with its name; `sconce inspect FILE` says so beforehand. Written by `tools/operators.py`.

## What holds for all of them

- **Shapes are live.** Every operator takes dims that change from call to call within the file's bounds, zero included. Weights
  that kernels want packed have to be constants of the file.
- **Elements**: the table has those of argument 0. *any* is all six that there are inside: bool, uint8, int8, int32, float16, float32.
  Where kernels lack a dtype and PyTorch would promote, arguments are promoted first. Norms of float16 may have weights of float32.
- **int64 is computed in 32 bits.** An input or a constant outside -2^31 … 2^31 - 1 is refused, with the element. A result beyond that
  range **wraps**, where PyTorch's would not: sums, products, running sums, shifts. Outputs are widened again.
- **float64 is computed as float32**: about seven digits; a finite input beyond 3.4e38 is refused. Outputs are widened again.
- **int16, uint16, bfloat16, complex and quantized dtypes are refused** by name, though ExecuTorch's portable kernels take int16 and
  bfloat16: export such a model in float16, float32 or int32.
- **NaN and infinities** go through as in PyTorch. A NaN is the largest and the smallest element to `amax`, `argmin`, `min.dim` and
  their like, and the largest to `topk`.
- **Indices are checked**: one outside its dim is an error of the call where the host knows it. Of indices that only the GPU knows, such a
  one reads zeros and writes nothing.
- **Sizes**: a tensor that is larger than the device binds is split where the operator can, and refused with both numbers where not. Lines
  of any length are reduced, in parts.

## Names

"""

# By family: what a reader of the table has to know.
NOTES = {
    "batch_norm": "by running statistics, not in training; without them by those of the batch, which are results",
    "compound": "made of other operators, with their dtypes",
    "conv": "1-D, 2-D and, portable, 3-D; transposed, grouped, dilated",
    "copy": "casts cut floats towards zero and wrap integers",
    "cumsum": "float16 is added up in float32",
    "embedding": "quantized tables of 2, 4 and 8 bits",
    "flow": "jumps and live integers of the program, on the host",
    "fill": "sizes may be live",
    "linear": "integers in matrix products without weights of their own, bytes computed as int32",
    "places": "the size of the result depends on elements: the host reads a count and the call goes on from there",
    "pool": "the largest of bytes too",
    "q8ta": "int8 products, int32 sums; rounds half to even",
    "reduce": "float16 is reduced in float32; integer sums wrap",
    "scatter": "sums of equal indices in any order, those of bytes wrap",
    "sdpa": "caches are state, written in place",
    "softmax": "float16 is computed in float32",
    "symint": "live integers, on the host, in 64 bits",
    "topk": "of equal elements the first; at most 524,288 of a line, and lines of 65,536 to sort",
}
ELEMENTS = {"OF_BOOL": "bool", "OF_U8": "uint8", "OF_I8": "int8", "OF_I32": "int32", "OF_F16": "float16", "OF_F32": "float32"}


def parts(text):
    """The braced rows of a table's text."""
    depth, start = 0, 0
    for at, c in enumerate(text):
        if c == "{":
            depth += 1
            start = at if depth == 1 else start
        elif c == "}":
            depth -= 1
            if depth == 0:
                yield text[start + 1 : at]


def sources():
    """{path: text} of the families, as the preprocessor leaves them."""
    found = {}
    with tempfile.TemporaryDirectory() as gen:
        subprocess.run([sys.executable, ROOT / "tools/pack.py", ROOT / "src", gen], check=True)
        for path in sorted(ROOT.glob("src/ops/*/*.c")):
            if path.name.startswith("test_") or "const struct" not in path.read_text():
                continue
            done = subprocess.run(["cc", "-E", "-P", "-I", ROOT / "include", "-I", ROOT / "src", "-I", gen, path],
                                  capture_output=True, text=True, check=True)
            found[path] = re.sub(r'"\s*"', "", done.stdout)
    return found


def elements(table):
    """The dtypes that a kernel table's text names; None: it takes any."""
    rows = [set(re.findall(r"\bOF_\w+", row)) for row in parts(table) if '"' in row]
    return None if not rows or any(not row for row in rows) else set.union(*rows)


def names(texts):
    """(family folder, operator name, dtypes) of every row. Dtypes are those of the first of its tables that
    names any; None: it has no tables, and is made of others or runs on the host."""
    pattern = r"const struct kernel (\w+)\[\] = (\{.*?\});"
    shared = {name: body for text in texts.values() for name, body in re.findall(pattern, text, re.S)}
    for path, text in texts.items():
        if path.parent.name == "refused":
            continue
        own = {**shared, **dict(re.findall(pattern, text, re.S))}
        for table in re.findall(r"const struct op ops_\w+\[\] = \{(.*?)\};", text, re.S):
            for row in parts(table):
                name = re.match(r'\s*"([^"]+)"', row)
                if not name:
                    continue
                also = re.search(r'\.also = "([^"]+)"', row)
                tables = re.search(r"\.tables = \(\(const struct kernel \*const\[\]\)\{(.*)\}\)", row, re.S)
                dtypes = None
                if tables:
                    inline = "OF_" in tables[1]
                    lists = [tables[1]] if inline else [own.get(t, "")[1:-1] for t in re.findall(r"(\w+)\s*,", tables[1]) if t != "indices_kernels"]
                    if inline:  # compound literals: their rows are one level deeper
                        dtypes = set(re.findall(r"\bOF_\w+", tables[1]))
                    else:
                        dtypes = elements(lists[0]) or set(ELEMENTS)
                for each in [name[1], *(also[1].split() if also else [])]:
                    yield path.parent.name, each, dtypes


def refused(sources_of):
    """[(name, reason)] of what no build runs."""
    text = next(text for path, text in sources_of.items() if path.parent.name == "refused")
    return re.findall(r'\{"([^"]+)",\s*\.refused = "([^"]*)"\}', text)


def dtypes_text(dtypes):
    if dtypes is None:
        return "-"
    if dtypes == set(ELEMENTS):
        return "any"
    return ", ".join(text for bit, text in ELEMENTS.items() if bit in dtypes)


def page():
    families, texts = {}, sources()
    for family, name, dtypes in names(texts):
        families.setdefault(family, {}).setdefault(dtypes_text(dtypes), set()).add(name)
    rows = []
    for family, by_dtype in sorted(families.items()):
        note = NOTES.get(family, "")
        for dtypes, found in sorted(by_dtype.items()):
            rows.append(f"| {family} | {dtypes} | {', '.join(f'`{n}`' for n in sorted(found))} | {note} |")
            note = ""
    total = len({n for by_dtype in families.values() for found in by_dtype.values() for n in found})
    reasons = {}
    for name, reason in refused(texts):
        reasons.setdefault(reason, []).append(f"`{name}`")
    lacks = "this build has no such operator; "
    without = "".join(f"\n- {', '.join(found)}: {why}." for why, found in reasons.items() if not why.startswith(lacks))
    missing = "".join(f"\n- {', '.join(found)}: {why.removeprefix(lacks)}." for why, found in reasons.items() if why.startswith(lacks))
    head = HEAD + "| family | elements | operators | notes |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + f"\n\n{total} names.\n\nRefused, with the reason in the message:\n{without}\n\n" \
        f"Missing, with what makes them in a model and a way round, which the message says too:\n{missing}\n"


if "--check" in sys.argv:
    sys.exit(0 if PAGE.read_text() == page() else f"{PAGE.name} is not what the tables say: run tools/operators.py")
PAGE.write_text(page())
