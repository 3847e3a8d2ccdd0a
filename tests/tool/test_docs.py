"""Documents that follow from the code, and links between documents."""

import os
import re
import subprocess

from support import ROOT, SCONCE, run


def test_operators_page_is_what_the_tables_say():
    run("python3", ROOT / "tools/operators.py", "--check")


def test_pages_name_the_passes_that_there_are():
    """The registry is the only list in the code; an unknown name shows it."""
    done = subprocess.run([SCONCE, "devices"], env={**os.environ, "SCONCE_NO_FUSION": "nothing"},
                          capture_output=True, text=True)
    names = re.search(r"no fusion is called 'nothing': they are (.*); or all", done.stdout + done.stderr)
    assert names, done.stdout + done.stderr
    names = names.group(1).split(", ")
    table = (ROOT / "docs/architecture.md").read_text().split("| pass | takes | where |")[1].split("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == names, table
    line = re.search(r"To see what a fusion is worth, switch it off\. (.*), with commas", (ROOT / "docs/performance.md").read_text())
    assert re.findall(r"`(\w+)`", line.group(1)) == names, line.group(0)
    assert "docs/architecture.md#fused-nodes" in (ROOT / "README.md").read_text()


def test_code_of_pages_is_in_the_sources():
    """Line by line, less blanks and comments."""
    def lines(text, mark):
        return [re.sub(r"\s", "", re.sub(rf"{mark}.*|/\*.*?\*/", "", line)) for line in text.splitlines()]
    pages = "".join((ROOT / f"docs/{name}.md").read_text() for name in ("adding-an-operator", "writing-files"))
    blocks = re.findall(r"```(\w+)\n(.*?)```", pages, re.S)
    for begin, *files in (("/* src/ops/unary/unary.c: names", "src/ops/unary/unary.c", "src/ops/unary/test_unary.c"),
                          ("// uses: grid", "src/ops/layer_norm/layer_norm.wgsl"),
                          ("/* tile[0]: rows", "src/ops/layer_norm/layer_norm.c"),
                          ("const struct op ops_layer_norm[]", "src/ops/layer_norm/layer_norm.c"),
                          ("sconce_writer_data(w", "examples/write.c"),
                          ("# src/ops/unary/goldens.py", "src/ops/unary/goldens.py"),
                          ("n = Dim(", "tools/export/goldens/reduction.py")):
        language, block = next(b for b in blocks if b[1].startswith(begin))
        mark = {"c": "//", "wgsl": "//", "python": "#"}[language]
        source = {line for file in files for line in lines((ROOT / file).read_text(), mark)}
        missing = [line for line in lines(block, mark) if line not in source]
        assert not missing and any(lines(block, mark)), (begin, missing)


def test_every_page_is_in_the_index():
    index = (ROOT / "docs/README.md").read_text()
    for page in sorted((ROOT / "docs").glob("*.md")):
        assert page.name == "README.md" or f"[{page.name}]({page.name})" in index, page


def test_variables_are_in_the_help_and_the_readme():
    readme = set(re.findall(r"^\| `(SCONCE_\w+)`", (ROOT / "README.md").read_text(), re.M))
    text = run(SCONCE, "help")[0].partition("environment:\n")[2]
    rows = [re.fullmatch(r"  (SCONCE_\w+)( +)\S.*", line) for line in text.splitlines()]
    assert readme == {row[1] for row in rows} and len({len(row[1] + row[2]) for row in rows}) == 1, text


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_paths_in_pages_exist():
    """What is in backticks and begins with one of the repository's folders, but for what a build makes."""
    listed = run("git", "ls-files", cwd=ROOT)[0].split("\n")
    folders = "|".join(sorted({re.escape(name.split("/")[0]) for name in listed if "/" in name}))
    missing, n = [], 0
    for page in [*ROOT.glob("*.md"), *sorted((ROOT / "docs").glob("*.md"))]:
        for span in re.findall(r"`([^`\n]+)`", page.read_text()):
            for path in re.findall(rf"(?<![\w./-])(?:{folders})/[\w./*-]*\w", span):
                n += 1
                missing += [] if list(ROOT.glob(path)) else [f"{page.name}: {path}"]
    assert n > 50 and not missing, (n, missing)


def test_scripts_of_the_exporter_tell_what_they_do():
    """--help runs nothing and needs no package; those with options of their own list them, once their packages are there."""
    for path in sorted((ROOT / "tools/export").glob("*.py")):
        text = path.read_text()
        if "import usage" in text:
            out, _ = run("python3", path, "--help")
            assert out.strip() == text.split('"""')[1].strip().replace("\\\\", "\\"), (path, out)
        else:
            assert "ArgumentParser" in text or "__main__" not in text, f"{path} has no --help"
