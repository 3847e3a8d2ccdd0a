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

| family | operators |
|---|---|
"""


def names():
    """(family folder, operator name) of every row, as the preprocessor sees them."""
    for path in sorted(ROOT.glob("src/ops/*/*.c")):
        if path.name.startswith("test_"):
            continue
        text = path.read_text()
        if "const struct op ops_" not in text:
            continue
        with tempfile.TemporaryDirectory() as gen:
            subprocess.run([sys.executable, ROOT / "tools/pack.py", ROOT / "src", gen], check=True)
            done = subprocess.run(["cc", "-E", "-P", "-I", ROOT / "include", "-I", ROOT / "src", "-I", gen, path],
                                  capture_output=True, text=True, check=True)
        for table in re.findall(r"const struct op ops_\w+\[\] = \{(.*?)\};", done.stdout, re.S):
            table = re.sub(r'"\s*"', "", table)
            found = re.findall(r'\{\s*"([^"]+)"', table)
            found += " ".join(re.findall(r'\.also = "([^"]+)"', table)).split()
            if path.parent.name == "refused":
                continue
            for name in found:
                if "." in name or "::" in name or path.parent.name == "symint":  # the rest are rows of kernel tables
                    yield path.parent.name, name


def refused():
    """{reason: names} of what no build runs."""
    text = (ROOT / "src/ops/refused/refused.c").read_text()
    reasons = {name: "".join(re.findall(r'"([^"]*)"', body)) for name, body in re.findall(r"#define (\w+)((?:.*\\\n)+.*)", text)}
    found = {}
    for name, reason in re.findall(r'\{"([^"]+)", \.refused = (\w+)\}', text):
        found.setdefault(reasons[reason], []).append(name)
    return found


def page():
    families = {}
    for family, name in names():
        families.setdefault(family, []).append(name)
    rows = (f"| {family} | {', '.join(f'`{n}`' for n in sorted(set(found)))} |" for family, found in sorted(families.items()))
    total = len({n for found in families.values() for n in found})
    without = "".join(f"\n- {', '.join(f'`{n}`' for n in names)}: {why}." for why, names in refused().items())
    return HEAD + "\n".join(rows) + f"\n\n{total} names.\n\nRefused, with the reason in the message:\n{without}\n"


if "--check" in sys.argv:
    sys.exit(0 if PAGE.read_text() == page() else f"{PAGE.name} is not what the tables say: run tools/operators.py")
PAGE.write_text(page())
