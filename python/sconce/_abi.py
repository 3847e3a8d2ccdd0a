"""The public headers as ctypes sees them: constants, structs and functions, and nothing else.

Names are those of include/*.h without `sconce_`; what this package does not use is not here. A test compares every
constant, size, offset and argument with what a C compiler says about the headers.
"""

import ctypes
import enum
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_size_t,
                    c_uint32, c_uint64, c_uint8, c_void_p)
from typing import Any, Dict

VERSION = (0, 2)  # of the headers; the third number only adds functions

MAX_RANK = 8


class Status(enum.IntEnum):
    """What kind of failure an :class:`sconce.Error` is."""

    OK = 0
    BAD_ARGUMENT = 1
    BAD_FILE = 2
    BAD_GRAPH = 3
    UNSUPPORTED = 4
    NO_MEMORY = 5
    NO_GPU_MEMORY = 6
    NO_DEVICE = 7
    GPU_ERROR = 8
    DEVICE_LOST = 9
    IO_ERROR = 10
    CANCELLED = 11
    WRONG_RESULT = 12

    def __str__(self) -> str:  # the name in every Python, where 3.11 and later print the number
        return f"Status.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class LogLevel(enum.IntEnum):
    ERROR = 1
    WARNING = 2
    INFO = 3
    DEBUG = 4


class AdapterType(enum.IntEnum):
    UNKNOWN = 0
    DISCRETE = 1
    INTEGRATED = 2
    SOFTWARE = 3


class Dtype(enum.IntEnum):
    UINT8 = 0
    INT8 = 1
    INT16 = 2
    INT32 = 3
    INT64 = 4
    FLOAT16 = 5
    FLOAT32 = 6
    FLOAT64 = 7
    BOOL = 11


class InspectFormat(enum.IntEnum):
    TEXT = 0
    GRAPH = 1
    DOT = 2
    JSON = 3
    PLAN = 4


class Think(enum.IntEnum):
    DEFAULT = 0
    ON = 1
    OFF = 2


class Encode(enum.IntEnum):
    BOS = 1
    SPECIAL = 2
    CONTINUES = 4


class Decode(enum.IntEnum):
    SPECIAL = 1
    CONTINUES = 2


# The C prefix of each enumeration's constants.
ENUMS = {Status: "SCONCE_", LogLevel: "SCONCE_LOG_", AdapterType: "SCONCE_ADAPTER_", Dtype: "SCONCE_",
         InspectFormat: "SCONCE_INSPECT_", Think: "SCONCE_THINK_", Encode: "SCONCE_ENCODE_",
         Decode: "SCONCE_DECODE_"}

# Parameters that are enumerations, and results that are a status.
Enum = c_int

log_write = CFUNCTYPE(None, c_void_p, Enum, c_char_p)
inspect_write = CFUNCTYPE(None, c_void_p, POINTER(c_char), c_size_t)


class error(ctypes.Structure):
    _fields_ = [("status", Enum), ("text", c_char * 1020)]


class allocator(ctypes.Structure):
    _fields_ = [("resize", c_void_p), ("user", c_void_p)]


class log(ctypes.Structure):
    _fields_ = [("write", log_write), ("user", c_void_p), ("level", Enum)]


class device_desc(ctypes.Structure):
    _fields_ = [("library", c_char_p), ("adapter", c_char_p), ("disable", c_char_p), ("limits", c_char_p),
                ("precision", c_char_p), ("no_fusion", c_char_p), ("avoid", c_char_p), ("no_threads", c_bool),
                ("allocator", allocator), ("log", log)]


class device_info(ctypes.Structure):
    _fields_ = [("index", c_uint32), ("name", c_char * 128), ("driver", c_char * 192), ("vendor", c_char * 64),
                ("api", c_char * 16), ("library", c_char * 32), ("library_version", c_char * 32), ("type", Enum),
                ("f16", c_bool), ("subgroups", c_bool), ("timestamps", c_bool), ("matrix", c_bool),
                ("fast", c_bool),
                ("subgroup_min", c_uint32), ("subgroup_max", c_uint32), ("max_buffer", c_uint64),
                ("max_storage_binding", c_uint64), ("max_storage_buffers", c_uint32),
                ("max_workgroup_bytes", c_uint32), ("max_workgroup_invocations", c_uint32),
                ("max_workgroup_size", c_uint32 * 3), ("max_workgroups", c_uint32), ("storage_alignment", c_uint32),
                ("uniform_alignment", c_uint32)]


adapters_each = CFUNCTYPE(None, c_void_p, c_uint32, POINTER(device_info))


class file(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("data", c_void_p), ("size", c_uint64), ("read", c_void_p), ("user", c_void_p)]


class named_data(ctypes.Structure):
    _fields_ = [("find", c_void_p), ("read", c_void_p), ("user", c_void_p)]


