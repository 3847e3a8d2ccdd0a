"""Documents that follow from the code, and links between documents."""

import re

from support import ROOT, run


def test_operators_page_is_what_the_tables_say():
    run("python3", ROOT / "tools/operators.py", "--check")


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
