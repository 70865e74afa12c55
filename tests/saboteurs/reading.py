"""The laboratory of readers: programs, operators and queries set positions at random, some of them beyond the end.

Rows are appended, trimmed and sealed meanwhile, and a rival commits while another cursor is being written. After each
step the log must open, nobody may be beyond its end, no commit may be taken back, and no row may be gone that a reader
still needs. In the end rows are really lost, below a reader, which must be noticed.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tests.journal.logs import SOURCE, append, uuid
from weirpool.archive import SealOptions, seal
from weirpool.errors import JournalCorrupt, JournalError, LocalError
from weirpool.journal import Journal, retention
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import DURABLE, log_folder
from weirpool.journal.retention import commits, durable_end

__all__ = ["readers"]

SEEDS = 4
TURNS = 40
RIVAL_SECONDS = 0.05
"""How long a rival may take to come between; it waits as long as it must for a lock."""


def readers(folder: Path) -> Iterator[str]:
    """Set positions in every way (THREATS 113)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        for seed in range(SEEDS):
            yield from (f"seed {seed}: {wrong}" for wrong in _played(folder / f"{seed}", random.Random(seed)))


def _played(path: Path, rng: random.Random) -> Iterator[str]:
    journal, folder = Journal(path), log_folder(path, SOURCE)
    _append(journal, rng)
    for turn in range(TURNS):
        end = durable_end(folder, uuid(folder))
        name, act = rng.choice(_ways(path))
        position = rng.choice([rng.randrange(end + 1), end + rng.choice([1, 10**6, 2**62])])
        first = journal.reader(SOURCE).first
        with _rival(path, rng.random() < 0.5) as rival:
            try:
                act(position)
            except LocalError:
                if first <= position <= end:
                    yield f"turn {turn}: {name} refuses {position} of {end}"
                    return
        if rival and commits(folder)["rival"] < end:
            yield f"turn {turn}: a commit up to {end} was taken back to {commits(folder)['rival']}"
        yield from _wrong(f"turn {turn}, after {name} to {position}", journal, folder, first)
        _append(journal, rng)
        if turn == TURNS // 2:
            seal(path, SOURCE, SealOptions(target_bytes=1), force=True)
    yield from _lost(journal, folder)


def _ways(path: Path) -> list[tuple[str, Callable[[int], object]]]:
    """Return the ways to set a position."""
    journal, desk = Journal(path), FolderCoordinator(str(path))
    return [
        ("seek", lambda position: journal.seek(SOURCE, "export", position)),
        ("trim", lambda position: journal.trim(SOURCE, position, reader="rival", retain_bytes=0)),
        ("a query's commit", lambda position: desk.commit(SOURCE, "lake", position, query="q")),
        ("a query's trim", lambda position: desk.trim(SOURCE, "lake@p", position, query="p", retain_bytes=0)),
    ]


def _append(journal: Journal, rng: random.Random) -> None:
    with journal.writer(SOURCE, segment_bytes=3_000, fsync=False) as writer:
        append(writer, *[rng.randrange(1, 8) for _ in range(rng.randrange(1, 4))])


@contextmanager
def _rival(path: Path, wanted: bool) -> Iterator[list[threading.Thread]]:
    """Let another reader commit the end of the log while a cursor is being written; yield it when it has begun."""
    real = retention.replace_file
    begun: list[threading.Thread] = []

    def replaced(target: Path, data: bytes) -> None:
        if wanted and not begun:
            end = Journal(path).reader(SOURCE).end
            begun.append(threading.Thread(target=Journal(path).trim, args=(SOURCE, end), kwargs={"reader": "rival"}))
            begun[0].start()
            begun[0].join(RIVAL_SECONDS)
        real(target, data)

    with mock.patch.object(retention, "replace_file", replaced):
        try:
            yield begun
        finally:
            for thread in begun:
                thread.join()


def _wrong(when: str, journal: Journal, folder: Path, before: int) -> Iterator[str]:
    """Yield what is wrong with a log that began at `before`."""
    found, end = commits(folder), durable_end(folder, uuid(folder))
    if ahead := {name: position for name, position in found.items() if position > end}:
        yield f"{when}: readers are beyond the end, {end}: {ahead}"
    first = journal.reader(SOURCE).first
    if first > max(before, min(found.values(), default=0)):
        yield f"{when}: the log begins at {first}, and a reader needs {min(found.values())}"
    try:
        journal.writer(SOURCE, fsync=False).close()
    except JournalError as error:
        yield f"{when}: the log cannot be opened: {error}"


def _lost(journal: Journal, folder: Path) -> Iterator[str]:
    """Take the last rows away, and all that tells of them but a reader's position."""
    end = durable_end(folder, uuid(folder))
    journal.seek(SOURCE, "export", end)
    with journal.writer(SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 5)
    journal.seek(SOURCE, "export", end + 3)
    max(folder.glob("*.arrows")).unlink()
    (folder / DURABLE).unlink()
    try:
        journal.writer(SOURCE, fsync=False).close()
    except JournalCorrupt:
        return
    yield f"rows from {end} on are lost, below a reader, and the log opens without a word"
