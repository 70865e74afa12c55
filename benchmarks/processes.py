"""Workers as child processes, and the requests to them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parent.parent
ANSWER_SECONDS = 600.0
"""Time limit of a scenario: a worker that has not answered by then is killed."""
END_SECONDS = 20.0


@dataclass(frozen=True)
class Variant:
    """A peer, and how to run it."""

    name: str
    peer: str
    loop: str = "uvloop"
    plain: bool = False
    """Run Weirpool without its extensions."""
    command: tuple[str, ...] = ()
    """Another program to run, which accepts the same requests as a worker."""
    source: Path | None = None
    """The folder to import Weirpool from; the installed package by default."""


class Worker:
    """A server, or a client of the server at `address`, running while the block lasts."""

    def __init__(self, variant: Variant, address: str | None = None) -> None:
        command = list(variant.command) or [sys.executable, "-m", "benchmarks.worker", variant.peer, variant.loop]
        self.process = subprocess.Popen(
            command if address is None else [*command, address],
            cwd=ROOT,
            env=environment(variant.plain, variant.source),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ready = self._answer()

    def ask(self, *scenario: object) -> dict[str, Any]:
        """Run a scenario, if there is one.

        Returns:
            Its `seconds`, the process's `cpu` seconds so far, and what the client returned.

        """
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(scenario) + "\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = self._answer()
        return answer

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        limit = threading.Timer(ANSWER_SECONDS, self.process.kill)
        limit.start()
        try:
            line = self.process.stdout.readline()
        finally:
            limit.cancel()
        if not line:
            code = self.process.wait()
            self.__exit__()
            raise SystemExit(f"benchmarks: a worker ended with {code}: {self.process.args}")
        return json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def environment(plain: bool, source: Path | None = None) -> dict[str, str]:
    """Return the environment for Weirpool's plain build, or for its compiled build if it exists.

    With `source`, Weirpool is imported from there.
    """
    names = {name: value for name, value in os.environ.items() if name != "WEIRPOOL_PURE"}
    if source is not None:
        names["PYTHONPATH"] = str(source)
    return names | {"WEIRPOOL_PURE": "1"} if plain else names
