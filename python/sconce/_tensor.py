"""Tensors across the border: anything with the buffer protocol or DLPack in; NumPy arrays, or memoryviews, out."""

import ctypes
import struct
import sys
from typing import Any, List, NamedTuple, Tuple

from . import _abi
from ._abi import Dtype
from ._native import address_of


class TensorInfo(NamedTuple):
    """What an input or output looks like: a name as NumPy has it, and the dims; upper bounds where ``dynamic``."""

    dtype: str
    shape: Tuple[int, ...]
    dynamic: bool

    def __str__(self) -> str:
        return f"{self.dtype} {'up to ' if self.dynamic else ''}{list(self.shape)}"


# memoryview's letters; 'e' (float16) can be read from one, but not every Python can make such a view.
_LETTERS = {Dtype.UINT8: "B", Dtype.INT8: "b", Dtype.INT16: "h", Dtype.INT32: "i", Dtype.INT64: "q",
            Dtype.FLOAT16: "e", Dtype.FLOAT32: "f", Dtype.FLOAT64: "d", Dtype.BOOL: "?"}
_KINDS = {"e": Dtype.FLOAT16, "f": Dtype.FLOAT32, "d": Dtype.FLOAT64, "?": Dtype.BOOL}
_INTEGERS = {1: Dtype.INT8, 2: Dtype.INT16, 4: Dtype.INT32, 8: Dtype.INT64}


def dtype_name(dtype: int) -> str:
    return Dtype(dtype).name.lower()


def shape_of(tensor: _abi.tensor) -> Tuple[int, ...]:
    return tuple(tensor.dims[:tensor.rank])


def _fill(dtype: int, shape: Tuple[int, ...], address: int, size: int) -> _abi.tensor:
    if len(shape) > _abi.MAX_RANK:
        raise ValueError(f"a tensor of {len(shape)} dims, at most {_abi.MAX_RANK}")
    if any(not 0 <= d < 2**32 for d in shape):
        raise ValueError(f"a tensor of shape {list(shape)}: a dim has at most 32 bits")
    return _abi.tensor(dtype=dtype, rank=len(shape), dims=tuple(shape), data=address, size=size)


# ---- the buffer protocol -------------------------------------------------------------------------

def _dtype_of_format(letters: str, size: int) -> Dtype:
    foreign = ">!" if sys.byteorder == "little" else "<"
    if letters[:1] in foreign and letters[:1]:
        raise TypeError(f"elements of format {letters!r} have the other byte order")
    letter = letters.lstrip("@=<>!")
    if letter in _KINDS:
        return _KINDS[letter]
    if letter in tuple("bhilq") and size in _INTEGERS:
        return _INTEGERS[size]
    if letter == "B":
        return Dtype.UINT8
    raise TypeError(f"elements of format {letters!r}: no model takes such")


def _from_view(view: memoryview) -> Tuple[_abi.tensor, Any]:
    dtype = _dtype_of_format(view.format, view.itemsize)
    shape = tuple(view.shape or ())
    if not view.c_contiguous:
        view = memoryview(view.tobytes())
    return _fill(dtype, shape, address_of(view), view.nbytes), view


# ---- DLPack --------------------------------------------------------------------------------------

class _DLTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_DL_CPU = 1
_DL_DTYPES = {(0, 8): Dtype.INT8, (0, 16): Dtype.INT16, (0, 32): Dtype.INT32, (0, 64): Dtype.INT64,
              (1, 8): Dtype.UINT8, (2, 16): Dtype.FLOAT16, (2, 32): Dtype.FLOAT32, (2, 64): Dtype.FLOAT64,
              (6, 8): Dtype.BOOL}

