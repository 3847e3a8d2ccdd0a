"""Chat in a real terminal: what is on the screen after keys were pressed, at several widths and in two locales."""

import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import time

from support import SCONCE, Skip, run
from test_llm import STORIES, Toy

LINE = "The quick brown fox jumps over the lazy dog, and él wörld 日本語 goes on past the edge of it 1234567890"


class Screen:
    """sconce chat in a window of tmux, with a home of its own."""

    def __init__(self, width, folder, *options, model=STORIES, locale="C.UTF-8", shell="sh", after="sleep 100"):
        if not shutil.which("tmux"):
            raise Skip("there is no tmux")
        self.folder = folder
        self.socket = f"{tempfile.mkdtemp(dir=folder)}/tmux"  # the server before this one may still be ending
        command = [str(SCONCE), "chat", "-m", str(model), "--chat", "plain", "--temp", "0", *options]
        env = f"LC_ALL={locale} NODEVICE_SELECT=1 HOME={folder} XDG_STATE_HOME={folder}/state"
        self.tmux("-f", "/dev/null", "new-session", "-d", "-s", "chat", "-x", str(width), "-y", "40",
                  f"exec env {env} {shell} -c \"{' '.join(command)}; echo status \\$?; {after}\"")
        self.wait(lambda text: text.rstrip().endswith(">"))

    def tmux(self, *words, stdin=""):
        done = subprocess.run(["tmux", "-S", self.socket, "-u", *words], capture_output=True, text=True, input=stdin,
                              check=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        return done.stdout

    def text(self, above=False):
        """What is shown, and what went out above; rows that were broken at the edge stay broken."""
        return self.tmux("capture-pane", "-p", *(["-S", "-"] if above else []), "-t", "chat")

    def resize(self, width):
        """Returns when the program was told."""
        self.tmux("resize-window", "-t", "chat", "-x", str(width))
        with open(self.tmux("display-message", "-p", "-t", "chat", "#{pane_tty}").strip(), "rb") as terminal:
            self.wait(lambda _: os.get_terminal_size(terminal.fileno()).columns == width)

    def wait(self, seen, limit_s=60):
        end = time.monotonic() + limit_s
        while not seen(self.text()):
            assert time.monotonic() < end, self.text()
            time.sleep(0.05)

    def type(self, text):
        self.tmux("send-keys", "-t", "chat", "-l", text)

    def keys(self, *names):
        self.tmux("send-keys", "-t", "chat", *names)

    def paste(self, text):
        self.tmux("load-buffer", "-", stdin=text)
        self.tmux("paste-buffer", "-p", "-t", "chat")

    def line(self):
        """The rows from the last prompt on, put together."""
        return ("\n" + self.text()).rstrip().rpartition("\n>")[2].replace("\n", "").replace(" ", "")

    def wait_line(self, text):
        self.wait(lambda _: self.line() == text.replace(" ", ""))

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)


def on_screen(test, *widths, **more):
    for width in widths:
        with tempfile.TemporaryDirectory() as folder:
            screen = Screen(width, folder, **more)
            try:
                test(screen)
            finally:
                screen.close()


def test_lines_wrap_at_every_width_and_in_both_locales():
    def edit(screen):
        screen.type(LINE)
        screen.wait_line(LINE)
        assert screen.text().count("quick") == 1, screen.text()  # past the edge no key prints the line again
        screen.keys("C-w")  # a word back
        screen.wait_line(LINE[:-10])
        screen.keys("C-a", "M-f", "M-f")
        screen.type("ly")
        screen.wait_line(LINE[:-10].replace("quick", "quickly"))
        screen.keys("C-e", "C-Left", "C-Left", *["BSpace"] * 5)
        screen.wait_line(LINE[:-10].replace("quick", "quickly").replace("edge ", ""))
        screen.keys("C-c")  # drops the line
        screen.wait_line("")
        screen.type("日本é")
        screen.keys("BSpace", "Left", "BSpace")
        screen.wait_line("本")
        screen.keys("C-c", "C-d")
        screen.wait(lambda text: "status 0" in text)
    with Toy() as toy:
        on_screen(edit, 40, 80, 200, model=toy.model)
        on_screen(edit, 80, model=toy.model, locale="C")


