"""Linux programs for ARM on this machine: qemu, with Debian's libraries for ARM in a folder (tools/setup.sh arm). Their
lavapipe runs too, since qemu translates the code that it writes."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile

from support import ROOT, Skip

QEMU = "qemu-aarch64-static"
BUILD = ROOT / "build/linux-aarch64"
SYSTEM = ROOT / "build/deps/arm/root"
LIBRARIES = [SYSTEM / "usr/lib/aarch64-linux-gnu", SYSTEM / "lib/aarch64-linux-gnu"]


def build():
    """The preset's tests and its package, made once."""
    if "made" in vars(build):
        return build.made
    if not shutil.which(QEMU) or not SYSTEM.exists():
        kind = AssertionError if os.environ.get("SCONCE_ARM") == "all" else Skip
        raise kind("there is no qemu for ARM, or no libraries: tools/setup.sh arm gets them")
    for command in (["sh", "tools/setup.sh", "linux-aarch64"], ["cmake", "--preset", "linux-aarch64"],
                    ["cmake", "--build", "--preset", "linux-aarch64"],
                    ["cmake", "--build", "--preset", "linux-aarch64", "--target", "sconce_plain"],
                    [sys.executable, "tools/package.py", "linux-aarch64"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    build.made = next((ROOT / "build/packages").glob("sconce-*-linux-aarch64.tar.gz"))
    return build.made


def command(program, *words):
    paths = ":".join(map(str, LIBRARIES))
    return [QEMU, "-L", SYSTEM, "-E", f"LD_LIBRARY_PATH={paths}", program, *map(str, words)]


def environment(**more):
    driver = SYSTEM / "usr/share/vulkan/icd.d/lvp_icd.aarch64.json"
    return {**os.environ, "VK_ICD_FILENAMES": str(driver), "NODEVICE_SELECT": "1", **more}


def arm(program, *words, expect=0, stdin="", cwd=ROOT, **env):
    """Runs a program for ARM; its output (stdout, stderr)."""
    done = subprocess.run(command(program, *words), capture_output=True, text=True, input=stdin, cwd=cwd,
                          env=environment(**env))
    assert done.returncode == expect, (
        f"{program} {' '.join(map(str, words))} exited with {done.returncode}, want {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


class Unpacked:
    """The package, in a folder of its own."""

    def __enter__(self):
        archive = build()
        self.top = pathlib.Path(tempfile.mkdtemp())
        with tarfile.open(archive) as packed:
            packed.extractall(self.top)
            self.names = packed.getnames()
        self.folder = next(self.top.iterdir())
        self.program = self.folder / "sconce"
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    def run(self, *words, **more):
        return arm(self.program, *words, **more)
