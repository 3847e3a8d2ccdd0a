"""Manual pages, completions and the Debian package."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

from support import ROOT, SCONCE, Skip, run


def pages(folder):
    run("python3", ROOT / "tools/pages.py", SCONCE, folder, env={"SOURCE_DATE_EPOCH": "86400"})
    assert ' 1 1970-01-02 "' in (pathlib.Path(folder) / "man/man1/sconce.1").read_text()
    return pathlib.Path(folder)


def options_of(verb):
    """What --help lists, by itself."""
    out, _ = run(SCONCE, verb, "--help")
    return {n for line in out.splitlines() if line.startswith("  -") for n in re.split(r" [A-Z\\[]|  | \S+\|", line[2:])[0].strip().split(", ")}


def verbs():
    return re.findall(r"^  (\w+) ", run(SCONCE, "help")[0].split("verbs:")[1].split("`sconce")[0], re.M)


def test_every_option_has_its_place_in_the_manual_and_the_completions():
    with tempfile.TemporaryDirectory() as folder:
        pages(folder)
        bash = (pathlib.Path(folder) / "bash-completion/completions/sconce").read_text()
        zsh = (pathlib.Path(folder) / "zsh/site-functions/_sconce").read_text()
        fish = (pathlib.Path(folder) / "fish/vendor_completions.d/sconce.fish").read_text()
        for verb in verbs():
            text = (pathlib.Path(folder) / f"man/man1/sconce-{verb}.1").read_text().replace("\\-", "-")
            options = options_of(verb)
            assert "--help" in options and len(options) > 4, options
            row = re.search(rf"^    {verb}\) words='(.*)' ;;", bash, re.M).group(1).split()
            assert set(row) == options, (verb, set(row) ^ options)
            for name in options:
                assert rf"\fB{name}\fR" in text and f"'*{name}[" in zsh, (verb, name)
                key = f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                assert re.search(rf"from {verb}; .*{re.escape(key)}\b", fish), (verb, name)
        if shutil.which("mandoc"):
            for page in pathlib.Path(folder).glob("man/man1/*.1"):
                run("mandoc", "-Tlint", "-Wwarning", page)
        if shutil.which("groff"):
            for page in pathlib.Path(folder).glob("man/man1/*.1"):
                _, err = run("groff", "-man", "-Tutf8", "-ww", "-Kutf8", page)
                assert err == "", (page, err)


def test_bash_completes():
    with tempfile.TemporaryDirectory() as folder:
        pages(folder)
        def complete(*words):
            script = f"""source {folder}/bash-completion/completions/sconce
COMP_WORDS=({' '.join(f"'{w}'" for w in words)}); COMP_CWORD={len(words) - 1}; _sconce; printf '%s\\n' "${{COMPREPLY[@]}}" """
            return run("bash", "-c", script, cwd=folder)[0].splitlines()
        assert complete("sconce", "ge") == ["generate"]
        assert complete("sconce", "help", "to") == ["tokenize"]
        assert complete("sconce", "chat", "--on") == ["--on-full"]
        (pathlib.Path(folder) / "my model.pte").touch()
        assert complete("sconce", "generate", "-m", "my") == ["my model.pte"]
        assert complete("sconce", "run", "my") == complete("sconce", "run", "x.pte", "--input", "my") == ["my model.pte"]
        assert complete("sconce", "generate", "-n", "my") == [""]  # no files where a number stands
        assert complete("sconce", "help", "run", "my") == [""]
        assert complete("sconce", "chat", "--on-full", "") == ["stop", "shift"]
        assert complete("sconce", "bench", "-o", "j") == ["json"]


def needs(shell):
    if not shutil.which(shell):
        raise Skip(f"there is no {shell}")


def with_program(folder):
    """The environment in which a shell finds the command, and fish its completions, as after an install."""
    (pathlib.Path(folder) / "bin").mkdir()
    (pathlib.Path(folder) / "bin/sconce").symlink_to(SCONCE)
    return {"PATH": f"{folder}/bin:{os.environ['PATH']}", "XDG_DATA_DIRS": f"{folder}:/usr/share", "HOME": str(folder)}


def test_fish_completes():
    needs("fish")
    with tempfile.TemporaryDirectory() as folder:
        env = with_program(pages(folder))
        def complete(line):
            return [row.split("\t")[0] for row in run("fish", "-c", f"cd {folder}; complete -C'{line}'", env=env)[0].splitlines()]
        assert complete("sconce ge") == ["generate"]
        assert complete("sconce help to") == ["tokenize"]
        assert complete("sconce chat --on") == ["--on-full"]
        assert complete("sconce run --precision ") == ["exact", "fast"]
        assert complete("sconce help run ") == []
        assert set(complete("sconce ")) == {*verbs(), "help"}


def read_until(fd, pattern):
    """What a terminal shows, until it shows this."""
    shown = ""
    end = time.monotonic() + 30
    while not re.search(pattern, shown):
        assert time.monotonic() < end, (pattern, shown)
        if select.select([fd], [], [], 0.1)[0]:
            shown += os.read(fd, 4096).decode(errors="replace")
    return shown


def test_zsh_completes():
    """Keys are pressed in a real zsh: its completion runs nowhere else."""
    needs("zsh")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **with_program(pages(folder)), "TERM": "dumb"}
        pid, fd = pty.fork()
        if pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], env)
        try:
            os.write(fd, f"fpath=({folder}/zsh/site-functions $fpath); autoload -U compinit; compinit -u -D; echo rea''dy\n".encode())
            read_until(fd, "ready")
            for line, whole in (("ge", "generate"), ("help to", "help tokenize"), ("chat --on", "chat --on-full"), ("chat --on-full st", "chat --on-full stop"), ("he", "help")):
                os.write(fd, f"sconce {line}\t".encode())
                read_until(fd, rf"sconce {whole} ")
                os.write(fd, b"\x15")  # the line goes
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(fd)


def test_the_debian_package_works_where_it_is_put():
    """Unpacked below another root: the program finds its library there, and says nothing of its own."""
    if not shutil.which("dpkg-deb"):
        raise Skip("there is no dpkg-deb")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(["cpack", "-G", "DEB", "-B", folder], cwd=ROOT / "build/release", capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        package = next(pathlib.Path(folder).glob("sconce_*.deb"))
        assert run("dpkg-deb", "-f", package, "Package")[0] == "sconce\n"
        root = pathlib.Path(folder) / "root"
        run("dpkg-deb", "-x", package, root)
        env = {k: v for k, v in os.environ.items() if not k.startswith("SCONCE_")}
        done = subprocess.run([root / "usr/bin/sconce", "devices"], capture_output=True, text=True, env=env)
        assert done.returncode == 0 and done.stdout.count("*") == 1 and done.stderr == "", done
        assert (root / "usr/share/man/man1/sconce-chat.1").exists()
        assert (root / "usr/share/doc/sconce/docs/export.md").exists() and (root / "usr/share/doc/sconce/docs/images/demo.svg").exists()
        assert not list(root.rglob("usr/share/doc/sconce/**/*.json"))
        assert "MIT License" in (root / "usr/share/doc/sconce/LICENSE.wgpu-native").read_text()
        library = next(root.rglob("libwgpu_native.so"))
        library.rename(root / "usr/lib/libwgpu_native.so")  # any of the places that the message names
        run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": ""})
        (root / "usr/lib/libwgpu_native.so").rename(root / "elsewhere.so")
        _, err = run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": ""}, expect=1)
        assert "../lib" in err and "SCONCE_WEBGPU=/path/to/it" in err, err
        run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": str(root / "elsewhere.so")})
