#!/usr/bin/env python3
"""Goldens of an exported language model: the eager model that the exporter traced, after its own transforms and
quantisation, run by PyTorch on the CPU.

usage: golden_llm.py DIR VARIANT -o FILE.pte -t TOKENIZER [--golden FILE.golden.json] [--logits]

DIR, VARIANT and the other options are those that FILE.pte was exported with; TOKENIZER is a Hugging Face tokenizer.json
or a llama2.c tokenizer.bin. `sconce check FILE.pte --golden FILE.golden.json` compares.

cases[].calls[] are executions of forward(tokens i64 (1, n), position i64 (1)) in the file's order on one loaded method;
the KV cache is never cleared between cases. A call has its five highest logits of the last row; with --logits a .bin
holds whole rows (f32, little-endian), "logits" is a call's byte offset there and "rows" their number.

Python 3.11, executorch 1.5.1, torch 2.15.0, torchao 0.18.0, tokenizers 0.23.3.
"""

import usage  # noqa: F401  first of all

import hashlib
import json
import os
import pathlib
import struct

import export_llm

os.environ.update(export_llm.ENVIRONMENT)

import torch
from executorch.examples.models.llama.export_llama_lib import build_args_parser, get_llama_model
from executorch.extension.llm.export.config.llm_config import LlmConfig

STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play outside in the park. One day, she saw "
    "a big, red ball. She wanted to play with it, but it was too high. Her mom said, \"Lily, let's go home.\" "
)
CHAT = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
PROMPTS = {
    "plain": ("", "One day, Lily"),
    "chatml": (CHAT.format("What is the capital of France?"), CHAT.format("Write two sentences about the sea.")),
}
N_GREEDY = 48
CHUNKS = (5, 1, 9, 1, 1, 16, 2, 33, 1, 3)


class Llama2c:
    """llama2.c's tokenizer.bin: i32 longest piece, then f32 score, i32 length, bytes for every piece."""

    def __init__(self, path):
        data, at, self.pieces, self.scores = path.read_bytes(), 4, [], []
        while at < len(data):
            score, size = struct.unpack_from("<fi", data, at)
            self.pieces.append(data[at + 8 : at + 8 + size].decode())
            self.scores.append(score)
            at += 8 + size
        self.ids = {piece: i for i, piece in reversed(list(enumerate(self.pieces)))}

    def encode(self, text):
        """Begin token, then the pair that makes the piece of the highest score is merged until there is none. ASCII."""
        pieces = list(" " + text) if text else []
        while True:
            pairs = [self.ids.get(a + b) for a, b in zip(pieces, pieces[1:])]
            best = max((i for i, p in enumerate(pairs) if p is not None), key=lambda i: self.scores[pairs[i]], default=None)
            if best is None:
                return [1] + [self.ids[p] for p in pieces]
            pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]

    def decode(self, ids):
        return "".join(self.pieces[i] for i in ids if i > 2).replace("<0x0A>", "\n").removeprefix(" ")


class HuggingFace:
    def __init__(self, path):
        from tokenizers import Tokenizer

        self.own = Tokenizer.from_file(str(path))

    def encode(self, text):
        return self.own.encode(text, add_special_tokens=False).ids

    def decode(self, ids):
        return self.own.decode(ids, skip_special_tokens=False)


class Recorder:
    def __init__(self, model, tokenizer, full_logits, one_by_one):
        self.model, self.tokenizer = model, tokenizer
        self.full_logits, self.one_by_one = full_logits, one_by_one
        self.cases, self.rows = [], bytearray()

    def begin(self, name, **more):
        self.cases.append(dict(name=name, **more, calls=[]))
        return self.cases[-1]

    @torch.no_grad()
    def call(self, tokens, pos, keep=True):
        out = self.model(torch.tensor([tokens]), {"input_pos": torch.tensor([pos])})
        rows = (out[0] if self.full_logits else out).float()
        value, index = rows[-1].topk(5)
        entry = dict(tokens=tokens, pos=pos, top5=[[int(i), float(v)] for i, v in zip(index, value)])
        if keep:
            entry.update(logits=len(self.rows), rows=rows.shape[0])
            self.rows.extend(rows.numpy().astype("<f4").tobytes())
        self.cases[-1]["calls"].append(entry)
        return int(index[0])

    def feed(self, tokens, pos, keep=True):
        """One call, or one for each token where the file takes one at a time."""
        if not self.one_by_one:
            return self.call(tokens, pos, keep)
        return [self.call([token], pos + i, keep) for i, token in enumerate(tokens)][-1]

    def greedy(self, name, prompt):
        case = self.begin(name, prompt=prompt, prompt_text=self.tokenizer.decode(prompt))
        out = [self.feed(prompt, 0)]
        while len(out) < N_GREEDY:
            out.append(self.call([out[-1]], len(prompt) + len(out) - 1, len(out) in (1, 2, 3, N_GREEDY - 1)))
        case.update(generated=out, text=self.tokenizer.decode(prompt + out))


