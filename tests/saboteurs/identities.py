"""The laboratory of identities: logs that are created again, exchanged, or asked to collect something else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from tests.journal.logs import SOURCE, append, items
from weirpool.errors import JournalError
from weirpool.journal import JournalReader, JournalWriter, Request

__all__ = ["identities"]

REQUEST = Request("numbers", b"1", None)
OTHERS = (Request("letters", b"1", None), Request("numbers", b"2", None), Request("numbers", b"1", b"m"))


def identities(folder: Path) -> Iterator[str]:
    """Exchange logs under those who use them; nobody may go on in another one (THREATS 99)."""
    with mock.patch.object(os, "fsync", lambda descriptor: None):
        yield from _other_requests(folder / "requests")
        for shorter in (True, False):
            yield from _recreated(folder / f"recreated-{shorter}", 3 if shorter else 30)


def _other_requests(folder: Path) -> Iterator[str]:
    _write(folder, 10)
    for other in OTHERS:
        try:
            with JournalWriter.open(folder, SOURCE, request=other):
                yield f"a log of {REQUEST} takes rows of {other}"
        except JournalError:
            continue


def _recreated(folder: Path, count: int) -> Iterator[str]:
    """Delete a log under its reader and make another one of the same name, whose rows are others."""
    _write(folder, 10)
    reader = JournalReader(folder, SOURCE)
    shutil.rmtree(folder)
    _write(folder, count, width=6)
    try:
        reader.refresh()
        held = [value for batch in reader.read(5, reader.end) for value in batch["data"].to_pylist()]
    except JournalError:
        return
    expected = items(5, 5)["data"].to_pylist()
    if held != expected:
        yield f"a reader goes from position 5 of one log to {held[:3]} in another"


def _write(folder: Path, count: int, width: int = 0) -> None:
    with JournalWriter.open(folder, SOURCE, request=REQUEST) as writer:
        append(writer, *[1] * count, width=width)
