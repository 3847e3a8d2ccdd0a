#!/usr/bin/env python3
"""Encoders as anyone would export them, which the partitioner takes apart: many delegates with portable operators between.

    pip install executorch==1.5.1 torchvision transformers
    tools/export/make_encoders.py FOLDER      bert and swin at their real sizes, with random weights
    tools/export/make_encoders.py             tests/data/programs/bert_small, swin_small and bert_six

bert_six has as many layers, and so delegates, as MiniLM: 22.

bert: BertModel of transformers with its default attention, 6 layers of 384 (as MiniLM), 2 to 256 tokens, averaged and
normalised. swin: swin_t of torchvision, one picture of 224 x 224. `sconce check FOLDER` compares with PyTorch.
"""
import usage  # noqa: F401  first of all

import pathlib
import sys

import make_programs
import torch
from executorch.backends.vulkan.partitioner.vulkan_partitioner import VulkanPartitioner
from executorch.exir import to_edge_transform_and_lower
from torch.export import Dim, export
from torchvision.models.swin_transformer import SwinTransformer
from transformers import BertConfig, BertModel


class Encoder(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)

    def forward(self, tokens):
        return torch.nn.functional.normalize(self.bert(input_ids=tokens).last_hidden_state.mean(1))


def write(folder, module, calls, dynamic=None):
    module.eval().requires_grad_(False)
    options = {"require_dynamic_shapes": dynamic is not None}
    program = export(module, calls[0], dynamic_shapes=dynamic, strict=False)
    made = to_edge_transform_and_lower(program, partitioner=[VulkanPartitioner(options)]).to_executorch()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.pte").write_bytes(made.buffer)
    case = make_programs.Case(folder, 1e-4)
    for call in calls:
        case.call(list(call), [module(*call)])
    case.write()
    print(folder, len(made.executorch_program.execution_plan[0].delegates), "delegates")


def bert(folder, width, layers, heads, vocabulary, lengths):
    config = BertConfig(vocab_size=vocabulary, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
                        intermediate_size=4 * width, max_position_embeddings=2 * lengths[0])
    calls = [(torch.randint(0, vocabulary, (1, n)),) for n in lengths]
    write(folder, Encoder(config), calls, {"tokens": {1: Dim("n", min=2, max=max(lengths))}})


def swin(folder, picture, width, depths, heads, window, classes):
    module = SwinTransformer(patch_size=[4, 4], embed_dim=width, depths=depths, num_heads=heads, window_size=[window, window],
                             num_classes=classes)
    write(folder, module, [(torch.randn(1, 3, picture, picture),) for _ in range(2)])


if __name__ == "__main__":
    torch.manual_seed(11)
    if len(sys.argv) > 1:
        out = pathlib.Path(sys.argv[1])
        bert(out / "bert", 384, 6, 12, 30522, [256, 16, 2, 77])
        swin(out / "swin", 224, 96, [2, 2, 6, 2], [3, 6, 12, 24], 7, 1000)
    else:
        bert(make_programs.PROGRAMS / "bert_small", 24, 2, 3, 40, [12, 5, 2, 12])
        swin(make_programs.PROGRAMS / "swin_small", 32, 8, [2, 2], [2, 4], 4, 6)
        torch.manual_seed(12)
        bert(make_programs.PROGRAMS / "bert_six", 12, 6, 3, 40, [12, 5, 2, 12])
