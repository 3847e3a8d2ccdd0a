"""`import sconce_executorch`, and executorch.runtime runs files of the Vulkan exporter on any GPU.

The library lies beside this file, or where SCONCE_EXECUTORCH says.
"""

import ctypes
import os
import pathlib

import executorch.extension.pybindings.portable_lib  # noqa: F401  the runtime that it registers with

NAME = "libexecutorch_backend_sconce.so"
library = ctypes.CDLL(os.environ.get("SCONCE_EXECUTORCH") or str(pathlib.Path(__file__).resolve().parent / NAME))
library.sconce_executorch_problem.restype = ctypes.c_char_p
if problem := library.sconce_executorch_problem():
    raise ImportError(problem.decode())


def counts():
    """Calls of delegates so far, bytes that went into them, bytes that came out."""
    numbers = (ctypes.c_uint64 * 3)()
    library.sconce_executorch_counts(numbers)
    return tuple(numbers)
