"""The CPU time of processes and of their descendants, from Linux's /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

__all__ = ["Usage", "child", "is_supported"]

PROC = Path("/proc")
PARENT = 1
OWN_TIMES = slice(11, 13)
"""User and system time of a process: fields of `stat` after the name."""
INTERVAL = 0.25


class Usage:
    """Counts the CPU seconds that processes use while the block lasts.

    Spark ends Python workers without waiting for them, so Linux does not add their time to that of their parent. They
    are therefore looked at several times per second.

    Args:
        roots: The processes to count, by name. Descendants count as part of them.
        proc: Where to look.

    """

    def __init__(self, roots: Mapping[str, int], proc: Path = PROC) -> None:
        self._roots = roots
        self._proc = proc
        self._names: dict[int, str] = {}
        self._first: dict[int, int] = {}
        self._last: dict[int, int] = {}
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._sample_repeatedly, daemon=True)

    def __enter__(self) -> Self:
        self.sample()
        self._first = dict(self._last)
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over.set()
        self._watch.join()
        self.sample()

    def sample(self) -> None:
        """Store the time of all processes that run now."""
        processes = _processes(self._proc)
        for name, root in self._roots.items():
            for pid in _family(root, processes):
                self._names[pid] = name
                self._last[pid] = sum(map(int, processes[pid][OWN_TIMES]))

    def seconds(self) -> dict[str, float]:
        """Return the CPU seconds of each root and its descendants."""
        found = dict.fromkeys(self._roots, 0.0)
        for pid, name in self._names.items():
            found[name] += self.alone(pid)
        return found

    def alone(self, pid: int) -> float:
        """Return the CPU seconds of a process without its descendants."""
        return (self._last[pid] - self._first.get(pid, 0)) / os.sysconf("SC_CLK_TCK")

    def _sample_repeatedly(self) -> None:
        while not self._over.wait(INTERVAL):
            self.sample()


def is_supported(proc: Path = PROC) -> bool:
    """Return True if the CPU time of processes can be read on this machine."""
    return (proc / "self" / "stat").exists()


def child(pid: int, name: str, proc: Path = PROC) -> int:
    """Return the id of the running child of a process with this name.

    Raises:
        LookupError: There is none.

    """
    for each, fields in _processes(proc).items():
        if int(fields[PARENT]) == pid and (proc / f"{each}" / "comm").read_text().strip() == name:
            return each
    raise LookupError(f"process {pid} has no child {name!r}")


def _family(pid: int, processes: dict[int, list[str]]) -> list[int]:
    family = [pid] if pid in processes else []
    for each in family:
        family += [other for other, fields in processes.items() if int(fields[PARENT]) == each]
    return family


def _processes(proc: Path) -> dict[int, list[str]]:
    """Return the fields of `stat` after the name, by process id."""
    found = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                text = (folder / "stat").read_text()
            except (FileNotFoundError, ProcessLookupError):
                continue  # It has just ended.
            # The name is in parentheses, and may contain spaces and parentheses.
            found[int(folder.name)] = text.rpartition(")")[2].split()
    return found
