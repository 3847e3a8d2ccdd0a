"""Language models as a user meets them: generate, chat, bench. Most tests use a toy model of eight tokens, whose
context of eight positions is full within milliseconds; the shipped stories15M tells one golden's text."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import tempfile
import termios
import time

from support import ROOT, SCONCE, run

STORIES = ROOT / "models/stories15M/stories15M-4w.pte"


class Toy:
    """A folder with the toy model and a tokenizer for it: <unk> <s> and then pieces of one letter each."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.model = os.path.join(self.folder, "toy.pte")
        shutil.copy(ROOT / "tests/data/goldens/toy.pte", self.model)
        pieces = [b"<unk>", b"<s>", b" ", b"a", b"b", b"c", b"d", b"e"]
        header = struct.pack("<4i", len(pieces), 1, -1, 8)
        with open(os.path.join(self.folder, "tokenizer.bin"), "wb") as out:
            out.write(header + b"".join(struct.pack("<fi", 0, len(p)) + p for p in pieces))
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder)

    def generate(self, *options, **more):
        return run(SCONCE, "generate", "-m", self.model, *options, **more)


def test_generate_tells_the_goldens_story():
    golden = json.loads((ROOT / "models/stories15M/stories15M-4w.golden.json").read_text())
    text = next(c for c in golden["cases"] if c["name"] == "greedy")["text"]
    out, err = run(SCONCE, "generate", "-m", STORIES, "-p", "Once upon a time", "--temp", "0", "-n", "40")
    assert text.startswith(out) and len(out) > 150, out
    assert "tokenizer: " in err and "tokenizer.bin" in err, err
    assert "prompt 5 tokens" in err and "40 new tokens" in err and "tokens/s (count)" in err, err


def test_a_lost_device_is_one_line_and_the_text_goes_on():
    with Toy() as toy:
        whole, _ = toy.generate("-p", "a", "--temp", "0", "-n", "6")
        for step in ("1", "20", "40"):
            out, err = toy.generate("-p", "a", "--temp", "0", "-n", "6", env={"SCONCE_LOSE_AFTER": step})
            assert out == whole and err.count("the device is lost") == 1 and "opened again on" in err, (step, out, err)


def test_without_a_prompt_the_text_has_no_space_in_front():
    out, err = run(SCONCE, "generate", "-m", STORIES, "--temp", "0", "-n", "3")
    assert out == "Once upon a" and "prompt 1 token;" in err, (out, err)


def test_json_events_are_the_text():
    with Toy() as toy:
        plain, _ = toy.generate("-p", "a", "--temp", "0")
        out, err = toy.generate("-p", "a", "--temp", "0", "--json")
    events = [json.loads(line) for line in out.splitlines()]
    assert [e["event"] for e in events[:-1]] == ["text"] * (len(events) - 1) and events[-1]["event"] == "done", out
    assert "a" + "".join(e["text"] for e in events[:-1]) == plain
    assert all(e["logprob"] <= 0 and 0 <= e["id"] < 8 for e in events[:-1]), out
    assert events[-1]["stop"] == "context full" and err == "", (events[-1], err)


def test_the_seed_decides():
    with Toy() as toy:
        def text(seed):
            return toy.generate("-p", "a", "--temp", "5", "--top-p", "1", "--seed", seed)[0]
        assert text(3) == text(3)
        assert len({text(s) for s in range(6)}) > 1


def test_counts_and_stops():
    with Toy() as toy:
        whole, err = toy.generate("-p", "a", "--temp", "0", "-n", "0")
        assert "(context full)" in err, err
        one, err = toy.generate("-p", "a", "--temp", "0", "-n", "1")
        assert "1 new token (count)" in err and "(count)" in err and whole.startswith(one), err
        new = whole[1:].lstrip()
        last = new[-1]
        cut, err = toy.generate("-p", "a", "--temp", "0", "--stop", "never", "--stop", last, "--stop", "nor this")
        assert "(stop text)" in err and cut == whole[:whole.index(last, 1)], (whole, cut, err)


