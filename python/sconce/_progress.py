"""Bars while something loads: by tqdm, where it is installed and somebody looks."""

import sys
import time
import warnings
from typing import Any, Callable, Union

from . import _abi

PATIENCE_S = 0.5  # what is loaded sooner shows no bar that nobody asked for

Progress = Union[None, bool, Callable[[int, int], None]]


def _watched() -> bool:
    """A terminal, or a notebook."""
    ipython = sys.modules.get("IPython")
    if ipython is not None and ipython.get_ipython() is not None:
        return True
    return sys.stderr is not None and sys.stderr.isatty()


def _bar(title: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # tqdm's, of widgets that a notebook lacks
            from tqdm.auto import tqdm
            return tqdm(desc=title, unit="B", unit_scale=True, leave=False)
    except ImportError:
        return None


class Meter:
    """Shows how far loading is: bytes to a function of the caller, bytes and kernels in a bar, or nothing."""

    def __init__(self, progress: Progress, title: str):
        self._call = progress if callable(progress) else None
        self._title = title
        self._bar: Any = None
        self._kernels = ""
        self._wanted = _watched() if progress is None else progress is True
        self._begin = time.monotonic() + (0 if progress is True else PATIENCE_S)

    def show(self, p: _abi.progress) -> None:
        if self._call:
            self._call(p.bytes_done, p.bytes_all)
        elif self._wanted and time.monotonic() >= self._begin:
            self._draw(p)

    def _draw(self, p: _abi.progress) -> None:
        if self._bar is None:
            self._bar = _bar(self._title)
            self._wanted = self._bar is not None
        if self._bar is None:
            return
        self._bar.total = p.bytes_all
        self._bar.update(p.bytes_done - self._bar.n)
        kernels = f"{p.kernels_done} of {p.kernels_all} kernels" if p.kernels_all else ""
        if kernels != self._kernels:
            self._bar.set_postfix_str(kernels)
            self._kernels = kernels

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._bar is not None:
            self._bar.close()
