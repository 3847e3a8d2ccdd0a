#!/usr/bin/env python3
"""A Llama-family checkpoint -> .pte, by ExecuTorch's stock exporter, delegated to the Vulkan backend.

usage: export_llm.py DIR VARIANT [-o FILE.pte] [--print]

DIR has consolidated.pth and params.json; its name chooses the settings for the models below, others need --model,
--context, --bos and --eos. The script only puts a command line together and runs it; --print shows it instead.

Equal inputs give equal bytes: the exporter's table of sines is otherwise one unit in the last place off on a CPU with
wider vectors, hence ATEN_CPU_CAPABILITY.

Python 3.11, executorch 1.5.1, torch 2.15.0, torchao 0.18.0.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys

ENVIRONMENT = {"ATEN_CPU_CAPABILITY": "default"}

MODELS = {  # folder: --model, context, begin token, end tokens
    "stories15M": ("llama2", 256, 1, [1, 2]),
    "smollm2-135m-instruct": ("smollm2", 2048, 1, [2, 0]),
}

FOUR_BIT = ["-qmode", "4w", "-G", "32", "--embedding-quantize", "4,32"]
VARIANTS = {
    "fp32": [],
    "4w": FOUR_BIT,  # weights in 4 bits, groups of 32
    "8da4w": ["-qmode", "8da4w", *FOUR_BIT[2:]],  # the same, activations quantised to 8 bits as they come
    "4w-static": [*FOUR_BIT, "--disable_dynamic_shape"],  # one token a call
    "4w-full-logits": [*FOUR_BIT, "--generate_full_logits"],  # a row for every token
}
VARIANTS |= {f"{name}-f16": [*flags, "--vulkan-force-fp16"] for name, flags in VARIANTS.items()}


def parser(doc):
    """The arguments that exporting a file and making its goldens share."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("dir", type=pathlib.Path, help="folder with consolidated.pth and params.json")
    p.add_argument("variant", choices=VARIANTS)
    p.add_argument("-o", "--output", type=pathlib.Path, metavar="FILE.pte", help="default: DIR-VARIANT.pte")
    p.add_argument("--model", help="the exporter's model class: llama2, llama3_2, smollm2, …")
    p.add_argument("--context", type=int, metavar="N", help="positions in the KV cache")
    p.add_argument("--bos", type=int, metavar="ID", help="begin token")
    p.add_argument("--eos", type=int, nargs="+", metavar="ID", help="tokens that end a text")
    return p


def parse(p):
    args = p.parse_args()
    known = dict(zip(("model", "context", "bos", "eos"), MODELS.get(args.dir.name, ())))
    for key in ("model", "context", "bos", "eos"):
        if getattr(args, key) is None:
            if key not in known:
                p.error(f"--{key} is needed: {args.dir.name} is none of {', '.join(MODELS)}")
            setattr(args, key, known[key])
    args.output = args.output or pathlib.Path(f"{args.dir.name}-{args.variant}.pte")
    return args


def exporter_flags(args):
    return [
        "--model", args.model,
        "-c", str(args.dir / "consolidated.pth"),
        "-p", str(args.dir / "params.json"),
        "-d", "fp32", "--vulkan",
        "-kv", "--use_sdpa_with_kv_cache",
        "--max_seq_length", str(args.context),
        "--max_context_length", str(args.context),
        *VARIANTS[args.variant],
        "--metadata", json.dumps({"get_bos_id": args.bos, "get_eos_ids": args.eos}),
        "--output_name", str(args.output),
    ]  # fmt: skip


def main():
    p = parser(__doc__)
    p.add_argument("--print", action="store_true", help="show the command, do not run it")
    args = parse(p)
    command = ["-m", "executorch.examples.models.llama.export_llama", *exporter_flags(args)]
    if args.print:
        print(shlex.join([*(f"{k}={v}" for k, v in ENVIRONMENT.items()), "python", *command]))
        return
    status = subprocess.call([sys.executable, *command], env=os.environ | ENVIRONMENT)
    if status or not args.output.exists():
        sys.exit(f"the exporter ended with status {status} and wrote no {args.output}")
    print(f"{args.output}: {args.output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