def test_prompts_from_files_and_pipes():
    with Toy() as toy:
        whole, _ = toy.generate("-p", "a", "--temp", "0")
        prompt = os.path.join(toy.folder, "prompt.txt")
        for text in ("a", "a\n", "a\r\n"):
            with open(prompt, "w", encoding="utf-8", newline="") as out:
                out.write(text)
            assert toy.generate("--prompt-file", prompt, "--temp=0")[0] == whole
            assert toy.generate("-f" + prompt, "--temp=0")[0] == whole
            for words in (["-f", "-"], ["-"], []):
                assert toy.generate("--temp=0", *words, stdin=text)[0] == whole, (text, words)
        assert toy.generate("-p", "a", "--temp=0", stdin="b")[0] == whole
        assert toy.generate("--temp=0", "-n1", stdin="a\n\n")[0].startswith("a\n")


def test_a_tokenizer_of_another_model_is_refused_before_anything_is_printed():
    stories = STORIES.parent / "tokenizer.bin"
    with Toy() as toy:
        for model, tokenizer, sentence in ((toy.model, stories, "has 32000 ids and the model 8:"),
                                           (STORIES, os.path.join(toy.folder, "tokenizer.bin"), "has 8 ids and the model 32000:")):
            out, err = run(SCONCE, "generate", "-m", model, "-t", tokenizer, "-p", "a", expect=1)
            assert sentence in err and "-t" in err and out == "", (out, err)


def test_a_prompt_is_kept_between_runs():
    def story(prompt, *more, **kind):
        return run(SCONCE, "generate", "-m", STORIES, "-p", prompt, "--temp=0", "-n4", *more, **kind)
    with tempfile.TemporaryDirectory() as folder:
        kept, other = os.path.join(folder, "kept"), os.path.join(folder, "notes.txt")
        first, err = story("Once upon a time", "--cache", kept)
        assert "kept)" not in err, err
        again, err = story("Once upon a time", "--cache", kept)
        assert again == first and "prompt 5 tokens (5 kept);" in err, err
        longer, err = story("Once upon a time, a frog", "--cache", kept)
        assert longer == story("Once upon a time, a frog")[0] and "(5 kept)" in err, err
        done = json.loads(story("Once upon a time, a frog", "--cache", kept, "--json")[0].splitlines()[-1])
        assert done["reused_tokens"] == done["prompt_tokens"] > 5, done
        with open(other, "w", encoding="utf-8") as out:
            out.write("a poem that nobody wants to lose")
        out, err = story("a", "--cache", other, expect=1)
        assert "no kept session, and it is left as it is" in err and out == "", err
        with open(other, encoding="utf-8") as text:
            assert text.read() == "a poem that nobody wants to lose"
        out, err = story("a", "--cache", f"{folder}/none/kept", expect=1)  # before there is any text
        assert "none/kept: No such file or directory" in err and out == "", err
        with Toy() as toy:  # another model's is not taken, which everybody hears
            _, err = run(SCONCE, "generate", "-m", toy.model, "-p", "a", "-n1", "--cache", kept)
            assert "; it is written anew" in err and kept in err, err


def test_wrong_usage_says_what():
    with Toy() as toy:
        for options, words in ((["-n", "-1"], "-n is '-1', expected 0"),
                               (["--temp", "hot"], "--temp is 'hot', expected 0 to 100"),
                               (["-p", "a", "--prompt-file", "b"], "not both"),
                               (["-p", "a", "-"], "not both"),
                               (["story"], "unexpected 'story'")):
            _, err = toy.generate(*options, expect=2)
            assert words in err, err
        _, err = toy.generate("-p", "abcde abcde", expect=1)
        assert "the context has 8 positions" in err, err
        _, err = toy.generate("--prompt-file", "/nonexistent", expect=1)
        assert "cannot read /nonexistent" in err, err
        os.remove(os.path.join(toy.folder, "tokenizer.bin"))
        _, err = toy.generate("-p", "a", expect=1)
        assert "no tokenizer beside" in err and "-t" in err, err
    _, err = run(SCONCE, "generate", "-p", "a", expect=2)
    assert "no model: give one with -m" in err, err
    _, err = run(SCONCE, "generate", "-m", "nothere.pte", "-p", "a", expect=1)
    assert "cannot read the model nothere.pte: No such file or directory" in err, err
    tokenizer = ROOT / "models/stories15M/tokenizer.bin"
    _, err = run(SCONCE, "generate", "-m", "/nonexistent.pte", "-t", tokenizer, expect=1)
    assert "/nonexistent.pte" in err and len(err.splitlines()) == 1, err
    _, err = run(SCONCE, "chat", "-m", STORIES, "--chat", "klingon", expect=2)
    assert "--chat is 'klingon', expected chatml" in err, err


