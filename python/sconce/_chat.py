"""Language models: tokenizers, and conversations that stream."""

import contextlib
import ctypes
import json
import os
import random
import threading
import time
import weakref
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, TypeVar, Union

from . import _abi
from ._abi import Decode, Encode, Status
from ._model import File, Model, stats_of
from ._native import Error, Handle, address_of, filled, lib, path_bytes, utf8

Message = Dict[str, Any]
_Opened = TypeVar("_Opened", bound=Handle)


# ---- tokenizers ----------------------------------------------------------------------------------

class Tokenizer(Handle):
    """Text to token ids and back, from the file that a model came with: Hugging Face ``tokenizer.json``, SentencePiece
    or tiktoken ``tokenizer.model``, llama2.c ``tokenizer.bin``; which one it is shows in its content. A
    ``tokenizer_config.json`` and a ``chat_template.jinja`` beside it are read too. ``source`` may be the file's bytes.

    ``kind``, ``n_vocab``, ``bos``, ``eos`` (None: there is none), ``add_bos``, ``chat_template`` and
    ``chat_template_error`` (why it cannot be used) say what it is.
    """

    _closed_by = "tokenizer_close"

    def __init__(self, source: File, *, config: Optional[bytes] = None):
        desc = _abi.tokenizer_desc()
        views = []
        if isinstance(source, (bytes, bytearray, memoryview)):
            views = [memoryview(source), memoryview(config or b"")]
            desc.data, desc.size = address_of(views[0]), views[0].nbytes
            if config:
                desc.config, desc.config_size = address_of(views[1]), views[1].nbytes
        else:
            desc.path = path_bytes(source)
        self._chats: Any = weakref.WeakSet()
        handle = self._own()
        with self._lock:
            lib.tokenizer_open(ctypes.byref(handle), ctypes.byref(desc))
            del views  # borrowed during the call only
            self._describe(lib.tokenizer_describe(handle).contents)

    def _describe(self, info: _abi.tokenizer_info) -> None:
        self.kind: str = info.kind.decode()
        self.n_vocab: int = info.n_vocab
        self.bos: Optional[int] = info.bos if info.bos >= 0 else None
        self.eos: Optional[int] = info.eos if info.eos >= 0 else None
        self.add_bos: bool = info.add_bos
        self.chat_template: Optional[str] = _text(info.chat_template)
        self.chat_template_error: Optional[str] = _text(info.chat_template_error)

    def encode(self, text: str, *, bos: bool = False, special: bool = False, continues: bool = False) -> List[int]:
        """The ids of a text. ``bos`` puts the begin token in front; ``special`` reads ``<|im_end|>`` and the like as
        their tokens, which is never for text from someone else; ``continues`` says that other text is in front."""
        flags = (Encode.BOS if bos else 0) | (Encode.SPECIAL if special else 0) | (Encode.CONTINUES if continues else 0)
        data = text.encode("utf-8")
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        with self._lock:
            lib.tokenizer_encode(self._handle, data, len(data), flags, ctypes.byref(ids), ctypes.byref(n))
            return ids[:n.value]

    def decode(self, ids: Iterable[int], *, special: bool = False, continues: bool = False) -> str:
        """The text of ids; ``special`` shows special tokens, ``continues`` keeps a leading space."""
        flags = (Decode.SPECIAL if special else 0) | (Decode.CONTINUES if continues else 0)
        array = _ids(ids)
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        with self._lock:
            lib.tokenizer_decode(self._handle, array, len(array), flags, ctypes.byref(text), ctypes.byref(size))
            return ctypes.string_at(text.value or 0, size.value).decode("utf-8") if size.value else ""

    def special(self, text: str) -> Optional[int]:
        """The id of a special token by its text, or None."""
        with self._lock:
            found = lib.tokenizer_special(self._handle, utf8(text))
        return found if found >= 0 else None

    def render(self, messages: Sequence[Message], *, tools: Any = None, think: Optional[bool] = None,
               template: Optional[str] = None, family: Optional[str] = None, closed: bool = False) -> str:
        """A conversation as the model was trained to read it, as text; see :meth:`Chat.send` for the options.
        ``closed`` does not open the assistant's turn at the end."""
        desc = _conversation(messages, tools, think, template, family, closed)
        text, size = ctypes.c_void_p(), ctypes.c_size_t()
        with self._lock:
            lib.chat_text(self._handle, ctypes.byref(desc), ctypes.byref(text), ctypes.byref(size))
            return ctypes.string_at(text.value or 0, size.value).decode("utf-8") if size.value else ""

    def _chat_ids(self, desc: _abi.chat_desc) -> List[int]:
        ids, n = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t()
        with self._lock:
            lib.chat_encode(self._handle, ctypes.byref(desc), ctypes.byref(ids), ctypes.byref(n))
            return ids[:n.value]

    def _in_use(self) -> bool:
        return any(not chat.closed for chat in self._chats)

    def close(self) -> None:
        """Gives back its memory; a chat that uses it must be closed before."""
        with self._lock:
            if self._in_use():
                raise ValueError("a Chat uses this Tokenizer: close the Chat first")
            super().close()

    def __repr__(self) -> str:
        return f"<sconce.Tokenizer {self.kind}, {self.n_vocab} ids{', closed' if self.closed else ''}>"


