"""A real program on a pseudo-terminal, and the shells that people use there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.missing import need

__all__ = ["PASTE", "SHELLS", "Terminal", "install", "running", "shell"]

SECONDS = 60.0
"""How long a busy machine may take to answer."""
PASTE = (b"\x1b[200~", b"\x1b[201~")
"""What a terminal puts around a text that is pasted into a program that has asked for it."""
PROMPT = "READY>"
SHELLS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
    "fish": ["fish", "--no-config", "-i"],
}
# The terminal sends signals to the program, as to every program that somebody starts in one.
START = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"


def install(program: str, folder: Path) -> None:
    """Make the source of a program the `weirpool` of commands in `folder`."""
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin" / "weirpool").write_text(program)
    (folder / "bin" / "weirpool").chmod(0o755)


class Terminal:
    """The side of the user.

    Attributes:
        output: Everything that the program has written.

    """

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.output = b""
        self._master = master
        self._process = process

    def type(self, data: bytes) -> None:
        """Send keys."""
        while data:
            data = data[os.write(self._master, data[:1_000]) :]
            # A program that echoes would stop once nobody reads.
            self._read(0)

    def until(self, text: bytes, after: int = 0) -> int:
        """Read until the program has written a text after a position of its output; return where that text ends."""
        end = time.monotonic() + SECONDS
        while (found := self.output.find(text, after)) < 0:
            assert time.monotonic() < end and self._process.poll() is None, self.output[after:][-500:]
            self._read(0.2)
        return found + len(text)

    def until_file(self, path: Path) -> bytes:
        """Read until the program has made a file; return its content and remove it."""
        end = time.monotonic() + SECONDS
        while not path.exists():
            assert time.monotonic() < end and self._process.poll() is None, self.output[-500:]
            self._read(0.05)
        content = path.read_bytes()
        path.unlink()
        return content

    def until_end(self) -> bytes:
        """Read until the program has ended; return everything that it has written."""
        end = time.monotonic() + SECONDS
        while self._read(0.2) or self._process.poll() is None:
            assert time.monotonic() < end, self.output[-500:]
        return self.output

    def _read(self, seconds: float) -> bool:
        """Read what is there within a time; return False if there is nothing."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            found = os.read(self._master, 65_536)
        except OSError:
            # Linux: nobody has the other side open.
            return False
        self.output += found
        return bool(found)


@contextmanager
def running(command: list[str], folder: Path, **variables: str) -> Iterator[Terminal]:
    """Run a command on a terminal of its own, with `folder` as its home and that of its programs."""
    master, other = os.openpty()
    environment = {
        **os.environ, "HOME": str(folder), "PATH": f"{folder}/bin:{os.environ['PATH']}", "TERM": "xterm",
        "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder),
        "LC_ALL": "C.UTF-8",
    }  # fmt: skip
    streams = {"stdin": other, "stdout": other, "stderr": other}
    start = [sys.executable, "-c", START, *command]
    try:
        with subprocess.Popen(
            start, cwd=folder, env=environment | variables, start_new_session=True, **streams
        ) as process:
            os.close(other)
            try:
                yield Terminal(master, process)
            finally:
                process.kill()
    finally:
        os.close(master)


@contextmanager
def shell(name: str, folder: Path, **variables: str) -> Iterator[Terminal]:
    """Run an interactive shell, which is ready for a command."""
    need(name)
    if name == "fish":
        prompt = ["--init-command", f"function fish_prompt; echo -n '{PROMPT}'; end; function fish_greeting; end"]
    else:
        prompt = []
    with running([*SHELLS[name], *prompt], folder, PS1=PROMPT, PROMPT=PROMPT, **variables) as terminal:
        terminal.until(PROMPT.encode())
        yield terminal
