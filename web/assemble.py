#!/usr/bin/env python3
"""Puts the npm package, or the demo page with it, together in a folder.

usage: assemble.py WASM OUT          the package: what lies in web/src, sconce.wasm, licence
       assemble.py --demo PACKAGE OUT  the page: what lies in web/demo, the package, the story model, and cases for its
                                       check: the smallest of each family of operators, and the toy model's golden
"""

import json
import pathlib
import shutil
import sys

WEB = pathlib.Path(__file__).resolve().parent
ROOT = WEB.parent
OPS = ROOT / "tests/data/ops"
GOLDENS = ROOT / "tests/data/goldens"


def fresh(out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return out


def package(wasm, out):
    fresh(out)
    for path in [*WEB.glob("src/*.js"), *WEB.glob("src/*.d.ts"), WEB / "package.json", WEB / "README.md", ROOT / "LICENSE"]:
        shutil.copy(path, out)
    shutil.copyfile(wasm, out / "sconce.wasm")


def toy_case(out):
    """The toy model's golden as a case folder (docs/checking.md)."""
    golden = json.loads((GOLDENS / "toy.golden.json").read_text())
    calls = []
    for call in (call for case in golden["cases"] for call in case["calls"] if "logits" in call):
        n = len(call["tokens"])
        inputs = [{"dtype": "int64", "shape": [1, n], "data": call["tokens"]}, {"dtype": "int64", "shape": [1], "data": [call["pos"]]}]
        output = {"dtype": "float32", "shape": [1, n, golden["vocab"]], "file": "data.bin", "offset": call["logits"], "atol": 1e-5}
        calls.append({"inputs": inputs, "outputs": [output]})
    out.mkdir(parents=True)
    (out / "case.json").write_text(json.dumps({"name": "toy", "calls": calls}))
    shutil.copy(GOLDENS / "toy.pte", out / "model.pte")
    shutil.copy(GOLDENS / "toy.golden.bin", out / "data.bin")


def cases(out):
    families = {}
    for place in sorted(path.parent for path in OPS.rglob("case.json")):
        families.setdefault(place.relative_to(OPS).parts[0], []).append(place)
    size = lambda place: sum(path.stat().st_size for path in place.iterdir())
    for places in families.values():
        place = min(places, key=size)
        shutil.copytree(place, out / place.relative_to(OPS))
    toy_case(out / "toy")
    names = sorted(str(path.parent.relative_to(out)) for path in out.rglob("case.json"))
    (out / "index.json").write_text(json.dumps(names))


def demo(built, out):
    fresh(out)
    for path in WEB.glob("demo/*"):
        if path.suffix != ".py":
            shutil.copy(path, out)
    shutil.copytree(built, out / "sconce")
    cases(out / "cases")
    (out / "models").mkdir()
    for name in ("stories15M-4w.pte", "tokenizer.bin", "LICENSE"):
        shutil.copy(ROOT / "models/stories15M" / name, out / "models")


if sys.argv[1] == "--demo":
    demo(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
else:
    package(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
