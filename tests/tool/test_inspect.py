"""sconce inspect: text, JSON, drawings and node lists, on small files and on a collection of real ones."""

import collections
import json
import re

from support import ROOT, SCONCE, run, shared

DATA = ROOT / "tests" / "data" / "format"
SMALL = sorted(DATA.glob("*.pt[ed]"))
BROKEN = {"expansion.pte"}  # a graph whose lists would expand without end


def inspect(*args, **how):
    return run(SCONCE, "inspect", *args, **how)[0]


def check_dot(text):
    """Every line is a statement that Graphviz knows; nodes are declared before edges use them."""
    lines = text.splitlines()
    assert lines[0] == "digraph sconce {" and lines[-1] == "}", text
    label = r'"(?:[^"\\]|\\.)*"'
    declared = set()
    for line in lines[1:-1]:
        line = line.strip()
        node = re.fullmatch(rf"(n\d+) \[label={label}[^\]\"]*\];", line)
        edge = re.fullmatch(rf"(n\d+) -> (n\d+)(?: \[[^\]\"]*(?:label={label})?[^\]\"]*\])?;", line)
        if node:
            declared.add(node[1])
        elif edge:
            assert {edge[1], edge[2]} <= declared, line
        else:
            assert line == "}" or re.fullmatch(rf"(graph|node|edge) \[[^\]]*\];|subgraph cluster_\d+ {{ label={label}; .*;", line), line
    return declared


def counts(report, portable):
    """How often each operator occurs in a JSON report."""
    found = collections.Counter()
    for method in report["methods"]:
        for op in method["operators"]:
            if op["portable"] == portable:
                found[op["name"]] += op["count"]
    return found


def test_text():
    text = inspect(DATA / "delegated.pte")
    assert "an ExecuTorch program" in text and "VulkanBackend" in text and "method forward" in text
    assert "GPU memory" in text and "operators" in text and "weights: " in text


def test_dispatches_are_those_of_the_plan():
    """Also of nodes that no load plans, since their shapes follow from a call's inputs."""
    for path in ROOT / "models/stories15M/stories15M-4w.pte", ROOT / "tests/data/goldens/toy.pte":
        says = re.search(r"yes, (\d+) dispatches at the largest shape", inspect(path))[1]
        planned = re.search(r"(\d+) dispatches", inspect(path, "--plan", "--no-params").splitlines()[-1])[1]
        assert says == planned == str(json.loads(inspect(path, "--json"))["methods"][0]["gpu_memory"]["dispatches"]), (path, says)


def test_page_shows_what_is_printed():
    """The samples of docs/inspect.md, line by line; where a line is … others are left out, and … ends a line that is cut."""
    page = (ROOT / "docs/inspect.md").read_text()
    samples = re.findall(r"```\n\$ sconce inspect (stories15M-4w\.pte.*)\n((?s:.*?))```", page)
    assert len(samples) == 3, samples
    for words, sample in samples:
        out, at, cut = inspect(*words.split(), cwd=ROOT / "models/stories15M").splitlines(), 0, False
        for line in sample.splitlines():
            if line.strip() == "…":
                cut = True
                continue
            fits = [i for i in range(at, len(out)) if out[i] == line or line.endswith(" …") and out[i].startswith(line[:-1])]
            assert fits and (cut or fits[0] == at), (words, line, out[at])
            at, cut = fits[0] + 1, False
        assert cut or at == len(out), (words, out[at])


def test_branches_meet():
    """Both ways of a condition lead to the output, in the drawing; kernels of a program say what they make and read."""
    cond = ROOT / "tests/data/programs/cond/model.pte"
    text = inspect(cond, "--dot")
    check_dot(text)
    node = re.search(r"(n\d+) \[label=\"either\" shape=diamond\];", text)[1]
    assert len(re.findall(rf"-> {node}\b", text)) == 3 and len(re.findall(rf"-> {node} \[style=dashed\]", text)) == 1, text
    assert re.search(rf"{node} -> (n\d+) \[label", text), text
    made = re.findall(r"^ +\d+  v\d+ \w+ \[[\d, ]*\] = (\S+?)\((.*)\)$", inspect(cond, "--graph"), re.M)
    assert re.search(r"^ +\d+  (v\d+) = executorch_prim::add\.Scalar\(\1, 1\)$", inspect(cond.parents[1] / "map/model.pte", "--graph"), re.M)
    assert made and any(re.search(r"v\d+ float32 \[", words) for _, words in made), made


