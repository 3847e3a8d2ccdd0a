#!/usr/bin/env python3
"""Puts the npm package, or the demo page with it, together in a folder.

usage: assemble.py WASM OUT          the package: what lies in web/src, sconce.wasm, licence
       assemble.py --demo PACKAGE OUT  the page: what lies in web/demo, the package, the story model
"""

import pathlib
import shutil
import sys

WEB = pathlib.Path(__file__).resolve().parent
ROOT = WEB.parent


def fresh(out):
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    return out


def package(wasm, out):
    fresh(out)
    for path in [*WEB.glob("src/*.js"), *WEB.glob("src/*.d.ts"), WEB / "package.json", WEB / "README.md", ROOT / "LICENSE"]:
        shutil.copy(path, out)
    shutil.copyfile(wasm, out / "sconce.wasm")


def demo(built, out):
    fresh(out)
    for path in WEB.glob("demo/*"):
        if path.suffix != ".py":
            shutil.copy(path, out)
    shutil.copytree(built, out / "sconce")
    (out / "models").mkdir()
    for name in ("stories15M-4w.pte", "tokenizer.bin", "LICENSE"):
        shutil.copy(ROOT / "models/stories15M" / name, out / "models")


if sys.argv[1] == "--demo":
    demo(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
else:
    package(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
