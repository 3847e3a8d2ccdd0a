"""Windows programs on Linux: wine with a display of its own, and the package of `make windows`, unpacked. wine shows
this machine's Vulkan devices; what it makes of D3D12 is not asked."""

import atexit
import contextlib
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import termios
import time
import zipfile

from support import ROOT, Skip
from test_llm import Terminal

COMPILER = "x86_64-w64-mingw32-gcc"
BUILD = ROOT / "build/windows"


def need(*programs):
    """Who asks for all of these tests by name is not told that they were skipped."""
    for program in programs:
        if not shutil.which(program):
            kind = AssertionError if os.environ.get("SCONCE_WINDOWS") == "all" else Skip
            raise kind(f"there is no {program}: tools/setup.sh windows wine installs it")


def display():
    """A display for wine, without which it finds no Vulkan device; it ends with this process."""
    if "number" not in vars(display):
        ours, theirs = os.pipe()
        server = subprocess.Popen(["Xvfb", "-displayfd", str(theirs), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
                                  pass_fds=[theirs], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs)
        with os.fdopen(ours) as answer:
            display.number = answer.readline().strip()
        atexit.register(server.wait)
        atexit.register(server.terminate)
    return f":{display.number}"


def environment(**more):
    return {**os.environ, "WINEDEBUG": "-all", "WINEPREFIX": str(ROOT / "build/wine"), "WINEDLLOVERRIDES": "mscoree,mshtml=",
            "DISPLAY": display(), "NODEVICE_SELECT": "1", "SCONCE_ADAPTER": "llvmpipe", **more}


def wine(*command, expect=0, stdin=b"", cwd=ROOT, **env):
    """Runs a Windows program; its output (stdout, stderr) as bytes, since that is what is tested."""
    done = subprocess.run(["wine", *map(str, command)], capture_output=True, env=environment(**env), cwd=cwd, input=stdin)
    assert done.returncode == expect, (
        f"{' '.join(map(str, command))} exited with {done.returncode}, want {expect}\n"
        f"{done.stdout.decode(errors='replace')}\n{done.stderr.decode(errors='replace')}")
    return done.stdout, done.stderr


def user_folder():
    """What Windows programs call %USERPROFILE%, which wine gives a value of its own."""
    told, _ = wine("cmd", "/c", "echo %USERPROFILE%")
    return ROOT / "build/wine/drive_c" / told.decode().strip().removeprefix("C:\\").replace("\\", "/")


def add_shim(folder):
    """wine 8 has no bcryptprimitives.dll, which wgpu-native wants: see tests/windows."""
    subprocess.run([COMPILER, "-O2", "-shared", "-static", "-o", folder / "bcryptprimitives.dll",
                    ROOT / "tests/windows/bcryptprimitives.c", "-ladvapi32"], check=True)


def build():
    """The preset's tests and its package, made once."""
    if "made" in vars(build):
        return build.made
    need(COMPILER, "wine", "Xvfb")
    for command in (["sh", "tools/setup.sh", "windows"], ["cmake", "--preset", "windows"],
                    ["cmake", "--build", "--preset", "windows"], [sys.executable, "tools/package.py", "windows"]):
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    add_shim(BUILD)
    build.made = next((ROOT / "build/packages").glob("sconce-*-windows-x86_64.zip"))
    return build.made


class Unpacked:
    """The package in a folder whose name has a space and an umlaut, on the drive that wine calls Z:."""

    def __enter__(self):
        archive = build()
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="zwei Wörter "))
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(self.top)
            self.names = packed.namelist()
        self.folder = next(self.top.iterdir())
        self.program = self.folder / "sconce.exe"
        add_shim(self.folder)
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.top)

    def run(self, *words, **more):
        return wine(self.program, *words, **more)


class Console(Terminal):
    """A Windows program in wine's console. Wine 8's draws cell by cell, and shows the program's own escape sequences as
    they are."""

    def __init__(self, *command, **env):
        super().__init__("wine", *command, **environment(LC_ALL="C.UTF-8", **env))

    def prompt(self):
        """Waits until a line is asked for. The terminal echoes by itself until wine reads from it."""
        self.expect(b"> ")
        end = time.monotonic() + 30
        while termios.tcgetattr(self.master)[3] & termios.ECHO:
            assert time.monotonic() < end, "nobody reads"
            time.sleep(0.01)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def text(self, seen):
        """A cell that is skipped is empty."""
        seen = re.sub(rb"\x1b\[(\d*)C", lambda n: b" " * int(n[1] or 1), seen)
        return re.sub(rb"\x1b\[\?25[lh]|\x1b\[\d*[KX]|\r", b"", seen)


@contextlib.contextmanager
def commands_tests(name, program):
    """The functions of a file of tests/tool by name, which ask this program for Windows and not the one for Linux. A path
    as Linux writes it is one on the drive where wine has the root."""
    with tempfile.TemporaryDirectory() as folder:
        start = pathlib.Path(folder) / "sconce"
        start.write_text(f'#!/bin/sh\nexec wine "{program}" "$@"\n')
        start.chmod(0o755)
        spec = importlib.util.spec_from_file_location(name, ROOT / f"tests/tool/{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        module.SCONCE = start
        before = dict(os.environ)
        os.environ.update(environment())
        try:
            yield {n: f for n, f in vars(module).items() if n.startswith("test_")}
        finally:
            os.environ.clear()
            os.environ.update(before)


def windows_path(path):
    """As a user of Windows writes it."""
    return "Z:" + str(path).replace("/", "\\")
