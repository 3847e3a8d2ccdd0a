"""The Windows build: its package and its C tests, under wine on lavapipe. A sample; SCONCE_WINDOWS=all runs every C test."""

import os
import re
import shutil
import struct
import subprocess
import tempfile

from support import ROOT, SCONCE
from test_llm import KERNELS_OF_A_GPU, Toy
from test_self import Place
from windows import BUILD, Console, Unpacked, build, commands_tests, environment, user_folder, wine, windows_path

STORIES = ROOT / "models/stories15M/stories15M-4w.pte"
LAVAPIPE = {"SCONCE_ADAPTER": "llvmpipe"}
# What depends on the system: files, paths, threads, libraries, text, devices; and models from end to end.
# Not how allocations fail, which is the same everywhere, and takes half of the time.
SLOW = ["--skip", "every_failing"]
SAMPLE = ["base/", "write/", "robust/", "wgsl/", "gpu/", "threads/", "check/", "session/", "tokenizer", "jinja", "method/"]

# Of the command's own tests: files, numbers, statuses and sentences. True: in the sample too. Those of signals, pipes and
# terminals are about Linux.
COMMAND = {
    "test_cli": {"test_wrong_usage_is_2_and_says_what": True, "test_version": False, "test_masks_and_caps_show": False,
                 "test_failures_are_1_with_one_sentence": True, "test_devices_as_table_and_json": False},
    "test_run": {"test_npy_in_and_out": True, "test_words_about_inputs_and_outputs": False, "test_made_up_inputs": False,
                 "test_what_is_no_number_has_no_sign": False, "test_wrong_inputs": False, "test_times_and_statistics": False,
                 "test_numbers_ranges_and_bare_bytes": False, "test_the_largest_with_their_names": True,
                 "test_bench_times_a_call": False, "test_wrong_usage_and_files": False,
                 "test_profile_is_a_chrome_trace": False, "test_the_steps_of_a_call_are_bounded": False},
    "test_llm": {"test_counts_and_stops": True, "test_prompts_from_files_and_pipes": False, "test_json_events_are_the_text": False,
                 "test_generate_tells_the_goldens_story": False, "test_a_prompt_is_kept_between_runs": False,
                 "test_wrong_usage_says_what": False, "test_chat_through_a_pipe": False},
}


def test_the_package_has_what_it_needs_and_no_more():
    with Unpacked() as it:
        names = {n.split("/", 1)[1] for n in it.names}
        assert {"sconce.exe", "sconce.dll", "wgpu_native.dll", "libsconce.dll.a", "include/sconce.h", "LICENSE",
                "LICENSE.wgpu-native", "LICENSE.mingw-w64"} <= names, names
        readme = (it.folder / "README.md").read_text()
        told = set(re.findall(r"^\| `([^`*]+)`", readme, re.M))
        assert told <= names | {"include", "docs"} and {n for n in names if n.endswith((".exe", ".dll"))} <= told, (told, names)
        assert not [n for n in names if re.search("dev|test|bcrypt", n) and not n.startswith("include")], names
        for name in ("sconce.exe", "sconce.dll"):
            listed = subprocess.run(["x86_64-w64-mingw32-objdump", "-p", it.folder / name], capture_output=True, text=True)
            needs = {n.lower() for n in re.findall(r"DLL Name: (\S+)", listed.stdout)}
            assert needs <= {"kernel32.dll", "msvcrt.dll", "shell32.dll"}, f"{name} needs {needs}"
        exported = re.findall(r"^\s+\[ *\d+\] (\w+)$", listed.stdout, re.M)
        assert "sconce_model_open" in exported and all(e.startswith("sconce_") for e in exported), exported


def test_the_demo_tells_the_story_that_linux_tells():
    words = ["generate", "-p", "Once upon a time", "-n", "150", "--seed", "15", "-m"]
    linux = subprocess.run([SCONCE, *words, STORIES], capture_output=True, check=True, stdin=subprocess.DEVNULL,
                           env={**os.environ, "NODEVICE_SELECT": "1", **LAVAPIPE}).stdout
    with Unpacked() as it:
        told, err = it.run(*words, windows_path(STORIES))
    assert told == linux, (told, linux)
    assert len(told) > 400 and b"\n" in told and b"\r" not in told, told
    assert b"\r" not in err and b"tokenizer.bin" in err, err


def test_paths_of_every_kind():
    """Relative and absolute, slashes and backslashes, umlauts, more than 260 units; inputs, outputs and models."""
    with Unpacked() as it:
        deep = it.top / "Größe 日本"
        for _ in range(4):
            deep = deep / ("lang-" * 16)
        deep.mkdir(parents=True)
        assert len(str(deep)) > 320
        model = deep / "addition ü.pte"
        shutil.copy(ROOT / "tests/data/cases/right/add/model.pte", model)
        for path in (windows_path(model), str(model)):
            text, _ = it.run("run", path, "--input", "ones:3x5", "--input", "ones:5", "--output-dir", windows_path(deep / "aus ö"))
            assert b"output 0: float32 (3, 5)" in text and b"\r" not in text, text
            saved = (deep / "aus ö/output0.npy").read_bytes()
            assert saved[-60:] == struct.pack("<15f", *[2.0] * 15), saved
            shutil.rmtree(deep / "aus ö")
        text, _ = it.run("inspect", "Größe 日本\\" + "\\".join(model.relative_to(it.top).parts[1:]), cwd=it.top)
        assert text.startswith("Größe 日本\\lang-".encode()) and b"an ExecuTorch program" in text, text
        _, err = it.run("inspect", "C:\\nicht da\\ö.pte", expect=1)
        assert "C:\\nicht da\\ö.pte: No such file or directory".encode() in err, err


