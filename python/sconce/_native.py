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
from typing import Any, Callable, Deque, Dict, Optional, TypeVar

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


def _load() -> ctypes.CDLL:
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


_library = _load()


class _Thread(threading.local):
    """What each thread has of its own."""

    error: Any = None  # filled by calls that fail
    inside = False  # a function that the library calls
    raised: Optional[BaseException] = None  # by that function


_thread = _Thread()


def _checked(function: Any) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        if _late:
            close_late()
        if _thread.error is None:
            _thread.error = _abi.error()
        err = _thread.error
        status = function(*arguments, ctypes.byref(err))
        raised, _thread.raised = _thread.raised, None
        if raised is not None:
            raise raised
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


def filled(struct: Any, **values: Any) -> Any:
    """A struct with these fields. ctypes cuts integers that do not fit; here they are refused."""
    made = struct(**values)
    for name, value in values.items():
        if isinstance(value, int) and getattr(made, name) != value:
            raise ValueError(f"{name} is {value}, expected 0 to {2 ** (8 * getattr(struct, name).size) - 1}")
    return made


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

class _Owned:
    """A handle of the library, apart from the object that it belongs to. The lock keeps the header's rule: one thread
    at a time."""

    def __init__(self, close: Callable[[ctypes.c_void_p], None], alive: Any):
        self.handle = ctypes.c_void_p()
        self.lock = threading.RLock()
        self.process = os.getpid()
        self._close, self._alive = close, alive
        _open[self] = True

    def close(self) -> None:
        """Once, by whoever comes first. Objects can be collected at any moment, also while the library calls us and
        holds its locks: those wait."""
        if not _open.pop(self, False):
            return
        if _thread.inside:
            _late.append(self)
        else:
            self.free()

    def free(self) -> None:
        self._close(self.handle)
        self._alive = None


_open: Dict[_Owned, bool] = {}  # oldest first
_late: Deque[_Owned] = collections.deque()


def close_late() -> None:
    while _late and not _thread.inside:
        _late.popleft().free()


@atexit.register
def _at_exit() -> None:
    """Closes the newest first, up to one that a daemon thread is using: that one and what is older, which it may stand
    on, stay with the process. Locks are kept, so that no thread gets to what is closed."""
    close_late()
    for owned in reversed([*_open]):
        if not owned.lock.acquire(blocking=False):
            break
        owned.close()


def _in_child() -> None:
    """After a fork: what is open stays with the process that opened it, and threads that hold locks are not here."""
    for owned in _open:
        owned.lock = threading.RLock()
    _open.clear()
    _late.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def called_back(function: Callable[..., None]) -> Callable[..., None]:
    """Wraps a function that the library calls. What it raises, Ctrl-C too, is raised where the library was called."""
    def call(*arguments: Any) -> None:
        _thread.inside = True
        try:
            function(*arguments)
        except BaseException as why:
            _thread.raised = why
        finally:
            _thread.inside = False
    return call


_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """Owns one handle of the library. Handles may be closed in any order, so each closes itself when nobody refers to
    it, at the end of a `with`, or at exit."""

    _closed_by = ""  # the function, by its name in lib

    def _own(self, alive: Any = None) -> ctypes.c_void_p:
        """Where the library shall put the handle. `alive` is what the library borrows; it is let go after the handle."""
        self._owned = _Owned(getattr(lib, self._closed_by), alive)
        weakref.finalize(self, self._owned.close).atexit = False
        return self._owned.handle

    @property
    def _lock(self) -> Any:
        return self._owned.lock

    @property
    def _handle(self) -> int:
        if not self.closed:
            return self._owned.handle.value or 0
        if self._owned.process != os.getpid():
            raise ValueError(f"this {type(self).__name__} stays with the process that opened it: after a fork open another")
        raise ValueError(f"this {type(self).__name__} is closed")

    @property
    def closed(self) -> bool:
        return self._owned not in _open

    def close(self) -> None:
        """Gives back what it holds. A second time does nothing."""
        with self._lock:
            self._owned.close()

    def __enter__(self: _Self) -> _Self:
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
