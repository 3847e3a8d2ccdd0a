#!/usr/bin/env python3
"""Packs a linked module into the one of web/src/unpack.c, which unpacks it.

usage: pack.py WASM UNPACKER OUT

Custom sections go. The packed bytes lie in pages of their own behind the unpacker's memory, and what it unpacks behind
them.
"""

import lzma
import pathlib
import struct
import sys

MARK = struct.pack("<3I", 0x9E3779B9, 0x7F4A7C15, 0xF39CC060)  # unpack.c's `packed`
FILTER = {"id": lzma.FILTER_LZMA1, "preset": 9 | lzma.PRESET_EXTREME, "lc": 3, "lp": 0, "pb": 0, "nice_len": 273}
PAGE = 65536
CUSTOM, MEMORY, DATA, DATA_COUNT = 0, 5, 11, 12
I32_CONST, END = 0x41, 0x0B


def read_number(data, at, signed=False):
    """A LEB128 number, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value - (1 << shift) if signed and byte & 64 else value, at


def number(value):
    """Of a positive number, such that it reads the same as a signed one."""
    out = bytearray()
    while value >= 64:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def read_sections(data):
    at = 8
    while at < len(data):
        kind = data[at]
        size, start = read_number(data, at + 1)
        yield kind, data[start : start + size]
        at = start + size


def read_segments(section):
    """[(address, bytes)]: active ones at constant addresses, which is all that the linker writes."""
    n, at = read_number(section, 0)
    out = []
    for _ in range(n):
        if section[at] != 0 or section[at + 1] != I32_CONST:
            sys.exit("pack.py: a data segment that is not at a constant address")
        address, at = read_number(section, at + 2, signed=True)
        size, at = read_number(section, at + 1)
        out.append((address, section[at : at + size]))
        at += size
    return out


def segment(address, data):
    return bytes([0, I32_CONST]) + number(address) + bytes([END]) + number(len(data)) + data


def module(sections):
    return b"\0asm\1\0\0\0" + b"".join(bytes([kind]) + number(len(body)) + body for kind, body in sections)


def main():
    inner, unpacker, out = (pathlib.Path(name) for name in sys.argv[1:])
    plain = module((kind, body) for kind, body in read_sections(inner.read_bytes()) if kind not in (CUSTOM, DATA_COUNT))
    packed = lzma.compress(plain, format=lzma.FORMAT_RAW, filters=[FILTER])
    sections = {kind: body for kind, body in read_sections(unpacker.read_bytes()) if kind not in (CUSTOM, DATA_COUNT)}
    [(place, mark)] = read_segments(sections[DATA])
    if mark != MARK:
        sys.exit("pack.py: unpack.c has other data than `packed`")
    limits = sections[MEMORY]  # one memory: 1, flags, pages
    pages, _ = read_number(limits, 2)
    start = pages * PAGE
    room = -(-(len(packed) + len(plain)) // PAGE)
    sections[MEMORY] = limits[:2] + number(pages + room)
    numbers = struct.pack("<3I", start, start + len(packed), len(plain))
    sections[DATA] = number(2) + segment(place, numbers) + segment(start, packed)
    out.write_bytes(module(sections.items()))
    print(f"{out.name}: {len(plain):,} bytes, {out.stat().st_size:,} packed")


main()
