"""Copies logs to another journal: the same rows at the same positions, under the same identity.

A copy is brought up to date by copying again: only what was appended since is copied. Secrets, locks and the cursors of
readers stay behind, because they belong to the place and not to the rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..errors import JournalError, JournalMismatch
from .compare import compare
from .disk import disk_errors, make_folder, open_private, replace_file, sync_folder, write_at
from .gaps import MAX_GAPS_BYTES
from .identity import encode
from .layout import DURABLE, GAPS, IDENTITY, LOCK, TRIMMED, log_folder, segment_name
from .lock import Lock
from .losses import is_accepted
from .mark import MAX_TRIMMED_BYTES, Mark, MarkFile
from .reader import JournalReader
from .storage import LogFolder
from .survey import survey

__all__ = ["Copied", "copy"]

_CHUNK_BYTES: Final = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Copied:
    """What was copied of one log."""

    first: int
    """The position of the copy's first row."""
    end: int
    """The position after its last row."""
    size: int
    """Bytes that were copied by this call."""


def copy(
    path: str | os.PathLike[str],
    source: str,
    target: str | os.PathLike[str],
    sealed: Callable[[Path], int] | None = None,
) -> Copied:
    """Copy one log of a journal to another journal, or bring an earlier copy up to date.

    The log may be written to meanwhile: rows are copied up to its end as of now. On return they are durable, and the
    digests of their batches are those of the log.

    Args:
        path: The journal: a folder, or a URI that can be read.
        source: The log's name.
        target: The other journal, a folder of this machine; created if necessary.
        sealed: Copies the log's sealed segments to the copy's folder, and returns their bytes; None: it has none.

    Raises:
        JournalLocked: A process writes to the copy, so it is a log of its own.
        JournalMismatch: The other journal has another log of this name, or the two have diverged.
        JournalCorrupt: The log is damaged.
        DiskFull: There is no space. What was copied before remains, and the next call continues there.
        JournalError: A file cannot be read or written.

    """
    log = LogFolder.of(path, source)
    identity = log.require()
    folder = log_folder(target, source)
    if os.path.realpath(str(log.path)) == os.path.realpath(folder):
        raise JournalMismatch(f"{folder}: a log cannot be copied to itself; name another journal")
    with disk_errors(folder, "be created"):
        make_folder(folder)
    with Lock(folder / LOCK):
        copied = LogFolder.local(folder)
        existing = copied.identity()
        if existing is not None and existing.uuid != identity.uuid:
            raise JournalMismatch(
                f"{folder}: holds log {existing.uuid}, and {log.path} is log {identity.uuid}; choose another folder"
            )
        size = _transfer(log, copied, folder, encode(identity), sealed)
    reader = JournalReader(target, source)
    return Copied(reader.first, reader.end, size)


def _transfer(
    log: LogFolder, copied: LogFolder, folder: Path, identity: bytes, sealed: Callable[[Path], int] | None
) -> int:
    """Copy what is missing, publish it, and return its bytes."""
    mark = log.mark()
    if mark is None:
        raise JournalError(f"{log.path}: has no mark; repair the log with `weirpool journal repair` before copying it")
    with disk_errors(folder, "be copied to"):
        replace_file(folder / IDENTITY, identity)
        size = _segments(log, copied, folder, mark, whole=sealed is None)
        _records(log, folder)
    if sealed is not None:
        # After the others, because what is sealed meanwhile is listed before it is removed there.
        size += sealed(folder)
    with disk_errors(folder, "be copied to"):
        _check(log, copied, folder, mark)
    return size


def _segments(log: LogFolder, copied: LogFolder, folder: Path, mark: Mark, *, whole: bool) -> int:
    """Append the missing bytes of each segment up to the mark; the log is `whole` if it has no sealed segments."""
    before = copied.mark()
    segments = log.segments()
    if before is not None:
        _check_overlap(log, folder, before, mark, (segments[0][0] if segments else mark.end) if whole else 0)
    size = 0
    present = dict(copied.segments())
    for first, _ in segments:
        if first > mark.segment or (before is not None and first < before.segment):
            continue
        at = present.get(first, 0)
        if before is not None and first == before.segment:
            at = min(at, before.offset)
        content = log.content(first)
        if content is None:
            # It was trimmed meanwhile.
            continue
        stop = mark.offset if first == mark.segment else content.size
        if at < stop:
            _append(folder / segment_name(first), memoryview(content)[at:stop], at)
            size += stop - at
    return size


def _check_overlap(log: LogFolder, folder: Path, before: Mark, mark: Mark, first: int) -> None:
    """Check that a copy that ends at the mark `before` can continue: the log has the rows after it."""
    if before.end > mark.end:
        raise JournalMismatch(
            f"{folder}: is longer than {log.path}: it ends at {before.end}, and the log at {mark.end}"
        )
    if before.end < first:
        raise JournalMismatch(
            f"{folder}: ends at {before.end}, and {log.path} was trimmed below {first}: the rows between are gone; "
            "remove the copy, or copy to another folder"
        )


def _append(path: Path, content: memoryview, at: int) -> None:
    fd = open_private(path, os.O_WRONLY)
    try:
        os.ftruncate(fd, at)
        for start in range(0, len(content), _CHUNK_BYTES):
            write_at(fd, [content[start : start + _CHUNK_BYTES]], at + start)
        os.fsync(fd)
    finally:
        os.close(fd)


def _records(log: LogFolder, folder: Path) -> None:
    """Copy the records of gaps and trimming."""
    for name, limit in ((GAPS, MAX_GAPS_BYTES), (TRIMMED, MAX_TRIMMED_BYTES)):
        content = log.small(name, limit)
        if content is not None:
            replace_file(folder / name, content)


def _check(log: LogFolder, copied: LogFolder, folder: Path, mark: Mark) -> None:
    """Publish the copy up to the mark, and compare the digests of its batches with those of the log."""
    sync_folder(folder)
    MarkFile(folder / DURABLE, mark, fsync=True).close()
    if log.is_near:
        comparison = compare(copied, log)
        why = "" if comparison.agree else comparison.text
    else:
        # The digest in the mark covers all batches, so the log need not be transferred again.
        why = _broken(copied, mark)
    if why:
        raise JournalMismatch(f"{why}; remove the copy, and copy the log again")


def _broken(copied: LogFolder, mark: Mark) -> str:
    """Return where the batches of a copy do not lead to the one that the mark names; empty if they do."""
    known = copied.kept_gaps()
    segments = [first for first, _ in copied.segments() if first <= mark.segment]
    for index in survey(copied, copied.require().uuid, segments, mark, lambda *_: None):
        for damage in index.damage:
            if not is_accepted(damage, known):
                return str(damage.error(index.name)).partition(";")[0]
    return ""