class model_desc(ctypes.Structure):
    _fields_ = [("program", file), ("data_files", POINTER(file)), ("n_data_files", c_uint32),
                ("named_data", named_data), ("max_device_bytes", c_uint64), ("max_nodes", c_uint32),
                ("max_load_ms", c_uint32), ("max_host_bytes", c_uint64)]


class _wants(ctypes.Structure):
    _fields_ = [("file", c_uint32), ("offset", c_uint64), ("size", c_size_t)]


class progress(ctypes.Structure):
    _fields_ = [("done", c_bool), ("bytes_done", c_uint64), ("bytes_all", c_uint64), ("kernels_done", c_uint32),
                ("kernels_all", c_uint32), ("wants", _wants)]


class model_info(ctypes.Structure):
    _fields_ = [("n_methods", c_uint32), ("methods", POINTER(c_char_p))]


class number(ctypes.Structure):
    _fields_ = [("i", c_int64), ("d", c_double)]


class tensor(ctypes.Structure):
    _fields_ = [("dtype", Enum), ("rank", c_uint32), ("dims", c_uint32 * MAX_RANK), ("data", c_void_p),
                ("size", c_size_t)]


class method_info(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("n_inputs", c_uint32), ("n_outputs", c_uint32), ("inputs", POINTER(tensor)),
                ("outputs", POINTER(tensor)), ("dynamic", POINTER(c_bool)), ("can_draw", c_bool),
                ("max_rows", c_uint32)]


class call(ctypes.Structure):
    _fields_ = [("keep_outputs", c_bool), ("last_rows", c_uint32), ("draw", c_void_p), ("feed_token", c_bool),
                ("max_steps", c_uint64)]


class stats(ctypes.Structure):
    _fields_ = [("gpu_weights", c_uint64), ("gpu_state", c_uint64), ("gpu_transient", c_uint64),
                ("gpu_staging", c_uint64), ("gpu_params", c_uint64), ("gpu_buffers", c_uint32),
                ("gpu_groups", c_uint32), ("gpu_kernels", c_uint32), ("gpu_objects_made", c_uint64),
                ("own", c_uint64), ("host", c_uint64), ("nodes", c_uint32), ("dispatches", c_uint32),
                ("submits", c_uint32), ("nodes_planned", c_uint32), ("params_written", c_uint64)]


class tokenizer_desc(ctypes.Structure):
    _fields_ = [("path", c_char_p), ("data", c_void_p), ("size", c_size_t), ("config", c_void_p),
                ("config_size", c_size_t), ("allocator", allocator)]


class tokenizer_info(ctypes.Structure):
    _fields_ = [("kind", c_char_p), ("n_vocab", c_uint32), ("bos", c_int32), ("eos", c_int32), ("add_bos", c_bool),
                ("chat_template", c_char_p), ("chat_template_error", c_char_p)]



class stream(ctypes.Structure):
    _fields_ = [("tokenizer", c_void_p), ("flags", c_uint32), ("started", c_bool), ("n_held", c_uint8),
                ("held", c_char * 4)]


class chat_desc(ctypes.Structure):
    _fields_ = [("family", c_char_p), ("messages", c_void_p), ("n_messages", c_size_t), ("closed", c_bool),
                ("chat_template", c_char_p), ("conversation", c_char_p), ("tools", c_char_p), ("think", Enum),
                ("date", c_int64)]


class sampler_desc(ctypes.Structure):
    _fields_ = [("n_vocab", c_uint32), ("temperature", c_float), ("top_k", c_uint32), ("top_p", c_float),
                ("min_p", c_float), ("repetition_penalty", c_float), ("penalty_window", c_uint32),
                ("seed", c_uint64), ("logprobs", c_bool), ("allocator", allocator)]


class choice(ctypes.Structure):
    _fields_ = [("id", c_int32), ("logprob", c_float)]


class session_desc(ctypes.Structure):
    _fields_ = [("model", c_void_p), ("method", c_char_p), ("tokenizer", c_void_p), ("sampler", sampler_desc),
                ("host_chooses", c_bool), ("recovers", c_bool), ("lookup", Enum),
                ("allocator", allocator)]


class session_info(ctypes.Structure):
    _fields_ = [("n_vocab", c_uint32), ("context", c_uint32), ("chunk", c_uint32), ("position", c_uint32),
                ("guessed", c_uint64), ("accepted", c_uint64)]


class inspect_desc(ctypes.Structure):
    _fields_ = [("file", file), ("data_files", POINTER(file)), ("n_data_files", c_uint32), ("method", c_char_p),
                ("format", Enum), ("inputs", POINTER(tensor)), ("n_inputs", c_uint32), ("device", c_char_p),
                ("no_params", c_bool), ("allocator", allocator)]


STRUCTS = [error, allocator, log, device_desc, device_info, file, named_data, model_desc, progress, model_info,
           number, tensor, method_info, call, stats, tokenizer_desc, tokenizer_info, stream, chat_desc, sampler_desc, choice,
           session_desc, session_info, inspect_desc]

