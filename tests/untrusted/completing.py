"""Shells with a `weirpool` whose completions are real, and whose other runs only write down their words."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import command
from weirpool.cli import routes

from .terminal import Terminal, install, shell

__all__ = ["Completing", "completing"]

PROGRAM = f"""#!/bin/sh
if [ -n "$_WEIRPOOL_COMPLETE" ]; then exec {sys.executable} -m weirpool "$@"; fi
printf '%s\\0' "$@" > words.part
mv words.part words
"""
LOAD = {
    "bash": '. "$HOME/script"',
    "zsh": 'autoload -Uz compinit; compinit -u -D; . "$HOME/script"',
    "fish": 'source "$HOME/script"',
}


class Completing:
    """A shell that completes commands for a server, which has these routes."""

    def __init__(self, terminal: Terminal, folder: Path, url: str, known: Sequence[str]) -> None:
        self._terminal = terminal
        self._folder = folder
        self._url = url
        self._known = [("call", route) for route in known]

    def words(self, typed: str) -> list[str]:
        """Return the words that the program is given after a line, the key that completes it, and Enter."""
        # As if the server had just been asked.
        routes._remember(routes._file(self._url, {}), routes._Remembered(time.time(), self._known))
        self._terminal.type(typed.encode() + b"\t\r")
        return self._terminal.until_file(self._folder / "words").decode().split("\0")[:-1]


@contextmanager
def completing(
    name: str, folder: Path, url: str, known: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Completing]:
    """Run a shell, with `folder` as its home."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    install(PROGRAM, folder)
    (folder / "script").write_bytes(subprocess.run(command("completion", name), capture_output=True, check=True).stdout)
    with shell(name, folder) as terminal:
        terminal.type(f"{LOAD[name]}; echo LOADE''D\r".encode())
        terminal.until(b"LOADED")
        yield Completing(terminal, folder, url, known)
