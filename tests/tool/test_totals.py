"""What tools/test.py counts: nothing passes by not running."""

import contextlib
import importlib.util
import io
import pathlib
import tempfile
import types

from support import ROOT

TESTS = """
from support import Skip
def test_right(): pass
def test_wrong(): assert 1 + 1 == 3
def test_elsewhere(): raise Skip("not on this machine")
def test_other(): raise Skip("not today")
def helper(): raise Exception("no test")
"""


def counted(text, filter=""):
    """(passed, failed, skipped, what was printed) of a test file with this text."""
    spec = importlib.util.spec_from_file_location("test_runner", ROOT / "tools/test.py")
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    totals, out = runner.Totals(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(out):
        (pathlib.Path(folder) / "test_some.py").write_text(text)
        runner.run_tool_tests(pathlib.Path(folder), types.SimpleNamespace(filter=filter), totals)
    return totals.passed, totals.failed, totals.skipped, out.getvalue()


def test_a_skip_is_no_pass():
    passed, failed, skipped, out = counted(TESTS)
    assert (passed, failed, skipped) == (1, 1, 2), out
    assert "skip test_some/test_elsewhere: not on this machine\n" in out and "FAIL test_some/test_wrong\n" in out, out
    assert out.endswith("tools: 1 passed, 1 failed, 2 skipped\n"), out


def test_a_filter_picks_by_name():
    assert counted(TESTS, "some/test_right")[:3] == (1, 0, 0)
    assert counted(TESTS, "else")[:3] == (0, 0, 1)
