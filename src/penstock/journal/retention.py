"""Retention: readers commit positions, and segments that no reader needs are deleted.

Each reader has a cursor in the log's folder, ``_committed/READER``: the position below which it needs no rows, the
query that the name belongs to, and the log. The lowest of these positions counts: rows from there on are kept, and
count towards the writer's budget. A margin below it is kept too, for readers that go back a little, and for operators.

A query that reads a log in several places, as in a self-join, has a cursor for each of them, ``READER@PART``.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import JournalCorrupt, JournalMismatch, JournalMissing, LocalError
from .disk import disk_errors, make_folder, read_file, replace_file
from .identity import load
from .layout import COMMITTED, check_name
from .sealed import load_sealed
from .storage import LogFolder
from .trimming import delete_free

__all__ = [
    "DEFAULT_READER",
    "DEFAULT_RETAIN_BYTES",
    "Committed",
    "commit",
    "commits",
    "cursors",
    "damaged",
    "drop",
    "forget",
    "last_commit",
    "logs",
    "reader_of",
    "readers",
    "trim",
]

DEFAULT_READER = "default"

DEFAULT_RETAIN_BYTES = 64 * 1024 * 1024
"""Bytes to keep below the committed position, so that an operator can undo a reader's last steps.

Spark itself never reads below its committed position. An operator who deletes the newest files of a query's checkpoint
goes back by one batch per file. 64 MiB are about four batches of 100,000 rows of 128 bytes.
"""

_PART = "@"
_MAX_CURSOR_BYTES = 4096
"""The size of a cursor's file: many times its three fields."""


class Committed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a cursor."""

    position: int
    """Rows below it are no longer needed."""
    query: str | None
    """The query that owns the name; None if there is none."""
    log: str
    """The UUID of the log that the position belongs to."""


def reader_of(cursor: str) -> str:
    """Return the reader that a cursor belongs to; `LocalError` if the name is not valid for one or a part of one."""
    reader, at, part = cursor.partition(_PART)
    if at:
        check_name(part, "reader")
    return check_name(reader, "reader")


def commit(folder: Path, cursor: str, position: int, *, query: str | None = None, rewind: bool = False) -> int:
    """Record that a reader no longer needs rows below `position`; return the recorded position.

    It is durable on return.

    Args:
        folder: The log's folder.
        cursor: The reader's name, or ``READER@PART``.
        position: A position lower than the recorded one has no effect, unless `rewind` is set.
        query: The query that reads; the name belongs to it from now on.
        rewind: Set the position even if a higher one was committed.

    Raises:
        JournalMismatch: The name belongs to another query, or the cursor to another log.
        JournalMissing: There is no such log.
        JournalError: The disk failed.

    """
    if position < 0:
        raise LocalError(f"reader {cursor!r} commits position {position}; positions start at 0")
    log, recorded = _check_owner(folder, cursor, query)
    if recorded is not None:
        if recorded.query == query and (position <= recorded.position if not rewind else position == recorded.position):
            return recorded.position
        position = position if rewind else max(position, recorded.position)
    path = folder / COMMITTED / cursor
    with disk_errors(path, "be written"):
        make_folder(path.parent)
        replace_file(path, msgspec.json.encode(Committed(position, query, log)) + b"\n")
    return position


def _check_owner(folder: Path, cursor: str, query: str | None) -> tuple[str, Committed | None]:
    """Return the UUID of a log, and the content of a cursor, which is None or belongs to the query."""
    reader = reader_of(cursor)
    identity = load(folder)
    if identity is None:
        raise JournalMissing(f"{folder}: there is no log here; check the path and the mount")
    path = folder / COMMITTED / cursor
    recorded = _read(path)
    if recorded is not None and recorded.log != identity.uuid:
        raise JournalMismatch(
            f"{path}: reader {reader!r} has committed rows of log {recorded.log}, and this is log {identity.uuid}; "
            f"drop the reader with `penstock journal forget`"
        )
    if recorded is not None and recorded.query not in (None, query):
        raise JournalMismatch(
            f"{path}: the name {reader!r} belongs to query {recorded.query}; choose another name, or drop the reader "
            "with `penstock journal forget` if that query will not come back"
        )
    return identity.uuid, recorded


def cursors(folder: Path) -> dict[str, Committed]:
    """Return the content of each cursor of a log, by the cursor's name; `JournalCorrupt` if one is damaged."""
    found = {name: _read(folder / COMMITTED / name) for name in _names(folder)}
    return {name: cursor for name, cursor in found.items() if cursor is not None}


def commits(folder: Path) -> dict[str, int]:
    """Return the position that each reader has committed: the lowest of its cursors. Errors as for `cursors`."""
    found: dict[str, int] = {}
    for name, cursor in cursors(folder).items():
        reader = name.partition(_PART)[0]
        found[reader] = min(cursor.position, found.get(reader, cursor.position))
    return found


