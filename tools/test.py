#!/usr/bin/env python3
"""Runs the tests and prints `N passed, N failed, N skipped` last.

usage: test.py [--all | --sampled | --tools] [--filter TEXT] [--junit FOLDER] | --update-plans

Without options: the C tests on the best device here (lavapipe where there is no GPU) under the
sanitizers, and tests/tool. --all: on every software device and library, with features masked and
limits capped. --sampled: one run of each kind of those, for CI, and threads under ThreadSanitizer.
--tools: tests/tool alone. --update-plans: writes the texts in tests/plans anew with build/sconce and runs nothing.
"""

import argparse
import concurrent.futures
import glob
import importlib.util
import os
import pathlib
import re
import subprocess
import sys
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent
SWIFT = "/usr/lib/chromium/vk_swiftshader_icd.json"


def lavapipe():
    found = sorted(glob.glob("/usr/share/vulkan/icd.d/lvp_icd*.json"))
    return found[0] if found else ""


TESTS, TSAN = "build/asan/sconce_tests", "build/tsan/sconce_tests"


def configurations(mode):
    """(program, name, environment, flags) of each run of the C tests."""
    swapped = ("scalars of other kinds", {}, ("--swap-scalars",))
    lvp, swift = {"VK_ICD_FILENAMES": lavapipe()}, {"VK_ICD_FILENAMES": SWIFT}
    if mode == "quick":
        return [(TESTS, *run) for run in (("this machine", {}, ()), swapped)]
    if not lavapipe():
        sys.exit("test.py: there is no lavapipe: install mesa-vulkan-drivers")
    masks = {
        "": {},
        "no f16": {"SCONCE_DISABLE": "f16"},
        "no subgroups": {"SCONCE_DISABLE": "subgroups"},
        "nothing optional": {"SCONCE_DISABLE": "f16,subgroups,timestamps,software"},
        "default limits": {"SCONCE_LIMITS": "default"},
        "1 MiB bindings": {"SCONCE_LIMITS": "storage_binding=1048576"},
        "nothing optional, default limits": {
            "SCONCE_DISABLE": "f16,subgroups,timestamps,matrix,software",
            "SCONCE_LIMITS": "default",
        },
        "no subgroups, 1 MiB bindings": {
            "SCONCE_DISABLE": "subgroups",
            "SCONCE_LIMITS": "storage_binding=1048576",
        },
    }
    runs = [("lavapipe " + m, {**lvp, **e}) for m, e in masks.items()]
    runs += [("SwiftShader " + m, {**swift, **e}) for m, e in masks.items()]
    dawn = {**swift, "SCONCE_WEBGPU": "dawn"}
    runs += [("Dawn on SwiftShader " + m, {**dawn, **masks[m]}) for m in ("", "nothing optional")]
    skips = {}
    if mode == "sampled":
        # What repeats whole models is left to lavapipe, ten times as fast, and to --all.
        models = (
            *("measure/", "fusion/a_language", "tokens/", "piece/cut", "piece/a_prompt", "state/eight"),
            *("session_ahead/any", "session_ahead/other", "session_lost/", "session/a_story"),
            *("session/a_saved", "session/parts", "session/nothing", "parallel/eight_conversations"),
        )
        # What is the same on every device: limits of files, lists and templates, memory that is not there.
        once = ("amplify/", "hostile/", "robust/", "jinja_cost/", "every_failing", "every_row_passes_tint")
        skips = {
            "lavapipe ": (),
            "lavapipe nothing optional, default limits": once,
            "SwiftShader ": (*models, *once),
            "SwiftShader no subgroups, 1 MiB bindings": (*models, *once, "session"),
            # What the library has a part in; that it compiles every row is a test of its own.
            "Dawn on SwiftShader ": (*models, *once, "fuse/every_form", "fuse/each", "fuse/what"),
        }
        runs = [r for r in runs if r[0] in skips]
    flags = {name: [f for text in skips.get(name, ()) for f in ("--skip", text)] for name, _ in runs}
    runs = [(name.strip(), env, flags[name]) for name, env in runs] + [swapped]
    if mode == "all":  # at every step of load, prompt and choice; the other runs take some
        lost = ("--filter", "session_lost/")
        every = {"SCONCE_LOSE": "every"}
        runs += [("lavapipe, lost at every step", {**lvp, **every}, lost)]
        runs += [("Dawn on SwiftShader, lost at every step", {**dawn, **every}, lost)]
    runs = [(TESTS, *run) for run in runs]
    if mode == "sampled":  # all of it is `make tsan`
        runs += [(TSAN, "lavapipe, ThreadSanitizer", lvp, ("--filter", "/", "--skip", "parallel/eight_conversations"))]
    return runs


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def add(self, passed, failed, skipped=0):
        self.passed += passed
        self.failed += failed
        self.skipped += skipped