_out = POINTER(c_void_p)  # a handle, or text with a size, that a function hands out
_err = POINTER(error)

# name: (result, parameters). Those whose last parameter is an error return a status, which _native checks.
FUNCTIONS: Dict[str, Any] = {
    "version": (c_char_p, []),
    "version_number": (c_uint32, []),
    "status_name": (c_char_p, [Enum]),
    "device_begin": (Enum, [_out, POINTER(device_desc), _err]),
    "device_poll": (Enum, [c_void_p, POINTER(c_bool), _err]),
    "device_close": (None, [c_void_p]),
    "device_describe": (POINTER(device_info), [c_void_p]),
    "device_recover": (Enum, [c_void_p, _err]),
    "adapters": (Enum, [POINTER(device_desc), adapters_each, c_void_p, _err]),
    "model_begin": (Enum, [_out, c_void_p, POINTER(model_desc), _err]),
    "model_poll": (Enum, [c_void_p, POINTER(progress), _err]),
    "model_close": (None, [c_void_p]),
    "model_describe": (POINTER(model_info), [c_void_p]),
    "model_constant": (Enum, [c_void_p, c_char_p, c_uint32, POINTER(number), _err]),
    "method_begin": (Enum, [_out, c_void_p, c_char_p, _err]),
    "method_poll": (Enum, [c_void_p, POINTER(progress), _err]),
    "method_close": (None, [c_void_p]),
    "method_describe": (POINTER(method_info), [c_void_p]),
    "state_open": (Enum, [_out, c_void_p, _err]),
    "state_close": (None, [c_void_p]),
    "state_set_input": (Enum, [c_void_p, c_uint32, POINTER(tensor), _err]),
    "state_feed": (Enum, [c_void_p, c_uint32, c_void_p, c_uint32, _err]),
    "state_run": (Enum, [c_void_p, POINTER(call), _err]),
    "state_fetch": (Enum, [c_void_p, _err]),
    "state_output": (Enum, [c_void_p, c_uint32, POINTER(tensor), _err]),
    "state_reset": (Enum, [c_void_p, _err]),
    "state_size": (c_size_t, [c_void_p]),
    "state_save": (Enum, [c_void_p, c_void_p, c_size_t, _err]),
    "state_restore": (Enum, [c_void_p, c_void_p, c_size_t, _err]),
    "state_stats": (None, [c_void_p, POINTER(stats)]),
    "tokenizer_open": (Enum, [_out, POINTER(tokenizer_desc), _err]),
    "tokenizer_close": (None, [c_void_p]),
    "tokenizer_describe": (POINTER(tokenizer_info), [c_void_p]),
    "tokenizer_encode": (Enum, [c_void_p, c_char_p, c_size_t, c_uint32, POINTER(POINTER(c_int32)), POINTER(c_size_t),
                                _err]),
    "tokenizer_decode": (Enum, [c_void_p, POINTER(c_int32), c_size_t, c_uint32, _out, POINTER(c_size_t), _err]),
    "tokenizer_special": (c_int32, [c_void_p, c_char_p]),
    "tokenizer_is_end": (c_bool, [c_void_p, c_int32]),
    "stream_push": (c_void_p, [POINTER(stream), c_int32, POINTER(c_size_t)]),
    "stream_end": (c_void_p, [POINTER(stream), POINTER(c_size_t)]),
    "chat_text": (Enum, [c_void_p, POINTER(chat_desc), _out, POINTER(c_size_t), _err]),
    "chat_encode": (Enum, [c_void_p, POINTER(chat_desc), POINTER(POINTER(c_int32)), POINTER(c_size_t), _err]),
    "session_open": (Enum, [_out, POINTER(session_desc), _err]),
    "session_close": (None, [c_void_p]),
    "session_describe": (POINTER(session_info), [c_void_p]),
    "session_set_sampler": (Enum, [c_void_p, POINTER(sampler_desc), _err]),
    "session_state": (c_void_p, [c_void_p]),
    "session_ids": (POINTER(c_int32), [c_void_p, POINTER(c_size_t)]),
    "session_prompt": (Enum, [c_void_p, POINTER(c_int32), c_size_t, c_void_p, c_void_p, _err]),
    "session_cancel": (None, [c_void_p]),
    "session_choose": (Enum, [c_void_p, POINTER(choice), _err]),
    "session_next": (Enum, [c_void_p, POINTER(choice), _err]),
    "session_rewind": (Enum, [c_void_p, c_uint32, _err]),
    "session_save": (Enum, [c_void_p, c_char_p, _err]),
    "session_load": (Enum, [c_void_p, c_char_p, _err]),
    "inspect": (Enum, [POINTER(inspect_desc), inspect_write, c_void_p, _err]),
}
