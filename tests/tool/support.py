"""What the tool tests share."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCONCE = ROOT / "build" / "sconce"


class Skip(Exception):
    """Raised by a test that cannot run here, with the reason: counted as skipped, not as passed."""


def shared():
    """The folder of fixtures and models that do not live in the repository."""
    folder = os.environ.get("SCONCE_SHARED")
    if not folder:
        raise Skip("SCONCE_SHARED is not set")
    return pathlib.Path(folder)


def run(*command, expect=0, env=None, cwd=ROOT, stdin=None):
    """Runs a command, checks its exit status and returns its output (stdout, stderr)."""
    full = {**os.environ, "NODEVICE_SELECT": "1", **(env or {})}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=full, cwd=cwd,
                          input=stdin if stdin is not None else "")
    assert done.returncode == expect, (
        f"{' '.join(map(str, command))} exited with {done.returncode}, want {expect}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr
