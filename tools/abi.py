#!/usr/bin/env python3
"""What a program that is linked already relies on: exported functions and their types, enums' numbers, structs' fields.

usage: abi.py [--update] [--include FOLDER]

Compares the built libraries and the headers with tests/abi.txt and prints what differs; --update
writes the file anew. Headers are those of include/, or of the folder. Before 1.0 a change of it goes
with a change of the second version number, unless it only adds functions.

The headers are read as text: a declaration ends with a semicolon, and a typedef has the name of its tag.
What the text does not say, numbers, sizes and offsets, a compiled program prints. Anything that is no
declaration of these kinds is an error here, so nothing is passed by.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "tests/abi.txt"
HEADERS = ("sconce.h", "sconce_llm.h", "sconce_dev.h", "sconce_write.h")
PLAIN = r"(?:const )?\w+"  # a type before its stars


def split(text, separator):
    """At separators that no bracket holds."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "({[") - (c in ")}]")
        if c == separator and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()]


def declarator(text):
    """(name, type) of what is declared: "const char *name[4]", "bool (*each)(void *user, int n)"."""
    pointer = re.fullmatch(r"(.*?)\(\*(\w*)\) ?\((.*)\)", text)
    if pointer:
        result, name, arguments = pointer.groups()
        return name, f"{type_of(result)} (*)({types_of(arguments)})"
    plain = re.fullmatch(rf"({PLAIN}) ?((?:\* ?(?:const )?)*)(\w*)((?:\[\w+\])*)", text)
    if not plain:
        sys.exit(f"abi.py: no declaration that it knows: {text}")
    base, stars, name, dims = plain.groups()
    return name, " ".join([base, stars.replace(" ", "").replace("const", " const ").strip()]).strip() + dims


def type_of(text):
    return declarator(text.strip())[1]


def types_of(arguments):
    return ", ".join(type_of(part) for part in split(arguments, ","))


def fields(body, before=""):
    """(path, type) of each member, those of structs inside included."""
    found = []
    for member in filter(None, split(body, ";")):
        inner = re.fullmatch(r"struct \{(.*)\} (\w+)", member)
        if inner:
            found += fields(inner.group(1), f"{before}{inner.group(2)}.")
            continue
        first, *others = split(member, ",")
        base = re.match(PLAIN, first).group(0)
        for part in [first, *(f"{base} {other}" for other in others)]:
            name, its_type = declarator(part)
            found.append((before + name, its_type))
    return found


def declarations(text):
    """Functions {name: type}, structs {name: fields}, enums {name: constants} of a header."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.S)
    text = re.sub(r"^#(?:[^\n]*\\\n)*[^\n]*", "", text, flags=re.M)
    text = re.sub(r"\s+", " ", re.sub(r'extern "C" \{', "", text))
    functions, structs, enums = {}, {}, {}
    for part in split(text.rstrip().removesuffix("}"), ";"):
        function = re.fullmatch(r"SCONCE_API (?:SCONCE_CHECK )?(.*?)(\w+)\((.*)\)", part)
        struct = re.fullmatch(r"typedef struct (\w+) \{(.*)\} \1", part)
        enum = re.fullmatch(r"(?:typedef )?enum (\w*) ?\{(.*)\} ?\1", part)
        if function:
            functions[function.group(2)] = f"{type_of(function.group(1))} ({types_of(function.group(3))})"
        elif struct:
            structs[struct.group(1)] = fields(struct.group(2))
        elif enum:
            enums[enum.group(1)] = enums.get(enum.group(1), []) + re.findall(r"(\w+)(?: ?=[^,]*)?(?:,|$)", enum.group(2).strip())
        elif part and not re.fullmatch(r"typedef struct (\w+) \1", part):
            sys.exit(f"abi.py: no declaration that it knows: {part}")
    return functions, structs, enums


def exported(types):
    lines = []
    for library in ("libsconce.so", "libsconce_dev.so", "libsconce_write.so"):
        listed = subprocess.run(["nm", "-D", "--defined-only", str(ROOT / "build" / library)], check=True,
                                capture_output=True, text=True).stdout
        names = sorted(line.split()[-1] for line in listed.splitlines())
        if library == "libsconce_dev.so":  # what it has beyond the other
            names = [n for n in names if not any(line.startswith(f"libsconce.so {n}:") for line in lines)]
        lines += [f"{library} {name}: {types.get(name, 'in no header')}" for name in names]
    return lines


def numbers(folder, structs, enums):
    """What the compiler makes of structs and enums, on a machine with 64-bit pointers."""
    out = ["#include <stdio.h>", *(f'#include "{name}"' for name in HEADERS), "int main(void) {"]
    for enum, constants in enums.items():
        out += [f'printf("{f"enum {enum}".strip()} {c} %d\\n", (int){c});' for c in constants]
    for struct, members in structs.items():
        out.append(f'printf("struct {struct} %zu\\n", sizeof({struct}));')
        out += [f'printf("{struct}.{name}@%zu {its_type}\\n", offsetof({struct}, {name}));' for name, its_type in members]
    out.append("return 0; }")
    with tempfile.TemporaryDirectory() as scratch:
        source, program = pathlib.Path(scratch) / "abi.c", pathlib.Path(scratch) / "abi"
        source.write_text("\n".join(out))
        subprocess.run(["cc", "-std=c11", "-I", str(folder), str(source), "-o", str(program)], check=True)
        return subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.splitlines()


def abi(folder):
    functions, structs, enums = {}, {}, {}
    for header in HEADERS:
        for whole, part in zip((functions, structs, enums), declarations((folder / header).read_text()), strict=True):
            for name, value in part.items():
                whole[name] = whole[name] + value if name in whole else value
    return exported(functions) + numbers(folder, structs, enums)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--include", type=pathlib.Path, default=ROOT / "include", metavar="FOLDER")
    options = parser.parse_args()
    have = abi(options.include)
    if options.update:
        FILE.write_text("\n".join(have) + "\n")
        return
    want = FILE.read_text().splitlines() if FILE.exists() else []
    changed = [f"- {line}" for line in want if line not in have] + [f"+ {line}" for line in have if line not in want]
    print("\n".join(changed) if changed else "the ABI is as tests/abi.txt says")
    sys.exit(1 if changed else 0)


if __name__ == "__main__":
    main()
