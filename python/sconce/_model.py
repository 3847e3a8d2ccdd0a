"""Models, their methods, and states."""

import contextlib
import ctypes
import json
import os
import time
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

from . import _abi, _html
from ._device import Device, device_of
from ._native import Handle, address_of, called_back, filled, lib, path_bytes, utf8
from ._progress import Meter, Progress
from ._tensor import TensorInfo, array_of, dtype_name, shape_of, tensor_of

File = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview]


def _file(source: File) -> Tuple[_abi.file, Any]:
    """A path, or the bytes of a file, which must stay alive."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        view = memoryview(source)
        if not view.c_contiguous:
            view = memoryview(view.tobytes())
        return _abi.file(data=address_of(view), size=view.nbytes), view
    return _abi.file(path=path_bytes(source)), None


def _absolute(source: File) -> File:
    """For later, when the working directory may be another one."""
    return source if isinstance(source, (bytes, bytearray, memoryview)) else os.path.abspath(os.fspath(source))


def _list(files: Union[File, Iterable[File]]) -> List[File]:
    """One file may stand for a list of one."""
    if isinstance(files, (str, os.PathLike, bytes, bytearray, memoryview)):
        return [files]
    return list(files)


def _files(sources: Iterable[File]) -> Tuple[Any, int, List[Any]]:
    pairs = [_file(s) for s in sources]
    return (_abi.file * len(pairs))(*[f for f, _ in pairs]), len(pairs), [alive for _, alive in pairs]


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'' if n == 1 else 's'}"


def _poll(poll: Any, handle: ctypes.c_void_p, meter: Meter) -> None:
    """Until it is open. Ctrl-C works between two polls."""
    p = _abi.progress()
    while not p.done:
        before = p.bytes_done
        poll(handle, ctypes.byref(p))
        meter.show(p)
        if not p.done and p.bytes_done == before:
            time.sleep(0.0005)


# ---- states --------------------------------------------------------------------------------------

class DeviceTensor:
    """An output that stayed on the device: ``run(…, keep=True)`` returns it, and a call of any model of the same
    device takes it as an input. :meth:`numpy` and ``numpy.asarray`` bring it to the host. It is gone when its state
    runs again."""

    def __init__(self, state: "State", index: int, tensor: _abi.tensor):
        self.dtype, self.shape = dtype_name(tensor.dtype), shape_of(tensor)
        self._state, self._index, self._call = state, index, state._calls

    def __repr__(self) -> str:
        return f"<sconce.DeviceTensor {self.dtype} {list(self.shape)}>"

    def numpy(self) -> Any:
        """A copy on the host: a NumPy array (a memoryview without NumPy)."""
        with self._state._lock:
            self._check("it")
            return array_of(self._state._fetched(self._index))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        if copy is False:
            raise ValueError("an output that is on the device cannot be an array without a copy")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def _check(self, what: str) -> None:
        if self._call != self._state._calls:
            raise ValueError(f"{what} is an output that went when its state ran again")


class State(Handle):
    """What changes from call to call of a method: inputs, KV caches, shapes. A method can have several, each as if it
    were alone; opening one costs its own memory and compiles nothing. Threads that run at the same time have a state
    each; if several share one, their calls follow each other.

    ``state(x)`` runs it; see :meth:`run`.
    """

    _closed_by = "state_close"

    def __init__(self, method: "Method"):
        # Not the method itself: what nobody refers to any more goes at once, without waiting for the collector.
        self.name, self.inputs, self.outputs = method.name, method.inputs, method.outputs
        self._calls: int = 0
        handle = self._own(method._alive)
        with self._lock, method._lock:
            lib.state_open(ctypes.byref(handle), method._handle)

    def __call__(self, *inputs: Any, keep: bool = False, **named: Any) -> Any:
        return self.run(*inputs, keep=keep, **named)

    def run(self, *inputs: Any, keep: bool = False, last_rows: int = 0, max_steps: int = 0, **named: Any) -> Any:
        """One call. Inputs are anything with the buffer protocol (NumPy arrays, ``array.array``, ``bytes``) or DLPack
        (PyTorch tensors on the CPU), numbers and lists of numbers, or a :class:`DeviceTensor`.

        A .pte file has no names of inputs, so they have numbers: ``x0``, ``x1``, …, and ``x`` where there is one.
        Inputs that are left out, or None, keep what they had in the call before.

        Returns the output, or a tuple if there are several, as NumPy arrays (memoryviews without NumPy) that belong
        to the caller. ``keep=True`` leaves them on the device: :class:`DeviceTensor`. ``last_rows`` reads back only
        so many rows from the end of each output. ``max_steps`` is how many nodes it may go through, in loops again
        and again; 0: 10,000,000.
        """
        return self._run(self._ordered(inputs, named), keep, last_rows, max_steps)

    def _ordered(self, inputs: Tuple[Any, ...], named: Dict[str, Any]) -> List[Any]:
        infos = self.inputs
        if len(inputs) > len(infos):
            raise TypeError(f"{self.name} has {_count(len(infos), 'input')}, {len(inputs)} were given")
        all_ = list(inputs) + [None] * (len(infos) - len(inputs))
        names = {f"x{i}": i for i in range(len(infos))}
        if len(infos) == 1:
            names["x"] = 0
        for name, value in named.items():
            if name not in names:
                raise TypeError(f"{self.name} has no input {name!r}: its inputs are {', '.join(names) or 'none'}")
            if all_[names[name]] is not None:
                raise TypeError(f"input {name!r} was given twice")
            all_[names[name]] = value
        return all_

    def _run(self, inputs: Sequence[Any], keep: bool, last_rows: int, max_steps: int) -> Any:
        call = filled(_abi.call, keep_outputs=keep, last_rows=last_rows, max_steps=max_steps)
        fed = {id(x._state): x._state for x in inputs if isinstance(x, DeviceTensor)}
        with contextlib.ExitStack() as locks:
            for _, state in sorted({**fed, id(self): self}.items()):  # one order for all threads
                locks.enter_context(state._lock)
            for i, x in enumerate(inputs):
                if x is not None:
                    self._set(i, x)
            self._calls += 1
            lib.state_run(self._handle, ctypes.byref(call))
            outputs = tuple(self._output(i, keep) for i in range(len(self.outputs)))
        return outputs[0] if len(outputs) == 1 else outputs

    def _set(self, i: int, x: Any) -> None:
        if isinstance(x, DeviceTensor):
            x._check(f"input {i}")
            lib.state_feed(self._handle, i, x._state._handle, x._index)
            return
        try:
            tensor, alive = tensor_of(x, self.inputs[i])
        except (TypeError, ValueError) as why:
            raise type(why)(f"input {i}: {why}") from None
        lib.state_set_input(self._handle, i, ctypes.byref(tensor))
        del alive  # the library has copied it

    def _output(self, i: int, keep: bool) -> Any:
        tensor = _abi.tensor()
        lib.state_output(self._handle, i, ctypes.byref(tensor))
        return DeviceTensor(self, i, tensor) if keep else array_of(tensor)

    def _fetched(self, i: int) -> _abi.tensor:
        """An output with its data, which is fetched where it is on the device alone."""
        tensor = _abi.tensor()
        lib.state_output(self._handle, i, ctypes.byref(tensor))
        if not tensor.data and tensor.size:
            lib.state_fetch(self._handle)
            lib.state_output(self._handle, i, ctypes.byref(tensor))
        return tensor

    def reset(self) -> None:
        """Puts KV caches and other buffers back to their initial values."""
        with self._lock:
            lib.state_reset(self._handle)

    def save(self) -> bytes:
        """Everything that a call may change and a later one may see; :meth:`restore` takes it back."""
        with self._lock:
            out = ctypes.create_string_buffer(max(1, lib.state_size(self._handle)))
            size = lib.state_size(self._handle)
            lib.state_save(self._handle, out, size)
            return out.raw[:size]

    def restore(self, saved: Union[bytes, bytearray, memoryview]) -> None:
        """What :meth:`save` gave, in this state or another one of the same method."""
        view = memoryview(saved)
        with self._lock:
            lib.state_restore(self._handle, address_of(view), view.nbytes)

    def stats(self) -> Dict[str, int]:
        """Bytes and counts of what is alive now: ``gpu_…`` on the whole device, the others of this state."""
        with self._lock:
            return stats_of(self._handle)

    def __repr__(self) -> str:
        return f"<sconce.State of {self.name!r}{', closed' if self.closed else ''}>"


def stats_of(state: int) -> Dict[str, int]:
    stats = _abi.stats()
    lib.state_stats(state, ctypes.byref(stats))
    return {field[0]: getattr(stats, field[0]) for field in _abi.stats._fields_}


# ---- methods -------------------------------------------------------------------------------------

class Method(Handle):
    """One of a model's functions on the device: planned, compiled, its weights uploaded. :meth:`Model.method` opens it.

    ``inputs`` and ``outputs`` are lists of :class:`sconce.TensorInfo`.
    """

    _closed_by = "method_close"

    def __init__(self, model: "Model", name: str, progress: Progress):
        self.name, self._alive = name, model._alive
        self._own_state: Optional[State] = None
        handle = self._own(self._alive)
        try:
            with self._lock, model._lock, Meter(progress, f"{model.title}: {name}") as meter:
                lib.method_begin(ctypes.byref(handle), model._handle, utf8(name))
                _poll(lib.method_poll, handle, meter)
                self._describe(lib.method_describe(handle).contents)
        except BaseException:
            self.close()
            raise

    def _describe(self, info: _abi.method_info) -> None:
        self.inputs = [TensorInfo(dtype_name(t.dtype), shape_of(t), bool(info.dynamic[i]))
                       for i, t in enumerate(info.inputs[:info.n_inputs])]
        dynamic = any(t.dynamic for t in self.inputs)
        self.outputs = [TensorInfo(dtype_name(t.dtype), shape_of(t), dynamic) for t in info.outputs[:info.n_outputs]]

    def state(self) -> State:
        """A new :class:`State`, as if it were alone."""
        return State(self)

    def __call__(self, *inputs: Any, keep: bool = False, **named: Any) -> Any:
        return self.run(*inputs, keep=keep, **named)

    def run(self, *inputs: Any, keep: bool = False, last_rows: int = 0, max_steps: int = 0, **named: Any) -> Any:
        """One call on the state that the method keeps for this; all inputs must be given. See :meth:`State.run`."""
        with self._lock:
            if self._own_state is None or self._own_state.closed:
                self._own_state = State(self)
            state = self._own_state
        ordered = state._ordered(inputs, named)
        missing = [f"x{i}" for i, x in enumerate(ordered) if x is None]
        if missing:
            raise TypeError(f"{self.name} has {_count(len(ordered), 'input')}, {', '.join(missing)} is missing")
        return state._run(ordered, keep, last_rows, max_steps)

    def reset(self) -> None:
        """Puts KV caches and other buffers of calls without a state of their own back to their initial values."""
        with self._lock:
            if self._own_state is not None:
                self._own_state.reset()

    def close(self) -> None:
        """Closes it with the state that it keeps for its calls; states of others stay open."""
        with self._lock:
            state, self._own_state = self._own_state, None
        if state is not None:
            state.close()
        super().close()

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, t)) for t in (self.inputs, self.outputs))
        return f"<sconce.Method {self.name!r}: {inputs or 'nothing'} -> {outputs or 'nothing'}>"


# ---- models --------------------------------------------------------------------------------------

class Number(NamedTuple):
    """A number that a program states about itself: exact as an integer, and as a float."""

    i: int
    d: float


class Model(Handle):
    """One .pte file, verified, on a device.

    ``program`` is a path, or the file's bytes. ``data`` are its .ptd files, ``device`` is a :class:`sconce.Device`,
    part of an adapter's name, or its index; without one all models share the best device here. ``progress`` is True for
    a bar (tqdm's, where it is installed), False for none, or a function of (bytes done, bytes in all); by default there
    is a bar in terminals and notebooks when loading takes longer than half a second. ``max_device_bytes``,
    ``max_host_bytes``, ``max_nodes`` and ``max_load_ms`` bound what a method may take.

    ``model(x)`` runs the method "forward", ``model.run("encode", x)`` another one. Methods are opened when they are
    first used, which compiles kernels and brings weights to the device; :meth:`method` does it earlier. ::

        with sconce.Model("mobilenet.pte") as model:
            scores = model(image)           # NumPy array in, NumPy array out
    """

    _closed_by = "model_close"

    def __init__(self, program: File, *, data: Union[File, Iterable[File]] = (), device: Union[Device, str, int, None] = None,
                 progress: Progress = None, max_device_bytes: int = 0, max_host_bytes: int = 0,
                 max_nodes: int = 0, max_load_ms: int = 0):
        self.device = device_of(device)
        self.path = None if isinstance(program, (bytes, bytearray, memoryview)) else os.fspath(program)
        self.title = os.path.basename(self.path) if self.path else "model"
        self._progress = progress
        self._open: Dict[str, Method] = {}
        more = _list(data)
        self._source, self._data = _absolute(program), [_absolute(d) for d in more]
        file, alive = _file(program)
        files, n, more_alive = _files(more)
        self._alive = [alive, *more_alive]
        desc = filled(_abi.model_desc, program=file, data_files=files, n_data_files=n,
                      max_device_bytes=max_device_bytes, max_host_bytes=max_host_bytes, max_nodes=max_nodes,
                      max_load_ms=max_load_ms)
        handle = self._own(self._alive)
        try:
            with self._lock, Meter(progress, self.title) as meter:
                with self.device._lock:
                    lib.model_begin(ctypes.byref(handle), self.device._handle, ctypes.byref(desc))
                _poll(lib.model_poll, handle, meter)
                info = lib.model_describe(handle).contents
                #: Names of its methods.
                self.methods = [info.methods[i].decode("utf-8", "replace") for i in range(info.n_methods)]
        except BaseException:
            self.close()
            raise

    def method(self, name: str = "forward") -> Method:
        """Opens a method, or gives the one that is open already."""
        if not isinstance(name, str):
            raise TypeError(f"a method has a name, such as \"forward\", and is no {type(name).__name__}: "
                            "model(x) runs \"forward\"")
        with self._lock:
            method = self._open.get(name)
            if method is None or method.closed:
                method = self._open[name] = Method(self, name, self._progress)
            return method

    def __call__(self, *inputs: Any, keep: bool = False, **named: Any) -> Any:
        """Runs "forward"; see :meth:`run`."""
        return self.method().run(*inputs, keep=keep, **named)

    def run(self, method: str = "forward", /, *inputs: Any, keep: bool = False, last_rows: int = 0,
            max_steps: int = 0, **named: Any) -> Any:
        """Runs a method: ``model.run("forward", x)`` or ``model.run("forward", x=x)``; :meth:`State.run` says what
        inputs may be and what comes back. Dims of dynamic inputs may differ from call to call. Calls share one state:
        a model with KV caches goes on where the last call ended, until ``model.method(…).reset()``."""
        return self.method(method).run(*inputs, keep=keep, last_rows=last_rows, max_steps=max_steps, **named)

    def state(self, method: str = "forward") -> State:
        """A new :class:`State` of a method, as if it were alone."""
        return self.method(method).state()

    def constant(self, name: str, output: int = 0) -> Number:
        """A number that the program states about itself, such as ``get_max_seq_len``."""
        number = _abi.number()
        with self._lock:
            lib.model_constant(self._handle, utf8(name), output, ctypes.byref(number))
        return Number(number.i, number.d)

    def inspect(self, format: str = "text", *, method: Optional[str] = None) -> Any:
        """What is in the file: see :func:`sconce.inspect`."""
        return inspect(self._source, data=self._data, format=format, method=method)

    def close(self) -> None:
        """Closes it and its methods. States and chats that are open stay usable until they are closed too."""
        for method in list(self._open.values()):
            method.close()
        super().close()

    def __repr__(self) -> str:
        if self.closed:
            return f"<sconce.Model {self.title!r}, closed>"
        return f"<sconce.Model {self.title!r}: {', '.join(self.methods)} on {self.device.name}>"

    def _repr_html_(self) -> str:
        return _html.model(self.title, self.inspect("json"), self.device.info)


def inspect(program: File, format: str = "text", *, data: Union[File, Iterable[File]] = (), method: Optional[str] = None) -> Any:
    """What a .pte, .ptd or delegate file holds, whether this build runs it, and what memory it takes. Needs no device,
    and works on programs that cannot be run.

    ``format`` is ``"text"`` for people, ``"graph"`` node by node, ``"dot"`` for Graphviz, ``"plan"`` for what one call
    dispatches, or ``"json"``: everything, as a dict. ``method`` looks at one method.
    """
    try:
        kind = _abi.InspectFormat[format.upper()]
    except KeyError:
        raise ValueError(f"format is {format!r}, expected text, graph, dot, json or plan") from None
    file, alive = _file(program)
    files, n, more = _files(_list(data))
    desc = _abi.inspect_desc(file=file, data_files=files, n_data_files=n, method=utf8(method), format=kind)
    pieces: List[bytes] = []

    @_abi.inspect_write
    @called_back
    def write(_user: Any, text: Any, size: int) -> None:
        pieces.append(ctypes.string_at(text, size))

    lib.inspect(ctypes.byref(desc), write, None)
    del alive, more
    text = b"".join(pieces).decode("utf-8")
    return json.loads(text) if kind is _abi.InspectFormat.JSON else text
