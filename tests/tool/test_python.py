"""The Python package: its declarations against the headers, the wheel, and the package as pip installs it.

What runs inside an environment is in python/tests/checks.py. The environments have the oldest and the newest Python
that is here; nothing is fetched. SCONCE_WHEEL names the wheel to test in place of one of what `make` built.
"""

import base64
import contextlib
import csv
import ctypes
import functools
import glob
import hashlib
import importlib.util
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

from support import ROOT, SCONCE, Skip, run, shared
from test_run import npy

CHECKS = ROOT / "python/tests/checks.py"
STORIES = ROOT / "models/stories15M/stories15M-4w.pte"
OLDEST, NEWEST = 9, 20  # second numbers of the versions that are looked for


# ---- declarations --------------------------------------------------------------------------------

def declarations():
    """_abi.py alone, without the library."""
    spec = importlib.util.spec_from_file_location("sconce_abi", ROOT / "python/sconce/_abi.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def what_c_says(lines):
    """Prints of a small program with the headers, as numbers by name."""
    source = ['#include <stdio.h>', '#include "sconce.h"', '#include "sconce_llm.h"', '#include "sconce_dev.h"',
              "int main(void) {", *(f'printf("{name} %lld\\n", (long long)({value}));' for name, value in lines), "}"]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "abi.c").write_text("\n".join(source))
        run("cc", "-std=c11", "-I", ROOT / "include", f"{folder}/abi.c", "-o", f"{folder}/abi")
        return {name: int(value) for name, value in (line.split() for line in run(f"{folder}/abi")[0].splitlines())}


def test_constants_and_structs_are_the_headers():
    abi = declarations()
    mine = {"SCONCE_MAX_RANK": abi.MAX_RANK, "SCONCE_VERSION_MAJOR": abi.VERSION[0], "SCONCE_VERSION_MINOR": abi.VERSION[1]}
    for enumeration, prefix in abi.ENUMS.items():
        mine.update({prefix + member.name: int(member) for member in enumeration})
    lines = [(name, name) for name in mine]
    text = (ROOT / "tests/abi.txt").read_text()
    sizes = {name: int(size) for name, size in re.findall(r"^struct (\w+) (\d+)$", text, re.M)}
    listed = {}
    for name, field, place in re.findall(r"^(\w+)\.(\w+)[\w.]*@(\d+) ", text, re.M):
        listed.setdefault(name, {}).setdefault(field, int(place))  # of a struct within it the first
    for struct in abi.STRUCTS:
        name = f"sconce_{struct.__name__}"
        fields = [(f, getattr(struct, f)) for f, _ in struct._fields_]
        has = ctypes.sizeof(struct), [(f, at.offset) for f, at in fields]
        assert has == (sizes[name], list(listed[name].items())), f"{name}: _abi.py says\n{has}\ntests/abi.txt says\n{sizes[name], listed[name]}"
        for field, at in fields:
            mine[f"{name}.{field}"] = at.size
            lines.append((f"{name}.{field}", f"sizeof((({name} *)0)->{field})"))
    assert len(abi.STRUCTS) == sum(1 for v in vars(abi).values() if isinstance(v, type) and issubclass(v, ctypes.Structure)
                                   and v.__module__ == abi.__name__ and not v.__name__.startswith("_"))
    said = what_c_says(lines)
    wrong = {name: (value, said[name]) for name, value in mine.items() if said[name] != value}
    assert not wrong, wrong


def prototypes():
    """(result, parameters) of each function of the headers, as C text."""
    found = {}
    for header in ("sconce.h", "sconce_llm.h", "sconce_dev.h"):
        text = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / header).read_text(), flags=re.S)
        text = " ".join(line for line in text.splitlines() if not line.startswith("#"))
        for declaration in re.findall(r"SCONCE_API (?:SCONCE_CHECK )?(.*?);", text):
            result, name, rest = re.match(r"(.*?)\bsconce_(\w+)\s*\((.*)\)\s*$", declaration).groups()
            depth, parameters = 0, [""]
            for c in rest:
                depth += (c == "(") - (c == ")")
                if c == "," and depth == 0:
                    parameters.append("")
                else:
                    parameters[-1] += c
            found[name] = (result.strip(), [] if rest.strip() == "void" else [p.strip() for p in parameters])
    return found