def _text(text: Optional[bytes]) -> Optional[str]:
    return None if text is None else text.decode("utf-8", "replace")


def _ids(ids: Iterable[int]) -> Any:
    values = [int(i) for i in ids]
    if any(not -2**31 <= i < 2**31 for i in values):
        raise ValueError("a token id has at most 32 bits")
    return (ctypes.c_int32 * len(values))(*values)


def _conversation(messages: Sequence[Message], tools: Any, think: Optional[bool], template: Optional[str],
                  family: Optional[str], closed: bool = False) -> _abi.chat_desc:
    states = {None: _abi.Think.DEFAULT, True: _abi.Think.ON, False: _abi.Think.OFF}
    return _abi.chat_desc(conversation=json.dumps({"messages": list(messages)}).encode(),
                          tools=None if tools is None else json.dumps(tools).encode(), think=states[think],
                          chat_template=utf8(template), family=utf8(family), closed=closed)


def _tokenizer_beside(model: Model) -> Tokenizer:
    for name in ("tokenizer.json", "tokenizer.model", "tokenizer.bin"):
        path = os.path.join(os.path.dirname(model.path or ""), name)
        if model.path and os.path.exists(path):
            return Tokenizer(path)
    raise ValueError(f"there is no tokenizer beside {model.path or 'a model from memory'}: name one with tokenizer=")


def _interruptible(call: Callable[[], None], session: int) -> None:
    """Python hears of Ctrl-C in its main thread and not before the library returns: so another one waits for that."""
    if threading.current_thread() is not threading.main_thread():
        return call()
    failed: List[BaseException] = []
    wanted, begin = False, threading.Event()
    done = threading.Event()  # not join: where that is interrupted, it takes a thread that runs for one that ended

    def work() -> None:
        begin.wait()
        try:
            if wanted:
                call()
        except BaseException as why:
            failed.append(why)
        finally:
            done.set()

    try:
        threading.Thread(target=work, daemon=True).start()
        wanted = True
        begin.set()
        while not done.wait(0.05):
            pass
    except BaseException:
        begin.set()
        if not wanted:
            raise
        lib.session_cancel(session)
        while not done.is_set():  # nobody else may use it before; another Ctrl-C changes nothing
            with contextlib.suppress(KeyboardInterrupt):
                done.wait(0.05)
        if not any(isinstance(why, Error) and why.status is Status.CANCELLED for why in failed):
            with contextlib.suppress(Error):  # it had ended before: what is cancelled now is this, and no later prompt
                lib.session_next(session, ctypes.byref(_abi.choice()))
        raise
    if failed:
        raise failed[0]


