#!/usr/bin/env python3
"""The rules of STYLE.md that a script can check. Prints file:line: what, exits 1 on any finding."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Who may include whom: folder of src/ -> folders it sees. Exceptions name a single header.
MAY_INCLUDE = {
    "base": {"base"},
    "format": {"base", "format"},
    "graph": {"base", "format", "graph"},
    "ops": {"base", "graph", "ops"},
    "gpu": {"base", "graph", "gpu"},
    "run": {"base", "format", "graph", "ops", "gpu", "run"},
    "write": {"base", "format", "write"},
    "inspect": {"base", "format", "graph", "gpu", "run", "inspect"},
    "trial": {"base", "graph", "gpu", "run", "trial"},
    "check": {"base", "format", "graph", "gpu", "run", "trial", "check"},
    "bench": {"base", "format", "graph", "gpu", "run", "trial", "bench"},
    "llm": {"base", "llm"},
    "cli": {"cli"},
    "web": {"web"},
}
# Single headers that a file may include all the same.
MAY_ALSO = {"cli/console_win.c": {"base/path.h", "base/wide_win.h"}, "cli/line_win.c": {"base/wide_win.h"}}
# The standard is behind gpu/api.h, what one library adds to it behind gpu/flavour.c.
WEBGPU_HEADERS = {"webgpu.h": "src/gpu/api.h", "wgpu.h": "src/gpu/flavour.c"}
BANNED = {
    r"\b(malloc|calloc|realloc|free)\s*\(": "memory goes through base/arena.h",
    r"\b(abort|exit|_exit|longjmp|setjmp)\s*\(": "a library does not end the process",
    r"\b(printf|puts|fprintf|putchar|perror)\s*\(": "a library does not print",
    r"\bassert\s*\(": "input is checked with fail(); invariants with a test",
    r"\b(strcpy|strcat|sprintf|vsprintf|gets|strtok|atoi|atol|atof|alloca|scanf|sscanf)\s*\(": "unbounded or unchecked",
}
MAY_ALLOCATE = {"src/base/arena.c", "src/trial/numbers.c"}  # what the second gives, tests free
findings = []


def finding(path, line, text):
    findings.append(f"{path.relative_to(ROOT)}:{line}: {text}")


def without_comments(text):
    """Same lines, comments and string contents blanked."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def tracked(*patterns):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", *patterns], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\n")
    return [ROOT / name for name in listed if name and (ROOT / name).exists()]


def module_of(path):
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "src" else parts[0]


def check_includes(path, text):
    module = module_of(path)
    is_test = path.name.startswith("test_")
    for number, line in enumerate(text.split("\n"), 1):
        match = re.match(r'\s*#include\s+"([^"]+)"', line)
        if not match or is_test or module not in MAY_INCLUDE:
            continue
        name = match.group(1)
        if name in WEBGPU_HEADERS:
            if path.relative_to(ROOT).as_posix() != WEBGPU_HEADERS[name]:
                finding(path, number, f"{name} is for {WEBGPU_HEADERS[name]} alone")
            continue
        folder = name.split("/")[0] if "/" in name else None
        also = MAY_ALSO.get(path.relative_to(ROOT).as_posix(), ())
        if folder and folder not in MAY_INCLUDE[module] and name not in also:
            finding(path, number, f"{module} may not include {name}")


def check_banned(path, code):
    name = path.relative_to(ROOT).as_posix()
    for number, line in enumerate(code.split("\n"), 1):
        for pattern, why in BANNED.items():
            match = re.search(pattern, line)
            if match and not (name in MAY_ALLOCATE and "malloc" in pattern):
                finding(path, number, f"{match.group(1)}: {why}")


