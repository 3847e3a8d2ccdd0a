"""Bars while something loads: by tqdm, where it is installed and somebody looks."""

import sys
import warnings
from typing import Any, Callable, Union

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
            return tqdm(desc=title, unit="B", unit_scale=True, delay=0.5, leave=False)
    except ImportError:
        return None


class Meter:
    """Shows (bytes done, bytes in all): to a function of the caller, to a bar, or to nobody."""

    def __init__(self, progress: Progress, title: str):
        self._call = progress if callable(progress) else None
        wanted = _watched() if progress is None else progress is True
        self._tqdm = _bar(title) if wanted else None

    def show(self, done: int, all_: int) -> None:
        if self._call:
            self._call(done, all_)
        elif self._tqdm is not None:
            self._tqdm.total = all_
            self._tqdm.update(done - self._tqdm.n)

    def __enter__(self) -> "Meter":
        return self

    def __exit__(self, *_: Any) -> None:
        if self._tqdm is not None:
            self._tqdm.close()
