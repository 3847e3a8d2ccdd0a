"""Fixtures and models that do not live in the repository, where SCONCE_SHARED names their folder."""

import array
import json
import lzma
import pathlib
import shutil
import tempfile

from support import SCONCE, Skip, run, shared


def test_fixtures():
    fixtures = shared() / "fixtures"
    cases = [c.parent for c in sorted(fixtures.glob("*/*/case.json"))]
    assert len(cases) > 500, len(cases)
    for start in range(0, len(cases), 100):
        part = cases[start : start + 100]
        assert run(SCONCE, "check", *part)[0].splitlines()[-1] == f"{len(part)} passed, 0 failed"


def test_models_as_published():
    """Public models and probes of single operators through the stock exporter."""
    cases = len(list((shared() / "wild").glob("*/case.json")))
    assert cases > 50, cases
    out, _ = run(SCONCE, "check", shared() / "wild")
    assert out.splitlines()[-1] == f"{cases} passed, 0 failed", out


def test_language_models():
    """Every variant of stories260K, and 4-bit stories15M; the 512 calls of the static edge case are left out here."""
    models = shared() / "models"
    for golden in sorted((models / "stories260K").glob("*.golden.json")):
        pte = golden.with_name(golden.name.replace(".golden.json", ".pte"))
        options = ["--filter", "greedy"] if "static" in golden.name else []
        out, _ = run(SCONCE, "check", pte, "--golden", golden, *options)
        assert out.splitlines()[-1].endswith(" passed, 0 failed"), out
    pte = models / "stories15M/4w.pte"
    out, _ = run(SCONCE, "check", pte, "--golden", models / "stories15M/4w.golden.json", "--filter", "chunks")
    assert out.splitlines()[-1] == "1 passed, 0 failed", out


def test_dispatches_of_a_token():
    """The 1B shape: five dispatches a layer while all keys are in one chunk, six when they are split; and without fusions
    what a layer is made of. The file is unpacked for it."""
    packed = shared() / "models/llama-3.2-1b-shape/llama-3.2-1b-shape.pte.xz"
    if not packed.exists():
        raise Skip(f"{packed} is not there")
    with tempfile.TemporaryDirectory() as folder:
        pte = pathlib.Path(folder) / "1b.pte"
        with lzma.open(packed) as source, open(pte, "wb") as target:
            shutil.copyfileobj(source, target, 1 << 24)
        for device, most in (("default", 128), ("full", 384)):  # keys of one chunk
            for position, layer in ((5, 5), (most - 1, 5), (most, 6), (8000, 6)):
                out, _ = run(SCONCE, "inspect", pte, "--plan", "--no-params", "--device", device,
                             "--input", "zeros:1x1", "--input", str(position))
                assert f" {16 * layer + 5} dispatches" in out.splitlines()[-1], (position, device, out.splitlines()[-1])


def test_weights_that_a_delegate_is_given_at_every_call():
    """8w.pte passes 36 weights to its delegate as arguments: they are constants on the device, inputs are ids and a position."""
    pte = shared() / "models/stories260K/8w.pte"
    report = json.loads(run(SCONCE, "inspect", "--json", pte)[0])
    memory = next(m for m in report["methods"] if m["name"] == "forward")["gpu_memory"]
    assert memory["constants"] > 1_000_000 and memory["inputs"] < 3_000, memory


def test_files_of_other_origin():
    """What Sconce can run runs, and the rest is refused with the name of its backend."""
    foreign = shared() / "models/foreign"
    out, _ = run(SCONCE, "run", foreign / "add-portable-no-header.pte", "--input", "1", "--input", "2")
    assert out.splitlines()[-1].split() == ["3"], out
    out, _ = run(SCONCE, "run", foreign / "linear-legacy-constants.pte", "--input", "ones:2x2")
    assert out.splitlines()[-1].split() == ["5"] * 4, out
    for name, method, backend in (("linear-xnnpack.pte", "forward", "XnnpackBackend"), ("stories260k-qnn.pte", "kv_forward", "QnnBackend")):
        _, err = run(SCONCE, "run", foreign / name, "--method", method, expect=1)
        assert f"instruction 0: delegate 0 is for '{backend}': export with" in err, err


def test_constants_in_a_data_file():
    foreign = shared() / "models/foreign"
    command = [SCONCE, "run", foreign / "linear-external.pte", "--input", foreign / "linear-external.in0.bin"]
    _, err = run(*command, expect=1)
    assert "there is no such data; is a .ptd file missing?" in err, err
    with tempfile.TemporaryDirectory() as folder:
        run(*command, "--data", next(foreign.glob("*.ptd")), "--output-dir", folder)
        got = array.array("f", (pathlib.Path(folder) / "output0.npy").read_bytes()[-64:])
    want = array.array("f", (foreign / "linear-external.out0.bin").read_bytes())
    assert max(abs(a - b) for a, b in zip(got, want, strict=True)) < 1e-5, (got, want)
