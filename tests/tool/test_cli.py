"""The command as a user meets it: help, wrong usage, errors, exit codes, JSON."""

import json
import os
import pathlib
import signal
import struct
import subprocess
import tempfile

from support import ROOT, SCONCE, run


def test_help_of_every_verb():
    out, _ = run(SCONCE, "--help")
    verbs = [line.split()[0] for line in out.split("verbs:")[1].split("`sconce help")[0].splitlines() if line.strip()]
    assert "devices" in verbs and "bench" in verbs, verbs
    for verb in verbs:
        out, _ = run(SCONCE, verb, "--help")
        assert out.startswith(f"usage: sconce {verb}"), out
        assert out == run(SCONCE, "help", verb)[0] == run(SCONCE, verb, "-h", "--fly")[0]
        assert all(len(line) <= 80 for line in out.splitlines()), out
        assert not any(line != line.rstrip() for line in out.splitlines()), out


def test_help_of_help_and_a_model_by_its_option():
    assert run(SCONCE, "help", "help")[0] == run(SCONCE, "help")[0]
    add = ROOT / "tests/data/cases/right/add/model.pte"
    assert run(SCONCE, "run", "-m", add)[0] == run(SCONCE, "run", add)[0] == run(SCONCE, "run", f"--model={add}")[0]


def test_wrong_usage_is_2_and_says_what():
    assert "usage: sconce" in run(SCONCE, expect=2)[1]
    cases = {
        "fly": "unknown verb 'fly'; `sconce help`",
        "chta": "unknown verb 'chta', did you mean 'chat'?; `sconce help` lists them",
        "gen": "unknown verb 'gen', did you mean 'generate'?",
        "help inpect": "unknown verb 'inpect', did you mean 'inspect'?",
        "generate_a_very_long_word_without_an_end": "unknown verb 'generate_a",
        "run a -m b": "unexpected 'b': one model",
        "help fly": "unknown verb 'fly'",
        "help run chat": "unexpected 'chat'",
        "devices --fly": "unknown option '--fly'",
        "devices --json=yes": "'--json' takes no value",
        "devices -vx": "unknown option '-vx'",
        "devices x": "unexpected 'x'",
        "devices -- --json": "unexpected '--json'",
        "bench --dispatch -n": "'-n' needs a value",
        "bench --dispatch -n many": "-n is 'many', expected 2 to 10000",
        "bench --dispatch -nmany": "-n is 'many', expected 2 to 10000",
        "bench": "nothing to measure: -m MODEL",
        "bench --memory --dispatch": "exclude each other",
        "bench --memory -o xml": "-o is 'xml', expected md, csv or json",
        "bench --memory -o md|csv": "-o is 'md|csv', expected md, csv or json",
        "run x --precision=foo": "--precision is 'foo', expected exact or fast; see `sconce run --help`",
        "generate -m x -p a --precision foo": "--precision is 'foo', expected exact or fast",
        "devices --precision fas": "--precision is 'fas', expected exact or fast",
        "inspect x --plan --device half": "--device is 'half', expected default or full",
        "chat -m x --date 2026-11-16": "--date belongs to --render",
        "run x --mean 0.5": "--mean, --std and --resize belong to --image",
        "run x --resize 256 --input y.npy": "--mean, --std and --resize belong to --image",
        "bench --memory --quick": "--filter and --quick belong to --kernels",
        "bench --memory --profile": "--profile and --lookup belong to -m",
        "chat model.pte": "unexpected 'model.pte': the model comes after -m",
        "generate model.pte": "unexpected 'model.pte': the model comes after -m, the prompt after -p",
        "generate -p a": "no model: give one with -m",
        "generate -m x --seed -1": "--seed is '-1', expected 0 to 18446744073709551615",
        "generate -m x --top-k=1e9": "--top-k is '1e9', expected 0 to 1000000",
        "run": "no model to run",
        "run a b": "unexpected 'b': one model",
        "check": "no folder to check",
        "check a b --golden c": "--golden is about one model, given 2",
        "inspect": "no file to look into",
        "inspect x --dot --json": "exclude each other",
        "tokenize": "no tokenizer: give one with -t",
    }
    for words, sentence in cases.items():
        out, err = run(SCONCE, *words.split(), expect=2)
        assert sentence in err and len(err.splitlines()) == 1 and out == "", (words, out, err)


def test_values_stand_apart_or_not():
    """-n 2, -n2, --repeat 2 and --repeat=2 mean the same."""
    model = ROOT / "tests/data/cases/right/add/model.pte"
    for words in (["--repeat", "2"], ["--repeat=2"]):
        assert "; 2 runs: median" in run(SCONCE, "run", *words, model)[0]
    for words in (["-n", "2", "-r", "1"], ["-n2", "-r1"]):
        assert json.loads(run(SCONCE, "bench", "--dispatch", *words, "--json")[0])["dispatches"] == 2


