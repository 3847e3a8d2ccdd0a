"""The packer, the installed tree, and what the libraries export."""

import base64
import json
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

from support import ROOT, Skip, run

INCLUDES = ["-I", ROOT / "include", "-I", ROOT / "src"]


def packed(folder, source):
    """Packs a copy of src/gpu and src/wgsl in which chain.wgsl has the given text."""
    src, out = pathlib.Path(folder) / "src", pathlib.Path(folder) / "gen"
    shutil.copytree(ROOT / "src/gpu", src / "gpu")
    shutil.copytree(ROOT / "src/wgsl", src / "wgsl")
    (src / "gpu/probe/chain.wgsl").write_text(source)
    return src, out


CHAIN = (ROOT / "src/gpu/probe/chain.wgsl").read_text()


def compile_measure(out):
    return subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-I", str(out), *map(str, INCLUDES),
                           str(ROOT / "src/bench/measure.c")], capture_output=True, text=True)


def test_renaming_a_parameter_breaks_the_c_build():
    with tempfile.TemporaryDirectory() as folder:
        src, out = packed(folder, CHAIN)
        run("python3", ROOT / "tools/pack.py", src, out)
        assert compile_measure(out).returncode == 0, compile_measure(out).stderr
    with tempfile.TemporaryDirectory() as folder:
        src, out = packed(folder, CHAIN.replace("add: u32", "addend: u32").replace("p.add", "p.addend"))
        run("python3", ROOT / "tools/pack.py", src, out)
        done = compile_measure(out)
        assert done.returncode != 0 and "add" in done.stderr, done.stderr


def test_the_packer_refuses_what_would_drift():
    cases = {
        "add: u32": ("add: vec3<f16>", "type vec3<f16> is not one of"),
        "n: u32,": ("n: u32, v: vec4<f32>,", "at byte 4, needs a multiple of 16"),
        "@binding(1)": ("@binding(3)", "expected (0, 1)"),
        "// uses: grid": ("// uses: nothing", "neither gpu/probe nor wgsl has nothing.wgsl"),
        "var<uniform>             p": ("var<storage, read> p", "come together"),
    }
    for old, (new, message) in cases.items():
        assert old in CHAIN, old
        with tempfile.TemporaryDirectory() as folder:
            src, out = packed(folder, CHAIN.replace(old, new))
            _, err = run("python3", ROOT / "tools/pack.py", src, out, expect=1)
            assert message in err, err


def test_libraries_lie_beside_their_family():
    used = CHAIN.replace("// uses: grid", "// uses: grid beside")
    with tempfile.TemporaryDirectory() as folder:
        src, out = packed(folder, used)
        (src / "gpu/probe/beside.wgsl").write_text("// A comment.\n  fn beside() -> u32 { return 1u; } // and another\n\n")
        run("python3", ROOT / "tools/pack.py", src, out)
        text = (out / "wgsl.c").read_text()
        assert '.uses = "grid beside"' in text and '{"beside", "gpu/probe/beside.wgsl",' in text, text
        assert '\n    "fn beside() -> u32 { return 1u; }\\n"}' in text and "comment" not in text, text
    with tempfile.TemporaryDirectory() as folder:  # what another family has is not found
        src, out = packed(folder, used)
        (src / "gpu/beside.wgsl").write_text("fn beside() -> u32 { return 1u; }\n")
        _, err = run("python3", ROOT / "tools/pack.py", src, out, expect=1)
        assert "neither gpu/probe nor wgsl has beside.wgsl" in err, err
    with tempfile.TemporaryDirectory() as folder:  # rows name libraries without a folder
        src, out = packed(folder, CHAIN)
        (src / "gpu/probe/grid.wgsl").write_text("fn other() {}\n")
        _, err = run("python3", ROOT / "tools/pack.py", src, out, expect=1)
        assert "gpu/probe/grid.wgsl has this name" in err, err


