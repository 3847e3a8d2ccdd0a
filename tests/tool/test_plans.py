"""Plans as they were last reviewed: each file in tests/plans is a command and what it prints."""

import difflib
import shlex

from support import ROOT, SCONCE, run

PLANS = sorted((ROOT / "tests/plans").glob("*.txt"))


def printed(path):
    """The command of the file's first line ("$ sconce inspect …", from the root), and its text now."""
    command = path.read_text().splitlines()[0]
    words = shlex.split(command)
    assert words[:3] == ["$", "sconce", "inspect"] and "--plan" in words, f"{path.name}: {command}"
    return command + "\n" + run(SCONCE, *words[2:], env={"SCONCE_LIMITS": "", "SCONCE_DISABLE": ""})[0]


def test_plans_are_as_reviewed():
    assert len(PLANS) > 5
    changed = []
    for path in PLANS:
        old, new = path.read_text().splitlines(), printed(path).splitlines()
        changed += difflib.unified_diff(old, new, f"tests/plans/{path.name}", "now", lineterm="", n=1)
    assert not changed, "python3 tools/test.py --update-plans accepts this:\n" + "\n".join(changed[:200])


def update():
    for path in PLANS:
        text = printed(path)
        if text != path.read_text():
            path.write_text(text)
            print(f"tests/plans/{path.name}: written")