def chat(*lines, options=()):
    return run(SCONCE, "chat", "-m", STORIES, "--chat", "plain", "--temp", "0", "-n", "4", *options,
               stdin="".join(line + "\n" for line in lines))


def test_chat_through_a_pipe():
    with tempfile.TemporaryDirectory() as folder:
        kept, broken = os.path.join(folder, "kept"), os.path.join(folder, "broken")
        for name in (broken, broken + ".messages"):
            with open(name, "w", encoding="utf-8") as out:
                out.write("user 3\nabc\n" if name.endswith("messages") else "no session")
        out, err = chat("/help", "Once upon a time", "/save " + kept, "/reset", "/stats", "/load " + kept, "/stats",
                        "/load " + broken, "/load", "/fly", "/quit", "never said")
        assert "/reset       start over" in out and "unknown command '/fly'" in out, out
        assert f"saved {kept}, 2 messages" in out and f"loaded {kept}, 2 messages" in out, out
        assert "position 0 of 256" in out and "last answer: " in out, out
        assert "it ends at byte 10, inside its header" in err and "name a file" in err, err
        assert "\033" not in out + err, "colours without a terminal"
        assert os.path.getsize(kept) > 100
        with open(kept + ".messages", "rb") as text:
            whole = text.read()
        chat("Tom was", "/save " + broken + "2")
        with open(broken + "2.messages", "rb") as text:
            other = text.read()
        for data, sentence in ((b"", "cut short"), (b"garbage", "no messages of a conversation"), (whole[:-1], "cut short"),
                               (whole[:20], "cut short"), (whole.replace(b"upon", b"UPON"), "their sum differs"),
                               (whole.replace(b"\nend 2", b"\nend 3"), "their sum differs"),
                               (b"user 99999999999999999999\n" + whole, "no messages"),
                               (other, "another session")):
            with open(kept + ".messages", "wb") as text:
                text.write(data)
            out, err = chat("/load " + kept, "/stats")
            assert f"cannot read {kept}.messages: " in err and sentence in err and "loaded" not in out, (sentence, out, err)


class Terminal:
    """A program under a terminal of its own."""

    def __init__(self, *command, **env):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 200, 0, 0))
        self.seen = b""
        def own():  # Ctrl-C and Ctrl-Z are signals to those who have the terminal
            os.setsid()
            fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
        self.process = subprocess.Popen([str(c) for c in command], stdin=slave, stdout=slave, stderr=slave,
                                        preexec_fn=own, env={**os.environ, "NODEVICE_SELECT": "1", **env})
        os.close(slave)

    def type(self, keys):
        os.write(self.master, keys)

    def text(self, seen):
        return seen

    def expect(self, words, limit_s=30):
        """Reads up to and including these words; what came before them."""
        end = time.monotonic() + limit_s
        while words not in self.seen:
            left = end - time.monotonic()
            assert left > 0 and select.select([self.master], [], [], left)[0], (words, self.seen)
            self.seen = self.text(self.seen + os.read(self.master, 4096))
        before, self.seen = self.seen.split(words, 1)
        return before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