def test_only_sconce_symbols_leave():
    run_headers = ("sconce.h", "sconce_llm.h")
    headers = {"libsconce": run_headers, "libsconce_dev": (*run_headers, "sconce_dev.h"), "libsconce_write": ("sconce_write.h",)}
    for library, its in headers.items():
        public = "".join((ROOT / "include" / name).read_text() for name in its)
        for end, flag in ((".so", "-D"), (".a", "-g")):
            out, _ = run("nm", flag, "--defined-only", ROOT / f"build/{library}{end}")
            names = [line.split()[-1] for line in out.splitlines() if len(line.split()) == 3]
            assert ("sconce_writer_open" if library == "libsconce_write" else "sconce_device_open") in names
            strange = [n for n in names if not n.startswith("sconce_") or not re.search(rf"\b{n}\(", public)]
            assert not strange, (library, strange)


def test_who_runs_models_does_not_carry_the_writers():
    """And who writes them does not carry the runtime."""
    sizes = {name: (ROOT / f"build/lib{name}.so").stat().st_size for name in ("sconce", "sconce_write")}
    assert sizes["sconce_write"] < 200_000 < sizes["sconce"], sizes
    for name, foreign in (("libsconce.a", "write_pte_init"), ("libsconce_dev.a", "write_pte_init"), ("libsconce_write.a", "gpu_open")):
        names = run("nm", "--defined-only", ROOT / "build" / name)[0]
        assert f" {foreign}\n" not in names, name


def test_the_library_for_applications_is_small():
    size = (ROOT / "build/libsconce.so").stat().st_size
    assert size < 1_500_000, f"libsconce.so has {size} bytes, and may have 1.5 MB"
    out, _ = run("readelf", "-S", "--wide", ROOT / "build/libsconce.so")
    assert ".dynsym" in out and ".symtab" not in out, "it still has the names of what nobody can call"


def test_libraries_need_nothing_but_libc():
    out, _ = run("ldd", ROOT / "build/libsconce.so")
    allowed = ("linux-vdso", "libc.so", "libm.so", "libdl.so", "libpthread.so", "ld-linux")
    assert all(any(a in line for a in allowed) for line in out.splitlines() if line.strip()), out


STORIES = ROOT / "models/stories15M/stories15M-4w.pte"


def check_examples(folder):
    """Each program does what its first lines say."""
    out, _ = run(f"{folder}/run", ROOT / "tests/data/goldens/mul.pte")
    assert "output 0, float32" in out, out
    out, _ = run(f"{folder}/shapes", ROOT / "tests/data/format/delegated.pte")
    assert "3 rows in, 6 out" in out and "input 0: dim 0 is 9, at most 8" in out, out
    product = ROOT / "tests/data/goldens/mul.pte"
    assert run(f"{folder}/chain", product, product)[0] == "3.375\n"
    assert run(f"{folder}/write", f"{folder}/linear.pte")[0] == "1 x 16, as computed here\n"
    out, _ = run(f"{folder}/story", STORIES, STORIES.parent / "tokenizer.bin", "Once upon a time")
    assert out.startswith("Once upon a time, there was a little"), out
    out, _ = run(f"{folder}/sessions", STORIES)
    lines = out.splitlines()
    weights = {line.split(": ")[1].split(" of weights")[0] for line in lines[:8]}
    assert len(weights) == 1 and len(lines) == 14, out


GRAY_JPEG = (  # 16 x 16
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDACgcHiMeGSgjISMtKygwPGRBPDc3PHtYXUlkkYCZlo+AjIqgtObDoKrarYqMyP/L2u71"
    "////m8H////6/+b9//j/wAALCAAQABABAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAI"
    "AQEAAD8AAP/Z")


