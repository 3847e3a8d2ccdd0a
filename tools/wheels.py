#!/usr/bin/env python3
"""Writes Python wheels: python/sconce with the built library, the command and wgpu-native inside.

    tools/wheels.py [--out FOLDER] [--from FOLDER]

--from is a folder with what was built for one platform: libsconce_dev, plain/sconce (the target sconce_plain) and
libwgpu_native, under the names that they have there. Without it there is a wheel for each system whose preset is
configured below build (`make wheels` configures all). Wheels go to build/wheels. The same files give the same bytes.
The tag says what the binaries need, read from them: the newest glibc symbol, or the oldest macOS.
"""

import argparse
import base64
import hashlib
import pathlib
import re
import struct
import subprocess
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python/sconce"
PRESETS = ("linux-x86_64", "linux-aarch64", "windows", "macos-arm64", "macos-x86_64")
DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip can have
# Names in a build folder, by the library that tells the platform.
PARTS = {
    "libsconce_dev.so": ["plain/sconce", "libwgpu_native.so"],
    "libsconce_dev.dylib": ["plain/sconce", "libwgpu_native.dylib"],
    "sconce_dev.dll": ["plain/sconce.exe", "wgpu_native.dll"],
}
# What a manylinux wheel may expect of every system (PEP 600).
LINUX_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libgcc_s.so.1",
                   "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}

# Ours, and those of what is in wgpu-native (tools/licenses).
LICENCES = "BSD-3-Clause AND MIT AND Apache-2.0"
GCC_VERSIONS = {"GCC_3.0", "GCC_3.3", "GCC_3.3.1", "GCC_4.2.0"}  # of libgcc_s.so.1; the others came later


def fail(text):
    sys.exit(f"wheels.py: {text}")


# ---- what binaries need --------------------------------------------------------------------------

ELF_MACHINES = {62: "x86_64", 183: "aarch64"}


def elf_sections(data):
    """(type, offset, size, index of the section with its names, entries) of each."""
    at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    for i in range(count):
        _, kind, _, _, offset, length, link, info = struct.unpack_from("<IIQQQQII", data, at + i * size)
        yield kind, offset, length, link, info


def text_at(data, at):
    return data[at:data.index(b"\0", at)].decode()


def elf_needs(data):
    """(machine, libraries, versions of symbols) of an ELF file."""
    sections = list(elf_sections(data))
    libraries, versions = set(), set()
    for kind, offset, size, link, info in sections:
        names = sections[link][1] if link < len(sections) else 0
        if kind == 6:  # dynamic
            for at in range(offset, offset + size, 16):
                tag, value = struct.unpack_from("<QQ", data, at)
                if tag == 1:
                    libraries.add(text_at(data, names + value))
        if kind == 0x6ffffffe:  # version needs: a chain of files, each with a chain of versions
            at = offset
            for _ in range(info):
                _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
                entry = at + first
                for _ in range(count):
                    _, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
                    versions.add(text_at(data, names + name))
                    entry += step
                at += following
    machine, = struct.unpack_from("<H", data, 18)
    return ELF_MACHINES.get(machine), libraries, versions


def linux_tag(files):
    newest, machines = (2, 17), set()
    for name, data in files.items():
        machine, libraries, versions = elf_needs(data)
        machines.add(machine)
        if libraries - LINUX_LIBRARIES:
            fail(f"{name} needs {', '.join(sorted(libraries - LINUX_LIBRARIES))}, which not every system has")
        for version in sorted(versions - GCC_VERSIONS):
            number = re.fullmatch(r"GLIBC_(\d+)\.(\d+)(\.\d+)?", version)
            if not number:  # GLIBC_ABI_DT_RELR is one
                fail(f"{name} needs {version}, and no tag tells so")
            newest = max(newest, (int(number[1]), int(number[2])))
    if len(machines) != 1 or None in machines:
        fail(f"{', '.join(files)} are not for one known machine")
    return f"manylinux_{newest[0]}_{newest[1]}_{machines.pop()}"


def macho_needs(data):
    """(machine, oldest macOS) of a 64-bit Mach-O file."""
    magic, cpu = struct.unpack_from("<II", data)
    machine = {0x0100000c: "arm64", 0x01000007: "x86_64"}.get(cpu)
    if magic != 0xfeedfacf or machine is None:
        fail("a Mach-O file that is neither for arm64 nor for x86_64")
    count, = struct.unpack_from("<I", data, 16)
    at, oldest = 32, (0, 0)
    for _ in range(count):
        kind, size, first, second = struct.unpack_from("<IIII", data, at)
        version = second if kind == 0x32 else first if kind == 0x24 else 0  # build version, or the older command
        oldest = max(oldest, (version >> 16, version >> 8 & 0xff))
        at += size
    return machine, oldest