# ---- answers -------------------------------------------------------------------------------------

class Result(NamedTuple):
    """How an answer ended. ``stop`` is "end" (the model said so), "text" (a stop string), "count" (max_new), "context"
    (it is full), "caller" (it was closed or interrupted). Tokens that were in the timeline already are ``reused``."""

    stop: str
    prompt_tokens: int
    reused_tokens: int
    new_tokens: int
    prompt_seconds: float
    new_seconds: float


class Answer(Iterator[str]):
    """Text as it comes: iterate over it, or :meth:`read` it to the end. Pieces are whole characters, and never a part
    of a stop string. ``text`` is what has come so far, ``result`` how it ended (None before that).

    Every step computes one token, so that Ctrl-C, a ``break`` or :meth:`close` stops it there, and the chat goes on
    from what was read; Ctrl-C also stops a long prompt. The next call of its chat stops it too. In a notebook, an answer as the last line of a cell shows
    itself as it comes.
    """

    def __init__(self, chat: "Chat", ids: Sequence[int], max_new: int, stop: Union[None, str, Sequence[str]],
                 ignore_end: bool):
        if max_new < 0:
            raise ValueError(f"max_new is {max_new}, expected 0 or more")
        self.text = ""
        self._ended: Optional[str] = None  # how
        self._chat, self._ids, self._max_new, self._ignore_end = chat, list(ids), max_new, ignore_end
        self._stops = [s for s in ([stop] if isinstance(stop, str) else stop or ()) if s]
        self._held = ""  # text that may yet become a stop string
        self._reused = min(chat._common(self._ids), len(self._ids) - 1)  # the last one's logits are wanted
        self._prompted = self._reused
        self._n_new = 0
        self._seconds = [0.0, 0.0]  # of the prompt, of new tokens
        flags = 0 if self._ids and self._ids[-1] == chat.tokenizer.bos else Decode.CONTINUES
        self._stream = _abi.stream(tokenizer=chat.tokenizer._handle, flags=flags)

    @property
    def result(self) -> Optional[Result]:
        """How it ended, as a :class:`sconce.Result`; None before that."""
        if self._ended is None:
            return None
        return Result(self._ended, len(self._ids), self._reused, self._n_new, *self._seconds)

    def __iter__(self) -> "Answer":
        return self

    def __next__(self) -> str:
        piece = ""
        while not piece and self._ended is None:
            start = time.perf_counter()
            which = int(self._prompted == len(self._ids))
            try:
                with self._chat._lock:
                    piece = self._step()
            except BaseException:
                self.close()
                raise
            finally:
                self._seconds[which] += time.perf_counter() - start
        if not piece:
            raise StopIteration
        self.text += piece
        return piece

    def _step(self) -> str:
        """A part of the prompt, or one token: the text that can be shown after it."""
        chat = self._chat
        if chat._answer() is not self or chat.closed:
            self._end("caller")
            return ""
        if self._prompted < len(self._ids):
            self._prompted = chat._prompt(self._ids, self._prompted)
            return ""
        if self._max_new and self._n_new == self._max_new:
            return self._finish("count")
        full = chat.position == chat.context  # one more can be shown, and not added
        token = chat._choose(full)
        if not self._ignore_end and chat._is_end(token):
            if not full:
                lib.session_rewind(chat._handle, chat.position - 1)
            return self._finish("end")
        self._n_new += 1
        shown = self._show(chat._push(self._stream, token))
        return shown + self._finish("context") if full and self._ended is None else shown

    def _show(self, text: str) -> str:
        """What of the text is no stop string, nor may become one."""
        held = self._held + text
        found = [at for at in map(held.find, self._stops) if at >= 0]
        if found:
            self._held = ""
            self._end("text")
            return held[:min(found)]
        tail = max((n for stop in self._stops for n in range(1, len(stop)) if held.endswith(stop[:n])), default=0)
        self._held = held[len(held) - tail:]
        return held[:len(held) - tail]

    def _finish(self, why: str) -> str:
        """The text that was held back, for a character or a stop string."""
        shown = self._show(self._chat._push(self._stream, None)) + self._held
        self._held = ""
        self._end(why)
        return shown

    def _end(self, why: str) -> None:
        if self._ended is None:
            self._ended = why

    def read(self) -> str:
        """Waits for the end and returns the whole text."""
        for _ in self:
            pass
        return self.text

    def close(self) -> None:
        """Stops it. What has been generated stays in the chat's timeline."""
        self._end("caller")

    def __enter__(self) -> "Answer":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _ipython_display_(self) -> None:
        print(self.text, end="", flush=True)
        for piece in self:
            print(piece, end="", flush=True)
        print()

    def __repr__(self) -> str:
        return f"<sconce.Answer {self.text!r}, {self._ended or 'under way'}>"


