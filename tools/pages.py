#!/usr/bin/env python3
"""Writes the command's manual pages and its completions for bash, zsh and fish from what `sconce help` says.

usage: pages.py SCONCE FOLDER
"""

import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

OPTION = re.compile(r"^  (-[^ ,]+(?:, --[^ ]+)?)(?: (\S+))?(?:  +(.*))?$")
FILES = ("FILE", "DIR", "[N=]FILE", "[N=]WORD")


def help_of(program, *words):
    done = subprocess.run([program, "help", *words], capture_output=True, text=True, check=True, encoding="utf-8")
    return done.stdout.splitlines()


class Verb:
    """A verb's help, taken apart: usage lines, paragraphs, and options with their headings."""

    def __init__(self, name, what, lines):
        self.name, self.what = name, what
        blank = lines.index("")
        self.usage = [re.sub(r"^(usage:|      ) ", "", line) for line in lines[:blank]]
        rest = lines[blank + 1:]
        start = next(i for i, line in enumerate(rest) if re.match(r"^[a-z -]+:$", line) or OPTION.match(line))
        self.text = " ".join(rest[:start]).strip()
        self.options = []  # (heading, names, value, help)
        heading = "options"
        for line in rest[start:]:
            option = OPTION.match(line)
            if option:
                self.options.append([heading, option[1].split(", "), option[2], option[3] or ""])
            elif line.startswith(" "):
                self.options[-1][3] = (self.options[-1][3] + " " + line.strip()).strip()
            elif line.endswith(":"):
                heading = line[:-1]


def read(program):
    lines = help_of(program)
    first = lines.index("verbs:") + 1
    verbs = [re.match(r"  (\S+) +(.*)", line).groups() for line in lines[first:lines.index("", first)]]
    return lines, [Verb(name, what, help_of(program, name)) for name, what in verbs]


# ---- manual pages


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def head(name, version):
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))  # of a build that is to be repeated
    day = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).date()
    return f'.TH {name} 1 {day} "{version}" "Sconce"'


def page(verb, version):
    out = [head(rf"SCONCE\-{verb.name.upper()}", version), ".SH NAME",
           f"sconce\\-{verb.name} \\- {roff(verb.what)}", ".SH SYNOPSIS", ".nf", *map(roff, verb.usage), ".fi",
           ".SH DESCRIPTION", roff(verb.text)]
    heading = None
    for title, names, value, text in verb.options:
        if title != heading:
            out += [f".SH {roff(title.upper())}"]
            heading = title
        named = ", ".join(rf"\fB{roff(n)}\fR" for n in names)
        out += [".TP", named + (rf" \fI{roff(value)}\fR" if value else ""), roff(text)]
    return "\n".join(out + [".SH SEE ALSO", r"\fBsconce\fR(1)", ""])


def front(lines, verbs, version):
    tail = lines[lines.index("", lines.index("verbs:")) + 1:]
    out = [head("SCONCE", version), ".SH NAME", r"sconce \- runs ExecuTorch models on any GPU through WebGPU",
           ".SH SYNOPSIS", r"\fBsconce\fR \fIVERB\fR [\fIOPTION\fR]…", ".SH VERBS"]
    for verb in verbs:
        out += [".TP", rf"\fBsconce\-{verb.name}\fR(1)", roff(verb.what)]
    status = next(line for line in tail if line.startswith("exit status:"))
    out += [".SH EXIT STATUS", roff(status.split(": ", 1)[1]), ".SH ENVIRONMENT"]
    for line in tail[tail.index("environment:") + 1:]:
        name, text = line.split(None, 1)
        out += [".TP", rf"\fB{roff(name)}\fR", roff(text)]
    return "\n".join(out + [""])


# ---- completions

HELP = "what a verb does, and its options"


def choices(value):
    """The words that a value can be: "stop|shift"."""
    return value.split("|") if value and "|" in value else []


