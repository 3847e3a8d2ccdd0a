"""sconce run: inputs of every kind, .npy in and out, times and traces."""

import base64
import json
import pathlib
import struct
import tempfile
import zlib

from support import ROOT, SCONCE, Skip, run

ADD = ROOT / "tests/data/cases/right/add/model.pte"
MUL = ROOT / "tests/data/cases/right/mul_dynamic/model.pte"
STORIES = ROOT / "models/stories15M/stories15M-4w.pte"
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


def test_words_about_inputs_and_outputs():
    out, _ = run(SCONCE, "run", MUL, "--list")
    assert out == "".join(f"{what}: float32 (8, 6) or smaller\n" for what in ("input 0", "input 1", "output 0")), out
    out, _ = run(SCONCE, "run", ADD, "--list")
    assert out.splitlines()[:2] == ["input 0: float32 (3, 5)", "input 1: float32 (5,)"], out
    out, _ = run(SCONCE, "run", STORIES, "--list")  # the last row of logits alone: as many whatever the prompt
    assert out == "input 0: int64 (1, 255) or smaller\ninput 1: int64 (1,)\noutput 0: float32 (1, 32000)\n", out


def test_a_position_outside_the_context_is_named():
    for tokens, position, sentence in ((1, 300, "1 position from 300 on"), (2, 255, "2 positions from 255 on")):
        _, err = run(SCONCE, "run", STORIES, "--input", f"zeros:1x{tokens}", "--input", position, expect=1)
        assert f"{sentence}, the tables have 256: outside the context" in err, err


def test_made_up_inputs():
    out, _ = run(SCONCE, "run", MUL, "--input", "ones:2x6", "--input", "rand:2x6")
    assert "float32 (2, 6)" in out and "min 0.0" in out and "max 0." in out, out
    assert out == run(SCONCE, "run", "--input", "ones:2x6", MUL, "--input", "rand:2x6")[0]
    out, _ = run(SCONCE, "run", ADD, "--input", "zeros:3x5", "--input", "1,-2,3,4,5")
    assert "  1 -2 3 4 5 1 -2 3 …\n" in out and "min -2  max 5  mean 2.2" in out, out
    out, _ = run(SCONCE, "run", MUL, "--input", "zeros:0x6", "--input", "zeros:0x6")
    assert "float32 (0, 6)" in out, out


def test_what_is_no_number_has_no_sign():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.npy"
        path.write_bytes(npy("(5,)", [float("nan"), -float("nan"), 1, 2, 3]))
        out, _ = run(SCONCE, "run", ADD, "--input", f"1={path}")
        assert "  nan nan 1 2 3 nan nan 1 …" in out and "6 not finite" in out, out


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
        npy("(2, 3), 'shape': (6,)", [0] * 6): "there twice",
        npy("(2, 3), \"shape\": (6,)", [0] * 6): "there twice",
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
        ("zeros:axb",): "8 sizes, like 1x3x224x224",
        ("zeros:3x",): "8 sizes, like 1x3x224x224",
        ("1,x",): "neither a .npy or .bin file, numbers",
        ("1,,2",): "expected numbers with commas",
        ("picture",): "neither a .npy or .bin file, numbers, zeros, ones, rand nor range",
        ("x=zeros:3x5",): "--input x=zeros:3x5: inputs have numbers here: 0=zeros:3x5",
        ("7=zeros:1",): "input 7, the method has 2 inputs",
        ("zeros:3x5", "zeros:5", "zeros:1"): "the method has 2 inputs",
        ("/nonexistent.npy",): "No such file",
        ("/nonexistent.bin",): "No such file",
    }
    for words, sentence in cases.items():
        # What no model would take is wrong usage.
        failed = any(w in sentence for w in ("No such", "at most", "rank"))
        words = [w for word in words for w in ("--input", word)]
        _, err = run(SCONCE, "run", ADD, *words, expect=1 if failed else 2)
        assert sentence in err, (words, err)


def test_numbers_ranges_and_bare_bytes():
    out, _ = run(SCONCE, "run", MUL, "--input", "range:2x6", "--input", "1=ones:2x6")
    assert "input 0: float32 (2, 6) from range:2x6\ninput 1: " in out and "  0 1 2 3 4 5 6 7 …" in out, out
    out, _ = run(SCONCE, "run", ADD, "--input", "1=0.5,-1.5,1e2,0,3")
    assert "  0.5 -1.5 100 0 3 0.5 -1.5 100 …" in out, out
    out, _ = run(SCONCE, "run", INTS, "--input", "1,2,3,4,5,2147483647")  # as many as it has
    assert "int64 (2, 3) from 1,2" in out, out
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.bin"
        path.write_bytes(struct.pack("<12f", *range(12)))  # two rows of eight
        out, _ = run(SCONCE, "run", MUL, "--input", path, "--input", "ones:2x6")
        assert "input 0: float32 (2, 6)" in out and "max 11" in out, out
        path.write_bytes(b"12345")
        _, err = run(SCONCE, "run", MUL, "--input", path, expect=1)
        assert "5 bytes, the input is float32 (8, 6)" in err, err