def test_a_new_size_of_the_window_draws_the_line_anew():
    """Once, and nothing above it is lost."""
    def resize(screen):
        for _ in range(2):
            screen.type("/help")
            screen.keys("Enter")
        screen.wait(lambda text: text.count("/quit") == 2 and text.rstrip().endswith("\n>"))
        screen.type(LINE)
        screen.wait_line(LINE)
        for width in (50, 120, 60, 80, 40, 200, 41, 42, 43, 120, 20, 80):
            screen.resize(width)
            screen.type("x")
            screen.wait_line(LINE + "x")
            shown = screen.text(above=True)  # tmux scrolls when it breaks rows
            assert shown.count("> The quick") == 1 and shown.count("/quit") == 2, shown
            screen.keys("C-a", "C-e", "BSpace")  # the cursor knows where it is
            screen.wait_line(LINE)
    with Toy() as toy:
        on_screen(resize, 80, model=toy.model)


def test_an_interrupt_drops_a_message_that_was_begun():
    def drop(screen):
        screen.type("one \\")
        screen.keys("Enter")
        screen.wait(lambda text: text.rstrip().endswith("\n."))
        screen.type("two")
        screen.keys("C-c")  # all of the message
        screen.wait_line("")
        assert "leaves" not in screen.text()
        screen.type("/help")  # not the rest of the message
        screen.keys("Enter")
        screen.wait(lambda text: "/quit" in text and text.rstrip().endswith("\n>"))
        screen.keys("C-c")
        screen.wait(lambda text: "(Ctrl-C again or Ctrl-D leaves)" in text)
        screen.type("x")
        screen.keys("C-c", "C-c")  # another line: it is said again
        screen.wait(lambda text: text.count("leaves)") == 2)
        screen.keys("C-c")
        screen.wait(lambda text: "status 130" in text)
    with Toy() as toy:
        on_screen(drop, 40, 80, model=toy.model)


def test_several_lines_are_one_message_and_are_remembered():
    with tempfile.TemporaryDirectory() as folder:
        def messages(nth):
            screen.keys("Enter")
            screen.type("/save " + kept)
            screen.keys("Enter")
            screen.wait(lambda text: text.count("\nsaved") == nth and text.rstrip().endswith("\n>"))
            with open(kept + ".messages", encoding="utf-8") as text:
                return text.read()

        kept = os.path.join(folder, "kept")
        screen = Screen(80, folder, "-n", "2")
        try:
            screen.paste("Lily saw\na cat\n")
            screen.wait_line("Lily saw a cat")
            assert "user 14\nLily saw\na cat\n" in messages(1)
            screen.keys("C-r")
            screen.type("saw")
            screen.keys("C-a")  # takes what was found
            screen.wait_line("Lily saw a cat")
            screen.keys("C-c")
            screen.type("She was")
            screen.keys("M-Enter")
            screen.type("glad\\")
            screen.keys("Enter")
            screen.type("today")
            assert "user 18\nShe was\nglad\ntoday\n" in messages(2)
            screen.type("/quit")
            screen.keys("Enter")
            screen.wait(lambda text: "status 0" in text)
        finally:
            screen.close()
        assert os.stat(f"{folder}/state/sconce/chat_history").st_mode & 0o77 == 0
        screen = Screen(80, folder)
        try:
            screen.keys("Up", "Up", "Up")
            screen.wait_line("She was glad today")
            screen.keys("C-c", "C-c")
            screen.wait(lambda text: "(Ctrl-C again or Ctrl-D leaves)" in text)
            screen.keys("C-c")
            screen.wait(lambda text: "status 130" in text)
        finally:
            screen.close()