def test_other_files_are_named():
    with tempfile.TemporaryDirectory() as folder:
        cases = {
            b"GGUF\3\0\0\0" + bytes(32): "a GGUF file; how to make a .pte of a Llama: docs/export.md (installed in share/doc/sconce)",
            bytes(4) + b"FT01" + bytes(32): "a .ptd data file: give it with --data",
            b"PK\3\4" + bytes(32): "a zip file, as PyTorch saves models",
            struct.pack("<Q", 9) + b'{"a": 12}': "a safetensors file",
            b"# A text\n": "no ExecuTorch program (.pte)",
            b"": "no ExecuTorch program (.pte)",
        }
        path = pathlib.Path(folder) / "model"
        for data, sentence in cases.items():
            path.write_bytes(data)
            for words in (["generate", "-p", "a", "-m"], ["chat", "-m"], ["bench", "-m"], ["run"]):
                _, err = run(SCONCE, *words, path, expect=1)
                assert f"{path} is {sentence}" in err and len(err.splitlines()) == 1, (data, words, err)
        for path, why in ((folder, "Is a directory"), (f"{folder}/none", "No such file or directory")):
            _, err = run(SCONCE, "generate", "-m", path, expect=1)
            assert f"cannot read the model {path}: {why}" in err, err


def test_a_part_of_a_file_says_what_is_missing():
    stories = ROOT / "models/stories15M/stories15M-4w.pte"
    with tempfile.TemporaryDirectory() as folder:
        for size in (200, 1 << 20):
            path = pathlib.Path(folder) / "part.pte"
            path.write_bytes(stories.read_bytes()[:size])
            for words in (["run"], ["inspect"], ["generate", "-p", "a", "-t", stories.parent / "tokenizer.bin", "-m"]):
                _, err = run(SCONCE, *words, path, expect=1)
                assert f"the file has {size} bytes: is it cut short?" in err, (words, err)
        _, err = run(SCONCE, "run", ROOT / "tests/data/format/delegated_ext.pte", expect=1)
        assert "is a .ptd file missing? Give it with --data FILE.ptd" in err and "format/delegated_ext.pte: " in err, err
        _, err = run(SCONCE, "run", ROOT / "tests/data/programs/three_ptd/model.pte", expect=1)
        assert "external tensor '" in err and "is a .ptd file missing? Give it with --data FILE.ptd" in err, err
        _, err = run(SCONCE, "run", ROOT / "tests/data/cases/right/add/model.pte", "--output-dir", f"{folder}/a/b", expect=1)
        assert f"cannot make the folder {folder}/a/b: No such file or directory" in err, err
        out, err = run(SCONCE, "check", f"{folder}/none", expect=1)
        assert "there is no such folder" in err and out == "" and len(err.splitlines()) == 1, (out, err)


def limited(*words, expect=1, stdin=None):
    """With 4 GiB of address space, of which software devices take a part, and half a minute."""
    done = subprocess.run(["sh", "-c", 'ulimit -v 4194304; exec "$0" "$@"', str(SCONCE), *map(str, words)], text=True,
                          capture_output=True, stdin=stdin or subprocess.DEVNULL, timeout=30,
                          env={**os.environ, "NODEVICE_SELECT": "1"})
    assert done.returncode == expect and done.stderr.count("\n") == 1, (words, done)
    return done.stderr


def test_endless_files_are_refused():
    data, stories = ROOT / "tests/data", ROOT / "models/stories15M"
    picture, text = data / "format/picture.pte", ["generate", "-n1", "-m", stories / "stories15M-4w.pte"]
    with tempfile.TemporaryDirectory() as folder, open("/dev/zero", "rb") as zeros:
        raw = pathlib.Path(folder) / "x.bin"
        raw.symlink_to("/dev/zero")
        for words, most, stdin in (
                ([*text, "-f", "/dev/zero"], 64 << 20, None),
                ([*text, "-f", "-"], 64 << 20, zeros),
                (["tokenize", "-t", stories / "tokenizer.bin"], 64 << 20, zeros),
                (["run", picture, "--image", "/dev/zero"], 256 << 20, None),
                (["run", picture, "--input", raw], 1 * 3 * 4 * 6 * 4, None),
                (["run", picture, "--top", "1", "--labels", "/dev/zero"], 64 << 20, None),
                (["chat", "--render", "/dev/zero", "--chat", "chatml"], 64 << 20, None),
                (["chat", "--render", "-", "--template", "/dev/zero"], 64 << 20, None),
                (["chat", "--render", "-", "--tools", "/dev/zero"], 64 << 20, None),
                (["bench", "-m", text[-1], "-t", stories / "tokenizer.bin", "--lookup", "/dev/zero"], 64 << 20, None)):
            err = limited(*words, stdin=stdin)
            assert f"more than {most} bytes" in err, (words, err)


