"""The command as a user meets it: help, wrong usage, errors, JSON."""

import json

from support import SCONCE, run


def test_help_of_every_verb():
    out, _ = run(SCONCE, "--help")
    verbs = [line.split()[0] for line in out.split("verbs:")[1].split("`sconce VERB")[0].splitlines() if line.strip()]
    assert "devices" in verbs and "bench" in verbs, verbs
    for verb in verbs:
        out, _ = run(SCONCE, verb, "--help")
        assert out.startswith(f"usage: sconce {verb}"), out


def test_wrong_usage_is_2_and_says_what():
    assert "usage: sconce" in run(SCONCE, expect=2)[1]
    assert "unknown verb 'fly'" in run(SCONCE, "fly", expect=2)[1]
    assert "unknown option '--fly'" in run(SCONCE, "devices", "--fly", expect=2)[1]
    assert "unexpected 'x'" in run(SCONCE, "devices", "x", expect=2)[1]
    assert "'-n' needs a value" in run(SCONCE, "bench", "--dispatch", "-n", expect=2)[1]
    assert "-n is 'many', expected 2 to 10000" in run(SCONCE, "bench", "--dispatch", "-n", "many", expect=2)[1]
    run(SCONCE, "bench", expect=2)


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


def test_failures_are_1_with_one_sentence():
    _, err = run(SCONCE, "bench", "--dispatch", expect=1, env={"SCONCE_ADAPTER": "no such card"})
    assert "no device: no adapter's name contains 'no such card'" in err and len(err.splitlines()) == 1, err
    _, err = run(SCONCE, "devices", expect=1, env={"SCONCE_WEBGPU": "/nonexistent.so"})
    assert "cannot open the WebGPU library" in err, err
    _, err = run(SCONCE, "devices", expect=1, env={"SCONCE_DISABLE": "rays"})
    assert "cannot disable 'rays'" in err, err


def test_bench_measures():
    costs = json.loads(run(SCONCE, "bench", "--dispatch", "-n", "20", "-r", "3", "--json")[0])
    assert costs["dependent_wall_us"] > 0 and costs["dispatches"] == 20