def check_sizes(path, code):
    lines = code.split("\n")
    public = path.relative_to(ROOT).parts[0] == "include"  # a header is its own manual
    limit = 480 if public else 400 if path.suffix == ".h" else 800
    if len(lines) > limit:
        finding(path, len(lines), f"{len(lines)} lines, at most {limit}")
    for number, line in enumerate(lines, 1):
        if len(line) > 100:
            finding(path, number, f"{len(line)} columns, at most 100")
    is_test = path.name.startswith("test_") or path.relative_to(ROOT).parts[0] not in ("src", "cli")
    most = 100 if is_test else 50
    for number, size in functions(lines):
        if size > most:
            finding(path, number, f"a function of {size} lines, at most {most}")


def functions(lines):
    """[(first line, how many)]; lines of a table inside do not count."""
    found, head, start, size, table = [], None, None, 0, False
    for number, line in enumerate(lines, 1):
        if start is None:
            if re.match(r"\w[^=;]*\(", line):
                head = number
            if head and line.endswith("{"):
                start, size = head, number - head
            if line.endswith((";", "}")):
                head = None
        if start is None:
            continue
        size += not table
        table = not line.endswith("};") if table else line.endswith("= {")
        if line.startswith("}"):
            found.append((start, size))
            head = start = None
            table = False
    return found


def check_text(path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line):
            finding(path, number, "unfinished work is not left in a comment")
        if line.rstrip() != line:
            finding(path, number, "trailing blanks")


def check_format(files):
    done = subprocess.run(["clang-format-19", "--dry-run", "-Werror", *map(str, files)], cwd=ROOT,
                          capture_output=True, text=True)
    if done.returncode:
        findings.extend(l for l in done.stderr.split("\n") if "error:" in l)


def check_warnings():
    """The whole tree under gcc and clang with warnings as errors."""
    for compiler in ("gcc", "clang-19"):
        with tempfile.TemporaryDirectory() as folder:
            configure = ["cmake", "-S", str(ROOT), "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                         f"-DCMAKE_C_COMPILER={compiler}", "-DSCONCE_WERROR=ON"]
            build = ["cmake", "--build", folder, "--", "-k", "0"]  # all findings, not the first
            for command in (configure, build):
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    lines = [l for l in (done.stdout + done.stderr).split("\n") if re.search(r": (fatal )?(error|warning): ", l)]
                    findings.extend(f"{compiler}: {l}" for l in lines[:20] or ["build failed"])
                    break


def check_symbols():
    """Nothing but sconce_* leaves the libraries."""
    for library, flags in ((f"{name}{end}", flags) for name in ("libsconce", "libsconce_dev", "libsconce_write")
                           for end, flags in ((".so", "-D"), (".a", "-g"))):
        path = ROOT / "build" / library
        listed = subprocess.run(["nm", flags, "--defined-only", str(path)], capture_output=True, text=True)
        if listed.returncode:
            findings.append(f"{library}: {listed.stderr.strip()}")
        for line in listed.stdout.split("\n"):
            symbol = line.split()[-1] if len(line.split()) == 3 else None
            if symbol and not symbol.startswith("sconce_"):
                findings.append(f"{library}: exports {symbol}")


def main():
    c_files = tracked("*.c", "*.h", "*.cpp")
    for path in c_files:
        text = path.read_text()
        code = without_comments(text)
        check_text(path, text)
        check_sizes(path, text)
        if path.relative_to(ROOT).parts[0] in ("src", "cli") or path.is_relative_to(ROOT / "web/src"):
            check_includes(path, text)
        if path.relative_to(ROOT).parts[0] == "src" and not path.name.startswith("test_"):
            check_banned(path, code)
    for path in tracked("*.wgsl", "*.py", "*.sh", "Makefile", "CMakeLists.txt"):
        if path.name != "lint.py":
            check_text(path, path.read_text())
    check_format(c_files)
    if "--fast" not in sys.argv:
        check_warnings()
        check_symbols()
    for line in findings:
        print(line)
    print(f"lint: {len(findings)} findings")
    sys.exit(1 if findings else 0)


main()