def record(r, prompts, limit):
    """limit: the most tokens of a call; the cache has one slot more."""
    for name, prompt in zip(("greedy", "greedy-prompt"), prompts):
        r.greedy(name, r.tokenizer.encode(prompt))
    story = r.tokenizer.encode(STORY * (limit // 50 + 2))

    r.begin("chunks", about="prefill in pieces of changing length")
    pos = 0
    for n in CHUNKS:
        r.feed(story[pos : pos + n], pos)
        pos += n

    r.begin("rewind", about="back to position 4 with other tokens; then position 0 with one token")
    r.feed(story[:8], 0)
    r.feed(story[40:46], 4)
    r.feed([story[3]], 10)
    r.feed([story[0]], 0)

    r.begin("edge", about="the longest prefill the file allows, then the last free slot of the cache")
    r.feed(story[:limit], 0, keep=False)
    r.feed([story[limit]], limit)

    r.begin("after-edge", about="a new short prompt over the full cache")
    r.feed(story[:7], 0)
    r.feed([story[7]], 7)


def without_folders(flags):
    return [pathlib.Path(f).name if f.endswith((".pth", ".json", ".pte")) else f for f in flags]


def main():
    p = export_llm.parser(__doc__)
    p.add_argument("-t", "--tokenizer", type=pathlib.Path, required=True)
    p.add_argument("--golden", type=pathlib.Path, metavar="FILE", help="default: FILE.pte's name with .golden.json")
    p.add_argument("--prompts", choices=PROMPTS, help="default: chatml for an -instruct folder")
    p.add_argument("--logits", action="store_true", help="write whole rows into a .bin beside it, too")
    args = export_llm.parse(p)
    golden = args.golden or args.output.with_suffix(".golden.json")
    prompts = PROMPTS[args.prompts or ("chatml" if "instruct" in args.dir.name else "plain")]
    pte_sha256 = hashlib.sha256(args.output.read_bytes()).hexdigest()

    torch.set_num_threads(1)
    flags = export_llm.exporter_flags(args)
    model, _, metadata = get_llama_model(LlmConfig.from_args(build_args_parser().parse_args(flags)))
    limit, static = metadata["get_max_seq_len"] - 1, "static" in args.variant
    tokenizer = (HuggingFace if args.tokenizer.suffix == ".json" else Llama2c)(args.tokenizer)
    r = Recorder(model, tokenizer, "full-logits" in args.variant, static)
    record(r, prompts, limit)

    found = dict(model=args.dir.name, variant=args.variant, pte=args.output.name, pte_sha256=pte_sha256,
                 source=f"eager PyTorch {torch.__version__}, the exporter's model after source transforms",
                 flags=without_folders(flags), vocab=metadata["get_vocab_size"],
                 max_tokens_per_call=1 if static else limit, context=metadata["get_max_context_len"])
    if args.variant.endswith("-f16"):
        found["note"] = "fp32 goldens; the file computes in fp16"
    if args.logits:
        found["logits_bin"] = golden.with_suffix(".bin").name
        golden.with_suffix(".bin").write_bytes(r.rows)
    else:
        for call in (call for case in r.cases for call in case["calls"]):
            call.pop("logits", None), call.pop("rows", None)
    golden.write_text(json.dumps(found | dict(cases=r.cases)) + "\n")
    for case in r.cases[:2]:
        print(f"{case['name']}: {case['text']!r}")
    print(f"{golden}: {sum(len(case['calls']) for case in r.cases)} calls")


main()
