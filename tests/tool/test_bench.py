"""sconce bench --kernels: every variant in three formats, and a shader that computes something else."""

import csv
import io
import json
import shutil
import tempfile
from pathlib import Path

from support import ROOT, SCONCE, run

KERNELS = (SCONCE, "bench", "--kernels", "--quick", "-r", "1", "--filter")


def device_type():
    listed = json.loads(run(SCONCE, "devices", "--json")[0])
    return listed["devices"][listed["chosen"]]["type"]


def test_kernels_in_three_formats():
    case = "linear_q4gsw 288x288 m=1 f32"
    whole = json.loads(run(*KERNELS, case, "-o", "json")[0])
    rows = whole["results"]
    assert whole["cases"] == 1 and whole["wrong"] == 0, whole
    assert ("read_bytes_per_s" in whole) == any("bandwidth_share" in r for r in rows) == (device_type() != "software"), whole
    assert {"q4_gemm/tile16_f32", "q4_plain/plain_f32"} <= {r["row"] for r in rows}, rows
    assert [r["chosen"] for r in rows].count(True) == 1 and all(r["case"] == case for r in rows), rows
    assert all(r["us"] > 0 and r["gb_per_s"] > 0 and r["error"] <= r["tolerance"] for r in rows), rows
    table = list(csv.DictReader(io.StringIO(run(*KERNELS, case, "-o", "csv")[0])))
    assert [r["row"] for r in table] == [r["row"] for r in rows] and float(table[0]["us"]) > 0, table
    text = run(*KERNELS, case)[0]
    assert f"| {case} | q4_plain/plain_f32 | " in text and " `*` | " in text and "0 wrong" in text, text
    matrix = run(*KERNELS, "sdpa 6/6x48 m=64")[0]
    assert "GFLOP/s | 100 % of the best |" in matrix, matrix


def test_kernels_wrong_usage():
    _, err = run(*KERNELS, "no such case", expect=1)
    assert "no case's name contains 'no such case'" in err, err
    run(SCONCE, "bench", "--memory", "--quick", expect=2)
    run(SCONCE, "bench", "--kernels", "--memory", expect=2)


def test_a_wrong_kernel_is_told():
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "src", Path(folder) / "src", ignore=lambda d, names: [
            n for n in names if (Path(d) / n).is_file() and not n.endswith(".wgsl")])
        shader = Path(folder) / "src/ops/linear_q4/q4_tile.wgsl"
        text = shader.read_text()
        broken = text.replace("8388616.0", "8388615.0")
        assert broken != text
        shader.write_text(broken)
        out, _ = run(*KERNELS, "linear_q4gsw 288x288 m=1 f32", expect=1,
                     env={"SCONCE_WGSL_DIR": str(Path(folder) / "src")})
    lines = [line for line in out.splitlines() if "WRONG " in line and line.startswith("| linear")]
    assert len(lines) > 1 and all("q4_gemm/" in line for line in lines) and f"{len(lines)} wrong" in out, out
