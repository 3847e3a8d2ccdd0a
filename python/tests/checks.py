"""Checks of the package as it is installed: `python checks.py ROOT NAME…` runs them and says `ok NAME` for each.

ROOT is the checkout, for models. tests/tool/test_python.py runs all of these in environments that it makes: names that
begin with numpy_ where NumPy is, names that end with _the_commands with what the command wrote as standard input, and
all others where there is nothing but the standard library.
"""

import array
import contextlib
import gc
import io
import logging
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import typing
import warnings

import sconce
from sconce import Status

ROOT = pathlib.Path(sys.argv[1])
MUL = ROOT / "tests/data/goldens/mul.pte"  # two float32 [2, 3], their product
LOOP = ROOT / "tests/data/programs/map/model.pte"  # a loop over its rows
ROWS = ROOT / "tests/data/format/delegated.pte"  # up to 8 rows of 8 in, twice as many out
ADD_INT64 = ROOT / "tests/data/cases/right/add_int64/model.pte"
STORIES = ROOT / "models/stories15M/stories15M-4w.pte"


def view(values, shape, code="f"):
    return memoryview(array.array(code, values)).cast("B").cast(code, shape)


ONES = view([1] * 6, (2, 3))
TWOS = view([2] * 6, (2, 3))


def raises(kind, text, function, *arguments, status=None, **named):
    try:
        function(*arguments, **named)
    except kind as why:
        assert text in str(why), f"{why!r} does not say {text!r}"
        assert status is None or (why.status is status), why.status
        return
    raise AssertionError(f"nothing raised, expected {kind.__name__} with {text!r}")


@contextlib.contextmanager
def replaced(owner, name, value):
    """An attribute, for the time of a `with`."""
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield before
    finally:
        setattr(owner, name, before)


def flat(x):
    """Elements of an array or a memoryview."""
    return list(struct.unpack(f"{x.nbytes // 4}f", bytes(x)))


# ---- models --------------------------------------------------------------------------------------

def check_inputs_of_every_kind():
    model = sconce.Model(MUL)
    rows = {
        "a view": view([1, 2, 3, 4, 5, 6], (2, 3)),
        "memory that must not be written": view([1, 2, 3, 4, 5, 6], (2, 3)).toreadonly(),
        "doubles": view([1, 2, 3, 4, 5, 6], (2, 3), "d"),
        "lists": [[1, 2, 3], [4, 5, 6]],
        "tuples of floats": ((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)),
        "ctypes": ((__import__("ctypes").c_float * 3) * 2)((1, 2, 3), (4, 5, 6)),
    }
    for why, x in rows.items():
        got = flat(model(x, TWOS))
        assert got == [2, 4, 6, 8, 10, 12], (why, got)
    assert flat(model.run("forward", x1=ONES, x0=TWOS)) == [2] * 6
    assert flat(model.run("forward", TWOS, x1=TWOS)) == [4] * 6
    ints = sconce.Model(ADD_INT64)
    shape = ints.method().inputs[0].shape
    n = 1
    for d in shape:
        n *= d
    many = view(range(n), shape, "q")
    other = [view([5] * n, t.shape, "q") for t in ints.method().inputs[1:]]
    got = ints(many, *other)
    assert struct.unpack(f"{n}q", bytes(got)) == tuple(i + 5 for i in range(n)), got
    as_int32 = view(range(n), shape, "i")  # another integer type is converted
    assert bytes(ints(as_int32, *other)) == bytes(got)


def check_dims_differ_from_call_to_call():
    model = sconce.Model(ROWS)
    assert model.method().inputs[0].dynamic and model.method().inputs[0].shape == (8, 8)
    for rows in (1, 8, 3, 5):
        y = model(view([1] * 8 * rows, (rows, 8)))
        assert y.shape == (2 * rows, 6), (rows, y.shape)
    assert model.run("forward", x=[[1] * 8] * 2).shape == (4, 6)
    raises(sconce.Error, "input 0: dim 0 is 9, at most 8", model, [[1] * 8] * 9, status=Status.BAD_ARGUMENT)
    assert model([[1] * 8] * 8).shape == (16, 6)  # an error leaves it usable


