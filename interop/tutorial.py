"""Follows ``docs/tutorial/lakehouse.md`` as a reader would: ``python -m interop.tutorial FOLDER``.

It runs the commands of the page as they are written, in a folder that has `examples/lakehouse`, and prints one JSON
object with the result of each. It must be alone: the page uses a fixed port, and kills processes by name. `isolated`
returns the command that makes it so.

The text before a block of commands tells how to run them: "terminal" that the last of them runs on, "again" that those
that were killed are started once more, and "Ctrl-C" that these are interrupted.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shlex
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from .peers import ROOT

__all__ = ["PAGE", "Block", "blocks", "isolated", "masked", "named", "prepare"]

PAGE = ROOT / "docs" / "tutorial" / "lakehouse.md"
EXAMPLE = Path("examples", "lakehouse")
PREPARED = ("make install", "source .venv/bin/activate")
"""What ``make interop`` has done already."""
PATIENCE = 240.0
"""Seconds until a command must show what the page shows: it may be run too early."""
IMPATIENCE = "Python worker failed to connect back"
"""How Spark ends a query if Python takes more than ten seconds to start, as it does on a machine that is very busy."""
LOOK = 3.0
"""Seconds between two attempts: each starts Python."""
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For JVMs that live for a minute."""
PROGRESS = 300
"""Rows that the query must commit after it was killed."""
UP = 0x41
"""IFF_UP and IFF_RUNNING."""


