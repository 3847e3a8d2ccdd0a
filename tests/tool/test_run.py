"""sconce run: inputs of every kind, .npy in and out, times and traces."""

import json
import pathlib
import struct
import tempfile

from support import ROOT, SCONCE, Skip, run

ADD = ROOT / "tests/data/cases/right/add/model.pte"
MUL = ROOT / "tests/data/cases/right/mul_dynamic/model.pte"
INTS = ROOT / "tests/data/cases/right/add_int64/model.pte"


def npy(shape, values, descr="<f4", code="f", version=1, order="False", header=None):
    """A .npy file, as NumPy writes it or a little off."""
    text = header or f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"
    length = struct.pack("<H" if version == 1 else "<I", len(text) + 1)
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + b"\n" + struct.pack(f"<{len(values)}{code}", *values)


def read_npy(path):
    data = pathlib.Path(path).read_bytes()
    length = struct.unpack("<H", data[8:10])[0]
    assert data[:8] == b"\x93NUMPY\x01\x00" and (10 + length) % 64 == 0 and data[9 + length : 10 + length] == b"\n"
    return data[10 : 10 + length].decode().strip(), data[10 + length :]


def test_inputs_that_are_not_given_are_zeros_of_the_largest_dims():
    out, _ = run(SCONCE, "run", MUL)
    assert out.startswith("output 0: float32 (8, 6)  min 0  max 0  mean 0\n"), out


def test_made_up_inputs():
    out, _ = run(SCONCE, "run", MUL, "--input", "ones:2x6", "--input", "rand:2x6")
    assert "float32 (2, 6)" in out and "min 0.0" in out and "max 0." in out, out
    assert out == run(SCONCE, "run", "--input", "ones:2x6", MUL, "--input", "rand:2x6")[0]
    out, _ = run(SCONCE, "run", ADD, "--input", "zeros:3x5", "--input", "ints:1,-2,3,4,5")
    assert "  1 -2 3 4 5 1 -2 3 …\n" in out and "min -2  max 5  mean 2.2" in out, out
    out, _ = run(SCONCE, "run", MUL, "--input", "zeros:0x6", "--input", "zeros:0x6")
    assert "float32 (0, 6)" in out, out


def test_npy_in_and_out():
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "x.npy").write_bytes(npy("(2, 3)", [1, 2, 3, 4, 5, 1 << 30], "<i8", "q"))
        (folder / "y.npy").write_bytes(npy("(2, 3)", [-1] * 6, "<i4", "i", version=2))
        run(SCONCE, "run", INTS, "--input", folder / "x.npy", "--input", folder / "y.npy", "--output-dir", folder / "out")
        header, data = read_npy(folder / "out/output0.npy")
        assert header == "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 3), }", header
        assert struct.unpack("<6q", data) == (0, 1, 2, 3, 4, (1 << 30) - 1)
        # What comes out goes in again.
        out, _ = run(SCONCE, "run", INTS, "--input", folder / "out/output0.npy")
        assert "  0 1 2 3 4 1.07374e+09\n" in out, out


def test_bad_npy_files_are_one_sentence():
    good = npy("(2, 3)", [0] * 6)
    cases = {
        b"": "no .npy file",
        b"\x93NUMPX" + good[6:]: "no .npy file",
        good[:6] + b"\x09" + good[7:]: "unknown version",
        good[:30]: "ends in its header",
        good[:-1]: "are not what its shape needs",
        good + b"x": "are not what its shape needs",
        npy("(2, 3)", [0] * 6, ">f4"): "little-endian",
        npy("(2, 3)", [0] * 6, "<c8"): "little-endian",
        npy("(2, 3)", [0] * 6, order="True"): "not in C order",
        npy("2, 3", [0] * 6): "no shape",
        npy("(2, -3)", [0] * 6): "no shape",
        npy("(2, 3", [0] * 6): "no shape",
        npy("(1,1,1,1,1,1,1,1,6)", [0] * 6): "no shape",
        npy("(4294967295, 4294967295, 4294967295)", [0] * 6): "are not what its shape needs",
        npy("(99999999999,)", [0] * 6): "no shape",
        npy("", [], header="{}"): "little-endian",
        npy("", [], header="{'descr': '"): "little-endian",
        good[:8] + b"\xff\xff\xff\xff": "ends in its header",
        good[:6] + b"\x02\x00\xff\xff\xff\xff": "more than 64 KiB",
    }
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.npy"
        for data, sentence in cases.items():
            path.write_bytes(data)
            _, err = run(SCONCE, "run", ADD, "--input", path, expect=1)
            assert sentence in err and len(err.splitlines()) == 1, (data, err)


def test_wrong_inputs():
    cases = {
        ("zeros:4x5",): "input 0: dim 0 is 4, at most 3",
        ("zeros:5",): "input 0 has rank 2, given 1",
        ("zeros:axb",): "expected dims like",
        ("zeros:3x",): "expected dims like",
        ("ints:1,x",): "expected integers",
        ("zeros:3x5", "zeros:5", "zeros:1"): "the method has 2 inputs",
        ("/nonexistent.npy",): "No such file",
    }
    for words, sentence in cases.items():
        _, err = run(SCONCE, "run", ADD, *[w for word in words for w in ("--input", word)], expect=1)
        assert sentence in err, (words, err)


def test_wrong_usage_and_files():
    assert "--repeat is '-1'" in run(SCONCE, "run", ADD, "--repeat", "-1", expect=2)[1]
    assert "No such file" in run(SCONCE, "run", "/nonexistent.pte", expect=1)[1]
    assert "no method 'backward'" in run(SCONCE, "run", ADD, "--method", "backward", expect=1)[1]
    assert "No such file" in run(SCONCE, "run", ADD, "--data", "/nonexistent.ptd", expect=1)[1]


def test_times_and_statistics():
    out, _ = run(SCONCE, "run", ADD, "--repeat", "5", "--stats")
    assert "first run " in out and "; 5 runs: median " in out and "GPU memory: " in out and "1 nodes" in out, out


def test_profile_needs_timestamps():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        _, err = run(SCONCE, "run", ADD, "--profile", path, env={"SCONCE_DISABLE": "timestamps"}, expect=1)
        assert "timestamps" in err, err


def test_profile_is_a_chrome_trace():
    devices = json.loads(run(SCONCE, "devices", "--json")[0])
    if not devices["devices"][devices["chosen"]]["timestamps"]:
        raise Skip("the device has no timestamps")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "trace.json"
        run(SCONCE, "run", ADD, "--profile", path)
        events = json.loads(path.read_text())
        assert len(events) == 1 and events[0]["ph"] == "X" and events[0]["name"] == "aten.add.Tensor"
        assert events[0]["ts"] == 0 and events[0]["dur"] >= 0 and events[0]["args"]["kernel"]
