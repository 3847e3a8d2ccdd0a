#!/usr/bin/env python3
"""Fetches a package of tools/pinned.txt: by name and version from the Python Package Index, checked by its hash.

    tools/fetch.py PACKAGE [--platform PLATFORM] [--into FOLDER]

Without --platform it is for this machine and goes to build/deps/PACKAGE; else to build/deps/PLATFORM/PACKAGE, where
PLATFORM may be `all`. The folder appears at once and complete, and is made anew when the table says something else
than it did.
"""

import argparse
import fnmatch
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPS = ROOT / "build/deps"
STAMP = ".pinned"


def rows(package):
    """The table's wheels of a package by platform, and what is kept of them."""
    wheels, keeps = {}, []
    for line in (ROOT / "tools/pinned.txt").read_text().splitlines():
        words = line.split()
        if not words or words[0].startswith("#") or words[1] != package:
            continue
        if words[0] == "wheel":
            wheels[words[3]] = words
        else:
            keeps.append(words)
    if not wheels:
        sys.exit(f"fetch.py: tools/pinned.txt has no {package}")
    return wheels, keeps


def this_platform():
    systems = {"Linux": "linux", "Darwin": "macos", "Windows": "windows"}
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    name = systems.get(platform.system(), platform.system())
    return f"{name}-{'arm64' if machine == 'aarch64' and name != 'linux' else machine}"


def download(wheel, folder):
    """The wheel's file; pip knows where the index is and refuses one with another hash."""
    _, package, version, _, tag, digest = wheel
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{package}=={version} --hash=sha256:{digest}\n")
    print(f"fetching {package} {version} for {wheel[3]}", file=sys.stderr, flush=True)
    done = subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps",
                           "--only-binary=:all:", "--require-hashes", "--platform", tag, "-r", wanted, "-d", folder])
    if done.returncode:
        sys.exit(f"fetch.py: could not fetch {package} {version} for {wheel[3]}")
    return next(folder.glob("*.whl"))


def unpack(path, keeps, target, folder):
    """Copies the members that are kept; a wheel's file modes say which are programs."""
    with zipfile.ZipFile(path) as archive:
        for _, _, where, pattern, name in keeps:
            if not fnmatch.fnmatchcase(target, where):
                continue
            members = [m for m in archive.infolist() if fnmatch.fnmatchcase(m.filename, pattern)]
            if not members:
                sys.exit(f"fetch.py: {path.name} has no {pattern}")
            for member in members:
                archive.extract(member, folder)
                out = folder / member.filename
                if name != ".":
                    out = out.replace(folder / name)
                if member.external_attr >> 16 & 0o111:
                    out.chmod(0o755)
    for word in {pattern.split("/")[0] for _, _, _, pattern, name in keeps if name != "."}:
        shutil.rmtree(folder / word, ignore_errors=True)


def fetch(package, target, folder):
    wheels, keeps = rows(package)
    if target not in wheels:
        sys.exit(f"fetch.py: there is no {package} for {target}, only for {', '.join(wheels)}")
    stamp = "\n".join(" ".join(row) for row in [wheels[target], *keeps]) + "\n"
    if (folder / STAMP).is_file() and (folder / STAMP).read_text() == stamp:
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".fetch-") as scratch:
        scratch = pathlib.Path(scratch)
        new = scratch / "new"
        new.mkdir()
        unpack(download(wheels[target], scratch), keeps, target, new)
        (new / STAMP).write_text(stamp)
        if folder.exists():
            os.replace(folder, scratch / "old")
        os.replace(new, folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("package")
    parser.add_argument("--platform", default="")
    parser.add_argument("--into", type=pathlib.Path)
    options = parser.parse_args()
    package, targets = options.package, [options.platform]
    if options.platform == "all":
        targets = rows(package)[0]
    for target in targets:
        fetch(package, target or this_platform(), options.into or DEPS / target / package)


if __name__ == "__main__":
    main()