def bash(verbs):
    rows = "\n".join(f"    {v.name}) words='{' '.join(n for o in v.options for n in o[1])}' ;;" for v in verbs)
    other = "\n".join(f"    {v.name}) other=' {' '.join(n for _, names, value, _ in v.options if value and value not in FILES for n in names)} ' ;;"
                      for v in verbs)
    values = "\n".join(f"    '{v.name} {n}') values='{' '.join(choices(value))}' ;;"
                       for v in verbs for _, names, value, _ in v.options if choices(value) for n in names)
    return f"""# bash completion of sconce
_sconce() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} verb=${{COMP_WORDS[1]}} words= other= values=
  if [ "$COMP_CWORD" -eq 1 ] || {{ [ "$COMP_CWORD" -eq 2 ] && [ "$verb" = help ]; }}; then
    COMPREPLY=($(compgen -W "{' '.join(v.name for v in verbs)} help --version" -- "$current"))
    return
  fi
  case $verb in
{rows}
    *) COMPREPLY=(); return ;;
  esac
  case $verb in  # whose values are no files
{other}
  esac
  case "$verb $before" in  # what they can be
{values}
  esac
  case $other in *" $before "*) COMPREPLY=($(compgen -W "$values" -- "$current")); return ;; esac
  case $current in
    -*) COMPREPLY=($(compgen -W "$words" -- "$current")) ;;
    *) local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$current")) ;;  # names may have spaces
  esac
}}
complete -o filenames -F _sconce sconce
"""


def zsh_text(text):
    return re.sub(r"([\\\[\]:'])", r"\\\1", text).replace("\\'", "'\\''")


def zsh(verbs):
    out = ["#compdef sconce", "_sconce() {", "  local -a verbs", "  verbs=("]
    out += [f"    '{v.name}:{zsh_text(v.what)}'" for v in verbs] + [f"    'help:{zsh_text(HELP)}'", "  )",
            "  if (( CURRENT == 2 )) || { (( CURRENT == 3 )) && [[ $words[2] == help ]] }; then", "    _describe verb verbs", "    return", "  fi",
            "  local verb=$words[2]", "  shift words", "  (( CURRENT-- ))", "  case $verb in"]
    for v in verbs:
        out += [f"  {v.name})", "    _arguments \\"]
        for _, names, value, text in v.options:
            what = f"({' '.join(choices(value))})" if choices(value) else "_files" if value in FILES else " "
            end = f":{zsh_text(value)}:{what}" if value else ""
            out += [f"      '*{n}[{zsh_text(text)}]{end}' \\" for n in names]
        out += ["      '*:file:_files'", "    ;;"]
    return "\n".join(out + ["  esac", "}", '_sconce "$@"', ""])


def fish_text(text):
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def fish(verbs):
    out = ["# fish completion of sconce", f"complete -c sconce -n __fish_use_subcommand -f -a help -d {fish_text(HELP)}",
           "complete -c sconce -n '__fish_seen_subcommand_from help' -f"]
    for v in verbs:
        out.append(f"complete -c sconce -n '__fish_seen_subcommand_from help; and test (count (commandline -opc)) -eq 2' -a {v.name} -d {fish_text(v.what)}")
        out.append(f"complete -c sconce -n __fish_use_subcommand -f -a {v.name} -d {fish_text(v.what)}")
        for _, names, value, text in v.options:
            keys = " ".join(f"-l {n[2:]}" if n.startswith("--") else f"-s {n[1:]}" for n in names)
            more = f" -x -a '{' '.join(choices(value))}'" if choices(value) else "" if not value else " -r" if value in FILES else " -x"
            out.append(f"complete -c sconce -n '__fish_seen_subcommand_from {v.name}; and not __fish_seen_subcommand_from help' {keys}{more} -d {fish_text(text)}")
    return "\n".join(out + [""])


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.strip())
    program, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    lines, verbs = read(program)
    files = {"man/man1/sconce.1": front(lines, verbs, version),
             "bash-completion/completions/sconce": bash(verbs),
             "zsh/site-functions/_sconce": zsh(verbs),
             "fish/vendor_completions.d/sconce.fish": fish(verbs)}
    files.update({f"man/man1/sconce-{v.name}.1": page(v, version) for v in verbs})
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