def kind_of_c(text):
    """pointer, or a number: (signed, bytes)."""
    if "*" in text or "(" in text:
        return "pointer"
    words = [w for w in text.replace("const", "").split() if w]
    kinds = {"void": None, "bool": "bool", "size_t": (False, 8), "uint32_t": (False, 4), "int32_t": (True, 4),
             "uint64_t": (False, 8), "float": "float"}
    return kinds[words[0]] if words[0] in kinds else (True, 4)  # an enumeration


def kind_of_ctypes(t):
    if t is None or t is ctypes.c_bool:
        return "bool" if t else None
    if t in (ctypes.c_char_p, ctypes.c_void_p) or issubclass(t, (ctypes._Pointer, ctypes._CFuncPtr)):
        return "pointer"
    return (t(-1).value < 0, ctypes.sizeof(t))


def test_functions_are_the_headers():
    abi, headers = declarations(), prototypes()
    assert len(headers) > 60, sorted(headers)
    for name, (result, parameters) in abi.FUNCTIONS.items():
        assert name in headers, f"the headers have no sconce_{name}"
        c_result, c_parameters = headers[name]
        want = [kind_of_c(c_result), *map(kind_of_c, c_parameters)]
        have = [kind_of_ctypes(result), *map(kind_of_ctypes, parameters)]
        assert have == want, (name, have, want)
        fails = c_result == "sconce_status"
        assert fails == (bool(parameters) and parameters[-1] is ctypes.POINTER(abi.error)), name


# ---- the wheel -----------------------------------------------------------------------------------

@functools.lru_cache(maxsize=None)
def made():
    """(folder, the wheel that is tested, alone in it)."""
    folder = tempfile.TemporaryDirectory()
    if os.environ.get("SCONCE_WHEEL"):
        return folder, pathlib.Path(shutil.copy(os.environ["SCONCE_WHEEL"], folder.name))
    run("cmake", "--build", ROOT / "build/release", "--target", "sconce_plain")
    run(sys.executable, ROOT / "tools/wheels.py", "--from", ROOT / "build", "--out", folder.name)
    return folder, next(pathlib.Path(folder.name).glob("*.whl"))


def test_the_same_files_give_the_same_wheel():
    _, wheel = made()
    if os.environ.get("SCONCE_WHEEL"):
        raise Skip("SCONCE_WHEEL names a wheel of other files")
    with tempfile.TemporaryDirectory() as folder:
        run(sys.executable, ROOT / "tools/wheels.py", "--from", ROOT / "build", "--out", folder)
        assert (pathlib.Path(folder) / wheel.name).read_bytes() == wheel.read_bytes()


def test_the_wheel_is_complete():
    _, wheel = made()
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        info = next(n.split("/")[0] for n in names if ".dist-info/" in n)
        listed = list(csv.reader(io.StringIO(archive.read(f"{info}/RECORD").decode())))
        assert sorted(row[0] for row in listed) == sorted(names) and names[-1] == f"{info}/RECORD"
        for name, digest, size in listed[:-1]:
            data = archive.read(name)
            got = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert (f"sha256={got}", str(len(data))) == (digest, size), name
        assert {p.name for p in (ROOT / "python/sconce").glob("*.py")} == {n[7:] for n in names if re.fullmatch(r"sconce/\w+\.py", n)}
        about = archive.read(f"{info}/METADATA").decode()
        assert "sconce/py.typed" in names and "Requires-Dist: numpy; extra" in about
        # Metadata 2.4: an expression, and files below licenses; License is the word of older versions.
        assert about.startswith("Metadata-Version: 2.4\n") and "\nLicense-Expression: BSD-3-Clause AND " in about, about
        assert "\nLicense: " not in about, about
        files = re.findall(r"^License-File: (.*)$", about, re.M)
        assert sorted(f"{info}/licenses/{f}" for f in files) == sorted(n for n in names if "/licenses/" in n), files
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        licence = archive.read(f"{info}/licenses/LICENSE.wgpu-native").decode()
        assert "MIT License" in licence and "gfx-rs developers (wgpu-native)" in licence, licence
        # Paths of sources, which programs in Rust have for their errors, name the crates inside.
        crates = re.findall(rb"/([\w-]+-\d+\.\d+\.\d[\w.+-]*)/src/", archive.read("sconce/native/libwgpu_native.so"))
        missing = sorted({c.decode() for c in crates if f"\n  {c.decode()} " not in licence})
        assert crates and not missing, missing
        tag = re.search(r"^Tag: (.*)$", archive.read(f"{info}/WHEEL").decode(), re.M)[1]
        assert wheel.name.endswith(f"-{tag}.whl"), (wheel.name, tag)
        assert str(ROOT).encode() not in archive.read("sconce/native/libsconce_dev.so")


