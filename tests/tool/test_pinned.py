"""The table of pinned files and the script that fetches them. Nothing here needs a network."""

import pathlib
import re
import sys
import tempfile
import zipfile

from support import ROOT, run

sys.path.insert(0, str(ROOT / "tools"))
import fetch  # noqa: E402

PLATFORMS = {"linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-x86_64", "windows-arm64"}


def table():
    lines = (ROOT / "tools/pinned.txt").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def test_every_row_is_whole():
    seen = set()
    for row in table():
        assert (row[0], len(row)) in (("wheel", 6), ("keep", 5)), row
        if row[0] == "wheel":
            assert row[3] in PLATFORMS and re.fullmatch("[0-9a-f]{64}", row[5]), row
            assert (row[1], row[3]) not in seen, f"twice: {row}"
            seen.add((row[1], row[3]))
    assert {p for package, p in seen if package == "wgpu"} == PLATFORMS


def test_hashes_stand_nowhere_else():
    wheels = [row for row in table() if row[0] == "wheel"]
    for path in [*ROOT.glob("tools/*"), *ROOT.glob("*/*.md"), ROOT / "Makefile", ROOT / "CMakeLists.txt"]:
        if path.is_dir() or path.name == "pinned.txt":
            continue
        text = path.read_text()
        for row in wheels:
            assert row[5] not in text, f"{path}: the hash of {row[1]} for {row[3]}"


def test_only_what_is_kept_is_unpacked():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with zipfile.ZipFile(folder / "x.whl", "w") as archive:
            program = zipfile.ZipInfo("x/bin/tool")
            program.external_attr = 0o755 << 16
            archive.writestr(program, "tool")
            for name in ("x/lib-release.so", "x/lib-release.dll", "x/other"):
                archive.writestr(name, name)
        keeps = [["keep", "x", "linux-*", "x/lib-release.so", "lib.so"], ["keep", "x", "windows-*", "x/lib-release.dll", "lib.dll"]]
        out = folder / "out"
        out.mkdir()
        fetch.unpack(folder / "x.whl", keeps, "linux-x86_64", out)
        assert [p.name for p in out.iterdir()] == ["lib.so"]
        assert (out / "lib.so").read_text() == "x/lib-release.so"
        tree = folder / "tree"
        tree.mkdir()
        fetch.unpack(folder / "x.whl", [["keep", "x", "*", "x/bin/*", "."]], "linux-x86_64", tree)
        assert (tree / "x/bin/tool").stat().st_mode & 0o111


def test_what_is_not_pinned_is_refused():
    _, text = run(sys.executable, "tools/fetch.py", "numpy", expect=1)
    assert "tools/pinned.txt has no numpy" in text, text
    _, text = run(sys.executable, "tools/fetch.py", "litert_lm_api", "--platform", "windows-x86_64", expect=1)
    assert "no litert_lm_api for windows-x86_64, only for linux-x86_64" in text, text
