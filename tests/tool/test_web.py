"""The web package: how large it is, what is in it, and that it computes the same in Node and in browsers."""

import gzip
import os
import pathlib
import shutil

from support import ROOT, Skip, run

SWIFT = "/usr/lib/chromium/vk_swiftshader_icd.json"
PACKAGE = ROOT / "build/web/package"


def package():
    """Builds it; the tools come with tools/setup.sh."""
    for tool in ("node", "clang-19", "wasm-ld-19", "wasm-opt"):
        if not shutil.which(tool):
            raise Skip(f"there is no {tool}: sh tools/setup.sh web browsers")
    if not (ROOT / "build/deps/node/done").exists():
        raise Skip("Node's packages are missing: sh tools/setup.sh browsers")
    run("make", "web")
    return PACKAGE


def number(data, at):
    """An unsigned LEB128 number, and what follows it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def sections(data):
    names = {1: "types", 2: "imports", 3: "functions", 9: "table", 10: "code", 11: "data"}
    out, at = {}, 8
    while at < len(data):
        kind = data[at]
        size, start = number(data, at + 1)
        out[names.get(kind, "other")] = out.get(names.get(kind, "other"), 0) + size
        at = start + size
    return out


def test_size():
    """With every operator, shader, tokenizer and chat template; it must not grow unseen: a hundredth above what it was."""
    data = (package() / "sconce.wasm").read_bytes()
    plain = (ROOT / "build/web/plain.wasm").read_bytes()
    packed = len(gzip.compress(data, 9))
    table = ", ".join(f"{name} {size:,}" for name, size in sections(plain).items())
    assert len(data) <= 302_800, f"{len(data):,} bytes; unpacked: {table}"
    assert packed <= 302_600, f"{packed:,} bytes gzipped; unpacked: {table}"
    assert len(plain) <= 1_025_000, f"{len(plain):,} bytes unpacked: {table}"
    scripts = sum(len(path.read_bytes()) for path in PACKAGE.glob("*.js"))
    assert scripts <= 82_900, f"{scripts:,} bytes of JavaScript"


def test_layout_of_structs_is_checked():
    """A field that lies elsewhere does not build, nor a number that is another."""
    package()
    made = (ROOT / "build/web/gen/layout.c").read_text()
    assert made.count("_Static_assert") >= 100
    wrong = ROOT / "build/web/wrong_layout.c"
    for right, other, named in (
        ("offsetof(WGPUBufferDescriptor, size) == 24", "offsetof(WGPUBufferDescriptor, size) == 20", "WGPUBufferDescriptor.size"),
        ("WGPUErrorType_OutOfMemory == 3", "WGPUErrorType_OutOfMemory == 4", "WGPUErrorType.OutOfMemory"),
        ("WGPUMapMode_Read == 1", "WGPUMapMode_Read == 2", "WGPUMapMode.Read"),
    ):
        assert right in made
        wrong.write_text(made.replace(right, other))
        _, errors = run("clang-19", "--target=wasm32-wasi", "-fsyntax-only", f"-I{ROOT}/build/deps/wgpu", wrong, expect=1)
        assert named in errors


def test_every_function_of_the_table_has_glue():
    package()
    glue = (PACKAGE / "glue.js").read_text()
    for name in (ROOT / "build/web/imports.txt").read_text().split():
        kind = name.removeprefix("wgpu").removesuffix("Release")
        assert f"  {name}(" in glue or (name.endswith("Release") and f"'{kind}'" in glue), f"no glue for {name}"


def part(name):
    package()
    if not pathlib.Path(SWIFT).exists():
        raise Skip("there is no SwiftShader: sh tools/setup.sh swift")
    env = {"XDG_RUNTIME_DIR": os.environ.get("XDG_RUNTIME_DIR", "/tmp")}
    if name == "node":
        env["VK_ICD_FILENAMES"] = SWIFT
    said, _ = run("node", "web/test/all.mjs", name, env=env)
    for line in said.splitlines():
        if line.startswith("note "):
            print(line, flush=True)


def test_in_node():
    part("node")


def test_in_chromium():
    part("chromium")


def test_in_firefox():
    if not (shutil.which("firefox-esr") or shutil.which("firefox")):
        raise Skip("there is no Firefox: sh tools/setup.sh browsers")
    part("firefox")


def test_on_the_page():
    """The demo as a person uses it."""
    part("demo")


def test_big_files():
    """Over bad networks, with a full disk, and without lying in the page's memory."""
    run("cmake", "--build", "--preset", "release", "--target", "sconce_big")
    part("big")


def test_in_bundlers():
    if not (ROOT / "build/deps/bundlers/done").exists():
        raise Skip("there is no Vite and no webpack: sh tools/setup.sh bundlers")
    part("bundle")
