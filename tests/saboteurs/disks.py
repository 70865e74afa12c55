"""The laboratory of the disk: power cuts, errors, and a disk that lies about fsync, each at some step of the work."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest import mock

from tests.disk.lying import LyingDisk, PowerCut
from tests.disk.scenario import SOURCE, Promises, broken_promises, unnoticed, work
from weirpool.errors import JournalError
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.layout import DURABLE, log_folder
from weirpool.journal.mark import newest

__all__ = ["disk_errors", "errors_and_cuts", "lies", "power_cuts"]

ERRORS = 60
ERRNOS = (errno.EIO, errno.ENOSPC, errno.EMFILE)
LIES = 60


def power_cuts(folder: Path) -> Iterator[str]:
    """Cut the power; whatever was promised before must be true after it."""
    for name, step in _steps(folder):
        before, after = _two(folder, name)
        promises = Promises()
        disk = LyingDisk(before, cut_at=step)
        _work(disk, before, promises)
        disk.power_cut(after, random.Random(name))
        yield from (f"power cut at step {name}: {broken}" for broken in _broken(after, promises))


def disk_errors(folder: Path) -> Iterator[str]:
    """Let one call fail; whatever was promised must be true."""
    for name, step in _steps(folder, ERRORS):
        place, _ = _two(folder, name)
        promises = Promises()
        try:
            _work(LyingDisk(place, fail_at=(step, ERRNOS[step % len(ERRNOS)])), place, promises)
        except JournalError as error:
            # It has been tried again on a disk that works.
            yield f"error at step {name}: the log cannot be written any more: {error}"
            continue
        yield from (f"error at step {name}: {broken}" for broken in _broken(place, promises))


def errors_and_cuts(folder: Path) -> Iterator[str]:
    """Let one call fail, and cut the power soon after; whatever was promised before must be true after it."""
    for name, step in _steps(folder, ERRORS):
        rng = random.Random(name)
        before, after = _two(folder, name)
        promises = Promises()
        disk = LyingDisk(before, fail_at=(step, errno.EIO), cut_at=step + rng.randint(1, 8))
        _work(disk, before, promises)
        disk.power_cut(after, rng)
        yield from (f"error and power cut at step {name}: {broken}" for broken in _broken(after, promises))


def lies(folder: Path) -> Iterator[str]:
    """Cut the power on a disk that has lied about fsync; what is left must be sound, or known to be not."""
    for name, step in _steps(folder, LIES):
        rng = random.Random(name)
        before, after = _two(folder, name)
        disk = LyingDisk(before, cut_at=max(step, 10), lies_from=rng.randrange(1, max(step, 10)))
        _work(disk, before, Promises())
        disk.power_cut(after, rng)
        for wrong in [*unnoticed(after / "journal"), *_below_the_mark(after / "journal")]:
            yield f"lies until step {name}: {wrong}"


def _below_the_mark(journal: Path) -> Iterator[str]:
    """Yield what goes on as if a log ended before the durable mark that has survived."""
    folder = log_folder(journal, SOURCE)
    found = newest((folder / DURABLE).read_bytes()) if (folder / DURABLE).exists() else None
    if found is None:
        return
    end = found[1].end
    with suppress(JournalError):
        if JournalReader(journal, SOURCE).end < end:
            yield f"a reader sees no rows up to {end}, and no damage"
    with suppress(JournalError), JournalWriter.open(journal, SOURCE) as writer:
        if writer.position < end:
            yield f"a writer goes on at {writer.position}, and rows were durable up to {end}"


def _work(disk: LyingDisk, folder: Path, promises: Promises) -> None:
    with disk.installed():
        try:
            work(folder / "journal", promises)
        except PowerCut:
            return


def _broken(folder: Path, promises: Promises) -> list[str]:
    # What the check itself writes need not last.
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        return broken_promises(folder / "journal", promises)


def _steps(folder: Path, count: int | None = None) -> Iterator[tuple[str, int]]:
    """Yield so many steps of the work, or each of them, in an order that jumps; and a name for what happens there."""
    whole = folder / "whole"
    whole.mkdir()
    disk = LyingDisk(whole)
    _work(disk, whole, Promises())
    steps = list(range(1, disk.steps + 1))
    random.Random(1).shuffle(steps)
    for step in steps[:count]:
        yield f"{step}", step


def _two(folder: Path, name: str) -> tuple[Path, Path]:
    before, after = folder / f"before-{name}", folder / f"after-{name}"
    before.mkdir()
    after.mkdir()
    return before, after