def test_a_load_of_more_than_half_a_second_says_how_far_it_is():
    """It is held up every few milliseconds, so that any load takes long; then the line goes away."""
    terminal = Terminal(SCONCE, "generate", "-m", STORIES, "-p", "Once upon a time", "--temp", "0", "-n", "2")
    try:
        terminal.expect(b"tokenizer.bin")
        end = time.monotonic() + 30
        while b"loading" not in terminal.seen:
            assert time.monotonic() < end and b"Once" not in terminal.seen, terminal.seen
            terminal.process.send_signal(signal.SIGSTOP)
            time.sleep(0.1)
            terminal.process.send_signal(signal.SIGCONT)
            if select.select([terminal.master], [], [], 0.005)[0]:
                terminal.seen += os.read(terminal.master, 4096)
        shown = terminal.expect(b"Once upon a time").split(b"\r")
        first = next(line for line in shown if b"loading" in line).decode()
        assert re.fullmatch(r"loading stories15M-4w\.pte: \S+( \w+)? of 10\.5 MiB, \d+ of \d+ kernels\x1b\[K", first), shown
        assert shown[-1] == b"\x1b[K", shown
        terminal.expect(b"2 new tokens")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()


KERNELS_OF_A_GPU = {"SCONCE_DISABLE": "software"}  # there is time for a key before a story ends


def test_an_interrupt_ends_generate_as_the_signal_would():
    """A shell calls it 130, and its loop ends."""
    terminal = Terminal(SCONCE, "generate", "-m", STORIES, "--temp", "0", "-p", "Once upon a time", **KERNELS_OF_A_GPU)
    try:
        terminal.expect(b"there was")
        terminal.type(b"\x03")
        terminal.expect(b"(interrupted)")
        assert terminal.process.wait(20) == -signal.SIGINT
    finally:
        terminal.close()


def test_an_interrupt_is_heard_in_a_long_prompt():
    terminal = Terminal(SCONCE, "generate", "-m", STORIES, "--temp", "0", "-p", "One day " * 110)
    try:
        terminal.expect(b"prompt 64/")
        terminal.type(b"\x03")
        terminal.expect(b"0 new tokens (interrupted)")
        assert terminal.process.wait(20) == -signal.SIGINT
    finally:
        terminal.close()


def test_an_interrupt_does_not_wait_for_a_chunk():
    """What was not computed is not counted either. Five tries: a chunk may be done before the key is there."""
    for _ in range(5):
        terminal = Terminal(SCONCE, "generate", "-m", STORIES, "--temp", "0", "-p", "One day " * 110)
        try:
            terminal.expect(b"One day")
            terminal.type(b"\x03")
            said = terminal.expect(b"; 0 new tokens (interrupted)").rpartition(b"prompt ")[2]
            assert re.fullmatch(rb"\d+ of 222 tokens(, .* tokens/s)?", said), said
            if said == b"0 of 222 tokens":
                return
        finally:
            terminal.close()
    raise AssertionError(said)


def test_an_interrupt_stops_the_answer_only():
    terminal = Terminal(SCONCE, "chat", "-m", STORIES, "--chat", "plain", "--temp", "0", **KERNELS_OF_A_GPU)
    try:
        terminal.expect(b"> ")
        terminal.type(b"Once upon a time\r")
        terminal.expect(b"\033[36m")  # the answer's colour
        terminal.expect(b" ")
        terminal.process.send_signal(signal.SIGINT)
        terminal.expect(b"(stopped)")
        terminal.expect(b"> ")
        terminal.type(b"/stats\r")
        terminal.expect(b"last answer: ")
        terminal.expect(b"> ")
        terminal.type(b"\x04")
        assert terminal.process.wait(20) == 0
    finally:
        terminal.close()


def bench(*options, **more):
    return run(SCONCE, "bench", "-m", STORIES, "-p", "8", "-n", "2", "-d", "0", "-r", "1", *options, **more)


