#!/usr/bin/env python3
"""A Llama in Hugging Face's layout (config.json, *.safetensors) -> consolidated.pth + params.json, as ExecuTorch's llama
exporter takes them. Llama 2 and 3, SmolLM2 and others with "architectures": ["LlamaForCausalLM"].

usage: hf_llama.py HF_DIR DIR

Hugging Face keeps the two halves of a rotary pair half a head apart, Meta side by side: wq's and wk's rows are permuted.

Python 3.11, torch 2.15.0, safetensors 0.8.0.
"""

import argparse
import json
import pathlib
import sys

import torch
from safetensors.torch import load_file

NAMES = {
    "model.embed_tokens": "tok_embeddings",
    "model.norm": "norm",
    "lm_head": "output",
    "input_layernorm": "attention_norm",
    "self_attn.q_proj": "attention.wq",
    "self_attn.k_proj": "attention.wk",
    "self_attn.v_proj": "attention.wv",
    "self_attn.o_proj": "attention.wo",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "feed_forward.w1",
    "mlp.down_proj": "feed_forward.w2",
    "mlp.up_proj": "feed_forward.w3",
}


def interleave(weight, head_dim):
    """(n_heads * head_dim, dim): row d and row d + head_dim/2 of a head become neighbours."""
    return weight.view(-1, 2, head_dim // 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def convert(tensors, head_dim):
    weights = {}
    for name, tensor in tensors.items():
        layer, _, kind = name.removesuffix(".weight").removeprefix("model.layers.").partition(".")
        in_layer = name.startswith("model.layers.")
        own = NAMES.get(kind if in_layer else name.removesuffix(".weight"))
        if not own or not name.endswith(".weight"):
            sys.exit(f"{name}: the llama exporter has no place for it")
        tensor = tensor.float()
        if own in ("attention.wq", "attention.wk"):
            tensor = interleave(tensor, head_dim)
        weights[f"layers.{layer}.{own}.weight" if in_layer else f"{own}.weight"] = tensor
    weights.setdefault("output.weight", weights["tok_embeddings.weight"].clone())  # tied
    return weights


def rope(config):
    """transformers 5 says rope_parameters, 4 says rope_theta and rope_scaling."""
    own = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = own.get("rope_type", own.get("type", "default"))
    if kind not in ("default", "llama3"):
        sys.exit(f"rotary scaling {kind} is not in the llama exporter")
    params = dict(rope_theta=float(own.get("rope_theta") or config.get("rope_theta") or 10000.0), use_scaled_rope=kind == "llama3")
    if kind == "llama3":
        if (own["low_freq_factor"], own["original_max_position_embeddings"]) != (1, 8192):  # the exporter's constants
            sys.exit(f"rotary scaling {own} is not in the llama exporter")
        params |= dict(rope_scale_factor=int(own["factor"]), high_freq_factor=int(own["high_freq_factor"]))
    return params


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hf_dir", type=pathlib.Path)
    parser.add_argument("dir", type=pathlib.Path)
    args = parser.parse_args()

    config = json.loads((args.hf_dir / "config.json").read_text())
    if config["architectures"] != ["LlamaForCausalLM"]:
        sys.exit(f"{args.hf_dir} is a {config['architectures'][0]}, not a LlamaForCausalLM")
    n_heads = config["num_attention_heads"]
    head_dim = config.get("head_dim") or config["hidden_size"] // n_heads
    tensors = {}
    for path in sorted(args.hf_dir.glob("*.safetensors")):
        tensors |= load_file(path)
    params = dict(dim=config["hidden_size"], hidden_dim=config["intermediate_size"], n_layers=config["num_hidden_layers"],
                  n_heads=n_heads, n_kv_heads=config["num_key_value_heads"], head_dim=head_dim,
                  vocab_size=config["vocab_size"], norm_eps=config["rms_norm_eps"], use_hf_rope=False, **rope(config))
    args.dir.mkdir(parents=True, exist_ok=True)
    torch.save(convert(tensors, head_dim), args.dir / "consolidated.pth")
    (args.dir / "params.json").write_text(json.dumps(params, indent=1) + "\n")
    print(f"{args.dir}: {params}")


main()
