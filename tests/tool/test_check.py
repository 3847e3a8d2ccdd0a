"""sconce check as a user and a CI job meet it."""

import json
import os
import pathlib
import shutil
import tempfile
import xml.etree.ElementTree as xml

from support import ROOT, SCONCE, run

CASES, GOLDENS = ROOT / "tests/data/cases", ROOT / "tests/data/goldens"


def last_line(text):
    return text.splitlines()[-1]


def test_right_cases_pass_quietly():
    out, err = run(SCONCE, "check", CASES / "right")
    assert out == "4 passed, 0 failed\n" and not err, (out, err)


def test_verbose_is_a_line_per_case_in_the_order_of_names():
    out, _ = run(SCONCE, "check", "-v", CASES / "right")
    names = [line.split(":")[0] for line in out.splitlines()[:-1]]
    assert names == [f"ok {CASES}/right/{n}" for n in ("add", "add_int64", "chain", "mul_dynamic")], out
    assert "7 calls" in out and "worst abs" in out


def test_a_wrong_golden_fails_with_the_element():
    out, _ = run(SCONCE, "check", CASES, expect=1)
    lines = out.splitlines()
    assert len(lines) == 2 and lines[-1] == "4 passed, 1 failed", out
    assert lines[0].startswith(f"FAIL {CASES}/wrong/add_golden: wrong result: call 0: output 0: element [1, 2]"), out
    assert "is 7, want 7.5 (1 of 15 wrong" in lines[0] and "worst abs 0.5" in lines[0]


def test_several_folders_and_a_filter():
    out, _ = run(SCONCE, "check", CASES / "right/chain", CASES / "right/add", "-v")
    assert [line.split(":")[0].split("/")[-1] for line in out.splitlines()] == ["chain", "add", "2 passed, 0 failed"], out
    out, _ = run(SCONCE, "check", CASES, "--filter", "mul_")
    assert last_line(out) == "1 passed, 0 failed", out


def test_nothing_found_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        out, err = run(SCONCE, "check", folder, expect=1)
        assert out == "0 passed, 0 failed\n" and "no case found" in err
    assert "no such folder" in run(SCONCE, "check", "/nonexistent", expect=1)[1]
    # A folder that is not there is not outvoted by one that passes.
    assert last_line(run(SCONCE, "check", CASES / "right", "/nonexistent", expect=1)[0]) == "4 passed, 0 failed"
    run(SCONCE, "check", CASES, "--filter", "no such case", expect=1)


def test_wrong_usage():
    assert "no folder to check" in run(SCONCE, "check", expect=2)[1]
    assert "--tolerance is 'x'" in run(SCONCE, "check", CASES, "--tolerance", "x", expect=2)[1]
    assert "--golden is about one model" in run(SCONCE, "check", CASES, CASES, "--golden", "x", expect=2)[1]
    assert "'--junit' needs a value" in run(SCONCE, "check", CASES, "--junit", expect=2)[1]


def test_a_lost_device_is_one_line_and_the_check_goes_on():
    whole = [line.split(":")[0] for line in run(SCONCE, "check", "-v", CASES / "right", GOLDENS)[0].splitlines()]
    lost = 0
    for steps in ("20", "60", "150", "500"):
        out, err = run(SCONCE, "check", "-v", CASES / "right", GOLDENS, env={"SCONCE_LOSE_AFTER": steps})
        assert [line.split(":")[0] for line in out.splitlines()] == whole, (steps, out, err)
        lost += len(err.splitlines())
        assert len(err.splitlines()) <= 1 and (not err or "opened again on" in err), (steps, err)
    assert lost > 1, lost


def test_json():
    report = json.loads(run(SCONCE, "check", CASES, "--json", expect=1)[0])
    assert report["passed"] == 4 and report["failed"] == 1 and report["device"]
    wrong = [c for c in report["cases"] if not c["passed"]]
    assert len(wrong) == 1 and wrong[0]["status"] == "wrong result" and wrong[0]["worst_abs"] == 0.5
    assert "call 0: output 0" in wrong[0]["why"]
    assert json.loads(run(SCONCE, "check", CASES, "--json", "--filter", "none", expect=1)[0])["cases"] == []


def test_junit():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "report.xml"
        run(SCONCE, "check", CASES, "--junit", path, expect=1)
        suite = xml.parse(path).getroot()
        assert len(suite) == 5 and len(suite.findall("testcase/failure")) == 1
        assert "want 7.5" in suite.find("testcase/failure").get("message")
        run(SCONCE, "check", CASES, "--junit", folder, expect=1)


