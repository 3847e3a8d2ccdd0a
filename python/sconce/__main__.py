"""`python -m sconce …` is the command: `python -m sconce devices`, `python -m sconce generate -m model.pte`, …"""

import os
import signal
import subprocess
import sys

from ._native import folder


def main() -> None:
    program = str(folder() / ("sconce.exe" if sys.platform == "win32" else "sconce"))
    if sys.platform == "win32":  # exec there returns to the shell before the program ends
        signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the program, which takes its time to end
        sys.exit(subprocess.call([program, *sys.argv[1:]]))
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
