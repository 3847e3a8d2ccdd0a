#!/usr/bin/env python3
"""What a program that is linked already relies on: exported functions, and sizes and fields of structs.

usage: abi.py [--update]

Compares the built libraries and the headers with tests/abi.txt and prints what differs; --update
writes the file anew. Before 1.0 a change of it goes with a change of the second version number, unless
it only adds functions.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/abi.txt"


def functions():
    lines = []
    for library in ("libsconce.so", "libsconce_dev.so"):
        listed = subprocess.run(["nm", "-D", "--defined-only", str(ROOT / "build" / library)], check=True,
                                capture_output=True, text=True).stdout
        names = sorted(line.split()[-1] for line in listed.splitlines())
        if library == "libsconce_dev.so":  # what it has beyond the other
            names = [n for n in names if f"libsconce.so {n}" not in lines]
        lines += [f"{library} {name}" for name in names]
    return lines


def fields_of(body):
    """Names of a struct's members; nested braces and comments are gone by then."""
    names = []
    for member in body.split(";"):
        pointer = re.search(r"\(\*(\w+)\)\s*\(", member)
        if pointer:
            names.append(pointer.group(1))
        elif member.strip():
            for part in member.split(","):
                found = re.search(r"(\w+)\s*(\[[^\]]*\])*\s*$", part)
                names.append(found.group(1))
    return names


def structs():
    """One line a struct: its size and the offset of each field, on a machine with 64-bit pointers."""
    out = ['#include <stdio.h>', '#include "sconce.h"', '#include "sconce_llm.h"', '#include "sconce_dev.h"',
           "int main(void) {"]
    for header in ("sconce.h", "sconce_llm.h", "sconce_dev.h"):
        text = re.sub(r"/\*.*?\*/", "", (ROOT / "include" / header).read_text(), flags=re.S)
        for body, name in re.findall(r"typedef struct \w+ \{(.*?)\n\} (\w+);", text, flags=re.S):
            body = re.sub(r"struct \{.*?\} (\w+);", r"int \1;", body, flags=re.S)
            out.append(f'printf("struct {name} %zu:", sizeof({name}));')
            for field in fields_of(body):
                out.append(f'printf(" {field}@%zu", offsetof({name}, {field}));')
            out.append('puts("");')
    out.append("return 0; }")
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "abi.c", pathlib.Path(folder) / "abi"
        source.write_text("\n".join(out))
        subprocess.run(["cc", "-std=c11", "-I", str(ROOT / "include"), str(source), "-o", str(program)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def differences():
    have = functions() + structs()
    want = FILE.read_text().splitlines() if FILE.exists() else []
    return [f"- {l}" for l in want if l not in have] + [f"+ {l}" for l in have if l not in want]


def main():
    if "--update" in sys.argv:
        FILE.write_text("\n".join(functions() + structs()) + "\n")
        return
    changed = differences()
    print("\n".join(changed) if changed else "the ABI is as tests/abi.txt says")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
