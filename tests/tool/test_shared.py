"""Fixtures and models that do not live in the repository, where SCONCE_SHARED names their folder."""

import lzma
import pathlib
import shutil
import tempfile

from support import SCONCE, Skip, run, shared

# Families of operators that this build does not have yet.
MISSING = {
    "op_avg_pool2d", "op_batch_norm", "op_conv1d", "op_conv1d_dw", "op_conv1d_pw", "op_conv2d", "op_conv_with_clamp",
    "op_dequantize_per_tensor", "op_grid_priors", "op_grid_sampler_2d", "op_linear_q8ta_q8csw", "op_linear_qcs4w",
    "op_max_pool2d", "op_native_group_norm", "op_q8ta_add", "op_q8ta_conv2d", "op_q8ta_conv2d_dw", "op_q8ta_conv2d_pw",
    "op_q8ta_conv2d_transposed", "op_q8ta_linear", "op_q8ta_pixel_shuffle", "op_q8ta_relu", "op_quantize_per_tensor",
    "op_upsample_bilinear2d", "op_upsample_nearest2d", "peer_ops_conv2d", "peer_ops_fused_ce", "peer_ops_linear_dW",
}
MISSING_CASES = {"dynamic_shape/dyn_conv1d"}


def test_fixtures():
    fixtures = shared() / "fixtures"
    cases = [c.parent for c in sorted(fixtures.glob("*/*/case.json"))
             if c.parent.parent.name not in MISSING and f"{c.parent.parent.name}/{c.parent.name}" not in MISSING_CASES]
    assert len(cases) > 500, len(cases)
    for start in range(0, len(cases), 100):
        part = cases[start : start + 100]
        assert run(SCONCE, "check", *part)[0].splitlines()[-1] == f"{len(part)} passed, 0 failed"


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
                             "--input", "zeros:1x1", "--input", f"ints:{position}")
                assert f" {16 * layer + 6} dispatches" in out.splitlines()[-1], (position, device, out.splitlines()[-1])