def test_text_with_carriage_returns_and_words_outside_ascii():
    with Unpacked() as it:
        tokenizer = STORIES.parent / "tokenizer.bin"
        for words, given in ((["tokenize", "-t", tokenizer], "Grüße\r\n日本\r\n\x1aund mehr".encode()),
                             (["generate", "-m", STORIES, "-p", "Grüße 日本 \"a b\" \\", "-n", "3", "--temp", "0"], b"")):
            linux = subprocess.run([SCONCE, *words], input=given, capture_output=True, check=True,
                                   env={**os.environ, "NODEVICE_SELECT": "1", **LAVAPIPE}).stdout
            told, _ = it.run(*words, stdin=given)
            assert told == linux, (told, linux)
        lines, _ = it.run("chat", "-m", STORIES, "--chat", "plain", "--temp", "0", "-n", "4", stdin=b"/stats\r\n/quit\r\n")
        assert b"position 0 of" in lines or b"position 1 of" in lines, lines


def test_ctrl_c():
    """With the kernels of a GPU, which are slow here: there is time for a key before the story ends.
    Ctrl-C ends `generate` with the status that Windows has for it, of which Linux sees the last byte; in chat it stops the
    answer alone, and at the prompt it ends nothing. (There Windows drops what was typed; wine does not.)"""
    with Unpacked() as it:
        words = ["-m", windows_path(STORIES), "--temp", "0"]
        with Console(it.program, "generate", *words, "-p", "Once upon a time", **KERNELS_OF_A_GPU) as console:
            console.expect(b"there was")
            console.type(b"\x03")
            console.expect(b"(interrupted)")
            assert console.process.wait(60) == 0xC000013A & 0xFF
        with Console(it.program, "chat", *words, "--chat", "plain", **KERNELS_OF_A_GPU) as console:
            console.prompt()
            console.type(b"\x03/stats\r")
            console.expect(b"position 0 of 256")
            console.prompt()
            console.type(b"Once upon a time\r")
            console.expect(b" was")
            console.type(b"\x03")
            console.expect(b"(stopped)")
            console.prompt()
            console.type(b"/stats\r")
            console.expect(b"last answer: ")
            console.type(b"/quit\r")
            assert console.process.wait(60) == 0


def test_a_conversation_is_saved_over_another_file_and_at_home():
    """Every letter of a path counts, and ~ is the user's folder as Windows names it."""
    with Unpacked() as it, Toy() as toy, tempfile.TemporaryDirectory(dir=user_folder()) as home:
        notes = it.top / "Größe/notes ü"
        notes.parent.mkdir()
        notes.write_text("my notes")
        with Console(it.program, "chat", "-m", toy.model, "--chat", "plain") as console:
            for answer in (b"n", b"y"):
                console.prompt()
                console.type(f"/save {windows_path(notes)}\r".encode())
                console.expect(b"holds something else; overwrite? [y/N] ")
                assert notes.read_text() == "my notes"
                console.type(answer + b"\r")
            for place in (f"~/{os.path.basename(home)}/ä", f"~\\{os.path.basename(home)}\\ö"):
                console.expect(b"\nsaved ")
                console.prompt()
                console.type(f"/save {place}\r".encode())
            console.expect(b"\nsaved ")
            console.type(b"/quit\r")
            assert console.process.wait(60) == 0
        assert b"my notes" not in notes.read_bytes()
        assert sorted(os.listdir(notes.parent)) == ["notes ü", "notes ü.messages"]
        assert sorted(os.listdir(home)) == ["ä", "ä.messages", "ö", "ö.messages"]


def test_kernels_that_are_wrong_are_kept_in_the_users_folder():
    kept = user_folder() / "AppData/Local/sconce/wrong_kernels"
    change = ("let factor = inverseSqrt", "let factor = select(1.0, 1.5, WG == 64u) * inverseSqrt")
    with Unpacked() as it, Place("rms_norm.wgsl", *change) as place:
        try:
            told, _ = it.run("check", "--self", "--filter", "rms_norm/", expect=1, SCONCE_WGSL_DIR=place.env["SCONCE_WGSL_DIR"])
            assert b"rms_norm" in told and "rms_norm" in kept.read_text(), told
        finally:
            kept.unlink(missing_ok=True)


def test_the_commands_tests():
    with Unpacked() as it:
        for name, sampled in COMMAND.items():
            with commands_tests(name, it.program) as tests:
                for test, everywhere in sampled.items():
                    if everywhere or os.environ.get("SCONCE_WINDOWS") == "all":
                        tests[test]()
                        print(f"wine {name}/{test}", flush=True)


def test_the_c_tests():
    build()
    everything = os.environ.get("SCONCE_WINDOWS") == "all"
    for part in [""] if everything else SAMPLE:
        command = ["wine", BUILD / "sconce_tests.exe", "--skip", "measure/", *(["--filter", part, *SLOW] if part else [])]
        done = subprocess.run(command, env=environment(), cwd=ROOT, capture_output=True, text=True, errors="replace")
        counts = re.search(r"^(\d+) passed, (\d+) failed", done.stdout, re.M)
        assert counts and done.returncode == 0, f"{part}: status {done.returncode}\n{done.stderr[-4000:]}\n{done.stdout[-1000:]}"
        print(f"wine {part or 'all'}: {counts.group(0)}", flush=True)