PICTURE = ROOT / "tests/data/format/picture.pte"  # gives twice its input, (1, 3, 4, 6)
JPEG = base64.b64decode("""/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT0//wAARCAAQABgDASIAAhEBAxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKztLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgECBAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpjZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6/9oADAMBAAIRAxEAPwDk4dP9qvQ6f/s1uw6f/s1fh0//AGa6KmNOTBZhtqYUOn/7NFdXDp/tRXFLG67n09HMPd3P/9k=""")


def png(width, height, pixel):
    """An RGB picture from a function of x and y."""
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def show_picture(data, *options, expect=0):
    """The picture as the model got it: (3, 4, 6), in steps of 1/255; or what was complained about."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "picture"
        path.write_bytes(data)
        _, err = run(SCONCE, "run", PICTURE, "--image", path, "--output-dir", folder, *options, expect=expect)
        if "this build has no lib" in err:
            raise Skip(err)
        if expect:
            return err
        values = struct.unpack("<72f", read_npy(f"{folder}/output0.npy")[1])
        return [[[127.5 * values[24 * c + 6 * y + x] for x in range(6)] for y in range(4)] for c in range(3)]


def test_pictures():
    slope = png(24, 16, lambda x, y: (10 * x, 15 * y, 128))
    # What Pillow's BILINEAR gives for the same pictures; its steps are whole.
    red, green, blue = show_picture(slope)
    assert all(abs(a - b) < 1 for row in red for a, b in zip(row, (19, 55, 95, 135, 175, 211))), red
    assert all(abs(a - b) < 1 for a, b in zip((row[0] for row in green), (28, 83, 143, 197))), green
    assert all(abs(v - 128) < 0.01 for row in blue for v in row), blue
    red, green, blue = show_picture(JPEG)
    assert [round(c[0][0]) for c in (red, green, blue)] == [19, 29, 125], (red, green, blue)
    # The middle of what is larger; as it is where it fits; mean and std by channel.
    whole = show_picture(png(10, 4, lambda x, y: (x, y, 7)))
    assert [round(v) for v in whole[0][0]] == [2, 3, 4, 5, 6, 7], whole
    whole = show_picture(png(8, 8, lambda x, y: (x, y, 7)), "--resize", "8")
    assert [round(v) for v in whole[0][0]] == [1, 2, 3, 4, 5, 6] and [round(r[0]) for r in whole[1]] == [2, 3, 4, 5], whole
    whole = show_picture(slope, "--mean", "0,0,0.5", "--std", "1,1,0.5")
    assert abs(whole[2][0][0] / 255 - (128 / 255 - 0.5) / 0.5) < 1e-4, whole


def test_pictures_that_say_they_are_huge():
    def large_png(width, height):  # the head alone: that is where it ends
        return png(1, 1, lambda x, y: (0, 0, 0)).replace(struct.pack(">II", 1, 1), struct.pack(">II", width, height))
    huge = large_png(16000, 16000)
    at = huge.index(b"IHDR")
    huge = huge[:at + 17] + struct.pack(">I", zlib.crc32(huge[at:at + 17])) + huge[at + 21:]
    assert "16000 x 16000 pixels in 69 bytes, at most 67111072" in show_picture(huge, expect=1)
    # Before the library makes room for a progressive one's coefficients.
    frame = JPEG.index(b"\xff\xc0")
    huge = JPEG[:frame] + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", 60000, 60000) + JPEG[frame + 9:]
    assert "60000 x 60000 pixels in" in show_picture(huge, expect=1)
    # A scan of fifteen bytes that goes over all blocks, again and again: runs of 32,767 blocks without coefficients.
    runs = int(("0" + 14 * "1") * 8, 2).to_bytes(15, "big").replace(b"\xff", b"\xff\0")
    table = b"\xff\xc4\0\x14\x10\1" + bytes(15) + b"\xe0"
    scan = b"\xff\xda\0\x08\1\1\0\1\x3f\0" + runs
    many = JPEG[:frame] + b"\xff\xc2\0\x11\x08" + struct.pack(">HH", 4000, 4000) + JPEG[frame + 9:JPEG.index(b"\xff\xda")]
    many += table + 60 * scan
    err = show_picture(many + b"\xff\xd9", expect=1)
    assert "scans of 4000 x 4000 pixels in" in err, err


def test_one_input_has_any_name():
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "cat.png").write_bytes(png(6, 4, lambda x, y: (1, 2, 3)))
        words = [run(SCONCE, "run", PICTURE, "--image", word, cwd=folder)[0] for word in ("x=cat.png", "0=cat.png", "cat.png")]
        assert words[0] == words[1] == words[2] and "from cat.png" in words[0], words
        (pathlib.Path(folder) / "a=b").write_bytes(png(6, 4, lambda x, y: (1, 2, 3)))
        assert "from a=b" in run(SCONCE, "run", PICTURE, "--image", "a=b", cwd=folder)[0]
    out, _ = run(SCONCE, "run", PICTURE, "--input", "pixels=ones")
    assert "from ones" in out, out


def test_wrong_pictures():
    small = png(6, 4, lambda x, y: (1, 2, 3))
    for data, options, expect, sentence in (
            (b"GIF89a" + bytes(20), (), 1, "neither JPEG nor PNG"),
            (small[:60], (), 1, ""),
            (JPEG[:100], (), 1, ""),
            (JPEG[:-20], (), 1, "JPEG"),  # rows are missing
            (small, ("--std", "0"), 2, "--std: expected one number or three with commas, none of them 0"),
            (small, ("--std", "1,0,1"), 2, "none of them 0"),
            (small, ("--resize", "3"), 1, "6 x 4 pixels with a shorter side of 3 do not fill 6 x 4"),
            (small, ("--resize", "x"), 2, "--resize is 'x'"),
            (small, ("--mean", "1,2"), 2, "--mean: expected one number or three")):
        err = show_picture(data, *options, expect=expect)
        assert sentence in err and len(err.splitlines()) == 1, (sentence, err)
    _, err = run(SCONCE, "run", ADD, "--image", "x.png", expect=1)
    assert "an input of (3, 5) is no picture" in err, err


def test_the_largest_with_their_names():
    with tempfile.TemporaryDirectory() as folder:
        labels = pathlib.Path(folder) / "labels.txt"
        labels.write_text("cat\ndog\r\nbird\nfish\ncow\n")
        out, _ = run(SCONCE, "run", ADD, "--input", "1=1,3,2,3,0", "--input", "0=zeros", "--top", "3", "--labels", labels)
        assert "  row 0\n   39.2 %  3         1  dog\n   39.2 %  3         3  fish\n   14.4 %  2         2  bird\n  row 1" in out, out
        # Shares already: shown as they are.
        out, _ = run(SCONCE, "run", ADD, "--input", "1=0.1,0.2,0.7,0,0", "--labels", labels)
        assert "   70.0 %  0.7       2  bird" in out and out.count("cow") == 3, out
        _, err = run(SCONCE, "run", ADD, "--labels", "/nonexistent", expect=1)
        assert "cannot read /nonexistent: No such file" in err, err


def test_bench_times_a_call():
    facts = json.loads(run(SCONCE, "bench", "-m", ADD, "-r", "3", "--json")[0])
    assert 0 < facts["shortest_us"] <= facts["call_us"] and facts["kernels"] == [], facts
    facts = json.loads(run(SCONCE, "bench", "-m", ADD, "-r", "3", "--profile", "-o", "json")[0])
    assert sum(k["dispatches"] for k in facts["kernels"]) == 1 and facts["pass_us"] > 0, facts
    assert "| a call, median | " in run(SCONCE, "bench", "-m", MUL, "-r", "2")[0]
    assert "(call_us),," in run(SCONCE, "bench", "-m", MUL, "-r", "2", "-o", "csv")[0]


def test_wrong_usage_and_files():
    assert "--repeat is '-1'" in run(SCONCE, "run", ADD, "--repeat", "-1", expect=2)[1]
    assert "No such file" in run(SCONCE, "run", "/nonexistent.pte", expect=1)[1]
    assert "no method 'backward'; there are: forward" in run(SCONCE, "run", ADD, "--method", "backward", expect=1)[1]
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


def test_the_steps_of_a_call_are_bounded():
    """A program whose loop is over the rows of its input."""
    folder = ROOT / "tests/data/programs/map"
    out, _ = run(SCONCE, "run", folder / "model.pte", "--max-steps", "1000")
    assert "output 0: float32" in out, out
    _, err = run(SCONCE, "run", folder / "model.pte", "--max-steps", "20", expect=1)
    assert "the call takes more than 20 steps: set max_steps if that is meant" in err, err
    assert run(SCONCE, "check", folder, "--max-steps", "1000")[0].splitlines()[-1] == "1 passed, 0 failed"
    out, _ = run(SCONCE, "check", folder, "--max-steps", "20", expect=1)
    assert "the call takes more than 20 steps" in out, out
    for verb in ("run", "check"):
        _, err = run(SCONCE, verb, folder, "--max-steps", "0", expect=2)
        assert "--max-steps is '0', expected 1 to 2000000000" in err, err