def last_commit(folder: Path, log: str, but: Collection[str] = ()) -> int:
    """Return the highest position that a reader has committed in the log with this UUID; errors as for `cursors`.

    The cursors in `but` are ignored.
    """
    found = (_read(folder / COMMITTED / name) for name in _names(folder) if name not in but)
    return max((cursor.position for cursor in found if cursor is not None and cursor.log == log), default=0)


def readers(folder: Path) -> list[str]:
    """Return the names of a log's readers, in order, including those with a damaged cursor."""
    return sorted({name.partition(_PART)[0] for name in _names(folder)})


def forget(folder: Path, reader: str) -> dict[str, Committed | None]:
    """Remove a reader that will not return, so that it holds nothing back, and its name is free.

    It returns the content of each of its cursors, by the cursor's name; None for a damaged one.
    """
    check_name(reader, "reader")
    dropped: dict[str, Committed | None] = {}
    for name in _names(folder):
        if name.partition(_PART)[0] == reader:
            try:
                dropped[name] = _read(folder / COMMITTED / name)
            except JournalCorrupt:
                dropped[name] = None
            drop(folder, name)
    return dropped


def _names(folder: Path) -> list[str]:
    """Return the names of a log's cursors, in order."""
    with disk_errors(folder / COMMITTED, "be listed"), suppress(FileNotFoundError):
        return [name for name in sorted(os.listdir(folder / COMMITTED)) if not name.startswith(".")]
    return []


def drop(folder: Path, cursor: str) -> None:
    """Remove one cursor of a reader."""
    path = folder / COMMITTED / cursor
    with disk_errors(path, "be removed"):
        path.unlink(missing_ok=True)


def trim(
    folder: Path,
    position: int,
    *,
    reader: str = DEFAULT_READER,
    query: str | None = None,
    retain_rows: int = 0,
    retain_bytes: int = DEFAULT_RETAIN_BYTES,
) -> int:
    """Commit a reader's position, and delete the segments that are no longer needed.

    A segment is deleted when all its rows are below the position that every reader has committed, less `retain_rows`,
    and at least `retain_bytes` of later segments are below that position too. The last segment is never deleted,
    because it defines the end of the log. Gaps are stored in a separate file and outlive their segments.

    In a log with cold storage no segment is deleted here, but when it is sealed.

    Args:
        folder: The log's folder.
        position: `reader` needs no rows below it.
        reader: The reader that commits, or one of its cursors. Several readers need different names.
        query: The query that reads; the name belongs to it from now on.
        retain_rows: Rows to keep below the lowest committed position.
        retain_bytes: Bytes to keep below it, in whole segments.

    Returns:
        The position of the first remaining row.

    Raises:
        JournalMismatch: The name belongs to another query, or the cursor to another log. Nothing is deleted.
        JournalError: The disk failed.

    """
    _check_owner(folder, reader, query)
    if load_sealed(folder) is not None:
        commit(folder, reader, position, query=query)
        return next((first for first, _ in LogFolder.local(folder).segments()), 0)
    positions = {name: cursor.position for name, cursor in cursors(folder).items()}
    positions[reader] = max(position, positions.get(reader, 0))
    # Segments are deleted before the commit is recorded: on a full disk this makes space for the record.
    first = delete_free(folder, min(positions.values()), retain_rows, retain_bytes)
    commit(folder, reader, position, query=query)
    return first


def logs(folder: Path) -> set[str]:
    """Return the UUIDs of the logs in which a log's readers have committed positions, from valid cursors."""
    return {cursor.log for _, cursor in _checked(folder) if cursor is not None}


def damaged(folder: Path, log: str) -> list[str]:
    """Return the names of the cursors that are damaged, or that belong to another log than the one with this UUID."""
    return [name for name, cursor in _checked(folder) if cursor is None or cursor.log != log]


def _checked(folder: Path) -> Iterator[tuple[str, Committed | None]]:
    """Yield name and content of each cursor of a log; the content of a damaged one is None."""
    for name in _names(folder):
        try:
            cursor = _read(folder / COMMITTED / name)
        except JournalCorrupt:
            yield name, None
        else:
            if cursor is not None:
                yield name, cursor


def _read(path: Path) -> Committed | None:
    data = read_file(path, _MAX_CURSOR_BYTES + 1)
    if data is None:
        return None
    try:
        if len(data) > _MAX_CURSOR_BYTES:
            raise ValueError(f"longer than {_MAX_CURSOR_BYTES} bytes")
        cursor = msgspec.json.decode(data, type=Committed)
        if cursor.position < 0:
            raise ValueError("the position is negative")
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{path}: is not a reader's cursor ({error}); `penstock journal forget` drops the reader"
        ) from None
    return cursor