def test_bench_in_three_formats():
    results = json.loads(bench("-o", "json")[0])["results"]
    assert [(r["test"], r["tokens"], r["depth"]) for r in results] == [("pp", 8, 0), ("tg", 2, 0)], results
    assert all(r["tokens_per_s"] > 0 for r in results), results
    with Toy() as toy:
        options = ("-m", toy.model, "-p", "3,4", "-n", "2", "-d", "0,2", "-r", "2")
        rows = list(csv.DictReader(io.StringIO(run(SCONCE, "bench", *options, "-o", "csv")[0])))
        assert len(rows) == 6 and all(float(r["tokens_per_s"]) > 0 for r in rows), rows
        table = run(SCONCE, "bench", *options)[0]
        assert "| pp3 @ 0 | " in table and "| tg2 @ 2 | " in table and " ± " in table, table
        _, err = run(SCONCE, "bench", "-m", toy.model, "-p", "9", "-n", "0", expect=1)
        assert "9 tokens at depth 0 do not fit the context of 8" in err, err
        _, err = run(SCONCE, "bench", "-m", toy.model, "-p", "3,x", expect=2)
        assert "-p is 'x', expected up to" in err and len(err.splitlines()) == 1, err


def test_bench_lookup_says_what_it_is_worth():
    with Toy() as toy, tempfile.TemporaryDirectory() as folder:
        text = os.path.join(folder, "text")
        with open(text, "w") as file:
            file.write("a\n")
        options = (SCONCE, "bench", "-m", toy.model, "--lookup", text, "-n", "3", "-r", "2")
        whole = json.loads(run(*options, "-o", "json")[0])
        assert whole["tokens"] == whole["same"] == 3 and whole["prompt"] > 0, whole
        off, on = whole["results"]
        assert (off["lookup"], on["lookup"]) == ("off", "on") and off["guessed"] == off["accepted"] == 0, whole
        assert off["tokens_per_s"] > 0 and on["tokens_per_s"] > 0 and on["accepted"] <= on["guessed"], whole
        rows = list(csv.DictReader(io.StringIO(run(*options, "-o", "csv")[0])))
        assert [r["lookup"] for r in rows] == ["off", "on"], rows
        assert "| off | " in run(*options)[0]
        _, err = run(*options[:-4], "-n", "7", expect=1)
        assert "7 tokens do not fit the context of 8" in err, err
        _, err = run(SCONCE, "bench", "--lookup", text, "--memory", expect=2)
        assert "--profile and --lookup belong to -m MODEL" in err, err
        assert toy.generate("-p", "a", "--temp", "0", "-n", "3")[0] == \
            toy.generate("-p", "a", "--temp", "0", "-n", "3", "--no-lookup")[0]


def test_bench_profile_adds_up():
    with Toy() as toy:
        options = (SCONCE, "bench", "-m", toy.model, "--profile", "-d", "0,3", "-n", "3", "-r", "2")
        profiles = json.loads(run(*options, "-o", "json")[0])
        assert [p["depth"] for p in profiles] == [0, 3], profiles
        for p in profiles:
            assert sum(k["dispatches"] for k in p["kernels"]) == p["dispatches"] > 0, p
            assert abs(sum(k["us"] for k in p["kernels"]) - p["kernels_us"]) < 0.1, p
            assert abs(p["pass_us"] - p["kernels_us"] - p["gap_us"]) < 0.01 and p["pass_us"] > 0, p
            assert p["wall_us"] > 0 and p["submit_us"] > 0 and p["plan_us"] > 0, p
        rows = list(csv.DictReader(io.StringIO(run(*options, "-o", "csv")[0])))
        assert {"(pass_us)", "(wall_us)"} < {r["what"] for r in rows}, rows
        text = run(*options)[0]
        assert "One token at depth 3:" in text and "| wall clock of a token" in text and "distorts" in text, text
        _, err = run(*options[:-4], "-n", "8", expect=1)
        assert "9 tokens at depth 0 do not fit the context of 8" in err, err
        _, err = run(*options, env={"SCONCE_DISABLE": "timestamps"}, expect=1)
        assert "timestamps are not in use" in err, err
    run(SCONCE, "bench", "--memory", "--profile", expect=2)
