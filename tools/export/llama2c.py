#!/usr/bin/env python3
"""llama2.c checkpoint (version 0, fp32) -> consolidated.pth + params.json, as ExecuTorch's llama exporter takes them.

usage: llama2c.py stories15M.bin DIR [--pad 32]

Python 3.11, torch 2.15.0, numpy 2.4.6.
"""

import argparse
import json
import pathlib
import sys

import numpy as np
import torch


class Reader:
    """Takes float tensors from the file, one after another."""

    def __init__(self, floats):
        self.floats, self.at = floats, 0

    def take(self, *shape):
        end = self.at + int(np.prod(shape))
        if end > self.floats.size:
            sys.exit(f"the file ends in a tensor of shape {shape}: {self.floats.size} floats, {end} needed")
        tensor = torch.from_numpy(self.floats[self.at : end].reshape(shape).copy())
        self.at = end
        return tensor


def read(path):
    raw = path.read_bytes()
    dim, hidden, n_layers, n_heads, n_kv_heads, vocab, context = np.frombuffer(raw, "<i4", 7).tolist()
    tied, vocab = vocab > 0, abs(vocab)  # the sign says whether the output matrix is the embedding
    kv_dim = dim // n_heads * n_kv_heads
    reader = Reader(np.frombuffer(raw, "<f4", offset=28))

    weights = {"tok_embeddings.weight": reader.take(vocab, dim)}
    for name, *shape in (  # the file's order: one kind after another, each for all layers
        ("attention_norm", dim),
        ("attention.wq", dim, dim),
        ("attention.wk", kv_dim, dim),
        ("attention.wv", kv_dim, dim),
        ("attention.wo", dim, dim),
        ("ffn_norm", dim),
        ("feed_forward.w1", hidden, dim),
        ("feed_forward.w2", dim, hidden),
        ("feed_forward.w3", hidden, dim),
    ):
        for i, tensor in enumerate(reader.take(n_layers, *shape)):
            weights[f"layers.{i}.{name}.weight"] = tensor.clone()
    weights["norm.weight"] = reader.take(dim)
    reader.take(2, context, dim // n_heads // 2)  # cosines and sines; the exporter computes its own
    weights["output.weight"] = weights["tok_embeddings.weight"].clone() if tied else reader.take(vocab, dim)
    if reader.at != reader.floats.size:
        sys.exit(f"{reader.at} floats belong to the model, the file has {reader.floats.size}")
    params = dict(dim=dim, hidden_dim=hidden, n_layers=n_layers, n_heads=n_heads, n_kv_heads=n_kv_heads,
                  vocab_size=vocab, norm_eps=1e-5, rope_theta=10000.0)
    return weights, params, context


def pad_feed_forward(weights, params, multiple):
    """Zero rows and columns up to a multiple of the quantisation group; the function stays the same."""
    extra = -params["hidden_dim"] % multiple
    for name, tensor in weights.items():
        if "feed_forward" in name:
            sides = (0, extra) if ".w2." in name else (0, 0, 0, extra)
            weights[name] = torch.nn.functional.pad(tensor, sides)
    params["hidden_dim"] += extra


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=pathlib.Path)
    parser.add_argument("dir", type=pathlib.Path)
    parser.add_argument("--pad", type=int, default=1, metavar="N", help="feed-forward width up to a multiple of N")
    args = parser.parse_args()

    weights, params, context = read(args.checkpoint)
    pad_feed_forward(weights, params, args.pad)
    args.dir.mkdir(parents=True, exist_ok=True)
    torch.save(weights, args.dir / "consolidated.pth")
    (args.dir / "params.json").write_text(json.dumps(params, indent=1) + "\n")
    print(f"{args.dir}: {params}, trained with context {context}")


main()