_DL_OTHERS = {0: "signed integers", 1: "unsigned integers", 2: "floats", 4: "bfloat", 5: "complex numbers"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype, _capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def _is_dense(t: _DLTensor) -> bool:
    if not t.strides or 0 in t.shape[:t.ndim]:
        return True
    step = 1
    for i in reversed(range(t.ndim)):
        if t.shape[i] != 1 and t.strides[i] != step:
            return False
        step *= t.shape[i]
    return True


def _from_dlpack(x: Any) -> Tuple[_abi.tensor, Any]:
    device = x.__dlpack_device__()[0]
    if int(device) != _DL_CPU:
        raise TypeError(f"a tensor of DLPack's device {int(device)}: bring it to the CPU first")
    capsule = x.__dlpack__()  # not renamed to "used_dltensor": it still frees what it holds when it goes
    t = _DLTensor.from_address(_capsule_pointer(capsule, b"dltensor"))
    dtype = _DL_DTYPES.get((t.code, t.bits)) if t.lanes == 1 else None
    if dtype is None:
        what = _DL_OTHERS.get(t.code, f"kind {t.code}")
        raise TypeError(f"DLPack elements of {what} with {t.bits} bits: no model takes such")
    if not _is_dense(t):
        if not hasattr(x, "contiguous"):
            raise TypeError("a tensor whose elements are not in row-major order: copy it first")
        return _from_dlpack(x.contiguous())
    shape = tuple(t.shape[i] for i in range(t.ndim))
    size = t.bits // 8
    for d in shape:
        size *= d
    return _fill(dtype, shape, (t.data or 0) + t.byte_offset, size), (x, capsule)


# ---- numbers and lists ---------------------------------------------------------------------------

def _from_numbers(x: Any, like: TensorInfo) -> Tuple[_abi.tensor, Any]:
    """Numbers in lists take the dtype of the input. Depth is bounded by a tensor's rank."""
    shape: List[int] = []
    flat = [x]
    while isinstance(flat[0] if flat else None, (list, tuple)):
        n = len(flat[0])
        if len(shape) == _abi.MAX_RANK or any(not isinstance(row, (list, tuple)) or len(row) != n for row in flat):
            raise ValueError("lists of different lengths or depths are no tensor")
        shape.append(n)
        flat = [number for row in flat for number in row]
    dtype = Dtype[like.dtype.upper()]
    try:
        data = struct.pack(f"={len(flat)}{_LETTERS[dtype]}", *flat)
    except (struct.error, TypeError, OverflowError) as why:
        raise TypeError(f"not a tensor of {like.dtype}: {why}") from None
    view = memoryview(data)
    return _fill(dtype, tuple(shape), address_of(view), len(data)), view


def tensor_of(x: Any, like: TensorInfo) -> Tuple[_abi.tensor, Any]:
    """(tensor, what keeps its memory alive) of whatever a caller has; ``like`` is what the method expects."""
    if isinstance(x, (int, float, list, tuple)):
        if not like.shape and not isinstance(x, (list, tuple)):
            return _from_numbers(x, like)
        return _from_numbers(x if isinstance(x, (list, tuple)) else [x], like)
    try:
        view = memoryview(x)
    except TypeError:
        if hasattr(x, "__dlpack__"):
            return _from_dlpack(x)
        raise TypeError(f"a {type(x).__name__} is no tensor: it has neither the buffer protocol nor DLPack") from None
    return _from_view(view)


# ---- out -----------------------------------------------------------------------------------------

def array_of(tensor: _abi.tensor) -> Any:
    """A copy: a NumPy array where NumPy is installed, else a memoryview with dtype and shape (float16 as the 16-bit
    integers that hold it, and one dim where there are no elements)."""
    shape = shape_of(tensor)
    numpy = _numpy()
    if numpy is not None:
        out = numpy.empty(shape, dtype_name(tensor.dtype))
        ctypes.memmove(out.ctypes.data, tensor.data, tensor.size)
        return out
    data = bytearray(ctypes.string_at(tensor.data, tensor.size)) if tensor.size else bytearray()
    letter: Any = {"e": "H"}.get(_LETTERS[Dtype(tensor.dtype)], _LETTERS[Dtype(tensor.dtype)])
    return memoryview(data).cast(letter, shape) if data else memoryview(data).cast(letter)


def _numpy() -> Any:
    """Looked for at the first call, so that `import sconce` stays quick and does not need it."""
    global _found
    if _found is False:
        try:
            import numpy
            _found = numpy
        except ImportError:
            _found = None
    return _found


_found: Any = False
