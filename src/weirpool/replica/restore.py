"""Restores the logs of a group on this machine: from the bundles, after what is in sealed segments.

A log on this machine is a copy of what the store has, for the readers here and for sealing. It is continued if
it is a part of the same log and this machine was not restarted since; otherwise it begins again where the bundles
begin, because what was not synced may be gone. Rows before that are in sealed segments.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from ..errors import DataLost, JournalCorrupt, JournalMismatch
from ..journal.disk import disk_errors, make_folder, open_private, read_file, replace_file, sync_folder, write_at
from ..journal.format import Entry, Malformed, preamble, scan
from ..journal.identity import decode
from ..journal.layout import DURABLE, IDENTITY, TRIMMED, segment_name
from ..journal.mark import Mark, MarkFile, encode_trimmed
from ..journal.reader import JournalReader
from ..journal.storage import LogFolder
from .bundle import Part

__all__ = ["Piece", "extends", "restore"]

BOOT: Final = "_boot"
"""The file that names the boot of the machine in which the log was written last."""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Piece:
    """The batches of a log in one bundle."""

    first: int
    end: int
    batches: memoryview


def restore(folder: Path, part: Part, pieces: Iterable[Piece]) -> int:
    """Bring the log in a folder to the condition in which its group has it.

    The caller owns the group, and holds the lock of the log. Readers may read meanwhile.

    Args:
        folder: The log's folder on this machine; created if necessary.
        part: The condition of the log.
        pieces: Its batches in the bundles, in order.

    Returns:
        The position from which the log on this machine has rows.

    Raises:
        JournalMismatch: The folder has another log, or rows that the group does not have.
        JournalCorrupt: The batches do not follow each other.
        DiskFull: There is no space; call again when there is.

    """
    _identify(folder, part)
    entries = list(_entries(part, list(pieces)))
    mark = _mark(folder)
    if mark is not None and mark.end > part.end:
        if extends(folder, part):
            # Its rows from before the group are not all in bundles yet; they follow when the log is opened.
            return LogFolder.local(folder).segments()[0][0]
        raise JournalMismatch(
            f"{folder}: has rows up to {mark.end}, and the group only up to {part.end}; move the folder away"
        )
    with disk_errors(folder, "be restored"):
        if mark is None or not _same_boot(folder) or not _continue(folder, part, mark, entries):
            _begin(folder, part, entries)
        with suppress(FileNotFoundError):
            replace_file(folder / BOOT, _BOOT_ID.read_bytes())
    return LogFolder.local(folder).segments()[0][0] if LogFolder.local(folder).segments() else part.end


def extends(folder: Path, part: Part) -> bool:
    """Return True if the log in a folder is the one that the group has, and one of its segments ends where that ends.

    So it is if the collector was stopped while it put rows from before the group into bundles.
    """
    try:
        reader = JournalReader(folder.parent, part.source)
        return reader.uuid == part.uuid and part.end > 0 and reader.head(part.end) == part.head
    except DataLost:
        return False


def _mark(folder: Path) -> Mark | None:
    try:
        return LogFolder.local(folder).mark()
    except JournalCorrupt:
        if _same_boot(folder):
            raise
        # It was not synced before the machine was restarted.
        return None


def _identify(folder: Path, part: Part) -> None:
    """Write the identity of a log that is new on this machine."""
    assert part.identity is not None
    existing = LogFolder.local(folder).identity()
    if existing is not None and existing.uuid == decode(part.identity, part.source).uuid:
        return
    with disk_errors(folder, "be restored"):
        if existing is not None:
            _forget(folder, existing.uuid, part.uuid)
        make_folder(folder)
        replace_file(folder / IDENTITY, part.identity)


def _forget(folder: Path, uuid: str, other: str) -> None:
    """Remove a log that was created here, and lost the group before it had a row; the group has another one."""
    log = LogFolder.local(folder)
    mark = log.mark()
    if (mark is None and log.segments()) or (mark is not None and mark.offset):
        raise JournalMismatch(f"{folder}: is log {uuid}, and the group has log {other}; move it away")
    for first, _ in log.segments():
        (folder / segment_name(first)).unlink()
    (folder / DURABLE).unlink(missing_ok=True)


def _same_boot(folder: Path) -> bool:
    try:
        return read_file(folder / BOOT, 100) == _BOOT_ID.read_bytes()
    except FileNotFoundError:
        return False


def _entries(part: Part, pieces: list[Piece]) -> Iterator[tuple[Entry, memoryview]]:
    """Yield the batches with their bytes, after checking that they are those of the log, up to its end."""
    end, head = (pieces[0].first if pieces else part.end), None
    for piece in pieces:
        content = pa.py_buffer(piece.batches)
        try:
            for entry in scan(content, 0, content.size, end, head):
                yield entry, piece.batches[entry.offset : entry.end_offset]
                end, head = entry.end, entry.digest
        except Malformed as bad:
            raise JournalCorrupt(f"the bundles of source {part.source!r}: at position {end}: {bad.why}") from None
        if end != piece.end:
            raise JournalCorrupt(f"the bundles of source {part.source!r}: rows end at {end}, not at {piece.end}")
    if end != part.end or (head is not None and head != part.head):
        raise JournalCorrupt(f"the bundles of source {part.source!r}: rows end at {end}, and the log at {part.end}")


def _continue(folder: Path, part: Part, mark: Mark, entries: list[tuple[Entry, memoryview]]) -> bool:
    """Append what the log on this machine lacks; return False if the bundles do not begin where it ends."""
    missing = [(entry, batch) for entry, batch in entries if _is_after(entry, mark)]
    head = missing[0][0].note.prev if missing else part.head
    if head != mark.head or not mark.offset:
        return False
    path = folder / segment_name(mark.segment)
    size = _write(path, mark.offset, [batch for _, batch in missing])
    for first, _ in LogFolder.local(folder).segments():
        if first > mark.segment:
            # It was never published.
            (folder / segment_name(first)).unlink()
    _publish(folder, Mark(mark.segment, size, part.end, part.head))
    return True


def _is_after(entry: Entry, mark: Mark) -> bool:
    # A record without rows has the position of the row after it.
    return entry.position > mark.end or (entry.position == mark.end and entry.digest != mark.head)


def _begin(folder: Path, part: Part, entries: list[tuple[Entry, memoryview]]) -> None:
    """Begin the log again with these batches."""
    first = entries[0][0].position if entries else part.end
    if first:
        replace_file(folder / TRIMMED, encode_trimmed(first, part.uuid))
    size = 0
    if entries:
        temporary = folder / f".{segment_name(first)}.restored"
        size = _write(temporary, 0, [preamble(part.uuid), *(batch for _, batch in entries)])
        os.replace(temporary, folder / segment_name(first))
        sync_folder(folder)
    _publish(folder, Mark(first, size, part.end, part.head))
    for name, _ in LogFolder.local(folder).segments():
        if name != first or not size:
            (folder / segment_name(name)).unlink()


def _write(path: Path, offset: int, chunks: Iterable[bytes | memoryview]) -> int:
    """Write chunks durably to a file from an offset on, where it ends; return its size."""
    fd = open_private(path, os.O_WRONLY)
    try:
        size = write_at(fd, chunks, offset)
        os.ftruncate(fd, size)
        os.fsync(fd)
    finally:
        os.close(fd)
    return size


def _publish(folder: Path, mark: Mark) -> None:
    MarkFile(folder / DURABLE, mark, fsync=True).close()