def test_options_before_and_after_the_file():
    assert inspect("--json", DATA / "control.pte") == inspect(DATA / "control.pte", "--json")
    err = run(SCONCE, "inspect", DATA / "control.pte", "--json", "--dot", expect=2)[1]
    assert "exclude each other" in err
    assert "no file to look into" in run(SCONCE, "inspect", expect=2)[1]
    assert "no method 'fly'" in run(SCONCE, "inspect", DATA / "control.pte", "--method", "fly", expect=1)[1]


def test_plan_takes_the_words_of_run():
    toy = ROOT / "tests/data/goldens/toy.pte"
    text = inspect(toy, "--plan", "--input", "zeros:1x3", "--input", "2", "--device", "full")
    assert "device full" in text and "int32 [1, 3]" in text and "embedding/f32" in text
    assert "n=24" not in inspect(toy, "--plan", "--input", "zeros:1x3", "--no-params")
    assert "[1, 7]" in inspect(toy, "--plan")
    assert "exclude each other" in run(SCONCE, "inspect", toy, "--plan", "--json", expect=2)[1]
    assert "belong to --plan" in run(SCONCE, "inspect", toy, "--input", "zeros:1x3", expect=2)[1]
    assert "--device is 'half', expected default or full" in run(SCONCE, "inspect", toy, "--plan", "--device", "half", expect=2)[1]
    assert "dim 1 is 9, at most 7" in run(SCONCE, "inspect", toy, "--plan", "--input", "zeros:1x9", expect=1)[1]
    assert "expected at most 8 sizes" in run(SCONCE, "inspect", toy, "--plan", "--input", "zeros:1y9", expect=2)[1]


def test_broken_files_are_one_sentence():
    for name in BROKEN:
        out, err = run(SCONCE, "inspect", DATA / name, expect=1)
        assert out == "" and len(err.splitlines()) == 1 and name in err, err
    assert len(run(SCONCE, "inspect", ROOT / "STYLE.md", expect=1)[1].splitlines()) == 1
    assert "no-such.pte" in run(SCONCE, "inspect", "no-such.pte", expect=1)[1]


def test_every_form_of_small_files():
    for path in SMALL:
        if path.name in BROKEN:
            continue
        first = inspect(path, "--json")
        assert first == inspect(path, "--json"), path
        report = json.loads(first)
        assert report["schema"] == 1 and report["kind"] == ("data" if path.suffix == ".ptd" else "program")
        check_dot(inspect(path, "--dot"))
        assert inspect(path, "--graph")


def test_json_agrees_with_itself():
    report = json.loads(inspect(DATA / "delegated.pte", "--json"))
    for method in report["methods"]:
        for delegate in method["delegates"]:
            graph = delegate["graph"]
            ids = [i for node in graph["nodes"] for i in node["args"]] + graph["inputs"] + graph["outputs"]
            assert all(0 <= i < len(graph["values"]) for i in ids)
        assert all(0 <= i < len(method["values"]) for i in method["inputs"] + method["outputs"])
        nodes = collections.Counter(n["name"] for d in method["delegates"] for n in d["graph"]["nodes"])
        assert nodes == collections.Counter({o["name"]: o["count"] for o in method["operators"] if not o["portable"]})


def test_data_files_resolve_constants():
    alone = json.loads(inspect(DATA / "delegated_ext.pte", "--json"))
    both = json.loads(inspect(DATA / "delegated_ext.pte", DATA / "delegated_ext.ptd", "--json"))
    missing = [d["missing_constants"] for r in (alone, both) for m in r["methods"] for d in m["delegates"]]
    assert missing[0] > 0 and missing[-1] == 0, missing


def cell(text):
    """'aten.add.Tensor*3,aten.relu.default' as counts."""
    names = [part.strip().partition("*") for part in text.split(",") if part.strip() not in ("", "-")]
    return collections.Counter({name: int(n or 1) for name, _, n in names})


def test_operator_counts_equal_the_index():
    root, seen = shared(), 0
    for folder, suffix, at in (("fixtures", "/model.pte", 1), ("models", "", 5)):
        for line in (root / folder / "INDEX.tsv").read_text().splitlines()[1:]:
            cells = line.split("\t")
            path = root / folder / (cells[0] + suffix)
            if not path.exists():  # listed but packed
                continue
            report = json.loads(inspect(path, "--json"))
            assert counts(report, False) == cell(cells[at]), path
            assert counts(report, True) == cell(cells[at + 1]), path
            check_dot(inspect(path, "--dot"))
            seen += 1
    assert seen > 600, seen
