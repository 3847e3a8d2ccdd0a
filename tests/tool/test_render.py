"""sconce chat --render: what would be sent, by a template, a family, and a tokenizer's own template."""

import ctypes
import itertools
import json
import tempfile
from pathlib import Path

from support import ROOT, SCONCE, run

TEMPLATE = """{{ bos_token }}{% if tools %}
[tools]{{ tools | map(attribute='name') | join(', ') }}
{% endif %}
{% for m in messages %}
<|{{ m.role }}|>{{ m.content }}{{ eos_token }}
{% endfor %}
{% if enable_thinking is defined and not enable_thinking %}
<think></think>
{% endif %}
{{ strftime_now('%d %B %Y') }}{{ '<|assistant|>' if add_generation_prompt }}"""
TALK = {"messages": [{"role": "user", "content": "Grüße, <|user|>"}]}


def files(folder, **contents):
    """Writes files into a folder, returns their paths."""
    paths = []
    for name, content in contents.items():
        path = Path(folder) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        paths.append(path)
    return paths


def render(*options, expect=0):
    return run(SCONCE, "chat", "--render", *options, expect=expect)


def test_template_tools_and_thinking():
    with tempfile.TemporaryDirectory() as folder:
        talk, template, tools = files(folder, talk=TALK, template=TEMPLATE, tools=[{"name": "f"}, {"name": "g"}])
        options = (talk, "--template", template, "--date", "2026-11-16 09:30:00")
        out, _ = render(*options)
        assert out == "<s><|user|>Grüße, <|user|></s>\n16 November 2026<|assistant|>", out
        out, _ = render(*options, "--tools", tools, "--no-think")
        assert out == ("<s>[tools]f, g\n<|user|>Grüße, <|user|></s>\n<think></think>\n"
                       "16 November 2026<|assistant|>"), out
        closed, = files(folder, closed={**TALK, "add_generation_prompt": False, "enable_thinking": False})
        out, _ = render(closed, "--template", template, "--think", "--date", "2024-02-29")
        assert out == "<s><|user|>Grüße, <|user|></s>\n29 February 2024", out


def test_families_and_a_tokenizers_own():
    with tempfile.TemporaryDirectory() as folder:
        talk, own = files(folder, talk=TALK, **{"chat_template.jinja": "[{{ bos_token }}]{{ messages | length }}"})
        out, _ = render(talk, "--chat", "chatml")
        assert out == "<|im_start|>user\nGrüße, <|user|><|im_end|>\n<|im_start|>assistant\n", out
        vocabulary = Path(folder) / "tokenizer.bin"
        vocabulary.write_bytes((ROOT / "models/stories15M/tokenizer.bin").read_bytes())
        out, _ = render(talk, "-t", vocabulary)
        assert out == "[<s>]1", out
        out, _ = render(talk, "-m", Path(folder) / "model.pte")  # the tokenizer beside it
        assert out == "[<s>]1", out
        own.write_text("{% if %}")
        out, err = render(talk, "-t", vocabulary)
        assert out == "Grüße, <|user|>" and "cannot be used (line 1: expected a value" in err, (out, err)


def test_the_families_of_the_help_are_the_librarys():
    name_of = ctypes.CDLL(str(ROOT / "build/libsconce.so")).sconce_chat_family_name
    name_of.argtypes, name_of.restype = [ctypes.c_size_t], ctypes.c_char_p
    names = [name.decode() for name in itertools.takewhile(bool, map(name_of, itertools.count()))]
    assert f"  --chat {'|'.join(names)}\n" in run(SCONCE, "help", "chat")[0], names


def test_what_is_wrong_is_told():
    with tempfile.TemporaryDirectory() as folder:
        talk, bad, broken = files(folder, talk=TALK, bad="a\n{{ messages[3].role.x }}", broken="{")
        _, err = render(talk, "--template", bad, expect=1)
        assert "chat template: line 2: a list has no such element" in err, err
        _, err = render(broken, "--template", bad, expect=1)
        assert "the conversation: no valid JSON" in err, err
        _, err = render(talk, expect=2)
        assert "--render needs a template" in err, err
        _, err = render(talk, "--template", bad, "--chat", "chatml", expect=2)
        assert "--template and --chat at once" in err, err
        _, err = render(talk, "--template", bad, "--think", "--no-think", expect=2)
        assert "--think and --no-think" in err, err
        _, err = render(talk, "--template", bad, "--date", "tomorrow", expect=2)
        assert "--date is 'tomorrow'" in err, err
        _, err = render(Path(folder) / "nothing", "--template", bad, expect=1)
        assert "cannot read" in err, err
