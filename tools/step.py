"""``python -m tools.step LOG TOTAL TITLE COMMAND...``: runs a long step of the Makefile, and shows how far it is.

The command's output goes to the file LOG. A terminal shows a bar instead, which is moved by lines such as
``[3/66] Compiled one``, by Cython and setup.py, and by pip's ``Collecting one``, TOTAL of which are expected. Of the
output, only lines that begin with ``weirpool: `` are shown. A failure is one line, which names the log.
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread
from typing import IO, Final, TextIO

COUNTED: Final = re.compile(r"\[\s*(\d+)/(\d+)\] (\w+ \S+)")
PIP: Final = re.compile(r"\s*(Collecting|Downloading|Building|Installing) ([^\s,:;=<>!~\[(]+)(.*)")
SHOWN: Final = "weirpool: "
BAR_CELLS: Final = 24
LINE_CHARACTERS: Final = 79
DRAW_SECONDS: Final = 0.2


class Progress:
    """What the output of a command tells about its progress.

    Args:
        total: The number of packages that pip is expected to collect.

    """

    def __init__(self, total: int) -> None:
        self.done, self.total, self.doing, self.error = 0, total, "", ""
        self.shown: list[str] = []

    def read(self, line: str) -> None:
        """Take a line of the output."""
        if found := COUNTED.match(line):
            self.done, self.total, self.doing = int(found[1]), int(found[2]), found[3]
        elif found := PIP.match(line):
            self._read_pip(found[1], found[2], found[3])
        elif line.startswith(SHOWN):
            self.shown.append(line)
        elif "error" in line.lower():
            self.error = line.strip()

    def _read_pip(self, verb: str, name: str, rest: str) -> None:
        if verb == "Collecting":
            self.done += 1
            self.total = max(self.total, self.done)
        elif verb == "Installing":
            self.done = self.total
        size = re.search(r"\(([\d.]+ MB)\)", rest) if verb == "Downloading" else None
        # A build starts with its requirements, which are of no interest, and ends with the name of the package.
        name = rest.split()[1] if verb == "Building" and rest.startswith(" for ") else name
        self.doing = f"{verb} {re.split('-[0-9]', name)[0]}" + (f", {size[1]}" if size else "")
        if verb == "Installing":
            self.doing = "Unpacking packages"

    def line(self, seconds: float) -> str:
        """Return the line for a terminal."""
        filled = BAR_CELLS * self.done // max(self.total, 1)
        bar = "#" * filled + "." * (BAR_CELLS - filled)
        minutes, rest = divmod(int(seconds), 60)
        return f"[{bar}] {self.done}/{self.total} {minutes}:{rest:02d} {self.doing}"[:LINE_CHARACTERS]


def run(log: Path, total: int, title: str, command: list[str], screen: TextIO = sys.stdout) -> int:
    """Run a command, show its progress on `screen`, and return its exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    progress, began = Progress(total), time.monotonic()
    print(title, file=screen, flush=True)
    with (
        log.open("w") as file,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        ) as process,
    ):
        assert process.stdout is not None
        reading = Thread(target=_read, args=(process.stdout, file, progress), daemon=True)
        reading.start()
        while reading.is_alive():
            reading.join(DRAW_SECONDS)
            if screen.isatty():
                print(f"\r{progress.line(time.monotonic() - began):{LINE_CHARACTERS}}", end="", file=screen, flush=True)
    if screen.isatty():
        print("\r" + " " * LINE_CHARACTERS, end="\r", file=screen)
    for line in progress.shown:
        print(line, end="", file=screen)
    if process.returncode:
        print(f"make: this failed: {progress.error or title}; the whole output is in {log}", file=sys.stderr)
    else:
        print(f"  done in {time.monotonic() - began:.0f} s", file=screen)
    return process.returncode


def _read(output: IO[str], file: TextIO, progress: Progress) -> None:
    for line in output:
        file.write(line)
        file.flush()
        progress.read(line)


if __name__ == "__main__":
    try:
        sys.exit(run(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]))
    except KeyboardInterrupt:
        sys.exit(130)
