"""tools/plot.py: lines from results and anchors, whatever the depths."""

import json
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

from support import ROOT, run

PLOT = ROOT / "tools/plot.py"
SVG = "{http://www.w3.org/2000/svg}"


def results(*points):
    rows = [{"test": "tg", "tokens": 8, "depth": d, "tokens_per_s": v, "sd": 0} for d, v in points]
    return {"model": "m", "results": [{"test": "pp", "tokens": 8, "depth": 0, "tokens_per_s": 9999, "sd": 0}, *rows]}


def plot(files, anchors=None, expect=0, more=()):
    """The drawing as XML, of files with these contents."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for i, content in enumerate([*files, anchors] if anchors else files):
            names.append(Path(folder) / f"{i}.json")
            names[-1].write_text(json.dumps(content))
        options = ["-a", names.pop()] if anchors else []
        _, err = run("python3", PLOT, *more, *options, "-o", Path(folder) / "x.svg", *names, expect=expect)
        return err if expect else ET.parse(Path(folder) / "x.svg").getroot()


def texts(root):
    return [t.text for t in root.iter(SVG + "text")]


def points(root):
    return [[tuple(map(float, p.split(","))) for p in line.get("points").split()] for line in root.iter(SVG + "polyline")]


def test_one_line_each_and_gaps_stay_gaps():
    anchors = {"title": "A & B", "anchors": [{"name": "other <1>", "tokens_per_s": {"0": 100, "700": 50}}]}
    root = plot([results((0, 40), (300, 20.4)), results((700, 10))], anchors)
    shown = texts(root)
    assert {"A & B", "Sconce", "other <1>", "tokens/s, one sequence", "0", "300", "700"} <= set(shown), shown
    assert {"40", "20", "10", "100", "50"} <= set(shown) and "9,999" not in shown, shown
    other, ours = points(root)  # ours is drawn last
    assert len(other) == 2 and len(ours) == 3
    assert other[0][0] == ours[0][0] and other[1][0] == ours[2][0], "depths stand in one column"
    assert ours[0][1] < ours[1][1] < ours[2][1] and other[0][1] < ours[0][1], "more is higher"
    assert all(0 < x < 760 and 50 < y < 350 for line in (other, ours) for x, y in line)


def test_prompts_over_their_length():
    rows = [{"test": "pp", "tokens": n, "depth": d, "tokens_per_s": v, "sd": 0} for n, d, v in ((128, 0, 50), (512, 0, 60), (128, 9, 7))]
    root = plot([{"results": [*rows, *results((0, 40))["results"][1:]]}], more=["--prompts"])
    shown = texts(root)
    assert {"tokens of the prompt", "128", "512", "50", "60"} <= set(shown) and not {"7", "40"} & set(shown[-4:]), shown
    assert len(points(root)[0]) == 2


def test_labels_of_a_depth_do_not_touch():
    anchors = {"anchors": [{"name": n, "tokens_per_s": {"0": v}} for n, v in (("a", 100), ("b", 101), ("c", 102))]}
    root = plot([results((0, 100.5))], anchors)
    heights = sorted(float(t.get("y")) for t in root.iter(SVG + "text") if t.get("fill") and t.text in ("100", "101", "102"))
    assert len(heights) == 4 and all(b - a >= 12.9 for a, b in zip(heights, heights[1:])), heights


def test_labels_stand_on_no_point_and_on_no_length():
    """Three points close together, just above the axis."""
    anchors = {"anchors": [{"name": n, "tokens_per_s": {"0": v, "9": v}} for n, v in (("a", 24), ("b", 10.6), ("c", 7.4), ("d", 2.8))]}
    root = plot([results((0, 40), (9, 84))], anchors)
    for column in {line[i][0] for line in points(root) for i in (0, 1)}:
        at = [t for t in root.iter(SVG + "text") if abs(float(t.get("x", -1)) - column) < 9 and float(t.get("y")) > 45]
        labels = sorted(float(t.get("y")) for t in at if t.get("fill"))
        middle = [float(t.get("y")) for t in at if t.get("fill") and t.get("text-anchor") == "middle"]
        assert all(below - above >= 12.9 for above, below in zip(labels, labels[1:])), labels
        dots = [float(c.get("cy")) for c in root.iter(SVG + "circle") if abs(float(c.get("cx")) - column) < 1]
        length = next(float(t.get("y")) for t in at if t.get("class") == "tick")
        assert len(labels) == len(dots) == 5 and labels[-1] + 2 < length - 9, (labels, length)
        assert all(dot + 3.5 < y - 9 or y + 1 < dot - 3.5 for y in middle for dot in dots), (middle, dots)


def test_the_legend_ends_before_the_edge():
    anchors = {"anchors": [{"name": f"a runtime with a long name {i}", "tokens_per_s": {"0": i}} for i in range(1, 5)]}
    root = plot([results((0, 9))], anchors)
    row = [t for t in root.iter(SVG + "text") if t.get("y") == "40"]
    ends = [float(t.get("x")) + 7 / 12 * float(t.get("font-size")) * len(t.text) for t in row]
    assert len(row) == 5 and max(ends) <= 760 - 20 and all(a < float(t.get("x")) for a, t in zip(ends, row[1:])), ends


def test_results_without_decoding_are_refused():
    assert "no decoding results" in plot([results()], expect=1)


def test_the_drawings_in_docs_are_what_their_numbers_make():
    page = (ROOT / "docs/performance.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.svg"
        for name, anchors, more in (("decode", "anchors", []), ("prompts", "prompt-anchors", ["--prompts"])):
            numbers = ROOT / f"docs/{name}.json"
            run("python3", PLOT, *more, "-a", ROOT / f"docs/{anchors}.json", "-o", path, numbers)
            assert path.read_text() == (ROOT / f"docs/{name}.svg").read_text(), "run the command of docs/performance.md"
            for row in json.loads(numbers.read_text())["results"]:
                value = f"{row['tokens_per_s']:,.{0 if more else 1}f} ± "
                assert value in page, (row, value)