def check_steps_of_a_call_are_bounded():
    model, rows, shift = sconce.Model(LOOP), [[1] * 8] * 3, [0] * 4
    y = model.run("forward", rows, shift, max_steps=1000)
    assert y.shape[0] == 3, y.shape
    raises(sconce.Error, "more than 20 steps: set max_steps", model.run, "forward", rows, shift, max_steps=20,
           status=Status.UNSUPPORTED)
    assert model.method().run(rows, shift).shape == model.state()(rows, shift).shape == y.shape


def check_outputs_stay_on_the_device():
    first, second = sconce.Model(MUL), sconce.Model(MUL)
    kept = first(TWOS, TWOS, keep=True)
    assert isinstance(kept, sconce.DeviceTensor) and kept.shape == (2, 3) and kept.dtype == "float32", kept
    assert flat(kept.numpy()) == [4] * 6 and flat(kept.numpy()) == [4] * 6
    assert flat(second(kept, TWOS)) == [8] * 6  # another model
    assert flat(first(kept, kept)) == [16] * 6  # itself
    raises(ValueError, "went when its state ran again", first, kept, TWOS)
    raises(ValueError, "went when its state ran again", kept.numpy)
    other = sconce.Model(MUL, device=sconce.Device())
    raises(sconce.Error, "device", other, first(TWOS, TWOS, keep=True), TWOS, status=Status.BAD_ARGUMENT)


def check_states_are_alone():
    model = sconce.Model(MUL)
    one, two = model.state(), model.state()
    assert flat(one(ONES, TWOS)) == [2] * 6 and flat(two(TWOS, TWOS)) == [4] * 6
    assert flat(one(x1=ONES)) == [1] * 6  # the input that was left out keeps what it had
    assert flat(two(ONES)) == [2] * 6
    saved = two.save()
    two.restore(saved)
    two.reset()
    stats = one.stats()
    assert stats["nodes"] == 1 and stats["gpu_buffers"] > 0, stats


def check_files_from_memory():
    program = ROWS.read_bytes()
    want = bytes(sconce.Model(ROWS)([[1] * 8] * 3))
    for why, source in {"bytes": program, "a bytearray": bytearray(program), "a view": memoryview(program),
                        "at an odd address": memoryview(b"x" + program)[1:]}.items():
        model = sconce.Model(source)
        state = model.state()
        model.close()
        del model, source  # the state holds what it needs
        gc.collect()
        assert bytes(state([[1] * 8] * 3)) == want, why
    folder = ROOT / "tests/data/format"
    raises(sconce.Error, "", lambda: sconce.Model(folder / "delegated_ext.pte").method())
    for data in (folder / "delegated_ext.ptd", (folder / "delegated_ext.ptd").read_bytes()):
        method = sconce.Model(folder / "delegated_ext.pte", data=[data]).method()
        assert str(sconce.Model(folder / "delegated_ext.pte", data=data).method().inputs) == str(method.inputs)
        shape = method.inputs[0].shape
        assert method([[1] * shape[1]] * shape[0]).nbytes > 0


def check_closing():
    device = sconce.Device()
    model = sconce.Model(MUL, device=device)
    method = model.method()
    state = method.state()
    for thing in (device, model, method):  # parents before children
        thing.close()
        thing.close()
        assert thing.closed
    assert flat(state(ONES, TWOS)) == [2] * 6
    with state:
        pass
    raises(ValueError, "this State is closed", state, ONES, TWOS)
    raises(ValueError, "this Model is closed", model.constant, "x")
    raises(ValueError, "this Device is closed", sconce.Model, MUL, device=device)
    with sconce.Model(MUL) as again:
        assert flat(again(ONES, TWOS)) == [2] * 6
    assert again.closed and "closed" in repr(again)
    assert typing.get_type_hints(sconce.Model.__enter__)["return"] is not typing.Any


AT_EXIT = """
import pathlib, sys, threading, time, sconce
root, how, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
MUL = root / "tests/data/goldens/mul.pte"
x = memoryview(bytes(24)).cast("f", (2, 3))
model = sconce.Model(MUL)
began = threading.Event()

def work():
    state = model.state()
    while True:
        state(x, x) if how == "runs" else sconce.Model(MUL, device=sconce.Device()).method().state()
        began.set()

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
began.wait()
time.sleep(seconds)
"""


