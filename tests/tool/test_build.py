"""The packer, the installed tree, and what the libraries export."""

import pathlib
import shutil
import subprocess
import tempfile

from support import ROOT, run

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
                           str(ROOT / "src/run/measure.c")], capture_output=True, text=True)


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
        "// uses: grid": ("// uses: nothing", "src/wgsl/nothing.wgsl does not exist"),
        "var<uniform>             p": ("var<storage, read> p", "come together"),
    }
    for old, (new, message) in cases.items():
        assert old in CHAIN, old
        with tempfile.TemporaryDirectory() as folder:
            src, out = packed(folder, CHAIN.replace(old, new))
            _, err = run("python3", ROOT / "tools/pack.py", src, out, expect=1)
            assert message in err, err


def test_only_sconce_symbols_leave():
    for library, flag in (("libsconce.so", "-D"), ("libsconce.a", "-g")):
        out, _ = run("nm", flag, "--defined-only", ROOT / "build" / library)
        names = [line.split()[-1] for line in out.splitlines() if len(line.split()) == 3]
        assert "sconce_device_open" in names
        assert all(n.startswith("sconce_") for n in names), [n for n in names if not n.startswith("sconce_")]


def test_libraries_need_nothing_but_libc():
    out, _ = run("ldd", ROOT / "build/libsconce.so")
    allowed = ("linux-vdso", "libc.so", "libm.so", "libdl.so", "libpthread.so", "ld-linux")
    assert all(any(a in line for a in allowed) for line in out.splitlines() if line.strip()), out


def test_installed_tree_builds_the_example():
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / "prefix"
        run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
        run("cmake", "-S", ROOT / "examples/first", "-B", f"{folder}/build", f"-DCMAKE_PREFIX_PATH={prefix}")
        run("cmake", "--build", f"{folder}/build")
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
            run("cc", ROOT / "examples/first/main.c", *kind, "-o", f"{folder}/first2")
            # A program of one's own says where the WebGPU library is, or ships it beside itself.
            assert run(f"{folder}/first2", env={"SCONCE_WEBGPU": str(libdir / "libwgpu_native.so")})[0] == out
        assert run(prefix / "bin/sconce", "--version")[0].startswith("sconce ")
        run(prefix / "bin/sconce", "devices")