def png_of(colour, width, height):
    """A picture of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes(colour) * width) * height
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def check_classify(classify, folder):
    model, want = ROOT / "tests/data/format/classifier.pte", json.loads((ROOT / "tests/data/format/classifier.json").read_text())
    labels = pathlib.Path(folder) / "labels.txt"
    labels.write_text("".join(f"label {i}\n" for i in range(10)))
    for width, height in ((32, 32), (131, 64), (7, 90)):
        picture = pathlib.Path(folder) / "picture.png"
        picture.write_bytes(png_of(want["colour"], width, height))
        lines = run(classify, model, picture, labels)[0].splitlines()
        found = [(int(line.split("class ")[1].split()[0]), float(line.split("%")[0])) for line in lines]
        assert [c for c, _ in found] == [c for c, _ in want["best"]], lines
        assert all(abs(p - q) < 0.02 for (_, p), (_, q) in zip(found, want["best"])), lines
        assert lines[0].endswith(f"label {found[0][0]}"), lines
    gray = pathlib.Path(folder) / "gray.jpg"
    gray.write_bytes(base64.b64decode(GRAY_JPEG))
    assert run(classify, model, gray)[0].count("class") == 5
    gray.write_bytes(base64.b64decode(GRAY_JPEG)[:90])  # its tables are not whole
    assert run(classify, model, gray, expect=1)[1]
    assert "neither a JPEG nor a PNG" in run(classify, model, labels, expect=1)[1]


def test_classify_says_what_pytorch_says():
    """Of a colour, for a picture of it in any size; with labels; and files that are no pictures."""
    headers = all(any(pathlib.Path(place, name).exists() for place in ("/usr/include", "/usr/local/include", "/opt/homebrew/include"))
                  for name in ("jpeglib.h", "png.h"))
    if not headers:
        raise Skip("libjpeg or libpng is not installed")
    with tempfile.TemporaryDirectory() as folder:
        run("cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-I", ROOT / "include", ROOT / "examples/classify.c", ROOT / "build/libsconce.so",
            f"-Wl,-rpath,{ROOT / 'build'}", "-ljpeg", "-lpng", "-lm", "-o", f"{folder}/classify")
        check_classify(f"{folder}/classify", folder)


def test_installed_tree_builds_the_examples():
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "prefix"
        run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
        run("cmake", "-S", ROOT / "examples", "-B", f"{folder}/build", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", f"{folder}/build")
        check_examples(f"{folder}/build")
        out, _ = run(f"{folder}/build/first")
        assert out.startswith("sconce 0.") and " on " in out, out
        pkgconfig = next(prefix.rglob("sconce.pc")).parent
        libdir = pkgconfig.parent
        flags = ["-I", prefix / "include", "-L", libdir, "-lsconce", f"-Wl,-rpath,{libdir}"]
        if shutil.which("pkg-config"):
            text, _ = run("pkg-config", "--cflags", "--libs", "sconce",
                          env={"PKG_CONFIG_PATH": str(pkgconfig)})
            assert str(prefix) in text, text
            flags = text.split() + [f"-Wl,-rpath,{libdir}"]
        for kind in (flags, ["-I", prefix / "include", libdir / "libsconce.a", "-lm", "-ldl"]):
            run("cc", ROOT / "examples/first.c", *kind, "-o", f"{folder}/first2")
            # A program of one's own says where the WebGPU library is, or ships it beside itself.
            assert run(f"{folder}/first2", env={"SCONCE_WEBGPU": str(libdir / "sconce/libwgpu_native.so")})[0] == out
        assert run(prefix / "bin/sconce", "--version")[0].startswith("sconce ")
        run(prefix / "bin/sconce", "devices")
        # Both archives in one program: neither has a symbol of the other.
        run("cc", ROOT / "examples/write.c", "-I", prefix / "include", libdir / "libsconce_write.a", libdir / "libsconce.a", "-lm", "-ldl",
            "-o", f"{folder}/write2")
        assert "as computed here" in run(f"{folder}/write2", f"{folder}/linear2.pte", env={"SCONCE_WEBGPU": str(libdir / "sconce/libwgpu_native.so")})[0]
        check_two_parts(pathlib.Path(folder) / "two", prefix)


TWO_PARTS = """cmake_minimum_required(VERSION 3.22)
project(two LANGUAGES C)
find_package(sconce REQUIRED)
find_package(sconce REQUIRED)
add_subdirectory(part)
add_executable(runs "%s")
target_link_libraries(runs PRIVATE sconce::sconce_static)
"""


def check_two_parts(folder, prefix):
    """Parts of a project may each look for it; and what a program does not use is not in it."""
    (folder / "part").mkdir(parents=True)
    (folder / "CMakeLists.txt").write_text(TWO_PARTS % (ROOT / "examples/run.c"))
    (folder / "part/CMakeLists.txt").write_text("find_package(sconce REQUIRED)\n")
    run("cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", folder / "build")
    run("cc", "-O2", "-I", prefix / "include", ROOT / "examples/run.c", ROOT / "build/libsconce.a", "-lm", "-ldl", "-o", folder / "whole")
    sizes = {}
    for program in (folder / "build/runs", folder / "whole"):
        names = run("nm", "--defined-only", program)[0]
        sizes[program.name] = sum(int(line.split()[1], 16) for line in run("nm", "-S", "--defined-only", program)[0].splitlines()
                                  if len(line.split()) == 4)
        assert ("sconce_session_open" in names) == (program.name == "whole"), program
    assert sizes["runs"] < 0.8 * sizes["whole"], sizes


PARENT = """cmake_minimum_required(VERSION 3.22)
project(parent LANGUAGES C)
add_subdirectory("%s" sconce)
foreach(kind sconce_shared sconce_static)
  add_executable(uses_${kind} "%s")
  target_link_libraries(uses_${kind} PRIVATE sconce::${kind})