def check_daemon_threads_may_be_in_calls_at_exit():
    for how in ("runs", "opens"):
        for i in range(6):
            done = subprocess.run([sys.executable, "-c", AT_EXIT, str(ROOT), how, str(i / 20)], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, ""), (how, i, done)


def check_a_fork_opens_its_own():
    if not hasattr(os, "fork"):
        return
    model = sconce.Model(MUL)
    assert flat(model(ONES, TWOS)) == [2] * 6
    inside, leave = threading.Event(), threading.Event()

    def hold():  # every lock there is
        with sconce._device._sharing, model._lock, model.method()._lock:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # newer Pythons', of threads
        child = os.fork()
    if not child:
        signal.alarm(60)
        status = 1
        try:
            raises(ValueError, "this Model stays with the process that opened it", model, ONES, TWOS)
            model.close()
            assert flat(sconce.Model(MUL)(TWOS, TWOS)) == [4] * 6
            del model
            gc.collect()
            status = 0
        finally:
            os._exit(status)
    leave.set()
    thread.join()
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert flat(model(ONES, TWOS)) == [2] * 6


def check_a_lost_device_comes_back():
    os.environ["SCONCE_LOSE_AFTER"] = "4"
    device = sconce.Device()
    del os.environ["SCONCE_LOSE_AFTER"]
    model = sconce.Model(MUL, device=device)
    for _ in range(20):
        try:
            assert flat(model(ONES, TWOS)) == [2] * 6
        except sconce.Error as why:
            assert why.status is Status.DEVICE_LOST, why
            break
    else:
        raise AssertionError("nothing was lost")
    raises(sconce.Error, "", model, ONES, TWOS, status=Status.DEVICE_LOST)
    device.recover()
    assert flat(model(ONES, TWOS)) == [2] * 6


def check_errors():
    model = sconce.Model(MUL)
    broken = MUL.read_bytes()[:200]
    rows = [
        (sconce.Error, "No such file", Status.IO_ERROR, lambda: sconce.Model("nowhere.pte")),
        (sconce.Error, "", Status.BAD_FILE, lambda: sconce.Model(broken)),
        (sconce.Error, "", Status.BAD_FILE, lambda: sconce.Model(b"")),
        (sconce.Error, "no method 'backward'", None, lambda: model.run("backward", ONES)),
        (sconce.Error, "nobody", Status.NO_DEVICE, lambda: sconce.Device("nobody")),
        (sconce.Error, "", Status.BAD_ARGUMENT, lambda: model([[1, 2, 3]], TWOS)),
        (sconce.Error, "float32", Status.BAD_ARGUMENT, lambda: model(view([1] * 6, (2, 3), "i"), TWOS)),
        (sconce.Error, "get_nothing", Status.UNSUPPORTED, lambda: model.constant("get_nothing")),
        (sconce.Error, "No such file", Status.IO_ERROR, lambda: sconce.Tokenizer("nowhere.json")),
        (sconce.Error, "", Status.BAD_FILE, lambda: sconce.Tokenizer(b"{}")),
        (TypeError, "3 were given", None, lambda: model(ONES, TWOS, ONES)),
        (TypeError, "x1 is missing", None, lambda: model(ONES)),
        (TypeError, "no input 'z': its inputs are x0, x1", None, lambda: model(ONES, z=TWOS)),
        (TypeError, "given twice", None, lambda: model(ONES, x0=TWOS)),
        (TypeError, "input 0: a object is no tensor", None, lambda: model(object(), TWOS)),
        (TypeError, "input 1: elements of format 'I'", None, lambda: model(ONES, view([1] * 6, (2, 3), "I"))),
        (TypeError, "not a tensor of float32", None, lambda: model([["a", "b", "c"], [1, 2, 3]], TWOS)),
        (ValueError, "different lengths", None, lambda: model([[1, 2, 3], [1, 2]], TWOS)),
        (ValueError, "NUL", None, lambda: sconce.Model("a\0b")),
        (ValueError, "format is 'html'", None, lambda: model.inspect("html")),
        (ValueError, "last_rows is -1, expected 0 to 4294967295", None, lambda: model.run("forward", ONES, TWOS, last_rows=-1)),
        (ValueError, "max_steps is -1", None, lambda: model.run("forward", ONES, TWOS, max_steps=-1)),
        (ValueError, "max_nodes is -1", None, lambda: sconce.Model(MUL, max_nodes=-1)),
        (TypeError, "is no memoryview: model(x) runs", None, lambda: model.run(ONES, TWOS)),
    ]
    for kind, text, status, function in rows:
        raises(kind, text, function, status=status)
    deep = 1
    for _ in range(20):
        deep = [deep]
    raises(ValueError, "depths", model, deep, TWOS)
    assert flat(model(ONES, TWOS)) == [2] * 6
    import pickle
    copy = pickle.loads(pickle.dumps(sconce.Error(Status.BAD_FILE, "no")))
    assert copy.status is Status.BAD_FILE and str(copy) == "no"
    assert f"{copy.status} {copy.status:>16}" == "Status.BAD_FILE  Status.BAD_FILE" and copy.status == 2


