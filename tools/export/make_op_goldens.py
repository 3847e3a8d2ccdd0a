#!/usr/bin/env python3
"""Writes tests/data/ops/: what PyTorch computes, operator by operator, each in a file of the stock exporter.

    pip install -r tools/export/requirements.txt && make
    tools/export/make_op_goldens.py [TEXT…]          the forms whose names contain a TEXT, or all of them
    tools/export/make_op_goldens.py --all [TEXT…]    the large set too, below build/goldens/all
    tools/export/make_op_goldens.py --list [TEXT…]   names only
    tools/export/make_op_goldens.py --sort [TEXT…]   exports nothing; moves what is pending and need not be any more

Forms lie beside the operators, src/ops/FAMILY/goldens.py, or, where they go through many families, in
tools/export/goldens. Each file has a function forms().

A form goes to tests/data/ops if this build has all its operators (docs/operators.md), else to build/goldens/pending,
where `sconce check` can be tried on it while an operator is being written. The same for forms that are marked as
pending, with the reason.
"""
import argparse
import importlib
import importlib.util
import logging
import os
import shutil
import sys
import traceback
import warnings

import torch

from goldens import form as golden_form

FAMILIES = ("elementwise", "movement", "reduction", "dense", "spatial", "quantized", "attention", "whole", "portable", "others", "flows", "kinds", "live", "coming", "dtypes", "broad")
BESIDE = sorted(golden_form.ROOT.glob("src/ops/*/goldens.py"))
OPS, BUILD = golden_form.ROOT / "tests/data/ops", golden_form.ROOT / "build/goldens"


def modules():
    for family in FAMILIES:
        yield importlib.import_module(f"goldens.{family}")
    for path in BESIDE:
        spec = importlib.util.spec_from_file_location(f"goldens_of_{path.parent.name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def forms(texts):
    """Each form is built after the same seed, so that its numbers do not depend on the others."""
    for module in modules():
        built = module.forms()
        while True:
            torch.manual_seed(1)
            form = next(built, None)
            if form is None:
                break
            if not texts or any(t in form.name for t in texts):
                yield form


def place(form, names, known):
    if form.pending or not names <= known:
        return BUILD / "pending"
    return OPS if form.small else BUILD / "all"


def make(form, known):
    """Where the form went, in words; raises where the exporter did otherwise than the form says."""
    scratch = BUILD / f"scratch-{os.getpid()}"
    shutil.rmtree(scratch, ignore_errors=True)
    names = golden_form.write(form, scratch)
    folder = place(form, names, known) / form.name
    for old in (OPS, BUILD / "pending", BUILD / "all"):
        shutil.rmtree(old / form.name, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(scratch, folder)
    missing = ", ".join(sorted(names - known))
    return str(folder.relative_to(golden_form.ROOT)) + (f" (no {missing})" if missing else "")


def sort(form, known):
    """Puts a form that was written before where it belongs now."""
    for old in (OPS, BUILD / "pending", BUILD / "all"):
        if (old / form.name / "model.pte").exists():
            names = set(golden_form.operators(old / form.name / "model.pte"))
            new = place(form, names, known)
            if new != old:
                (new / form.name).parent.mkdir(parents=True, exist_ok=True)
                shutil.move(old / form.name, new / form.name)
                print(f"{form.name}: now in {new.relative_to(golden_form.ROOT)}", flush=True)
            return


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--sort", action="store_true")
    parser.add_argument("--trace", action="store_true", help="where the exporter failed")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    known, failed = golden_form.known(), 0
    for form in forms(options.text):
        if not form.small and not options.all:
            continue
        if options.list or options.sort:
            print(form.name) if options.list else sort(form, known)
            continue
        try:
            print(make(form, known), flush=True)
        except Exception as error:
            failed += 1
            print(f"FAIL {form.name}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if options.trace:
                traceback.print_exc()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
