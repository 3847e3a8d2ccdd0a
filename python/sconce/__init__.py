"""Sconce runs ExecuTorch models on any GPU through WebGPU.

Any model, NumPy arrays in and out::

    import sconce
    model = sconce.Model("model.pte")
    y = model(x)

A language model, text as it comes::

    chat = sconce.Chat("model.pte")
    for piece in chat.generate("Once upon a time", max_new=100):
        print(piece, end="", flush=True)

:class:`Model` opens a .pte file that ExecuTorch's exporter wrote with VulkanPartitioner, :class:`Chat` talks to a
language model, :class:`Device` chooses a GPU, :func:`devices` lists them, :func:`inspect` looks into files. The command
is ``python -m sconce``.

Everything that owns memory is closed when nobody refers to it, by ``close()``, or at the end of a ``with``, in any
order, but a :class:`Tokenizer` after its chats. After a fork the child opens its own. A failed call raises :class:`Error`, whose ``status`` says what kind of failure it is. Calls release the interpreter's
lock. Objects may be used from several threads; calls on one object follow each other, so threads that shall run at the
same time have a :class:`State` or a :class:`Chat` each. What the library has to say goes to
``logging.getLogger("sconce")``; its level counts when a device is opened.
"""

from ._abi import Status
from ._chat import Answer, Chat, Result, Tokenizer
from ._device import Device, DeviceInfo, devices
from ._model import DeviceTensor, Method, Model, Number, State, inspect
from ._native import Error, lib as _lib
from ._tensor import TensorInfo

__version__ = _lib.version().decode()
__all__ = ["Answer", "Chat", "Device", "DeviceInfo", "DeviceTensor", "Error", "Method", "Model", "Number", "Result",
           "State", "Status", "TensorInfo", "Tokenizer", "devices", "inspect"]