def test_a_pipe_is_no_model_and_nobody_waits_for_it():
    with tempfile.TemporaryDirectory() as folder:
        pipe = pathlib.Path(folder) / "x.npy"
        os.mkfifo(pipe)
        add = ROOT / "tests/data/cases/right/add/model.pte"
        for words in (["run", pipe], ["inspect", pipe], ["bench", "-m", pipe], ["generate", "-p", "a", "-m", pipe],
                      ["run", add, "--data", pipe], ["run", add, "--input", pipe],
                      ["tokenize", "-t", pipe]):
            assert "not a regular file" in limited(*words), words


def test_output_that_cannot_be_written_is_a_failure():
    add, stories = ROOT / "tests/data/cases/right/add", ROOT / "models/stories15M/stories15M-4w.pte"
    tokenizer = stories.parent / "tokenizer.bin"
    for words in (["--version"], ["help"], ["help", "run"], ["devices"], ["run", add / "model.pte"], ["check", add],
                  ["inspect", stories], ["tokenize", "-t", tokenizer], ["bench", "--dispatch", "-n2", "-r1"],
                  ["generate", "-m", stories, "-n2"], ["chat", "-m", stories, "--chat", "plain", "-n2"]):
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([SCONCE, *words], stdout=full, stderr=subprocess.PIPE, text=True, input="a\n")
        assert done.returncode == 1 and "cannot write the output" in done.stderr, (words, done)


def test_a_closed_pipe_ends_it_quietly():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([SCONCE, "help"], stdout=writer, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    os.close(writer)
    assert done.returncode == -signal.SIGPIPE and done.stderr == "", done


def test_version():
    assert run(SCONCE, "--version")[0].startswith("sconce 0.")


def test_devices_as_table_and_json():
    table, _ = run(SCONCE, "devices")
    listed = json.loads(run(SCONCE, "devices", "--json")[0])
    first = listed["devices"][listed["chosen"]]
    assert first["name"] in table
    assert first["max_storage_binding"] >= 1 << 20 and first["type"] in table


def test_masks_and_caps_show():
    env = {"SCONCE_DISABLE": "f16,subgroups,timestamps", "SCONCE_LIMITS": "storage_binding=1048576"}
    listed = json.loads(run(SCONCE, "devices", "--json", env=env)[0])
    chosen = listed["devices"][listed["chosen"]]
    assert not chosen["f16"] and not chosen["subgroups"] and not chosen["timestamps"]
    assert chosen["max_storage_binding"] == 1048576


def test_precision_shows_and_is_checked():
    for word in ("exact", "fast"):
        listed = json.loads(run(SCONCE, "devices", "--json", "--precision", word)[0])
        chosen = listed["devices"][listed["chosen"]]
        assert chosen["fast"] == (word == "fast" and chosen["f16"]), chosen
    assert "precision: exact" in run(SCONCE, "devices", env={"SCONCE_PRECISION": "exact"})[0]
    _, err = run(SCONCE, "devices", expect=1, env={"SCONCE_PRECISION": "double"})
    assert "precision 'double' is neither exact nor fast" in err, err


def test_failures_are_1_with_one_sentence():
    _, err = run(SCONCE, "bench", "--dispatch", expect=1, env={"SCONCE_ADAPTER": "no such card"})
    assert "no device: no adapter's name contains 'no such card'" in err and len(err.splitlines()) == 1, err
    n = len(json.loads(run(SCONCE, "devices", "--json")[0])["devices"])
    for index in ("9", "99"):
        _, err = run(SCONCE, "devices", "--device", index, expect=1)
        assert f"no adapter {index}, there are {n}" in err or f"contains '{index}'; the first of {n} is '" in err, err
    _, err = run(SCONCE, "devices", expect=1, env={"SCONCE_WEBGPU": "/nonexistent.so"})
    assert "cannot open the WebGPU library" in err, err
    _, err = run(SCONCE, "devices", expect=1, env={"SCONCE_DISABLE": "rays"})
    assert "cannot disable 'rays'" in err, err


def test_bench_measures():
    costs = json.loads(run(SCONCE, "bench", "--dispatch", "-n", "20", "-r", "3", "--json")[0])
    assert costs["dependent_wall_us"] > 0 and costs["dispatches"] == 20
