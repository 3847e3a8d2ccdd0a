"""Linux on ARM: the package, the wheel and the C tests under qemu, on lavapipe. A sample; SCONCE_ARM=all runs every C test
but those that run whole models or measure."""

import os
import re
import subprocess
import sys
import tempfile
import zipfile

from arm import BUILD, SYSTEM, Unpacked, arm, build, command, environment
from support import ROOT, run

STORIES = ROOT / "models/stories15M/stories15M-4w.pte"
# What depends on the processor: bytes, numbers, threads, text; and that the device computes.
SAMPLE = ["base/", "write/", "robust/", "wgsl/", "tokenizer", "threads/", "gpu/", "copy/", "softmax/"]
# Minutes each, under qemu: whole models, and every pair of operators. Without them not every kernel is dispatched.
SLOW = ["measure/", "fuse/", "fusion/", "session", "tokens/", "step/", "harness/every_kernel"]
LIMITS = ["gpu/out_of_memory"]  # qemu hands no limit of memory on


def test_the_package_runs_and_asks_for_an_old_system():
    with Unpacked() as it:
        names = {n.split("/", 1)[1] for n in it.names if "/" in n}
        assert {"sconce", "libwgpu_native.so", "libsconce.a", "include/sconce.h", "LICENSE.wgpu-native"} <= names, names
        for name in sorted(n for n in names if n == "sconce" or ".so" in n):
            listed, _ = run("readelf", "--version-info", "--wide", it.folder / name)
            needs = [(int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", listed)]
            assert max(needs) <= (2, 28), f"{name} needs glibc {max(needs)}"
        assert it.run("--version") == run(ROOT / "build/sconce", "--version")
        listed, _ = it.run("devices")
        assert "llvmpipe" in listed and "software through Vulkan" in listed, listed
        out, _ = it.run("run", ROOT / "tests/data/cases/right/add/model.pte", "--input", "ones:3x5", "--input", "ones:5")
        assert "output 0: float32 (3, 5)" in out, out


def test_a_story_begins():
    with Unpacked() as it:
        told, err = it.run("generate", "-m", STORIES, "-p", "Once upon a time", "-n", "4", "--temp", "0")
    assert told.startswith("Once upon a time, there was a"), (told, err)


def test_the_wheel_in_a_python_for_arm():
    build()
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, ROOT / "tools/wheels.py", "--from", BUILD, "--out", folder)
        wheel, = os.listdir(folder)
        assert wheel.endswith("-py3-none-manylinux_2_28_aarch64.whl"), wheel
        with zipfile.ZipFile(os.path.join(folder, wheel)) as archive:
            archive.extractall(os.path.join(folder, "installed"))
        out, _ = arm(SYSTEM / "usr/bin/python3.11", ROOT / "python/tests/checks.py", ROOT, "inputs_of_every_kind", "errors",
                     "threads", "tokenizer", PYTHONPATH=os.path.join(folder, "installed"), PYTHONDONTWRITEBYTECODE="1",
                     PYTHONHOME=str(SYSTEM / "usr"), cwd=folder)
        assert out.count("ok ") == 4, out


def test_the_c_tests():
    build()
    everything = os.environ.get("SCONCE_ARM") == "all"
    for part in [""] if everything else SAMPLE:
        words = [w for name in SLOW + LIMITS for w in ("--skip", name)] + (["--filter", part] if part else [])
        done = subprocess.run(command(BUILD / "sconce_tests", *words), env=environment(), cwd=ROOT, capture_output=True,
                              text=True, errors="replace")
        counts = re.search(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
        assert counts and done.returncode == 0, f"{part}: status {done.returncode}\n{done.stderr[-4000:]}\n{done.stdout[-1000:]}"
        print(f"ARM {part or 'all'}: {counts.group(0)}", flush=True)
