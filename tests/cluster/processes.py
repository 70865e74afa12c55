"""Processes of the laboratory: each in a session of its own, with its output in a file."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.children import ROOT, group_of

__all__ = ["Program", "Stuck", "hiding", "until"]

SECONDS = 150.0
"""How long to wait for anything, on a machine that is busy."""
LOOK = 0.05
MORTAL = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []
"""A process ends with that of the tests, which ends without notice if a test hangs."""


class Stuck(Exception):
    """Something that had to happen has not."""


def until(condition: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
    """Wait until a condition is true; `Stuck` if that takes too long."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Stuck(f"after {seconds:g} s: {what}")
        time.sleep(LOOK)


def hiding(folder: Path) -> list[str]:
    """Return the beginning of a command that finds nothing in a folder; nothing where neither way is allowed."""
    mounting = ["sh", "-c", 'mount -t tmpfs tmpfs "$0" && exec "$@"', str(folder)]
    ways = [
        ["unshare", "--mount", *mounting],
        ["unshare", "--map-root-user", "--mount", *mounting],
        # In most containers, root may not mount; but it may do without what lets it ignore the modes of folders.
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"],
    ]
    folder.chmod(0o000 if os.geteuid() == 0 else 0o700)
    (folder / "probe").touch()
    return next((way for way in ways if _is_hidden(folder / "probe", way)), [])


def _is_hidden(probe: Path, way: list[str]) -> bool:
    """Return True if a command that begins in this way can run, and does not find a file that is there."""
    try:
        runs, finds = (
            subprocess.run([*way, "test", *test, str(probe)], capture_output=True, check=False).returncode
            for test in (["!", "-e"], ["-e"])
        )
    except FileNotFoundError:
        return False
    return (runs, finds) == (0, 1)


class Program:
    """A process.

    Args:
        name: Its name, and that of its log.
        command: The command.
        folder: Where its log goes.
        environment: Variables besides those of this process.
        piped: It takes orders, see `ask`.

    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        environment: Mapping[str, str] | None = None,
        *,
        piped: bool = False,
    ) -> None:
        self.name = name
        self.log = folder / f"{name}.log"
        with self.log.open("ab") as log:
            self._began = log.tell()
            self.process = subprocess.Popen(
                [*MORTAL, *command],
                cwd=ROOT,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
                stdout=subprocess.PIPE if piped else log,
                stderr=log,
                start_new_session=True,
                text=True,
            )

    def said(self, pattern: str) -> list[str]:
        """Return what the process has printed that a pattern matches: its first group."""
        with self.log.open("rb") as log:
            log.seek(self._began)
            return re.findall(pattern, log.read().decode(errors="replace"))

    def await_lines(self, pattern: str, count: int = 1) -> list[str]:
        """Wait until the process has printed so many lines that match, and return their first groups."""
        until(lambda: len(self.said(pattern)) >= count or self.process.poll() is not None, f"{self.name}: {pattern}")
        found = self.said(pattern)
        if len(found) < count:
            raise Stuck(f"{self.name} has ended with {self.process.returncode}: {self.log.read_text()[-2000:]}")
        return found

    def answer(self) -> Any:
        """Return the next answer of a process that takes orders."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # A JVM may print, too.
            if line.startswith('{"answer"'):
                found = json.loads(line)
                if "error" in found:
                    raise Stuck(f"{self.name}: {found['error']}")
                return found["answer"]
        raise Stuck(f"{self.name} has ended: {self.log.read_text()[-2000:]}")

    def ask(self, order: str, **arguments: str) -> Any:
        """Have a process do something, and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": order, **arguments}) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self) -> int:
        """Ask the process to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(SECONDS)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process, and all that it has started."""
        for pid in group_of(self.process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