@dataclass(frozen=True)
class Block:
    """Commands of the page, with what they show, and the paragraph before them."""

    before: str
    commands: tuple[tuple[str, tuple[str, ...]], ...]


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of commands of a page."""
    parts = re.split(r"^```(\w*)\n(.*?)^```\n", page, flags=re.MULTILINE | re.DOTALL)
    for text, language, content in zip(parts[::3], parts[1::3], parts[2::3], strict=False):
        if language != "console":
            continue
        commands: list[tuple[str, list[str]]] = []
        for line in content.splitlines():
            if line.startswith("$ "):
                commands.append((line[2:], []))
            else:
                commands[-1][1].append(line)
        yield Block(text.strip().rpartition("\n\n")[2], tuple((each, tuple(shown)) for each, shown in commands))


def masked(line: str) -> str:
    """Return a line without what differs from run to run: numbers, and texts that are values."""
    return re.sub(r"\d[\d,.]*", "#", re.sub(r'(?<=:)"[^"]*"', '"…"', line.strip()))


def named(command: str) -> str:
    """Return a short name for a command: the program and its verbs, or its script."""
    words = shlex.split(command)
    if words[0] == "python":
        return f"python {Path(words[1]).name}"
    return " ".join(takewhile(str.isalpha, words))


def prepare(folder: Path) -> None:
    """Copy what the page needs into a folder."""
    ignored = shutil.ignore_patterns("data", "target", "warehouse")
    shutil.copytree(ROOT / EXAMPLE, folder / EXAMPLE, ignore=ignored)


def isolated(folder: Path) -> list[str]:
    """Return the command that follows the page with processes, ports and a network of its own."""
    spaces = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--net"]
    if os.geteuid() != 0:
        spaces.append("--map-root-user")
    return [*spaces, sys.executable, "-m", "interop.tutorial", str(folder)]


class Reader:
    """Somebody who follows the page in a folder, with a terminal for each program that runs on."""

    def __init__(self, folder: Path) -> None:
        self.results: dict[str, str] = {}
        self._began = time.monotonic()
        self._folder = folder
        self._terminals: dict[str, subprocess.Popen[bytes]] = {}
        self._killed: set[str] = set()
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {**os.environ, "PATH": path, "JAVA_TOOL_OPTIONS": JAVA}

    def _note(self, what: str, result: str) -> None:
        self.results[what] = result
        print(f"{time.monotonic() - self._began:.0f} s: {what}: {result}", file=sys.stderr, flush=True)

    def follow(self, block: Block) -> None:
        """Run the commands of a block."""
        if "Ctrl-C" in block.before:
            self._follow_up()
        for command, shown in block.commands:
            if command in PREPARED:
                continue
            if "terminal" in block.before and command == block.commands[-1][0]:
                self._start(command)
            elif command.startswith("pkill "):
                self._note(named(command), self._kill(command))
                self._again()
            else:
                self._note(named(command), self._until_shown(command, shown))

    def _log(self, command: str) -> Path:
        return self._folder / f"{re.sub(r'[^a-z]+', '-', command)}.log"

    def _start(self, command: str) -> None:
        with self._log(command).open("ab") as log:
            self._terminals[command] = subprocess.Popen(
                ["bash", "-c", f"exec {command}"],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._note(named(command), "ok")

    def _revive(self) -> None:
        """Start the query again if Spark was impatient."""
        for command in self._ended():
            log = self._log(command)
            if IMPATIENCE in log.read_text(errors="replace"):
                log.unlink()
                self._start(command)

    def _run(self, command: str) -> tuple[int, list[str]]:
        try:
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self._folder,
                env=self._environment,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, [f"it has not ended after {PATIENCE:g} s"]
        return done.returncode, (done.stdout if done.returncode == 0 else done.stderr).splitlines()

    def _until_shown(self, command: str, shown: tuple[str, ...]) -> str:
        """Run a command until it succeeds and shows what the page shows."""
        deadline = time.monotonic() + PATIENCE
        while True:
            code, lines = self._run(command)
            if code == 0 and (not shown or [*map(masked, lines)] == [*map(masked, shown)]):
                return "ok"
            self._revive()
            if time.monotonic() > deadline:
                return f"exit code {code}: {' / '.join(lines[-3:])}"
            time.sleep(LOOK)

    def _kill(self, command: str) -> str:
        """Kill what the page kills, and return which of the programs it was not."""
        before = set(self._terminals)
        code, _ = self._run(command)
        self._wait(lambda: len(self._ended()) > 1)
        self._killed = self._ended()
        left = before - self._killed
        return "ok" if code == 0 and len(self._killed) == 2 and len(left) == 1 else f"still running: {sorted(left)}"

    def _ended(self) -> set[str]:
        return {command for command, process in self._terminals.items() if process.poll() is not None}

    def _again(self) -> None:
        """Start what was killed, and wait until the query goes on."""
        before = self._committed()
        for command in self._killed:
            self._start(command)
        went_on = self._wait(self._goes_on(before + PROGRESS))
        self._note("goes on", "ok" if went_on else f"the query stands at {self._committed()}")

    def _goes_on(self, position: int) -> Callable[[], bool]:
        def reached() -> bool:
            self._revive()
            return self._committed() >= position

        return reached

    def _committed(self) -> int:
        """Return the position that the query has committed."""
        _, lines = self._run(f"weirpool journal lag {EXAMPLE}/data/market")
        found = re.search(r" is at ([\d,]+)", "\n".join(lines))
        return int(found[1].replace(",", "")) if found else 0

    def _follow_up(self) -> None:
        """Interrupt what was started again."""
        for command in self._killed:
            process = self._terminals[command]
            os.killpg(process.pid, signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self._note(named(command), "Ctrl-C does not end it")
        dead = self._ended() - self._killed
        if dead:
            self._note("runs on", f"has ended: {sorted(dead)}")

    @staticmethod
    def _wait(condition: Callable[[], bool]) -> bool:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                return False
            time.sleep(LOOK)
        return True


def _loopback_up() -> None:
    """Switch the loopback interface of a new network on."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", UP))


def main(folder: Path) -> None:
    """Follow the page, and print the results."""
    _loopback_up()
    reader = Reader(folder)
    for block in blocks(PAGE.read_text()):
        reader.follow(block)
    print(json.dumps({"peer": "spring", "role": "server", "checks": reader.results}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