def test_unsupported_is_a_failure():
    with tempfile.TemporaryDirectory() as folder:
        case = pathlib.Path(folder) / "case"
        shutil.copytree(CASES / "right/add", case)
        model = case / "model.pte"
        program = model.read_bytes()
        assert b"aten.add.Tensor" in program
        model.write_bytes(program.replace(b"aten.add.Tensor", b"aten.nil.Tensor"))  # nobody has it
        out, _ = run(SCONCE, "check", folder, expect=1)
        assert "FAIL" in out and last_line(out) == "0 passed, 1 failed", out
        # Where nobody has goldens and the exporter's own runtime refuses the file, so may we.
        (case / "case.json").write_text('{"peer_expect": "load_error", "calls": []}')
        assert last_line(run(SCONCE, "check", folder)[0]) == "1 passed, 0 failed"


def test_goldens_beside_models():
    out, _ = run(SCONCE, "check", GOLDENS, "-v")
    assert last_line(out) == "6 passed, 0 failed", out
    assert f"ok {GOLDENS}/toy-static.golden.json#long" in out
    out, _ = run(SCONCE, "check", GOLDENS / "toy.pte", "--golden", GOLDENS / "toy.golden.json")
    assert last_line(out) == "2 passed, 0 failed", out


def edited(folder, name, edit):
    """A copy of a golden with its files, changed by edit(root)."""
    for file in GOLDENS.glob(f"{name}.*"):
        shutil.copy(file, folder)
    path = pathlib.Path(folder) / f"{name}.golden.json"
    root = json.loads(path.read_text())
    edit(root)
    path.write_text(json.dumps(root))
    return path


def test_golden_tolerances():
    def shift(root):
        root["cases"][0]["calls"][0]["top5"][1][1] -= 0.01
        root["cases"][1]["calls"][1]["top5"][4][1] += 0.5

    with tempfile.TemporaryDirectory() as folder:
        path = edited(folder, "toy", shift)
        model = path.with_name("toy.pte")
        out, _ = run(SCONCE, "check", folder, expect=1)
        assert last_line(out) == "0 passed, 2 failed" and "#prompt: wrong result: call 0: logit of token" in out, out
        out, _ = run(SCONCE, "check", model, "--golden", path, "--tolerance", "0.02", expect=1)
        assert last_line(out) == "1 passed, 1 failed", out
        assert last_line(run(SCONCE, "check", model, "--golden", path, "--tolerance", "0.51")[0]) == "2 passed, 0 failed"
        edited(folder, "toy", lambda root: (shift(root), root.update(variant="8da4w")))
        assert last_line(run(SCONCE, "check", folder)[0]) == "2 passed, 0 failed"
        edited(folder, "toy", lambda root: (shift(root), root.update(tolerance=0.6)))
        assert last_line(run(SCONCE, "check", folder)[0]) == "2 passed, 0 failed"


def test_top5_remains_where_the_logits_are_not_there():
    with tempfile.TemporaryDirectory() as folder:
        path = edited(folder, "toy", lambda root: None)
        path.with_suffix(".bin").unlink()
        assert last_line(run(SCONCE, "check", folder)[0]) == "2 passed, 0 failed"
        path.with_name("toy.pte").unlink()  # a golden without its model is no case
        assert "no case found" in run(SCONCE, "check", folder, expect=1)[1]


def test_every_row_of_logits_counts():
    with tempfile.TemporaryDirectory() as folder:
        for name in ("toy", "toy-static"):
            path = edited(folder, name, lambda root: None).with_suffix(".bin")
            blob = bytearray(path.read_bytes())
            blob[8 * 4 + 3] ^= 0x80  # the sign of the first logit after the second token
            path.write_bytes(blob)
            out, _ = run(SCONCE, "check", folder, "--filter", f"/{name}.", expect=1)
            assert last_line(out) == "1 passed, 1 failed" and "logits after token 1: element [0]" in out, out


def test_links_to_folders_do_not_go_round():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(CASES / "right/add", pathlib.Path(folder) / "add")
        os.symlink(folder, pathlib.Path(folder) / "round")
        assert last_line(run(SCONCE, "check", folder)[0]) == "1 passed, 0 failed"