def test_a_long_paste_is_one_message():
    """All of it, and nothing of it is taken for keys."""
    text = "\n".join(f"line {i} of a text that is long and goes on" for i in range(2200))
    def paste(screen):
        screen.paste(text + "\n")
        screen.wait(lambda shown: shown.rstrip().endswith("line 2199 of a text that is long and goes on"))
        screen.keys("Enter")
        screen.wait(lambda shown: "context holds" in shown and shown.rstrip().endswith("\n>"))
        assert screen.text(above=True).count("(the message alone is") == 1, screen.text()
    on_screen(paste, 80)


def test_a_paste_without_measure_is_dropped_whole():
    """A megabyte goes faster through a bare terminal than through tmux."""
    with Toy() as toy:
        pid, fd = pty.fork()
        if pid == 0:
            os.execve(SCONCE, [str(SCONCE), "chat", "-m", toy.model, "--chat", "plain", "-n", "1"],
                      {**os.environ, "TERM": "xterm", "XDG_STATE_HOME": toy.folder, "NODEVICE_SELECT": "1"})
        def read_until(what):
            shown = b""
            while what not in shown:
                assert select.select([fd], [], [], 60)[0], shown
                shown += os.read(fd, 1 << 16)
            return shown
        try:
            read_until(b"> ")
            text = b"\033[200~" + b"ab\r" * 350_000 + b"\033[201~"
            for at in range(0, len(text), 1024):
                assert os.write(fd, text[at:at + 1024]) == len(text[at:at + 1024])
            shown = read_until(b"(dropped: a paste has at most 1048575 characters)")
            os.write(fd, b"/stats\r")
            assert b"position 0 of 8;" in read_until(b"; GPU") and b"ab" not in shown
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)


def test_ctrl_z_suspends_and_fg_goes_on():
    def suspend(screen):
        screen.type("half a li")
        screen.wait_line("half a li")
        screen.keys("C-z")
        screen.wait(lambda text: "status 148" in text)
        screen.keys("Enter")
        screen.wait_line("half a li")
        screen.type("ne")
        screen.wait_line("half a line")
        screen.keys("C-c", "C-d")
        screen.wait(lambda text: "status 0" in text)
    if not shutil.which("bash"):
        raise Skip("there is no bash")
    with Toy() as toy:
        on_screen(suspend, 80, model=toy.model, shell="bash -m", after="read; fg; echo status \\$?; sleep 100")


def test_save_asks_before_it_overwrites_something_else():
    def save(screen):
        with open(f"{screen.folder}/notes", "w", encoding="utf-8") as out:
            out.write("my notes")
        for answer in "ny":
            screen.type("/save ~/notes")
            screen.keys("Enter")
            screen.wait(lambda text: text.rstrip().endswith("holds something else; overwrite? [y/N]"))
            with open(f"{screen.folder}/notes", encoding="utf-8") as text:
                assert text.read() == "my notes"
            screen.type(answer)
            screen.keys("Enter")
            screen.wait(lambda text: ("not saved" if answer == "n" else "\nsaved") in text and text.rstrip().endswith(">"))
        screen.type("/save ~/notes")  # now it is one of its own
        screen.keys("Enter")
        screen.wait(lambda text: text.count("\nsaved") == 2)
    with Toy() as toy:
        on_screen(save, 100, model=toy.model)


def chat(model, *lines, options=()):
    return run(SCONCE, "chat", "-m", model, "--chat", "plain", "--temp", "0", *options,
               stdin="".join(line + "\n" for line in lines))


def test_through_a_pipe_nothing_else_is_overwritten():
    with Toy() as toy:
        notes = os.path.join(toy.folder, "notes")
        with open(notes, "w", encoding="utf-8") as out:
            out.write("my notes")
        _, err = chat(toy.model, "/save " + notes)
        assert "not saved: " in err, err
        with open(notes, encoding="utf-8") as text:
            assert text.read() == "my notes"


