"""Devices: GPU queues, and what they are."""

import ctypes
import dataclasses
import os
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Tuple, Union

from . import _abi
from ._native import Handle, called_back, lib, log, utf8


@dataclasses.dataclass(frozen=True)
class DeviceInfo:
    """What a device is and what it lets kernels do; sizes are bytes."""

    index: int
    name: str
    driver: str
    vendor: str
    api: str
    library: str
    library_version: str
    type: str  # "discrete", "integrated", "software", "unknown"
    f16: bool
    subgroups: bool
    timestamps: bool
    matrix: bool
    fast: bool
    subgroup_min: int
    subgroup_max: int
    max_buffer: int
    max_storage_binding: int
    max_storage_buffers: int
    max_workgroup_bytes: int
    max_workgroup_invocations: int
    max_workgroup_size: Tuple[int, int, int]
    max_workgroups: int
    storage_alignment: int
    uniform_alignment: int


def _read(info: _abi.device_info) -> DeviceInfo:
    values: Dict[str, Any] = {}
    for field in dataclasses.fields(DeviceInfo):
        value = getattr(info, field.name)
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        elif isinstance(value, ctypes.Array):
            value = tuple(value)
        values[field.name] = value
    values["type"] = _abi.AdapterType(values["type"]).name.lower()
    return DeviceInfo(**values)


def devices(library: Optional[str] = None) -> List[DeviceInfo]:
    """The adapters that the WebGPU library offers here; their indices and names are what ``device=`` takes."""
    found: List[DeviceInfo] = []

    @_abi.adapters_each
    @called_back
    def each(_user: Any, _index: int, info: Any) -> None:
        found.append(_read(info.contents))

    desc = _abi.device_desc(library=utf8(library), log=log())
    lib.adapters(ctypes.byref(desc), each, None)
    return found


class Device(Handle):
    """One GPU queue with its compiled kernels.

    ``Device()`` is the best one here; ``Device("NVIDIA")`` one whose name has this in it, ``Device(1)`` the one with
    this index among :func:`sconce.devices`. ``library`` is a WebGPU library: ``"wgpu"``, ``"dawn"`` or a path.
    ``disable`` names features not to use (``"f16,subgroups"``), ``limits`` caps (``"default"``), ``precision`` is
    ``"exact"`` or ``"fast"``, ``no_fusion`` names fusions not to make, ``avoid`` kernels that ``sconce check --self``
    found wrong. The variables ``SCONCE_ADAPTER``, ``SCONCE_WEBGPU``, … mean the same as for the command.

    Models of one device can feed each other. A model without a device takes one that all such models share.
    """

    _closed_by = "device_close"

    def __init__(self, adapter: Union[str, int, None] = None, *, library: Optional[str] = None,
                 disable: Optional[str] = None, limits: Optional[str] = None, precision: Optional[str] = None,
                 no_fusion: Optional[str] = None, avoid: Optional[str] = None):
        desc = _abi.device_desc(library=utf8(library), adapter=utf8(None if adapter is None else str(adapter)),
                                disable=utf8(disable), limits=utf8(limits), precision=utf8(precision),
                                no_fusion=utf8(no_fusion), avoid=utf8(avoid), log=log())
        handle, done = self._own(), ctypes.c_bool()
        try:
            with self._lock:
                lib.device_begin(ctypes.byref(handle), ctypes.byref(desc))
                while not done.value:
                    lib.device_poll(handle, ctypes.byref(done))
                    if not done.value:
                        time.sleep(0.0005)
                #: What it is, as a :class:`sconce.DeviceInfo`.
                self.info = _read(lib.device_describe(handle).contents)
        except BaseException:
            self.close()
            raise

    def recover(self) -> None:
        """After an :class:`Error` with ``Status.DEVICE_LOST``: a device in place of the lost one. Everything that was
        opened on it stays; weights are read again, and states are as after a reset, with what was set as inputs. No
        other thread may be in a call on the device."""
        with self._lock:
            lib.device_recover(self._handle)
            self.info = _read(lib.device_describe(self._handle).contents)

    @property
    def name(self) -> str:
        return self.info.name

    def __repr__(self) -> str:
        return f"<sconce.Device {self.info.name!r}, {self.info.api}{', closed' if self.closed else ''}>"


_sharing = threading.Lock()
_shared: Any = lambda: None  # noqa: E731 - a weak reference: the device goes with its last model


def _in_child() -> None:
    """After a fork: the device is closed here, so another one is opened, and the thread that was opening one is not here."""
    global _sharing
    _sharing = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def device_of(device: Union[Device, str, int, None]) -> Device:
    """What ``device=`` says; None is the one that models share."""
    global _shared
    if isinstance(device, Device):
        return device
    if device is not None:
        return Device(device)
    with _sharing:
        shared = _shared()
        if shared is None or shared.closed:
            shared = Device()
            _shared = weakref.ref(shared)
        return shared
