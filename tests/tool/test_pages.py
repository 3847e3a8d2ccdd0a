"""Manual pages, completions and the Debian package."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

from support import ROOT, SCONCE, Skip, run


def pages(folder):
    run("python3", ROOT / "tools/pages.py", SCONCE, folder)
    return pathlib.Path(folder)


def options_of(verb):
    """What --help lists, by itself."""
    out, _ = run(SCONCE, verb, "--help")
    return {n for line in out.splitlines() if line.startswith("  -") for n in re.split(r" [A-Z\\[]|  ", line[2:])[0].strip().split(", ")}


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
                assert re.search(rf"from {verb}' .*{re.escape(key)}\b", fish), (verb, name)
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
            return run("bash", "-c", script)[0].split()
        assert complete("sconce", "ge") == ["generate"]
        assert complete("sconce", "help", "to") == ["tokenize"]
        assert complete("sconce", "chat", "--on") == ["--on-full"]


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
        library = next(root.rglob("libwgpu_native.so"))
        library.rename(root / "usr/lib/libwgpu_native.so")  # any of the places that the message names
        run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": ""})
        (root / "usr/lib/libwgpu_native.so").rename(root / "elsewhere.so")
        _, err = run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": ""}, expect=1)
        assert "../lib" in err and "SCONCE_WEBGPU=/path/to/it" in err, err
        run(root / "usr/bin/sconce", "devices", env={"SCONCE_WEBGPU": str(root / "elsewhere.so")})
