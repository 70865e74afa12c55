"""What may go: readers say how far they are, and segments that nobody needs any more are deleted.

Each reader has a cursor in the log's folder, ``_committed/READER``: the position up to which it has no further use
for the rows, the query that the name belongs to, and the log that it counts in. The least of these positions rules:
rows at or above it stay, and count against the writer's budget. Below it a margin stays too, for readers that go
back a little, and for people.

A query that reads a log in several places, as in a self-join, has a cursor for each of them, ``READER@PART``.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import JournalCorrupt, JournalError, JournalMismatch, JournalMissing, LocalError
from .disk import disk_errors, make_folder, replace_file
from .identity import load
from .layout import COMMITTED, check_name
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
"""What stays below the committed position, so that an operator can take back a reader's last steps.

Spark itself never reads below what it has committed; who rewinds a query by deleting the newest files of its
checkpoint goes back by a batch a file. 64 MiB are some four batches of 100,000 rows of 128 bytes.
"""

_PART = "@"
_MAX_CURSOR_BYTES = 4096
"""Of a cursor's file: many times what its three fields take."""


class Committed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a cursor holds.

    Attributes:
        position: Rows below it are not needed any more.
        query: The query that owns the name; None if no query does.
        log: The UUID of the log that the position counts in.

    """

    position: int
    query: str | None
    log: str


def reader_of(cursor: str) -> str:
    """Return the reader that a cursor belongs to.

    Raises:
        LocalError: Neither a reader nor a part of one can have this name.

    """
    reader, at, part = cursor.partition(_PART)
    if at:
        check_name(part, "reader")
    return check_name(reader, "reader")


def commit(folder: Path, cursor: str, position: int, *, query: str | None = None, rewind: bool = False) -> int:
    """Record that a reader has no further use for rows below `position`; return what is recorded now.

    It is durable when this returns.

    Args:
        folder: The log's.
        cursor: The reader's name, or ``READER@PART``.
        position: A position lower than the one recorded changes nothing, unless `rewind` is set.
        query: The query that reads; the name is its own from now on.
        rewind: Whether the reader stands at `position` again, even if it has committed more.

    Raises:
        JournalMismatch: The name belongs to another query, or the cursor to another log.
        JournalMissing: There is no such log.
        JournalError: The disk refused.

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
    """Return the UUID of a log, and what a cursor of it holds, which is None or the query's own."""
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
    """Return what each cursor of a log holds, by the cursor's name.

    Raises:
        JournalCorrupt: A cursor is damaged.
        JournalError: They cannot be read.

    """
    found = {name: _read(folder / COMMITTED / name) for name in _names(folder)}
    return {name: cursor for name, cursor in found.items() if cursor is not None}


def commits(folder: Path) -> dict[str, int]:
    """Return the position up to which each reader has committed: the least of its cursors.

    Raises:
        JournalError: As for :func:`cursors`.

    """
    found: dict[str, int] = {}
    for name, cursor in cursors(folder).items():
        reader = name.partition(_PART)[0]
        found[reader] = min(cursor.position, found.get(reader, cursor.position))
    return found


def last_commit(folder: Path, log: str, but: Collection[str] = ()) -> int:
    """Return the greatest position that a reader has committed.

    Args:
        folder: The log's.
        log: Its UUID. What was committed in another one does not count.
        but: Cursors that are left alone.

    Raises:
        JournalError: As for :func:`cursors`.

    """
    found = (_read(folder / COMMITTED / name) for name in _names(folder) if name not in but)
    return max((cursor.position for cursor in found if cursor is not None and cursor.log == log), default=0)


def readers(folder: Path) -> list[str]:
    """Return the names of a log's readers, in order; one whose cursor is damaged is a reader, too.

    Raises:
        JournalError: They cannot be listed.

    """
    return sorted({name.partition(_PART)[0] for name in _names(folder)})


def forget(folder: Path, reader: str) -> dict[str, Committed | None]:
    """Drop a reader that will not come back, so that it holds nothing up any more, and its name is free.

    Returns:
        What each of its cursors held, by the cursor's name; None: that one was damaged.

    Raises:
        JournalError: The disk refused.

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
    """Drop one cursor of a reader."""
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
    """Commit a reader's position, and delete the segments that are free by now.

    A segment goes when all its rows are below what every reader has committed, less `retain_rows`, and when at
    least `retain_bytes` of later segments are below that position too. The last segment never goes, because it
    tells where the log ends. Gaps outlive their segments: they are kept in a file of their own.

    Args:
        folder: The log's.
        position: Below it `reader` needs nothing any more.
        reader: Who commits, or one of its cursors. Several readers need several names.
        query: The query that reads; the name is its own from now on.
        retain_rows: Rows to keep below the least committed position.
        retain_bytes: Bytes to keep below it, counted in whole segments.

    Returns:
        The position of the first row that is left.

    Raises:
        JournalMismatch: The name belongs to another query, or the cursor to another log. Nothing is deleted.
        JournalError: The disk refused.

    """
    _check_owner(folder, reader, query)
    positions = {name: cursor.position for name, cursor in cursors(folder).items()}
    positions[reader] = max(position, positions.get(reader, 0))
    # Deleted before it is recorded: on a full disk this makes the room for the record.
    first = delete_free(folder, min(positions.values()), retain_rows, retain_bytes)
    commit(folder, reader, position, query=query)
    return first


def logs(folder: Path) -> set[str]:
    """Return the UUIDs of the logs that a log's readers have committed positions of, as far as cursors are sound."""
    found = set()
    for name in _names(folder):
        with suppress(JournalCorrupt):
            if (cursor := _read(folder / COMMITTED / name)) is not None:
                found.add(cursor.log)
    return found


def damaged(folder: Path, log: str) -> list[str]:
    """Return the names of the cursors of a log that are damaged, or those of another one, by its UUID."""
    return [name for name in _names(folder) if not _is_of(folder / COMMITTED / name, log)]


def _is_of(path: Path, log: str) -> bool:
    try:
        cursor = _read(path)
    except JournalCorrupt:
        return False
    return cursor is None or cursor.log == log


def _read(path: Path) -> Committed | None:
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_CURSOR_BYTES + 1)
        if len(data) > _MAX_CURSOR_BYTES:
            raise ValueError(f"longer than {_MAX_CURSOR_BYTES} bytes")
        cursor = msgspec.json.decode(data, type=Committed)
        if cursor.position < 0:
            raise ValueError("the position is negative")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise JournalError(
            f"{path}: cannot be read ({error.strerror or error}); check the path, its permissions and the disk"
        ) from error
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{path}: is not a reader's cursor ({error}); `penstock journal forget` drops the reader"
        ) from None
    return cursor
