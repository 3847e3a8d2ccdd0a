"""Finds the library, and turns its statuses into exceptions and its handles into objects that close themselves."""

import atexit
import collections
import ctypes
import logging
import os
import pathlib
import sys
import threading
import weakref
from typing import Any, Callable, Deque, Dict, Optional, Tuple

from . import _abi
from ._abi import Status

logger = logging.getLogger("sconce")

FOLDER = pathlib.Path(__file__).resolve().parent / "native"  # filled by tools/wheels.py


class Error(RuntimeError):
    """A call of the library failed. The text is one sentence with the values in it; :attr:`status` says what kind of
    failure it is, as a :class:`sconce.Status`."""

    def __init__(self, status: Status, text: str):
        super().__init__(text)
        self.status = status

    def __reduce__(self) -> Any:
        return type(self), (self.status, str(self))


def folder() -> pathlib.Path:
    """Where the library and the command lie: in the package, or in the build folder of a checkout."""
    if FOLDER.is_dir():
        return FOLDER
    build = pathlib.Path(__file__).resolve().parent.parent.parent / "build"
    if build.is_dir():
        return build
    raise ImportError(f"there is no {FOLDER}: install a wheel, run `make` in the checkout, or set SCONCE_LIBRARY")


def _open() -> ctypes.CDLL:
    names = {"win32": "sconce_dev.dll", "darwin": "libsconce_dev.dylib"}
    path = os.environ.get("SCONCE_LIBRARY") or str(folder() / names.get(sys.platform, "libsconce_dev.so"))
    library = ctypes.CDLL(path)
    for name, (result, parameters) in _abi.FUNCTIONS.items():
        try:
            function = getattr(library, "sconce_" + name)
        except AttributeError:
            raise ImportError(f"{path} has no function sconce_{name}") from None
        function.restype, function.argtypes = result, parameters
    number = library.sconce_version_number()
    if divmod(number // 100, 100) != _abi.VERSION:
        raise ImportError(f"{path} is version {library.sconce_version().decode()}, "
                          f"this package needs {_abi.VERSION[0]}.{_abi.VERSION[1]}")
    return library


_library = _open()
_thread = threading.local()


def _checked(function: Any) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        if _late:
            close_late()
        err = getattr(_thread, "error", None)
        if err is None:
            err = _thread.error = _abi.error()
        status = function(*arguments, ctypes.byref(err))
        if status:
            raise Error(Status(status), err.text.decode("utf-8", "replace"))
    return call


class _Functions:
    """The library's functions without their prefix. Those that can fail take no error: they raise."""

    def __init__(self) -> None:
        for name, (_, parameters) in _abi.FUNCTIONS.items():
            function = getattr(_library, "sconce_" + name)
            fails = bool(parameters) and parameters[-1] is ctypes.POINTER(_abi.error)
            setattr(self, name, _checked(function) if fails else function)

    def __getattr__(self, name: str) -> Any:  # for type checkers; all that exist are set above
        raise AttributeError(name)


lib = _Functions()


# ---- text and bytes ------------------------------------------------------------------------------

def utf8(text: Optional[str]) -> Optional[bytes]:
    """For parameters that end with a NUL, so there can be none inside."""
    if text is None:
        return None
    if "\0" in text:
        raise ValueError(f"a NUL character in {text!r}")
    return text.encode("utf-8")


def path_bytes(path: Any) -> bytes:
    """Paths are UTF-8 on Windows, and the bytes of the file system elsewhere."""
    name = os.fspath(path)
    if isinstance(name, str):
        name = name.encode("utf-8") if sys.platform == "win32" else os.fsencode(name)
    if b"\0" in name:
        raise ValueError(f"a NUL character in {path!r}")
    return name


class _Py_buffer(ctypes.Structure):
    _fields_ = [("buf", ctypes.c_void_p), ("obj", ctypes.c_void_p), ("len", ctypes.c_ssize_t),
                ("itemsize", ctypes.c_ssize_t), ("readonly", ctypes.c_int), ("ndim", ctypes.c_int),
                ("format", ctypes.c_char_p), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                ("suboffsets", ctypes.c_void_p), ("internal", ctypes.c_void_p)]


def address_of(view: memoryview) -> int:
    """Of contiguous memory, which stays where it is as long as the view lives. (ctypes itself gives no address of
    memory that must not be written.)"""
    buffer = _Py_buffer()
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(view), ctypes.byref(buffer), 0)
    ctypes.pythonapi.PyBuffer_Release(ctypes.byref(buffer))
    return buffer.buf or 0


# ---- handles -------------------------------------------------------------------------------------

_late: Deque[Tuple[Callable[[int], None], int, Any]] = collections.deque()


def _close(close: Callable[[int], None], handle: int, process: int, alive: Any) -> None:
    if os.getpid() != process:  # the GPU's objects stay with the process that made them
        return
    if getattr(_thread, "inside", False):
        _late.append((close, handle, alive))
    else:
        close(handle)


def close_late() -> None:
    """Objects can be collected at any moment, also while the library calls us and holds its locks: those wait."""
    while _late and not getattr(_thread, "inside", False):
        close, handle, _ = _late.popleft()
        close(handle)


atexit.register(close_late)


def called_back(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps a function that the library calls."""
    def call(*arguments: Any) -> Any:
        _thread.inside = True
        try:
            return function(*arguments)
        finally:
            _thread.inside = False
    return call


class Handle:
    """Owns one handle of the library. Handles may be closed in any order, so each closes itself when nobody refers to
    it, at the end of a `with`, or at exit. A lock keeps the header's rule: one thread at a time."""

    _closed_by = ""  # the function, by its name in lib

    def _own(self, handle: Any, alive: Any = None) -> None:
        """`alive` is what the library borrows; it is let go after the handle."""
        self._lock = threading.RLock()
        self._value: int = handle.value
        self._finalizer = weakref.finalize(self, _close, getattr(lib, self._closed_by), handle.value, os.getpid(),
                                           alive)

    @property
    def _handle(self) -> int:
        if not self._finalizer.alive:
            raise ValueError(f"this {type(self).__name__} is closed")
        return self._value

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive

    def close(self) -> None:
        """Gives back what it holds. A second time does nothing."""
        with self._lock:
            self._finalizer()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()


# ---- log -----------------------------------------------------------------------------------------

_LEVELS: Dict[int, int] = {
    _abi.LogLevel.ERROR: logging.ERROR,
    _abi.LogLevel.WARNING: logging.WARNING,
    _abi.LogLevel.INFO: logging.INFO,
    _abi.LogLevel.DEBUG: logging.DEBUG,
}


@_abi.log_write
@called_back
def _write_log(_user: Any, level: int, text: bytes) -> None:
    logger.log(_LEVELS.get(level, logging.INFO), "%s", text.decode("utf-8", "replace"))


def log() -> _abi.log:
    """To logging, with as much as its level wants now; the callback lives as long as the module."""
    wanted = [own for own, python in _LEVELS.items() if logger.isEnabledFor(python)]
    return _abi.log(write=_write_log, level=max(wanted, default=_abi.LogLevel.ERROR))