def test_the_tag_is_what_the_binaries_need():
    """The newest version of a glibc symbol, by binutils."""
    if not shutil.which("readelf"):
        raise Skip("there is no readelf")
    _, wheel = made()
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        newest = (0, 0)
        for name in archive.namelist():
            if name.startswith("sconce/native/"):
                out, _ = run("readelf", "--version-info", "--wide", archive.extract(name, folder))
                needs = out.split("needs section", 1)[1]
                newest = max([newest, *((int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", needs))])
    assert f"-manylinux_{newest[0]}_{newest[1]}_" in wheel.name, (wheel.name, newest)


def test_a_need_that_no_tag_can_tell_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        _, wheel = made()
        with zipfile.ZipFile(wheel) as archive:
            for part, place in (("libsconce_dev.so", ""), ("sconce", "plain"), ("libwgpu_native.so", "")):
                path = pathlib.Path(folder) / place / part
                path.parent.mkdir(exist_ok=True)
                data = archive.read(f"sconce/native/{part}")
                path.write_bytes(re.sub(rb"GLIBC_2\.28\0", b"GLIBC_ABIX\0", data) if part == "libwgpu_native.so" else data)
        _, err = run(sys.executable, ROOT / "tools/wheels.py", "--from", folder, "--out", folder, expect=1)
        assert "libwgpu_native.so needs GLIBC_ABIX, and no tag tells so" in err, err


def test_a_folder_without_a_part_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        _, err = run(sys.executable, ROOT / "tools/wheels.py", "--from", folder, expect=1)
        assert "has none of libsconce_dev.so" in err, err
        shutil.copy(ROOT / "build/libsconce_dev.so", folder)
        _, err = run(sys.executable, ROOT / "tools/wheels.py", "--from", folder, expect=1)
        assert "has no plain/sconce, libwgpu_native.so" in err, err


# ---- as it is installed --------------------------------------------------------------------------

def version_of(python):
    """(3, n), or None where it cannot make an environment."""
    done = subprocess.run([python, "-c", "import sys, venv, ensurepip; print(*sys.version_info[:2])"], capture_output=True, text=True)
    return tuple(map(int, done.stdout.split())) if done.returncode == 0 else None


@functools.lru_cache(maxsize=None)
def interpreters():
    """The oldest and the newest Python that the package is for; on the path, or where pyenv keeps them."""
    found = {}
    folder = os.environ.get("PYENV_ROOT", os.path.expanduser("~/.pyenv"))
    for minor in range(OLDEST, NEWEST):
        kept = sorted(glob.glob(f"{folder}/versions/3.{minor}.*/bin/python3"))
        for python in filter(None, [shutil.which(f"python3.{minor}"), *kept]):
            if (3, minor) not in found and version_of(python) == (3, minor):
                found[(3, minor)] = python
    if sys.version_info >= (3, OLDEST):
        found.setdefault(sys.version_info[:2], sys.executable)
    if not found:
        raise Skip(f"there is no Python 3.{OLDEST} or newer that can make an environment")
    return found[min(found)], found[max(found)]


@functools.lru_cache(maxsize=None)
def environment(python):
    """(folder, its Python): an empty environment with the wheel, which pip installed offline."""
    folder = tempfile.TemporaryDirectory()
    run(python, "-m", "venv", folder.name)
    inside = pathlib.Path(folder.name) / "bin/python"
    words = ["install", "--no-index", "-f", "build/wheels", "sconce"]  # as the pages say it: PyPI has another sconce
    for page in ("README.md", "docs/python.md"):
        assert f"pip {' '.join(words)}" in (ROOT / page).read_text(), page
    words[words.index("build/wheels")] = made()[1].parent
    run(inside, "-m", "pip", "-q", "--disable-pip-version-check", *words)
    return folder, inside


def check(python, *names, stdin="", path="", timeout=900):
    """Runs checks in an environment, from a folder that is not the checkout."""
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SCONCE_LIBRARY")}
    env.update(NODEVICE_SELECT="1", PYTHONDONTWRITEBYTECODE="1", **({"PYTHONPATH": path} if path else {}))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([python, "-X", "dev", "-W", "error", CHECKS, ROOT, *names], input=stdin, env=env, cwd=folder,
                              capture_output=True, text=True, timeout=timeout)
    said = [line.split()[1] for line in done.stdout.splitlines() if line.startswith("ok ")]
    assert done.returncode == 0 and said == list(names), f"{python}\n{done.stdout}\n{done.stderr}"
    assert "Exception ignored" not in done.stderr and "Traceback" not in done.stderr, done.stderr


CHECK_NAMES = re.findall(r"^def check_(\w+)\(\):$", CHECKS.read_text(), re.M)
COMMANDS = [name for name in CHECK_NAMES if name.endswith("_the_commands")]  # they read what the command wrote
NUMPY = [name for name in CHECK_NAMES if name.startswith("numpy_") and name not in COMMANDS]
PLAIN = [name for name in CHECK_NAMES if name not in (*COMMANDS, *NUMPY)]


def test_with_the_oldest_python():
    check(environment(interpreters()[0])[1], *PLAIN)


def test_with_the_newest_python():
    check(environment(interpreters()[1])[1], *PLAIN)


def test_results_are_the_commands():
    python = environment(interpreters()[1])[1]
    story, _ = run(SCONCE, "generate", "-m", STORIES, "-p", "Once upon a time", "-n", "24", "--seed", "7")
    said = {"text_is_the_commands": story, "inspect_is_the_commands": run(SCONCE, "inspect", STORIES)[0]}
    assert sorted(COMMANDS) == sorted([*said, "numpy_is_the_commands"]), COMMANDS  # the last one is below
    for name, text in said.items():
        check(python, name, stdin=text)
    for command in ([python, "-m", "sconce"], [python.parent / "sconce"]):
        assert run(*command, "--version")[0] == run(SCONCE, "--version")[0]
        assert run(*command, "devices")[0] == run(SCONCE, "devices")[0]
        run(*command, "nothing", expect=2)


@contextlib.contextmanager
def with_numpy():
    """(an environment's Python, a path with NumPy for it): what tools/setup.sh python fetched, or this Python's own."""
    _, python = environment(sys.executable)
    ours = ROOT / "build/deps/numpy"
    for path in (ours, *map(pathlib.Path, sys.path)):
        if (path / "numpy/__init__.py").exists():
            with tempfile.TemporaryDirectory() as folder:  # nothing else of that path
                for part in (*path.glob("numpy"), *path.glob("numpy.libs")):
                    os.symlink(part, pathlib.Path(folder) / part.name)
                env = {**os.environ, "PYTHONPATH": folder}
                if subprocess.run([python, "-c", "import numpy"], env=env, capture_output=True).returncode == 0:
                    yield python, folder
                    return
    raise Skip(f"there is no NumPy for {sys.executable}: tools/setup.sh python fetches it")


def test_with_numpy():
    with with_numpy() as (python, path):
        check(python, *NUMPY, path=path)


def test_the_program_in_the_readme_runs():
    program = (ROOT / "README.md").read_text().split("## From Python")[1].split("```python\n")[1].split("```")[0]
    assert "max_new=60" in program, program
    program = program.replace("max_new=60", "max_new=12")
    with with_numpy() as (python, path), tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "models").symlink_to(ROOT / "models")
        shutil.copy(ROOT / "tests/data/format/delegated.pte", f"{folder}/model.pte")
        out, _ = run(python, "-c", program + "print(y.shape)", env={"PYTHONPATH": path}, cwd=folder)
        story, _ = run(SCONCE, "generate", "-m", STORIES, "-p", "Once upon a time", "-n", "12", "--seed", "15")
        assert "Once upon a time" + out == story + "(4, 6)\n", (out, story)


def test_vision_models_with_numpy_are_the_commands():
    models = sorted((shared() / "models/mobilenet_v2").glob("*.pte"))
    if not models:
        raise Skip("there is no MobileNet-V2")
    with with_numpy() as (python, path), tempfile.TemporaryDirectory() as folder:
        lines = []
        values = [(i * 37 % 255) / 127.5 - 1 for i in range(3 * 224 * 224)]
        (pathlib.Path(folder) / "x.npy").write_bytes(npy("(1, 3, 224, 224)", values))
        for model in models:
            out = pathlib.Path(folder) / model.stem
            run(SCONCE, "run", model, "--input", f"{folder}/x.npy", "--output-dir", out)
            lines.append(f"{model}\t{folder}/x.npy\t{out}/output0.npy")
        check(python, "numpy_is_the_commands", stdin="\n".join(lines), path=path)