def test_only_what_is_new_is_computed():
    out, _ = chat(STORIES, "One day, Lily", "/stats", "Then Tom", "/stats", options=["-n", "8"])
    costs = [line.split(" prompt tokens")[0] for line in out.splitlines() if line.startswith("last answer")]
    assert costs[0] == "last answer: 6 new of 6", costs
    new, whole = (int(costs[1].split()[i]) for i in (2, 5))
    assert whole >= 6 + 8 and new <= 6, costs  # the second message, the newline before it, and the answer's last id


def test_a_full_context_says_what_to_do_each_time():
    with Toy() as toy:
        _, err = chat(toy.model, "abc", "abc", "abc", "abc")
        notices = [line for line in err.splitlines() if "the context is full" in line]
        assert len(notices) == 4 and all("--on-full shift" in n and "/reset" in n for n in notices), err
        _, err = run(SCONCE, "chat", "-m", toy.model, "--on-full", "fly", expect=2)
        assert "--on-full is 'fly', expected stop or shift" in err, err


def test_a_message_that_no_room_can_be_made_for_fails():
    with Toy() as toy:
        def said(*options, message="abcabcabc", expect=1):
            return run(SCONCE, "chat", "-m", toy.model, "--chat", "plain", "--temp", "0", "-n1", *options, stdin=f"a\n{message}\n/stats\n",
                       expect=expect)
        for options in ((), ("--on-full", "shift")):
            out, err = said(*options)
            assert "(the message alone is 11 tokens, the context holds 8 with the answer)" in err, err
            assert "--on-full" not in err and "forgotten" not in err and "position 0 " not in out, (out, err)
        assert "(the message alone is 8 tokens" in said("--system", "abcd", message="a")[1]
        assert "alone" not in said(message="ab", expect=0)[1]


def test_what_no_message_can_be_written_with_is_said_at_once():
    with Toy() as toy:
        def fails(sentence, *options, said="a\n"):
            out, err = run(SCONCE, "chat", "-m", toy.model, *options, stdin=said, expect=1)
            assert sentence in err and out == "", (out, err)
        paths = {name: os.path.join(toy.folder, name) for name in ("tools", "broken", "picky")}
        for name, text in (("tools", "[]"), ("broken", "{% if %}"),
                           ("picky", "{{ messages[0].content if messages[0].content == 'a' else raise_exception('no') }}")):
            with open(paths[name], "w", encoding="utf-8") as file:
                file.write(text)
        fails("tools and a choice about thinking need a template", "--tools", paths["tools"], said="")
        fails("tools and a choice about thinking need a template", "--no-think", said="")
        fails("chat template: line 1", "--template", paths["broken"], said="")
        fails("cannot read", "--template", toy.folder + "/none", said="")
        fails("no", "--template", paths["picky"], said="b\n")  # and through a pipe a message without an answer is no success


def test_shift_forgets_the_oldest_turns():
    with Toy() as toy:
        kept = os.path.join(toy.folder, "kept")
        out, err = chat(toy.model, "a", "b", "c", "d", "/save " + kept, "/stats",
                        options=["-n", "2", "--on-full", "shift", "--system", "e"])
        assert "(the context was full: the oldest 2 messages are forgotten)" in err, err
        assert "the context is full" not in err, err
        with open(kept + ".messages", encoding="utf-8") as text:
            messages = text.read()
        assert messages.startswith("system 1\ne\n") and "user 1\nd\n" in messages and "user 1\na\n" not in messages, messages
        # One answer that is longer than the context ends where nothing can be forgotten any more.
        _, err = chat(toy.model, "a", "b", options=["--on-full", "shift"])
        assert err.count("(the context is full: the message and its answer alone are more than it holds)") == 2, err


def test_a_system_message_is_computed_once():
    with tempfile.TemporaryDirectory() as folder:
        options = ["-n", "2", "--cache", f"{folder}/kept", "--system", "There was a frog who lived in a pond."]
        first, _ = chat(STORIES, "One day", "/stats", options=options)
        size = os.path.getsize(f"{folder}/kept")
        again, _ = chat(STORIES, "One day", "/stats", options=options)
        assert first.splitlines()[0] == again.splitlines()[0] and size == os.path.getsize(f"{folder}/kept")