endforeach()
"""


def test_a_project_takes_it_as_a_subdirectory():
    """With headers that lie elsewhere, and without programs, tests or anything fetched."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "headers").mkdir()
        for header in (ROOT / "build/deps/wgpu").glob("*.h"):
            shutil.copy(header, folder / "headers")
        (folder / "CMakeLists.txt").write_text(PARENT % (ROOT, ROOT / "examples/first.c"))
        run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DSCONCE_DEPS={folder}/none",
            f"-DSCONCE_WEBGPU_HEADER={folder}/headers/webgpu.h")
        run("cmake", "--build", folder / "build")
        for kind in ("shared", "static"):
            out, _ = run(folder / f"build/uses_sconce_{kind}",
                         env={"SCONCE_WEBGPU": str(ROOT / "build/deps/wgpu/libwgpu_native.so")})
            assert out.startswith("sconce 0.") and " on " in out, out
        assert not (folder / "build/sconce/sconce_tests").exists()
        _, err = run("cmake", "-S", ROOT, "-B", folder / "other", "-DSCONCE_WEBGPU_HEADER=/nonexistent/webgpu.h",
                     expect=1)
        assert "-DSCONCE_WEBGPU_HEADER=" in err, err


def test_the_abi_is_what_was_promised():
    out, _ = run("python3", ROOT / "tools/abi.py")
    assert "as tests/abi.txt says" in out, out


