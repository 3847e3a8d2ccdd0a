#!/usr/bin/env python3
"""Writes tests/data/tokenizer_llama2.txt: texts with the ids that SentencePiece gives them.

usage: make_tokenizer_cases.py tokenizer.model > tests/data/tokenizer_llama2.txt

Needs the package sentencepiece and Llama 2's tokenizer.model. A line is the text, a tab, the ids;
the text is printable ASCII with \\xHH for every other byte and for the backslash. The texts are
those on which encoders have been seen to differ, and some of every script.
"""

import usage  # noqa: F401  first of all

import sys

import sentencepiece

TEXTS = [
    # white space: the dummy prefix, runs, what is no space
    "", " ", "  ", " a", "a ", "  a  b  ", "a\tb", "\n", "\r\n", "a\n\n\nb", "\u00a0", "\u3000x", "\u2028",
    " " * 15, " " * 16, " " * 17, " " * 100 + "x", "\t" * 9,
    # U+2581 is a space
    "\u2581", "\u2581\u2581a", "a\u2581b", "\u2581 \u2581",
    # control characters and names of special tokens are text
    "\0", "a\0b", "\x01\x1f\x7f", "<s>", "</s>", "<unk>", "<0x41>", "<s>hello</s>",
    # runs of one character, longer than any piece
    "a" * 100, "=" * 77, "0" * 33, ".!" * 20, "\u00e9" * 20, "\u4e00" * 9, "\U0001f600" * 5,
    # emoji: joined, flags, skin tones, variation selectors, keycaps
    "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466", "\U0001f1e9\U0001f1ea\U0001f1eb",
    "\U0001f44d\U0001f3fd", "\U0001f3f3\ufe0f\u200d\U0001f308", "\u2764\ufe0f", "1\ufe0f\u20e3",
    # combining marks stay as they came
    "e\u0301", "\u00e9", "a\u0300\u0316\u0301", "\u1112\u1161\u11ab", "\ud55c", "Z\u0351\u036b\u0343a\u035flgo",
    # scripts
    "Привет, мир!", "Γειά σου Κόσμε", "שלום עולם", "مرحبا بالعالم", "नमस्ते दुनिया", "สวัสดีชาวโลก",
    "こんにちは世界", "你好，世界", "안녕하세요 세계", "ሰላም ልዑል", "გამარჯობა", "Բարեւ", "ᚠᛇᚻ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "Việt Nam", "İstanbul ıI", "straße ﬁ ﬂ", "١٢٣ ४५६ ½ Ⅷ ²",
    # prose and code
    "Once upon a time, there was a little girl named Lily.", "don't I'LL we've",
    "for (int i = 0; i < n; i++) { x[i] += 1.5e-3f; }\n\treturn;\n", "https://a.example/b?c=d&e=%20#f",
    '{"a": [1, 2.50, null]}', "3.14159 1,234,567 0xDEADBEEF",
    # unassigned, private use, the last code point, the replacement character itself
    "\ue000", "\U000e0041", "\U0010ffff", "\ufffd", "\ufeffbom",
]
# bytes that are no UTF-8: one U+FFFD for the longest start of a character, else for a byte
BROKEN = [
    b"\xff", b"a\xffb", b"\x80\x80", b"\xc3", b"\xc3(", b"\xe2\x82", b"\xe2\x82(", b"\xf0\x9f\x98", b"\xf0\x9f\x98a",
    b"\xc0\xaf", b"\xe0\x80\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"ok \xe2\x82\xac \xe2\x28\xa1",
]


def escaped(data):
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in data)


def main():
    model = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
    for data in [t.encode() for t in TEXTS] + BROKEN:
        ids = model.encode(data.decode("utf-8", "replace"))
        print(escaped(data), " ".join(map(str, ids)), sep="\t")


main()