def macos_tag(files):
    needs = {macho_needs(data) for data in files.values()}
    machines, oldest = {m for m, _ in needs}, max(v for _, v in needs)
    if len(machines) != 1:
        fail(f"{', '.join(files)} are not for one machine")
    # From 11 on pip knows the first number alone.
    return f"macosx_{oldest[0]}_{oldest[1] if oldest[0] < 11 else 0}_{machines.pop()}"


def windows_tag(files):
    for name, data in files.items():
        pe, = struct.unpack_from("<I", data, 60)
        if data[pe:pe + 6] != b"PE\0\0\x64\x86":
            fail(f"{name} is not for 64-bit Windows on x86")
    return "win_amd64"


TAGS = {"libsconce_dev.so": linux_tag, "libsconce_dev.dylib": macos_tag, "sconce_dev.dll": windows_tag}


# ---- the archive ---------------------------------------------------------------------------------

def version():
    return re.search(r'#define SCONCE_VERSION "(.*)"', (ROOT / "include/sconce.h").read_text())[1]


def metadata():
    return f"""Metadata-Version: 2.4
Name: sconce
Version: {version()}
Summary: Runs ExecuTorch models on any GPU through WebGPU
License-Expression: {LICENCES}
License-File: LICENSE
License-File: LICENSE.wgpu-native
Requires-Python: >=3.9
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

""" + (ROOT / "docs/python.md").read_text()


def wheel_file(tag):
    return f"Wheel-Version: 1.0\nGenerator: sconce {version()}\nRoot-Is-Purelib: false\nTag: py3-none-{tag}\n"


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def members(built, tag):
    """Every file of the wheel but RECORD, by name."""
    files = {f"sconce/{p.name}": p.read_bytes() for p in PACKAGE.iterdir() if p.suffix == ".py" or p.name == "py.typed"}
    files.update({f"sconce/native/{name}": data for name, data in built.items()})
    info = f"sconce-{version()}.dist-info/"
    files[info + "METADATA"] = metadata().encode()
    files[info + "WHEEL"] = wheel_file(tag).encode()
    files[info + "entry_points.txt"] = b"[console_scripts]\nsconce = sconce.__main__:main\n"
    files[info + "licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[info + "licenses/LICENSE.wgpu-native"] = (ROOT / "tools/licenses/wgpu-native.txt").read_bytes()
    return files


def write(path, files):
    record = f"sconce-{version()}.dist-info/RECORD"
    lines = "".join(record_line(name, data) for name, data in sorted(files.items())) + f"{record},,\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in [*sorted(files.items()), (record, lines.encode())]:  # RECORD last, as it should be
            entry = zipfile.ZipInfo(name, DATE)
            entry.create_system = 3  # modes are Unix's
            entry.compress_type = zipfile.ZIP_DEFLATED
            program = name.startswith("sconce/native/")
            entry.external_attr = (0o100755 if program else 0o100644) << 16
            archive.writestr(entry, data)


def build(folder, out):
    library = next((name for name in PARTS if (folder / name).exists()), None)
    if not library:
        fail(f"{folder} has none of {', '.join(PARTS)}")
    missing = [name for name in PARTS[library] if not (folder / name).exists()]
    if missing:
        fail(f"{folder} has no {', '.join(missing)}")
    built = {pathlib.Path(name).name: (folder / name).read_bytes() for name in [library, *PARTS[library]]}
    tag = TAGS[library](built)
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"sconce-{version()}-py3-none-{tag}.whl"
    write(path, members(built, tag))
    return path


def built_here():
    """Folders of the systems that this checkout is configured for, with their parts built."""
    for preset in PRESETS:
        tree = ROOT / "build" / preset
        if (tree / "CMakeCache.txt").exists():
            done = subprocess.run(["cmake", "--build", tree, "--target", "sconce_plain", "sconce_dev_shared"],
                                  capture_output=True, text=True)
            if done.returncode:
                fail(f"building {preset} failed\n{done.stdout}")
            yield tree


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/wheels")
    parser.add_argument("--from", dest="source", type=pathlib.Path, action="append")
    options = parser.parse_args()
    for folder in options.source or built_here():
        path = build(folder, options.out)
        shown = path.relative_to(ROOT) if ROOT in path.parents else path
        print(f"{shown}, {path.stat().st_size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