def test_every_kind_of_change_of_the_abi_is_seen():
    changes = (
        ("size_t sconce_state_size(", "uint32_t sconce_state_size(", "+ libsconce.so sconce_state_size: uint32_t (const sconce_state *)"),
        ("sconce_state_size(const sconce_state *state)", "sconce_state_size(sconce_state *state)",
         "+ libsconce.so sconce_state_size: size_t (sconce_state *)"),
        ("SCONCE_BAD_GRAPH,", "SCONCE_BAD_GRAPH = 30,", "+ enum sconce_status SCONCE_BAD_GRAPH 30"),
        ("{ SCONCE_CALLS_MAX = 4 }", "{ SCONCE_CALLS_MAX = 5 }", "- enum SCONCE_CALLS_MAX 4"),
        ("  const void *data;", "  const char *data;", "data@"),  # of the same size
        ("bool (*find)(void *user, const char *key, uint64_t *size);", "bool (*find)(void *user, const char *key, int64_t *size);",
         "+ sconce_named_data.find@0 bool (*)(void *, const char *, int64_t *)"),
        ("sconce_state_size(const sconce_state *state)", "sconce_state_size(const sconce_state *one)", None),  # a name is none
        ("typedef struct sconce_method sconce_method;", "typedef struct sconce_method sconce_method; extern int sconce_x;",
         "no declaration that it knows: extern int sconce_x"),
    )
    text = (ROOT / "include/sconce.h").read_text()
    for old, new, says in changes:
        assert old in text, old
        with tempfile.TemporaryDirectory() as folder:
            include = shutil.copytree(ROOT / "include", pathlib.Path(folder) / "include")
            (include / "sconce.h").write_text(text.replace(old, new))
            out, err = run("python3", ROOT / "tools/abi.py", "--include", include, expect=1 if says else 0)
            assert (says or "as tests/abi.txt says") in out + err, (new, out, err)


QUIET = """#include <sconce.h>
#include <stdio.h>
#include <stdlib.h>
static void each(void *user, uint32_t i, const sconce_device_info *info) { (void)user, (void)i, (void)info; }
int main(void) {
  sconce_device *device = NULL;
  sconce_error err = {0};
  int bad = sconce_adapters(NULL, each, NULL, &err) != SCONCE_OK || sconce_device_open(&device, NULL, &err) != SCONCE_OK;
  sconce_device_close(device);
  printf("%s%s\\n", err.text, getenv("NODEVICE_SELECT") ? "lent still" : "as it was");
  return bad;
}
"""


def test_the_library_prints_nothing_without_an_environment():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "program.c").write_text(QUIET)
        run("cc", "-std=c11", f"{folder}/program.c", "-I", ROOT / "include", "-L", ROOT / "build", "-lsconce",
            f"-Wl,-rpath,{ROOT / 'build'}", "-o", f"{folder}/program")
        done = subprocess.run([f"{folder}/program"], env={}, capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "as it was\n", ""), done


def test_the_program_in_the_readme_runs():
    text = (ROOT / "README.md").read_text()
    program = text.split("```c\n")[1].split("```")[0]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "program.c").write_text(program)
        shutil.copy(ROOT / "tests/data/format/delegated.pte", f"{folder}/model.pte")
        run("cc", "-std=c11", "-Wall", "-Werror", f"{folder}/program.c", "-I", ROOT / "include", ROOT / "build/libsconce.a",
            "-lm", "-ldl", "-o", f"{folder}/program")
        out, _ = run(f"{folder}/program", cwd=folder, env={"SCONCE_WEBGPU": str(ROOT / "build/libwgpu_native.so")})
        assert out.startswith("4 x 6, first "), out


def test_setup_says_what_is_missing():
    """With nothing in PATH but what the script itself uses, and a user who may not install: each step must notice."""
    wanted = {"wine": "please install wine", "windows": "please install a compiler for Windows", "lint": "clang-19",
              "web": "wasm-opt", "browsers": "nodejs", "bundlers": "nodejs", "arm": "qemu-user-static", "build": "cmake"}
    with tempfile.TemporaryDirectory() as folder:
        for tool in ("sh", "dirname", "mkdir"):
            (pathlib.Path(folder) / tool).symlink_to(shutil.which(tool))
        user = pathlib.Path(folder) / "id"
        user.write_text("#!/bin/sh\necho 1000\n")
        user.chmod(0o755)
        for step, text in wanted.items():
            _, err = run("sh", ROOT / "tools/setup.sh", step, env={"PATH": folder}, expect=1)
            assert text in err, (step, err)
