"""sconce check --self: kernels against loops in double, from the program alone; what is wrong is kept and avoided."""

import json
import os
import pathlib
import shutil
import tempfile

from support import ROOT, SCONCE, run

CASES = ROOT / "tests/data/ops/rms_norm"


class Place:
    """A state folder, and a copy of the shaders in which one line is another."""

    def __init__(self, shader=None, old=None, new=None):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.env = {**os.environ, "XDG_STATE_HOME": str(self.folder / "state")}
        if not shader:
            return
        for path in (ROOT / "src").rglob("*.wgsl"):
            copy = self.folder / "src" / path.relative_to(ROOT / "src")
            copy.parent.mkdir(parents=True, exist_ok=True)
            text = path.read_text()
            if path.name == shader:
                assert text.count(old) == 1, text
                text = text.replace(old, new)
            copy.write_text(text)
        self.env["SCONCE_WGSL_DIR"] = str(self.folder / "src")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def sconce(self, *args, expect=0):
        return run(SCONCE, *args, expect=expect, env=self.env)

    def check(self, *args, expect=0):
        return json.loads(self.sconce("check", "--self", "--json", *args, expect=expect)[0])

    def kept(self):
        path = self.folder / "state/sconce/wrong_kernels"
        return path.read_text() if path.exists() else ""


def by_result(report):
    found = {"right": set(), "skipped": set(), "wrong": set()}
    for row in report["kernels"]:
        found[row["result"]].add(row["kernel"])
        assert (row["runs"] > 0) == (row["result"] != "skipped"), row
        assert ("why" in row) == (row["result"] != "right"), row
    return found


def test_right_kernels_leave_nothing_behind():
    with Place() as place:
        report = place.check("--filter", "rms_norm/")
        found = by_result(report)
        assert {"rms_norm/narrow_f32", "rms_norm_any/any_f16"} <= found["right"] and not found["wrong"]
        assert len(found["right"]) == report["tried"] and len(found["skipped"]) == report["skipped"]
        assert report["checks_failed"] == 0 and not place.kept()
        out, err = place.sconce("check", "--self", "--filter", "softmax/")
        assert " kernels tried, " in out and ", 0 wrong; " in out and not err, (out, err)


def test_a_wrong_kernel_is_named_kept_and_avoided():
    with Place("rms_norm.wgsl", "let factor = inverseSqrt", "let factor = select(1.0, 1.5, WG == 64u) * inverseSqrt") as place:
        before, _ = place.sconce("check", CASES, expect=1)
        assert "wrong result" in before
        report = place.check("--filter", "rms_norm/", expect=1)
        found = by_result(report)
        assert found["wrong"] == {"rms_norm/narrow_f32", "rms_norm/narrow_f16"}, found["wrong"]
        row = next(r for r in report["kernels"] if r["kernel"] == "rms_norm/narrow_f32")
        assert row["avoided"] and "element" in row["why"] and "want" in row["why"], row
        key, labels = place.kept().rstrip("\n").split("\t")
        assert set(labels.split(",")) == found["wrong"] and report["driver"] in key and "; sconce 0." in key
        shown, _ = place.sconce("devices")
        assert f"kernels found wrong and avoided: {labels}" in shown
        assert any(d["avoid"] == labels for d in json.loads(place.sconce("devices", "--json")[0])["devices"])
        after, _ = place.sconce("check", CASES)
        assert after.endswith(", 0 failed\n"), after
        place.check("--filter", "rms_norm/", expect=1)  # they are tried again, and kept again
        assert set(place.kept().rstrip("\n").split("\t")[1].split(",")) == found["wrong"]


def test_rows_that_take_each_others_place_are_all_found():
    with Place("rms_norm.wgsl", "let factor = inverseSqrt", "let factor = 1.5 * inverseSqrt") as place:
        wrong = by_result(place.check("--filter", "rms_norm/", expect=1))["wrong"]
        assert {"rms_norm/narrow_f32", "rms_norm/quads_f32", "rms_norm/quads_f16"} <= wrong, wrong
        assert all(label.startswith("rms_norm/") for label in wrong), wrong
        assert place.sconce("check", CASES)[0].endswith(", 0 failed\n")


def test_a_wrong_kernel_that_nothing_can_stand_in_for_stays_and_is_told():
    with Place("softmax.wgsl", "exp(above) / s.y", "1.5 * exp(above) / s.y") as place:
        report = place.check("--filter", "softmax/", expect=1)
        assert report["failed"][0]["check"] == "softmax/every_dim" and not place.kept(), report["failed"]
        assert "it ran softmax_stats/f32, softmax/f32" in report["failed"][0]["why"], report["failed"]
    with Place("where.wgsl", "y[word] = packed;", "y[word] = packed + 1u;") as place:
        report = place.check("--filter", "where/", expect=1)
        wrong = [row for row in report["kernels"] if row["result"] == "wrong"]
        assert wrong and not wrong[0]["avoided"] and not place.kept(), wrong
        assert "so it stays" in place.sconce("check", "--self", "--filter", "where/", expect=1)[0]


def test_a_kernel_that_does_not_compile_is_wrong():
    with Place("rms_norm.wgsl", "sum += dot(v, v);", "sum += dot(v, missing);") as place:
        wrong = by_result(place.check("--filter", "rms_norm/", expect=1))["wrong"]
        assert wrong and all(label.startswith("rms_norm/") for label in wrong), wrong
        assert place.sconce("check", CASES)[0].endswith(", 0 failed\n")


def test_other_devices_lines_stay_and_a_broken_file_does_no_harm():
    with Place() as place:
        folder = place.folder / "state/sconce"
        folder.mkdir(parents=True)
        kept = folder / "wrong_kernels"
        kept.write_text("another; 1; Vulkan; wgpu 1; sconce 0.1\tsoftmax/f32\n\tno key\nno tab\n")
        place.sconce("devices")
        key = place.check("--filter", "softmax/")
        assert key["wrong"] == 0 and kept.read_text().startswith("another; 1;")
        kept.write_bytes(b"\0" * 5000)
        place.sconce("devices")


def test_a_kept_name_that_is_none_is_told_and_passed_over():
    with Place("rms_norm.wgsl", "let factor = inverseSqrt", "let factor = 1.5 * inverseSqrt") as place:
        place.check("--filter", "rms_norm/", expect=1)
        path = place.folder / "state/sconce/wrong_kernels"
        path.write_text(path.read_text().split("\t")[0] + "\tno/such\n")
        _, err = place.sconce("check", ROOT / "tests/data/cases/right")
        assert "no kernel to avoid is called 'no/such'" in err, err


def test_usage():
    for args, says in (("--self model.pte", "takes no models"), ("--quick .", "are for --self"),
                       ("--self --seconds 0", "expected 1 to 86400")):
        _, err = run(SCONCE, "check", *args.split(), expect=2)
        assert says in err, err