def run_c_tests(program, name, extra, flags, options):
    """(passed, failed, skipped, text to print) of one run."""
    env = {**os.environ, "NODEVICE_SELECT": "1", **extra}
    command = [str(ROOT / program), *flags]
    if options.filter:
        command += ["--filter", options.filter]
    if options.junit:
        pathlib.Path(options.junit).mkdir(parents=True, exist_ok=True)
        command += ["--junit", f"{options.junit}/{re.sub(r'[^a-z0-9]+', '-', name.lower())}.xml"]
    start = time.time()
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", cwd=ROOT)
    counts = re.search(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", done.stdout, re.M)
    passed, failed, skipped = (int(n or 0) for n in counts.groups()) if counts else (0, 1, 0)
    if done.returncode != 0 and failed == 0 and (passed or not options.filter):
        failed = 1  # a sanitizer's finding, or a crash after the summary
    verdict = "ok" if failed == 0 else "FAILED"
    head = f"{name}: {verdict}, {passed} passed, {failed} failed, {skipped} skipped, {time.time() - start:.0f} s"
    shown = done.stdout if failed else "\n".join(l for l in done.stdout.splitlines() if l.startswith("skip "))
    return passed, failed, skipped, "\n".join([head] + ["    " + line for line in shown.splitlines()[-120:]])


def run_all(mode, options, totals):
    """As many runs at a time as there are cores for: a software device keeps little more than one busy. The tool
    tests are one of them, one after the other, and begin first."""
    runs = configurations(mode)
    runs.sort(key=lambda r: "SwiftShader" not in r[1])  # the slow ones first
    at_once = max(1, min(len(runs) + 1, os.cpu_count() or 1, 4))
    print(f"{len(runs)} runs of the C tests and the tool tests, {at_once} at a time", flush=True)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        jobs = [pool.submit(run_tools_beside, options)]
        jobs += [pool.submit(run_c_tests, *r, options) for r in runs]
        for done in concurrent.futures.as_completed(jobs):
            passed, failed, skipped, text = done.result()
            totals.add(passed, failed, skipped)
            if text:
                print(text, flush=True)


def run_tools_beside(options):
    """The tool tests in a process of their own, since they change what belongs to all of it; as run_c_tests."""
    command = [sys.executable, __file__, "--tools", "--filter", options.filter]
    counts = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, errors="replace", cwd=ROOT) as child:
        for line in child.stdout:
            counts = re.fullmatch(r"(\d+) passed, (\d+) failed, (\d+) skipped\n", line) or counts
            if not counts:
                print(line, end="", flush=True)
    passed, failed, skipped = (int(n) for n in counts.groups()) if counts else (0, 1, 0)
    return passed, failed, skipped, None  # said so already


def run_tool_tests(folder, options, totals):
    """Every function test_* of every test_*.py in a folder; an exception is a failure, but for Skip."""
    sys.path.insert(0, str(ROOT / "tests/tool"))
    Skip = importlib.import_module("support").Skip
    passed = failed = skipped = 0
    for path in sorted(folder.glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        start = time.time()
        for name, function in vars(module).items():
            if not name.startswith("test_") or options.filter not in f"{path.stem}/{name}":
                continue
            try:
                function()
                passed += 1
            except Skip as why:
                skipped += 1
                print(f"skip {path.stem}/{name}: {why}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL {path.stem}/{name}\n{traceback.format_exc()}", flush=True)
        if time.time() - start >= 1:
            print(f"{path.stem}: {time.time() - start:.0f} s", flush=True)
    totals.add(passed, failed, skipped)
    print(f"tools: {passed} passed, {failed} failed, {skipped} skipped", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--sampled", action="store_true")
    parser.add_argument("--tools", action="store_true")
    parser.add_argument("--filter", default="")
    parser.add_argument("--junit", default="")
    parser.add_argument("--update-plans", action="store_true")
    options = parser.parse_args()
    if options.update_plans:
        sys.path.insert(0, str(ROOT / "tests/tool"))
        return importlib.import_module("test_plans").update()
    totals = Totals()
    mode = "all" if options.all else "sampled" if options.sampled else "quick"
    if options.tools:
        run_tool_tests(ROOT / "tests/tool", options, totals)
    else:
        run_all(mode, options, totals)
    print(f"{totals.passed} passed, {totals.failed} failed, {totals.skipped} skipped")
    sys.exit(1 if totals.failed or not totals.passed else 0)


if __name__ == "__main__":
    main()
