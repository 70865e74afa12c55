"""The files of a log, as a collector sends them: what a copy of the log needs, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import suppress
from typing import Final

import pyarrow as pa

from ..errors import JournalMissing, JournalUnavailable, LocalError
from ..journal.disk import disk_errors
from ..journal.layout import (
    DURABLE,
    GAPS,
    IDENTITY,
    SEALED,
    TRIMMED,
    UNSYNCED,
    log_folder,
    segment_position,
)
from .ranges import CHUNK_BYTES, Part, Place

__all__ = ["content_of", "files_of"]

PUBLIC: Final = frozenset({DURABLE, GAPS, IDENTITY, SEALED, TRIMMED, UNSYNCED})
"""The files that are sent, besides segments. Secrets, locks and the positions of readers stay."""


def _is_public(name: str) -> bool:
    return name in PUBLIC or segment_position(name) is not None


def files_of(journal: str, source: str) -> list[tuple[str, int]]:
    """Return name and size of each file of a log that is sent, in order; none if there is no such log."""
    folder = log_folder(journal, source)
    found = []
    with disk_errors(folder, "be listed"), suppress(FileNotFoundError):
        for name in filter(_is_public, os.listdir(folder)):
            # It may have been trimmed meanwhile.
            with suppress(FileNotFoundError):
                found.append((name, os.stat(folder / name, follow_symlinks=False).st_size))
    return sorted(found)


def content_of(journal: str, source: str, name: str, limit: int | None, place: Place) -> Generator[Part, None, None]:
    """Yield the bytes of a file, in parts of a megabyte, as far as it goes now. Each step may wait for the disk.

    The position of a place is the number of the file, and `sent` where it continues.

    Raises:
        LocalError: It is not a file that is sent.
        JournalMissing: There is no such file, or no longer.
        JournalUnavailable: It was replaced while it was sent.
        JournalError: It cannot be read.

    """
    if not _is_public(name):
        raise LocalError(f"{name!r} is not a file of a log that is sent")
    path = log_folder(journal, source) / name
    with disk_errors(path, "be read"):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise JournalMissing(f"{path}: there is no such file") from None
        with open(fd, "rb", buffering=0) as file:
            status = os.fstat(fd)
            at = Place(status.st_ino, place.sent)
            if place.sent and place != at:
                raise JournalUnavailable(f"{path}: the file was replaced while it was sent; ask for it again")
            file.seek(at.sent)
            end = status.st_size if limit is None else limit
            while at.sent < end and (content := file.read(min(CHUNK_BYTES, end - at.sent))):
                before, at = at, at._replace(sent=at.sent + len(content))
                yield Part(pa.py_buffer(content), at, before)
