"""The laboratories of group commit and of receiving: power cuts, errors, and power cuts during recovery."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from tests.disk import labs, receiving, together
from weirpool.errors import ApplicationError, JournalError
from weirpool.journal.layout import UNSYNCED
from weirpool.receiving import log

__all__ = ["group_commits", "micro_batches"]

CUTS_AFTER_ERRORS = 2
RECOVERIES = 8


class _Subject(NamedTuple):
    """What works on a journal."""

    work: Callable[[Path, Any], None]
    promises: Callable[[], Any]
    again: Callable[[Path, Any], None]
    """The work of the process after a power cut."""
    broken: Callable[[Path, Any], list[str]]
    unfinished: str
    """The files of a journal that has something to recover."""
    errors: int
    """How many syncs fail, one at a time."""


def group_commits(folder: Path) -> Iterator[str]:
    """Let many logs share each write to the disk."""
    subject = _Subject(together.work, together.Promises, together.again, together.broken_promises, f"*/{UNSYNCED}", 6)
    yield from _disturbed(subject, folder)


def micro_batches(folder: Path) -> Iterator[str]:
    """Receive micro-batches that need several batches of the log, and rows that are pushed meanwhile."""
    subject = _Subject(receiving.work, receiving.Promises, receiving.again, receiving.broken, f"*/{log.PLAN}", 30)
    with mock.patch.object(log, "BATCH_BYTES", receiving.BATCH_BYTES):
        yield from _disturbed(subject, folder)


def _disturbed(subject: _Subject, folder: Path) -> Iterator[str]:
    try:
        with labs.without_syncs():
            yield from _experiments(subject, folder)
    except (ApplicationError, JournalError) as error:
        yield f"the work fails for good: {error}"


def _experiments(subject: _Subject, folder: Path) -> Iterator[str]:
    for left in _cuts(subject, folder / "worst", 0, worst=True):
        yield from _breaches(subject, left, f"power cut at step {left.step}")
    for left in _cuts(subject, folder / "cuts", 1):
        yield from _breaches(subject, left, f"power cut at step {left.step}")
    unfinished = [
        left
        for left in _cuts(subject, folder / "recoveries", 2, worst=True)
        if list(left.journal.glob(subject.unfinished))
    ]
    for left in unfinished[:RECOVERIES]:
        for again in labs.cuts_after(left, subject.again):
            yield from _breaches(subject, again, f"power cuts at step {left.step} and {again.step} of the recovery")
    syncs = labs.syncs_of(partial(subject.work, promises=subject.promises()), folder / "whole")
    for failing in random.Random(2).sample(syncs, subject.errors):
        yield from _after_an_error(subject, folder / f"error-{failing}", failing)


def _cuts(subject: _Subject, folder: Path, rest: int, *, worst: bool = False) -> list[labs.Cut[Any]]:
    """Return what power cuts at a third of the steps leave, in any order."""
    found = labs.cuts(subject.work, folder, subject.promises(), wanted=lambda step: step % 3 == rest, worst=worst)
    return random.Random(rest).sample(found, len(found))


def _after_an_error(subject: _Subject, folder: Path, failing: int) -> Iterator[str]:
    """Let a sync fail, and cut the power at some of the steps after it, at the end, or not at all."""
    later = set(random.Random(failing).sample(range(failing + 1, failing + 50), CUTS_AFTER_ERRORS))
    promises = subject.promises()
    number = (errno.EIO, errno.ENOSPC)[failing % 2]
    faults = {"worst": failing % 2 == 0, "fail_at": (failing, number)}
    for left in labs.cuts(subject.work, folder, promises, wanted=later.__contains__, **faults):
        yield from _breaches(subject, left, f"error at step {failing} and power cut at step {left.step}")
    yield from _breaches(
        subject, labs.Cut(failing, folder / "before" / "journal", promises), f"error at step {failing}"
    )


def _breaches(subject: _Subject, left: labs.Cut[Any], where: str) -> Iterator[str]:
    for broken in subject.broken(left.journal, left.promises):
        yield f"{where}: {broken}"
