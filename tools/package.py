#!/usr/bin/env python3
"""Packs what a preset for another system has built: programs and libraries side by side, so that it runs where it is
unpacked, with the header files beside them. tools/package.py PRESET writes build/packages/sconce-VERSION-PLATFORM.zip
or .tar.gz."""

import gzip
import io
import pathlib
import re
import sys
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
STAMP = (1980, 1, 1, 0, 0, 0)  # the same input gives the same bytes

# preset -> platform of tools/pinned.txt, its programs, what is there for whoever links
PRESETS = {
    "windows": ("windows-x86_64", ["sconce.exe", "sconce.dll", "wgpu_native.dll"], ["libsconce.dll.a", "libsconce.a"]),
    "linux-x86_64": ("linux-x86_64", ["sconce", "libsconce.so.{so}", "libwgpu_native.so"], ["libsconce.a"]),
    "linux-aarch64": ("linux-aarch64", ["sconce", "libsconce.so.{so}", "libwgpu_native.so"], ["libsconce.a"]),
    "macos-arm64": ("macos-arm64", ["sconce", "libsconce.{so}.dylib", "libwgpu_native.dylib"], ["libsconce.a"]),
    "macos-x86_64": ("macos-x86_64", ["sconce", "libsconce.{so}.dylib", "libwgpu_native.dylib"], ["libsconce.a"]),
}


def version():
    return re.search(r'SCONCE_VERSION "(.*)"', (ROOT / "include/sconce.h").read_text()).group(1)


def readme(preset):
    """About the folder itself; the project's own tells how it is built."""
    platform, (command, shared, webgpu), libraries = PRESETS[preset]
    so = ".".join(version().split(".")[:2])
    return (ROOT / "tools/packaged.md").read_text().format(
        version=version(), platform=platform, command=command, start=".\\sconce" if preset == "windows" else "./sconce",
        shared=shared.format(so=so), webgpu=webgpu, static="`, `".join(libraries))


def members(preset):
    """(name, bytes, whether it is run)"""
    _, programs, libraries = PRESETS[preset]
    so = ".".join(version().split(".")[:2])
    for name in [*programs, *libraries]:
        name = name.format(so=so)
        yield name, (ROOT / "build" / preset / name).read_bytes(), name not in libraries
    for path in sorted((ROOT / "include").glob("*.h")):
        yield f"include/{path.name}", path.read_bytes(), False
    yield "LICENSE", (ROOT / "LICENSE").read_bytes(), False
    yield "LICENSE.wgpu-native", (ROOT / "tools/licenses/wgpu-native.txt").read_bytes(), False
    if preset == "windows":
        yield "LICENSE.mingw-w64", (ROOT / "tools/licenses/mingw-w64.txt").read_bytes(), False
    yield "README.md", readme(preset).encode(), False
    for path in sorted(p for p in (ROOT / "docs").rglob("*") if p.suffix in (".md", ".svg", ".png")):
        yield path.relative_to(ROOT).as_posix(), path.read_bytes(), False


def write_zip(path, top, files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data, _ in files:
            archive.writestr(zipfile.ZipInfo(f"{top}/{name}", STAMP), data, zipfile.ZIP_DEFLATED, 9)


def write_tar(path, top, files):
    with open(path, "wb") as out, gzip.GzipFile("", "wb", 9, out, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data, is_run in files:
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size = len(data)
            entry.mode = 0o755 if is_run else 0o644
            archive.addfile(entry, io.BytesIO(data))


def main():
    if len(sys.argv) != 2 or sys.argv[1] not in PRESETS:
        sys.exit(f"usage: package.py {'|'.join(PRESETS)}")
    preset = sys.argv[1]
    top = f"sconce-{version()}-{PRESETS[preset][0]}"
    folder = ROOT / "build/packages"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (top + (".zip" if preset == "windows" else ".tar.gz"))
    files = list(members(preset))  # all are there, or nothing is written
    (write_zip if preset == "windows" else write_tar)(path, top, files)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB")


main()