def check_a_tensor_without_elements_is_dense():
    """PyTorch gives strides of 1 where a dim is 0, and calls it contiguous."""
    import ctypes
    from sconce._tensor import _DLTensor, _is_dense
    two = ctypes.c_int64 * 2
    for shape, strides, dense in (((3, 0), (1, 1), True), ((3, 2), (1, 1), False), ((3, 2), (2, 1), True)):
        assert _is_dense(_DLTensor(ndim=2, shape=two(*shape), strides=two(*strides))) is dense, (shape, strides)


def check_threads():
    """Each with a state of its own, and all with one."""
    model = sconce.Model(MUL)
    wrong = []

    def work(run, i):
        x = view([i] * 6, (2, 3))
        for _ in range(40):
            if flat(run(x, TWOS)) != [2 * i] * 6:
                wrong.append(i)

    for runs in ([model.state() for _ in range(6)], [model] * 6):
        threads = [threading.Thread(target=work, args=(run, i)) for i, run in enumerate(runs)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not wrong, wrong


def check_the_interpreter_is_free_during_a_call():
    """Another thread gets on while the device computes."""
    model = sconce.Model(STORIES)
    count = [0]
    done = threading.Event()

    def spin():
        while not done.is_set():
            count[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=spin)
    thread.start()
    ids = view([1] * 200, (1, 200), "q")
    model.method()
    before = count[0]
    start = time.monotonic()
    model(ids, view([0], (1,), "q"))
    took, steps = time.monotonic() - start, count[0] - before
    done.set()
    thread.join()
    assert steps >= took * 1000 / 20, (steps, took)


def resident():
    """Bytes, in steps of a page."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_ten_thousand_calls_are_flat():
    model, chat = sconce.Model(MUL), sconce.Chat(STORIES, temperature=0)
    state = model.state()

    def some(n):
        for i in range(n):
            state(ONES, TWOS)
            if i % 100 == 0:
                kept = state(ONES, TWOS, keep=True)
                model(kept, TWOS)
                try:
                    state([[1]], TWOS)
                except sconce.Error:
                    pass
                chat.send([{"role": "user", "content": "One day"}], family="plain", max_new=2).read()
            if i % 500 == 0:
                sconce.Chat(chat.model, chat.tokenizer).generate("Tom", max_new=1).read()
                model.state().close()
                sconce.Model(MUL.read_bytes()).close()
        gc.collect()

    some(2000)
    before, objects, made = resident(), len(gc.get_objects()), state.stats()["gpu_buffers"]
    some(8000)
    after = resident()
    assert after - before < 3 << 20, f"{(after - before) / 2**20:.1f} MiB more after 8,000 calls"
    assert len(gc.get_objects()) - objects < 100, len(gc.get_objects()) - objects
    assert state.stats()["gpu_buffers"] == made, (state.stats(), made)


# ---- what it says --------------------------------------------------------------------------------

def check_log_and_progress():
    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append((record.levelname, record.getMessage()))
    logger = logging.getLogger("sconce")
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    seen = []
    model = sconce.Model(ROWS, device=sconce.Device(), progress=lambda done, all_: seen.append((done, all_)))
    model([[1] * 8])
    logger.setLevel(logging.WARNING)
    logger.removeHandler(handler)
    assert any(level == "INFO" and model.device.name in text for level, text in lines), lines
    assert any(level == "DEBUG" and "'forward'" in text for level, text in lines), lines
    assert seen and seen[-1][0] == seen[-1][1] > 0, seen

    bars = []

    class Bar:
        def __init__(self, desc, unit, unit_scale, leave):  # what the oldest tqdm has
            self.n, self.total, self.closed, self.behind = 0, 0, False, []
            bars.append(self)

        def set_postfix_str(self, text):
            self.behind.append(text)

        def update(self, n):
            self.n += n

        def close(self):
            self.closed = True

    fake = types.ModuleType("tqdm.auto")
    fake.tqdm = Bar
    sys.modules["tqdm"], sys.modules["tqdm.auto"] = types.ModuleType("tqdm"), fake
    sconce.Model(ROWS, progress=True)([[1] * 8])
    n = len(bars)
    assert any("kernels" in text for bar in bars for text in bar.behind), [bar.behind for bar in bars]
    with replaced(sconce._progress, "_watched", lambda: True), replaced(sconce._progress, "PATIENCE_S", 1000):
        sconce.Model(ROWS).method()
    assert len(bars) == n, "a bar for what loads quickly"
    del sys.modules["tqdm"], sys.modules["tqdm.auto"]
    assert bars and all(b.closed and b.n == b.total for b in bars), [vars(b) for b in bars]
    raises(KeyboardInterrupt, "", lambda: sconce.Model(ROWS, progress=interrupting))


def interrupting(_done, _all):
    raise KeyboardInterrupt


def check_an_interrupt_while_the_library_calls_is_heard():
    """As it says something to the log."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    handler = logging.Handler()
    handler.emit = lambda record: signal.raise_signal(signal.SIGINT)
    logger = logging.getLogger("sconce")
    logger.setLevel(logging.DEBUG)
    model = sconce.Model(MUL, device=sconce.Device())
    logger.addHandler(handler)
    try:
        raises(KeyboardInterrupt, "", model.method)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert flat(model(ONES, TWOS)) == [2] * 6


AS_ON_WINDOWS = """
import pathlib, sys, sconce.__main__ as command
command.folder = lambda: pathlib.Path(sys.argv.pop(1))
sys.platform = "win32"
command.main()
"""


def check_an_interrupt_is_for_the_command():
    """On Windows Python stays its parent, and must not end it before it has ended itself."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "sconce.exe"
        program.write_text("#!/bin/sh\ntrap 'sleep 1; echo ended $1; exit 3' INT\necho ready\nwhile :; do sleep 0.1; done\n")
        program.chmod(0o755)
        with subprocess.Popen([sys.executable, "-c", AS_ON_WINDOWS, folder, "word"], stdout=subprocess.PIPE, text=True,
                              start_new_session=True) as process:
            assert process.stdout.readline() == "ready\n"
            os.killpg(process.pid, signal.SIGINT)
            assert process.stdout.read() == "ended word\n"
        assert process.returncode == 3, process.returncode


def check_a_model_shows_itself():
    html = sconce.Model(ROWS)._repr_html_()
    for text in ("<table>", "<code>forward</code>", "float32 up to [8, 8]", "delegated.pte", "yes, "):
        assert text in html, (text, html)
    refused = sconce.Model(ROOT / "tests/data/format/every_kind.pte")._repr_html_()
    assert "<b>no</b>: 2 of" in refused and "<code>test.multi_output</code>" in refused, refused
    assert "forward" in repr(sconce.Model(ROWS)) and "float32 up to [8, 8]" in repr(sconce.Model(ROWS).method())
    report = sconce.inspect(ROWS, format="json")
    assert report["kind"] == "program" and report["methods"][0]["runs"], report
    assert sconce.inspect(ROWS.read_bytes(), format="graph").startswith("method forward")
    assert sconce.inspect(ROWS, "json") == report
    here = os.getcwd()
    os.chdir(ROWS.parent)
    try:
        named = sconce.Model(ROWS.name)
    finally:
        os.chdir(here)
    assert "<code>forward</code>" in named._repr_html_()
    assert [d.index for d in sconce.devices()] == list(range(len(sconce.devices())))


def check_inspect_is_the_commands():
    want = sys.stdin.read()
    assert sconce.Model(STORIES).inspect() == want


# ---- language models -----------------------------------------------------------------------------

def check_text_is_the_commands():
    """Standard input is what `sconce generate` wrote with the same seed."""
    want = sys.stdin.read()
    chat = sconce.Chat(STORIES, seed=7)
    answer = chat.generate("Once upon a time", max_new=24)
    pieces = list(answer)
    assert "Once upon a time" + "".join(pieces) == want, ("".join(pieces), want)
    assert answer.text == "".join(pieces) and len(pieces) > 12, pieces
    assert answer.result.stop == "count" and answer.result.new_tokens == 24, answer.result
    assert answer.result.prompt_seconds > 0 and answer.result.new_seconds > 0, answer.result
    assert chat.position == len(chat.ids) == answer.result.prompt_tokens + 24, chat
    assert chat.tokenizer.decode(chat.ids) == want


def check_answers_stop():
    chat = sconce.Chat(sconce.Model(STORIES), STORIES.parent / "tokenizer.bin", temperature=0)
    answer = chat.generate("Once upon a time", max_new=12, stop=["girl"])
    assert answer.read() == ", there was a little " and answer.result.stop == "text", answer
    assert chat.generate("Once upon a time", max_new=2).result is None  # dropped at once
    one = chat.generate("Once upon a time", ignore_end=True, stop=[","])
    assert one.read() == "" and one.result.new_tokens == 1 and one.result.new_seconds > 0, one.result  # in one step
    raises(ValueError, "max_new is -1", chat.generate, "Tom", max_new=-1)
    raises(ValueError, "top_k is -1", chat.generate, "Tom", top_k=-1)
    abandoned = chat.generate("One day")
    first = next(abandoned)
    other = chat.generate("Lily", max_new=2)
    assert list(abandoned) == [] and abandoned.result.stop == "caller" and abandoned.text == first, abandoned
    assert len(other.read()) > 1 and other.result.stop == "count"
    with chat.generate("Tom") as answer:
        next(answer)
    assert answer.result.stop == "caller"
    for piece in chat.generate("Tom"):
        break
    again = chat.generate(chat.tokenizer.encode("Once upon a time", bos=True), max_new=4)
    assert again.read() == ", there was a", again
    raises(sconce.Error, "the context has 256 positions", chat.generate("word " * 400).read, status=Status.BAD_ARGUMENT)
    raises(sconce.Error, "the vocabulary has", chat.generate([1, 10**6]).read, status=Status.BAD_ARGUMENT)
    raises(sconce.Error, "at least one id", chat.generate([]).read, status=Status.BAD_ARGUMENT)
    raises(ValueError, "close the Chat first", chat.tokenizer.close)
    under = chat.generate("Tom")
    next(under)
    chat.close()
    assert list(under) == [] or under.result.stop == "caller"
    raises(ValueError, "closed", chat.generate, "Tom")
    assert not chat.model.closed and chat.tokenizer.closed  # the path was its own to open


def check_a_chat_closes_what_it_opened():
    with sconce.Chat(STORIES) as chat:
        other = sconce.Chat(chat.model, chat.tokenizer, temperature=0)
    assert chat.model.closed and not chat.tokenizer.closed  # which is in use
    assert other.generate("Once upon a time", max_new=4).read() == ", there was a"
    model, tokenizer = sconce.Model(STORIES), sconce.Tokenizer(STORIES.parent / "tokenizer.bin")
    sconce.Chat(model, tokenizer).close()
    assert not model.closed and not tokenizer.closed
    with sconce.Chat(STORIES) as chat:
        pass
    assert chat.model.closed and chat.tokenizer.closed


def check_a_chat_opens_while_nobody_else_calls():
    """A model and a tokenizer are for one thread at a time."""
    model, tokenizer = sconce.Model(STORIES), sconce.Tokenizer(STORIES.parent / "tokenizer.bin")
    model.method()
    for thing in (model, tokenizer):
        opened = []
        thread = threading.Thread(target=lambda: opened.append(sconce.Chat(model, tokenizer)))
        with thing._lock:
            thread.start()
            time.sleep(0.5)
            assert not opened, thing
        thread.join()
        assert opened, thing


def check_an_interrupt_stops_an_answer():
    """Ctrl-C in the middle; the chat goes on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
    chat = sconce.Chat(STORIES, temperature=0)
    chat.generate("One day", max_new=1).read()
    for seconds in (0.3, 0.1, 0.03, 0.01, 0.003):  # on a fast device the answer may have ended by then
        chat.reset()
        answer = chat.generate("Once upon a time")
        next(answer)
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        try:
            timer.start()
            answer.read()
            timer.join()
            time.sleep(1)
        except KeyboardInterrupt:
            if answer.result.stop == "caller":
                break
    assert answer.result.stop == "caller" and answer.result.new_tokens < 250, answer.result
    assert chat.generate("Once upon a time", max_new=4).read() == ", there was a"


def check_an_interrupt_stops_a_prompt():
    """In the middle of a call that computes all of it; the next one is not stopped."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chat = sconce.Chat(STORIES, temperature=0)
    for _ in range(5):  # it may be done before the signal comes
        answer = chat.generate("One day " * 110, max_new=1)
        timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            answer.read()
        except KeyboardInterrupt:
            pass
        timer.join()
        if answer.result.new_tokens == 0 and chat.position == 0:
            break
        chat.reset()
    else:
        raise AssertionError((answer.result, chat.position))
    assert chat.generate("Once upon a time", max_new=4, stop=None).read() == ", there was a"

    def fail(*_):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.5)
        raise sconce.Error(Status.GPU_ERROR, "broken")

    with replaced(sconce._chat.lib, "session_prompt", fail):  # it ends, but not since it was cancelled
        raises(KeyboardInterrupt, "", chat.generate("Tom").read)
    assert chat.generate("Once upon a time", max_new=4).read() == ", there was a"
    chat.close()


def check_conversations():
    chat = sconce.Chat(STORIES, temperature=0, system="Be kind.")
    text = chat.send("One day, Lily", family="plain", max_new=4).read()
    assert [m["role"] for m in chat.messages] == ["system", "user", "assistant"], chat.messages
    assert chat.messages[-1]["content"] == text and text
    chat.send("and then", family="plain", max_new=2).read()
    assert len(chat.messages) == 5 and chat.messages[3]["content"] == "and then"
    whole = [{"role": "user", "content": "One day, Lily"}]
    alone = chat.send(whole, family="plain", max_new=3)
    next(alone)
    alone.close()
    assert len(chat.messages) == 2 and chat.messages[-1]["content"].startswith(alone.text), chat.messages
    assert len(whole) == 1  # the caller's list is the caller's
    before = list(chat.messages)

    def interrupt(*_):
        raise KeyboardInterrupt

    raises(sconce.Error, "the context has 256 positions", chat.send("word " * 400, family="plain").read)
    assert chat.messages == before, chat.messages
    with replaced(sconce._chat.lib, "session_prompt", interrupt):
        raises(KeyboardInterrupt, "", chat.send("Tom", family="plain").read)
    assert chat.messages == before, chat.messages
    chat.send("Tom", family="plain")  # and dropped
    assert chat.messages == before, chat.messages
    assert chat.send("Tom", family="plain", max_new=2).read() and len(chat.messages) == len(before) + 2
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "Gespräch 1")
        ids = chat.ids
        chat.save(path)
        chat.reset()
        assert chat.position == 0 and len(chat.messages) == 1
        chat.load(path)
        assert chat.ids == ids
    raises(sconce.Error, "is not known", chat.send, "Hello", family="nobody")
    template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools[0].name if tools }}"
    shown = chat.tokenizer.render([{"role": "user", "content": "Grüße"}], template=template, tools=[{"name": "f"}])
    assert shown == "<user>Grüßef", shown
    out = io.StringIO()
    with contextlib.redirect_stdout(out):  # what a notebook does with the last line of a cell
        chat.generate("Once upon a time", max_new=3, temperature=0)._ipython_display_()
    assert out.getvalue() == ", there was\n", out.getvalue()


def check_chats_share_a_model():
    """Two threads, a chat each, one tokenizer for both."""
    model, tokenizer = sconce.Model(STORIES), sconce.Tokenizer(STORIES.parent / "tokenizer.bin")
    chats = [sconce.Chat(model, tokenizer, temperature=0) for _ in range(2)]
    texts = {}

    def work(i):
        texts[i] = chats[i].generate("Once upon a time", max_new=6).read()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert texts == {0: ", there was a little girl", 1: ", there was a little girl"}, texts


def check_tokenizer():
    tokenizer = sconce.Tokenizer(STORIES.parent / "tokenizer.bin")
    assert tokenizer.kind == "llama2.c" and tokenizer.n_vocab == 32000 and tokenizer.bos == 1, tokenizer
    ids = tokenizer.encode("Once upon a time\0 naïve 🙂", bos=True)
    assert ids[0] == 1 and tokenizer.decode(ids) == "Once upon a time\0 naïve 🙂"
    assert tokenizer.encode("") == [] and tokenizer.decode([]) == ""
    raises(sconce.Error, "", tokenizer.decode, [40000], status=Status.BAD_ARGUMENT)
    raises(ValueError, "32 bits", tokenizer.decode, [2**40])
    data = (STORIES.parent / "tokenizer.bin").read_bytes()
    assert sconce.Tokenizer(data).encode("time") == tokenizer.encode("time")


# ---- NumPy ---------------------------------------------------------------------------------------

class OnlyDLPack:
    """As PyTorch's tensors: DLPack and no buffer protocol."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def check_numpy_arrays():
    import numpy as np
    model = sconce.Model(MUL)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = model(x, x)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32 and np.array_equal(y, x * x), y
    y += 1  # it belongs to the caller
    rows = {
        "columns first": np.asfortranarray(x),
        "a transposed view": np.ascontiguousarray(x.T).T,
        "every second column": np.repeat(x, 2, axis=1)[:, ::2],
        "backwards": x[::-1, ::-1].copy()[::-1, ::-1],
        "DLPack alone": OnlyDLPack(x),
    }
    for why, each in rows.items():
        assert np.array_equal(model(each, x), x * x), why
    before = sys.getrefcount(x)
    for _ in range(50):
        model(OnlyDLPack(x), x)
    assert sys.getrefcount(x) == before, "DLPack's reference was kept"
    raises(TypeError, "row-major order", model, OnlyDLPack(np.asfortranarray(x)), x)
    raises(TypeError, "other byte order", model, x.astype(">f4"), x)
    raises(TypeError, "format 'Zf'", model, x.astype(np.complex64), x)
    assert np.array_equal(model(x.astype(np.float64), x), x * x)
    rows = sconce.Model(ROWS)
    assert rows(np.ones((0, 8), np.float32)).shape == (0, 6)
    kept = model(x, x, keep=True)
    there = np.asarray(kept)
    assert there.dtype == np.float32 and np.array_equal(there, x * x), there
    assert np.asarray(kept, np.float64).dtype == np.float64
    raises(ValueError, "without a copy", kept.__array__, copy=False)
    assert np.array_equal(model(kept, x), x**3)


def check_numpy_calls_are_flat():
    import numpy as np
    model, x = sconce.Model(MUL), np.ones((2, 3), np.float32)

    def some(n):
        for _ in range(n):
            model(x, OnlyDLPack(x))
            np.asarray(model(x.T.copy().T, x, keep=True))
        gc.collect()

    some(1000)
    before, objects = resident(), len(gc.get_objects())
    some(4000)
    after = resident()
    assert after - before < 3 << 20, f"{(after - before) / 2**20:.1f} MiB more after 8,000 calls"
    assert len(gc.get_objects()) - objects < 100, len(gc.get_objects()) - objects


def check_numpy_is_the_commands():
    """Lines of standard input: a model, its input and the output that `sconce run` wrote, as .npy files."""
    import numpy as np
    for line in sys.stdin.read().splitlines():
        path, given, want = line.split("\t")
        y = sconce.Model(path)(np.load(given))
        assert np.array_equal(y, np.load(want)), path


def check_there_is_no_numpy():
    try:
        import numpy
    except ImportError:
        pass
    else:
        raise AssertionError(numpy.__file__)
    assert isinstance(sconce.Model(MUL)(ONES, TWOS), memoryview)
    assert sconce.__file__.startswith(sys.prefix), sconce.__file__
    assert sconce._native.folder().name == "native"


def main():
    for name in sys.argv[2:]:
        start = time.monotonic()
        globals()["check_" + name]()
        print(f"ok {name} {time.monotonic() - start:.1f}", flush=True)


if __name__ == "__main__":
    main()