class Reply(Answer):
    """An answer that becomes a message of the conversation when it has ended. Where it failed or was stopped before its
    first token, the conversation is what it was before the question."""

    _asked: Optional[List[Message]] = None  # the conversation that waits for it
    _before: List[Message]

    def __next__(self) -> str:
        try:
            return super().__next__()
        finally:
            self._add()

    def close(self) -> None:
        super().close()
        self._add()

    def _add(self) -> None:
        if self._ended is None or self._asked is None:
            return
        asked, self._asked = self._asked, None
        if self._n_new or self._ended != "caller":
            asked.append({"role": "assistant", "content": self.text})
        elif self._chat.messages is asked:
            self._chat.messages = self._before

    def __del__(self) -> None:
        if self._asked is not None:
            self.close()


# ---- chats ---------------------------------------------------------------------------------------

class Chat(Handle):
    """A language model that writes: texts from prompts, and conversations.

    ``model`` is a :class:`sconce.Model` or the path of one; ``tokenizer`` a :class:`sconce.Tokenizer` or the path of
    one, by default the one that lies beside the model. How the next token is chosen: ``temperature`` (0 takes the
    likeliest), ``top_k``, ``top_p``, ``min_p``, ``repetition_penalty`` and ``seed`` (the same seed gives the same text;
    None: another one every time); each call may say otherwise. ``system`` is the first message of a conversation. ::

        chat = sconce.Chat("model.pte")
        for piece in chat.generate("Once upon a time", max_new=100):
            print(piece, end="", flush=True)
        print(chat.send("What is the capital of France?").read())

    Many chats can share a model: its weights are on the device once. A chat is for one thread at a time. Closing it
    closes the model and the tokenizer, too, where it opened them itself.
    """

    _closed_by = "session_close"

    def __init__(self, model: Union[Model, File], tokenizer: Union[Tokenizer, File, None] = None, *,
                 method: str = "forward", temperature: float = 0.8, top_k: int = 0, top_p: float = 0.95,
                 min_p: float = 0.0, repetition_penalty: float = 1.0, seed: Optional[int] = None,
                 system: Optional[str] = None):
        self._opened: List[Handle] = []  # what goes with it
        self.model = model if isinstance(model, Model) else self._opens(Model(model))
        if tokenizer is None:
            tokenizer = self._opens(_tokenizer_beside(self.model))
        self.tokenizer = tokenizer if isinstance(tokenizer, Tokenizer) else self._opens(Tokenizer(tokenizer))
        self._method = self.model.method(method)  # opened with progress, and kept open
        self._settings = dict(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                              repetition_penalty=repetition_penalty)
        self._seed = seed
        self._answer: Any = lambda: None  # a weak reference to the one under way
        self._system = system
        #: The conversation so far: ``{"role": …, "content": …}``, …
        self.messages: List[Message] = []
        self._forget_messages()
        # Where the device is the CPU, drawing there costs more than the wait for the host.
        software = self.model.device.info.type == "software"
        sampler = self._sampler({}, seed)
        handle = self._own((self.tokenizer, self.model._alive))
        with self._lock, self.model._lock, self.tokenizer._lock:
            desc = _abi.session_desc(model=self.model._handle, method=utf8(method), tokenizer=self.tokenizer._handle,
                                     sampler=sampler, host_chooses=software and temperature > 0)
            lib.session_open(ctypes.byref(handle), ctypes.byref(desc))
            self.tokenizer._chats.add(self)
            self._info = lib.session_describe(handle).contents  # valid until close
            self._ends = self._program_ends()

    def _opens(self, thing: _Opened) -> _Opened:
        self._opened.append(thing)
        return thing

    def _sampler(self, changes: Dict[str, Any], seed: Optional[int]) -> _abi.sampler_desc:
        settings = {**self._settings, **{k: v for k, v in changes.items() if v is not None}}
        return filled(_abi.sampler_desc, seed=random.getrandbits(53) if seed is None else seed, **settings)

    def generate(self, prompt: Union[str, Sequence[int]], *, max_new: int = 0, stop: Union[None, str, Sequence[str]] = (),
                 temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
                 min_p: Optional[float] = None, repetition_penalty: Optional[float] = None,
                 seed: Optional[int] = None, ignore_end: bool = False) -> Answer:
        """What the model adds to a prompt (a text, or token ids), as an :class:`Answer` to iterate over. It ends after
        ``max_new`` tokens (0: as many as fit), before one of the texts ``stop``, or where the model ends it, unless
        ``ignore_end``. What the prompt has in common with the chat's timeline is not computed again."""
        if isinstance(prompt, str):
            info = self.tokenizer
            ids = info.encode(prompt, bos=info.bos is not None and (info.add_bos or not prompt))
        else:
            ids = [int(i) for i in prompt]
        return self._begin(Answer(self, ids, max_new, stop, ignore_end), seed, temperature=temperature, top_k=top_k,
                           top_p=top_p, min_p=min_p, repetition_penalty=repetition_penalty)

    def send(self, messages: Union[str, Sequence[Message]], *, tools: Any = None, think: Optional[bool] = None,
             template: Optional[str] = None, family: Optional[str] = None, max_new: int = 0, stop: Union[None, str, Sequence[str]] = (),
             temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
             min_p: Optional[float] = None, repetition_penalty: Optional[float] = None,
             seed: Optional[int] = None) -> Answer:
        """The assistant's answer. A text is the user's next message; a list of messages, ``{"role": …, "content": …}``
        and whatever else the template knows, is the whole conversation from now on. The answer is added to
        :attr:`messages` when it has ended, however it ended; where no token came, since it failed or was stopped, they
        are what they were before.

        The conversation is written by the model's own template, else by ``family``'s rules ("chatml", "smollm2",
        "llama3", "llama2", "plain") or a ``template`` in Jinja. ``tools`` is a list of what the model may call, as
        templates expect it; ``think`` sets ``enable_thinking``. Only what the template wrote can be a special token."""
        current = self._answer()
        if current is not None:
            current.close()  # its message comes before this one
        one = isinstance(messages, str)
        asked: List[Message] = [*self.messages, {"role": "user", "content": messages}] if one else [*messages]
        ids = self.tokenizer._chat_ids(_conversation(asked, tools, think, template, family))
        reply = Reply(self, ids, max_new, stop, False)
        self._begin(reply, seed, temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p,
                    repetition_penalty=repetition_penalty)
        reply._before, reply._asked, self.messages = self.messages, asked, asked
        return reply

    def _begin(self, answer: Answer, seed: Optional[int], **changes: Any) -> Answer:
        sampler = self._sampler(changes, self._seed if seed is None else seed)
        with self._lock:
            self._stop()
            lib.session_set_sampler(self._handle, ctypes.byref(sampler))
            self._answer = weakref.ref(answer)
        return answer

    def _stop(self) -> None:
        """Whoever changes the timeline ends the answer that is under way."""
        answer, self._answer = self._answer(), lambda: None
        if answer is not None:
            answer.close()

    # What an answer's steps are made of; the chat's lock is held.

    def _program_ends(self) -> List[int]:
        """Ids that the program itself names as ends."""
        ends: List[int] = []
        try:
            while len(ends) < 16:
                ends.append(self.model.constant("get_eos_ids", len(ends)).i)
        except Error as why:
            if why.status is not Status.UNSUPPORTED:
                raise
        return ends

    def _is_end(self, token: int) -> bool:
        with self.tokenizer._lock:
            return token in self._ends or lib.tokenizer_is_end(self.tokenizer._handle, token)

    def _common(self, ids: Sequence[int]) -> int:
        """How many of the first ids are in the timeline already."""
        n = 0
        for have, want in zip(self.ids, ids):
            if have != want:
                break
            n += 1
        return n

    def _prompt(self, ids: Sequence[int], done: int) -> int:
        """One call's worth of a prompt."""
        n = min(len(ids), max(done, 0) + self._info.chunk)
        if len(ids) > self.context:
            n = len(ids)  # the library says what is wrong
        wanted = _ids(ids[:n])
        session = self._handle
        _interruptible(lambda: lib.session_prompt(session, wanted, n, None, None), session)
        return n

    def _choose(self, full: bool) -> int:
        choice = _abi.choice()
        (lib.session_choose if full else lib.session_next)(self._handle, ctypes.byref(choice))
        return choice.id

    def _push(self, stream: _abi.stream, token: Optional[int]) -> str:
        """The text that a token completes; None: what is left at the end."""
        size = ctypes.c_size_t()
        with self.tokenizer._lock:
            if token is None:
                text = lib.stream_end(ctypes.byref(stream), ctypes.byref(size))
            else:
                text = lib.stream_push(ctypes.byref(stream), token, ctypes.byref(size))
            return ctypes.string_at(text, size.value).decode("utf-8") if size.value else ""

    def _forget_messages(self) -> None:
        self.messages = [{"role": "system", "content": self._system}] if self._system else []

    def reset(self) -> None:
        """Forgets the conversation and the timeline."""
        with self._lock:
            self._stop()
            lib.session_rewind(self._handle, 0)
            self._forget_messages()

    @property
    def position(self) -> int:
        """Tokens of the timeline so far."""
        with self._lock:
            self._handle  # raises if it is closed
            return self._info.position

    @property
    def context(self) -> int:
        """Tokens that fit."""
        with self._lock:
            self._handle
            return self._info.context

    @property
    def ids(self) -> List[int]:
        """The timeline: every token so far."""
        n = ctypes.c_size_t()
        with self._lock:
            found = lib.session_ids(self._handle, ctypes.byref(n))
            return found[:n.value]

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the timeline with its keys and values to a file; messages are the caller's to keep."""
        with self._lock:
            self._stop()
            lib.session_save(self._handle, path_bytes(path))

    def load(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Takes up a timeline that was saved with the same model."""
        with self._lock:
            self._stop()
            lib.session_load(self._handle, path_bytes(path))

    def stats(self) -> Dict[str, int]:
        """Bytes and counts of what is alive, as :meth:`State.stats`."""
        with self._lock:
            return stats_of(lib.session_state(self._handle))

    def close(self) -> None:
        """Stops the answer that is under way, and gives back the timeline, the model and the tokenizer; those that were
        given to it stay open."""
        with self._lock:
            self._stop()
            super().close()
        for thing in reversed(self._opened):
            if not (isinstance(thing, Tokenizer) and thing._in_use()):  # by another chat
                thing.close()

    def __repr__(self) -> str:
        if self.closed:
            return "<sconce.Chat, closed>"
        return f"<sconce.Chat of {self.model.title!r}, {self.position} of {self.context} tokens>"
