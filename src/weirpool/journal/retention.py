"""Retention: readers commit positions, and segments that no reader needs are deleted.

Each reader has a cursor in the log's folder, ``_committed/READER``: the position below which it needs no rows, the
query that the name belongs to, and the log. The lowest of these positions counts: rows from there on are kept, and
count towards the writer's budget. A margin below it is kept too, for readers that go back a little, and for operators.

A query that reads a log in several places, as in a self-join, has a cursor for each of them, ``READER@PART``.

A cursor is never beyond the durable end of its log: a reader has seen its rows below that. The two are compared when
the cursor is written, under the log's own lock, whoever sets it. A log that ends before a cursor has therefore lost
rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import msgspec

from ..errors import JournalCorrupt, JournalError, JournalMismatch, LocalError
from . import asks
from .asks import Ask
from .counts import check_count, shown_number
from .damage import Promise
from .disk import disk_errors, make_folder, read_file, replace_file
from .identity import Identity, locked
from .index import Index
from .layout import COMMITTED, Extent, check_name
from .sealed import load_sealed
from .storage import LogFolder
from .trimming import delete_free, free_segments

__all__ = [
    "DEFAULT_READER",
    "DEFAULT_RETAIN_BYTES",
    "MAX_CURSORS",
    "Committed",
    "Wait",
    "beyond",
    "commit",
    "commits",
    "cursors",
    "cursors_of",
    "damaged",
    "deletable",
    "delete",
    "drop",
    "durable_end",
    "forget",
    "is_cursor",
    "last_commit",
    "logs",
    "reader_of",
    "reset",
    "restore",
    "trim",
]

DEFAULT_READER = "default"

DEFAULT_RETAIN_BYTES = 64 * 1024 * 1024
"""Bytes to keep below the committed position, so that an operator can undo a reader's last steps.

Spark itself never reads below its committed position. An operator who deletes the newest files of a query's checkpoint
goes back by one batch per file. 64 MiB are about four batches of 100,000 rows of 128 bytes.
"""

MAX_CURSORS: Final = 1_000
"""Cursors of a log: each is a file that its writer reads again and again."""
MAX_CURSOR_CHARS: Final = 192
"""The length of a cursor's name: that of a reader and a query's id, and short enough for a file with a suffix."""

Wait = Callable[[Ask], None]
"""What waits until a group's store has what was recorded on its owner's machine."""

_PART = "@"
_MAX_CURSOR_BYTES = 4096
"""The size of a cursor's file: many times its four fields."""


class Committed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a cursor."""

    position: int
    """Rows below it are no longer needed."""
    query: str | None
    """The query that owns the name; None if there is none."""
    log: str
    """The UUID of the log that the position belongs to."""
    time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """When it was written, and its position compared with the end of the log; None if nobody has compared them."""


def reader_of(cursor: str) -> str:
    """Return the reader that a cursor belongs to; `LocalError` if the name is not valid for one or a part of one."""
    reader, at, part = cursor.partition(_PART)
    if at:
        check_name(part, "reader")
    if len(cursor) > MAX_CURSOR_CHARS:
        raise LocalError(f"{cursor[:100]!r}… cannot name a reader: use up to {MAX_CURSOR_CHARS} characters")
    return check_name(reader, "reader")


def is_cursor(name: str) -> bool:
    """Return True if this is a valid name of a cursor."""
    try:
        reader_of(name)
    except LocalError:
        return False
    return True


def durable_end(folder: Path, uuid: str) -> int:
    """Return the position after the last durable row of the log with this UUID: readers do not see later ones.

    Raises:
        JournalCorrupt: The end of the log is unknown.

    """
    log = LogFolder.local(folder)
    mark = log.mark()
    if mark is not None:
        return mark.end
    # A copy of the segments alone ends with its last complete batch.
    for first, _ in log.segments()[-1:]:
        index, content = Index(log.name(first), first, uuid), log.content(first)
        if content is not None:
            index.extend(content, Promise())
        return index.end
    return 0


def commit(
    folder: Path,
    cursor: str,
    position: int,
    *,
    query: str | None = None,
    rewind: bool = False,
    wait: Wait = Ask.wait,
) -> int:
    """Record that a reader no longer needs rows below `position`; return the recorded position.

    It is durable on return. In the log of a group, a new reader and a lower position are in the group's store, too.

    Args:
        folder: The log's folder.
        cursor: The reader's name, or ``READER@PART``.
        position: A position lower than the recorded one has no effect, unless `rewind` is set.
        query: The query that reads; the name belongs to it from now on.
        rewind: Set the position even if a higher one was committed.
        wait: Waits until the store of the log's group has what it must have. Another one may let its caller wait.

    Raises:
        LocalError: The log ends before the position, the rows there are being removed, the name is not valid, or the
            log has too many readers.
        JournalMismatch: The name belongs to another query, or the cursor to another log.
        JournalMissing: There is no such log.
        JournalCorrupt: The end of the log is unknown.
        JournalError: The disk failed, or the owner of the log's group does not answer.

    """
    position = check_count(position, f"the position of reader {cursor!r}")
    with locked(folder) as log:
        recorded = _check_owner(folder, log, cursor, query)
        if recorded is not None and not rewind:
            position = max(position, recorded.position)
        _check_end(folder, log, cursor, position, recorded)
        _check_floor(folder, cursor, position, query, recorded)
        ask = _record(folder, log, cursor, position, query, recorded)
    if ask is not None:
        wait(ask)
    return position


def _check_owner(folder: Path, log: Identity, cursor: str, query: str | None) -> Committed | None:
    """Return the content of a cursor, which is None or belongs to the log and the query."""
    reader = reader_of(cursor)
    if query is not None:
        check_name(query, "query")
    path = folder / COMMITTED / cursor
    recorded = _read(path)
    if recorded is not None and recorded.log != log.uuid:
        raise JournalMismatch(
            f"{path}: reader {reader!r} has committed rows of log {recorded.log}, and this is log {log.uuid}; "
            f"drop the reader with `weirpool journal forget`"
        )
    if recorded is not None and recorded.query not in (None, query):
        raise JournalMismatch(
            f"{path}: the name {reader!r} belongs to query {recorded.query}; choose another name, or drop the reader "
            "with `weirpool journal forget` if that query will not come back"
        )
    if recorded is None and len(_names(folder)) >= MAX_CURSORS:
        raise LocalError(
            f"{folder}: the log has {MAX_CURSORS:,} readers, and each holds back rows; drop those that will not come "
            "back with `weirpool journal forget`"
        )
    return recorded


def _check_end(folder: Path, log: Identity, cursor: str, position: int, recorded: Committed | None) -> None:
    """Check that a log has the rows below a position: otherwise it could not be told from one that has lost them."""
    if recorded is not None and recorded.time is not None and position <= recorded.position:
        # After a power cut the mark may be an earlier one until the log is opened for writing.
        return
    end = durable_end(folder, log.uuid)
    if position > end:
        raise LocalError(
            f"{folder}: reader {cursor!r} cannot be at position {shown_number(position)}, because the log ends at "
            f"{end}; commit a position up to its end"
        )


def _check_floor(folder: Path, cursor: str, position: int, query: str | None, recorded: Committed | None) -> None:
    """Check that the sealed rows from a position on are not being removed: who removes them has not seen this reader.

    A query whose checkpoint is behind what has been removed is told by its reads, which may skip that.
    """
    if recorded is not None and position >= recorded.position:
        return
    state = load_sealed(folder)
    if state is not None and position < state.floor and (query is None or position >= state.first):
        raise LocalError(
            f"{folder}: reader {cursor!r} cannot go back to position {position}, because the rows before {state.floor} "
            f"are removed by the retention of sealed segments; choose a position from {state.floor} on"
        )


def _record(
    folder: Path, log: Identity, cursor: str, position: int, query: str | None, recorded: Committed | None
) -> Ask | None:
    """Write a cursor whose position was compared with the end of the log, unless it says so already.

    It returns what to wait for: a successor that knew a higher position, or no such reader, would remove rows.
    """
    reader = reader_of(cursor)
    if recorded is None or recorded.time is None or (recorded.position, recorded.query) != (position, query):
        binding = recorded is None or recorded.query != query or position < recorded.position
        with asks.recording(folder, reader, binding=binding):
            _write(folder / COMMITTED / cursor, Committed(position, query, log.uuid, datetime.now(UTC)))
    text = f"{folder}: reader {cursor!r} is at {position}"
    return asks.ask_of(folder, reader, text, partial(_check_recorded, folder, cursor, position, query))


def _check_recorded(folder: Path, cursor: str, position: int, query: str | None) -> None:
    """Check that a cursor still holds these rows for a query, and was not restored as a group had it before."""
    found = _read(folder / COMMITTED / cursor)
    if found is None or found.query != query or found.position > position:
        raise JournalError(f"{folder}: reader {cursor!r} was restored as the log's group knew it; commit again")


def _write(path: Path, cursor: Committed) -> None:
    with disk_errors(path, "be written"):
        make_folder(path.parent)
        replace_file(path, msgspec.json.encode(cursor) + b"\n")


def reset(folder: Path, cursor: str, position: int) -> None:
    """Set a cursor for a repair, which knows where the log ends; its query stays, if the file is readable."""
    reader = reader_of(cursor)
    with locked(folder) as log, asks.recording(folder, reader, binding=True):
        query = None
        with suppress(JournalCorrupt):
            recorded = _read(folder / COMMITTED / cursor)
            query = recorded.query if recorded is not None else None
        _write(folder / COMMITTED / cursor, Committed(position, query, log.uuid, datetime.now(UTC)))


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


def last_commit(folder: Path, log: str, but: Collection[str] = ()) -> tuple[int, str]:
    """Return the highest position that a reader has committed in the log with this UUID, and the name of its cursor.

    The cursors in `but` are ignored, and so are those that nobody has compared with the end of the log. Errors are as
    for `cursors`.
    """
    found = {name: _read(folder / COMMITTED / name) for name in _names(folder) if name not in but}
    return max(
        (
            (cursor.position, name)
            for name, cursor in found.items()
            if cursor is not None and cursor.log == log and cursor.time is not None
        ),
        default=(0, ""),
    )


def beyond(folder: Path, log: str, end: int) -> dict[str, Committed]:
    """Return the valid cursors of the log with this UUID that are beyond its end, by name."""
    found = {name: cursor for name, cursor in _checked(folder) if cursor is not None and cursor.log == log}
    return {name: cursor for name, cursor in found.items() if cursor.position > end}


def restore(folder: Path, found: Mapping[str, Committed]) -> None:
    """Give a log these cursors, by name, and no others: those that its group has. The caller owns the group."""
    with locked(folder):
        for name in _names(folder):
            if name not in found:
                _unlink(folder, name)
        for name, cursor in found.items():
            path = folder / COMMITTED / name
            with disk_errors(path, "be written"):
                make_folder(path.parent, fsync=False)
                replace_file(path, msgspec.json.encode(cursor) + b"\n", fsync=False)


def forget(folder: Path, reader: str, *, wait: Wait = Ask.wait) -> dict[str, Committed | None]:
    """Remove a reader that will not return, so that it holds nothing back, and its name is free.

    It returns what `cursors_of` has returned. `wait` is that of `commit`.
    """
    dropped = cursors_of(folder, reader)
    for name in dropped:
        _remove(folder, name)
    _wait_for_removal(folder, reader, dropped, wait)
    return dropped


def _wait_for_removal(folder: Path, reader: str, names: Collection[str], wait: Wait) -> None:
    """Wait until a successor does not know these cursors, nor others that were removed before without an answer."""
    ask = asks.ask_of(folder, reader, f"{folder}: reader {reader!r} is removed", partial(_check_gone, folder, names))
    if ask is not None:
        wait(ask)


def _check_gone(folder: Path, names: Collection[str]) -> None:
    for name in names:
        if (folder / COMMITTED / name).exists():
            raise JournalError(f"{folder}: reader {name!r} is there again; repeat this if it should not be")


def cursors_of(folder: Path, reader: str | None = None) -> dict[str, Committed | None]:
    """Return the content of each cursor of a reader, or of all, by the cursor's name; None for a damaged one."""
    if reader is not None:
        check_name(reader, "reader")
    return {name: cursor for name, cursor in _checked(folder) if reader in (None, name.partition(_PART)[0])}


def _names(folder: Path) -> list[str]:
    """Return the names of a log's cursors, in order."""
    with disk_errors(folder / COMMITTED, "be listed"), suppress(FileNotFoundError):
        return [name for name in sorted(os.listdir(folder / COMMITTED)) if not name.startswith(".")]
    return []


def drop(folder: Path, cursor: str, *, wait: Wait = Ask.wait) -> None:
    """Remove one cursor of a reader, unless it belongs to a query: `forget` alone removes such a one.

    `wait` is that of `commit`.
    """
    reader = reader_of(cursor)
    with locked(folder):
        recorded = _read(folder / COMMITTED / cursor)
        removed = recorded is not None and recorded.query is None
        if removed:
            _remove(folder, cursor)
    _wait_for_removal(folder, reader, [cursor] if removed else [], wait)


def _remove(folder: Path, cursor: str) -> None:
    """Remove a cursor, and tell the owner of the log's group, whatever the name of the file is."""
    with asks.recording(folder, cursor.partition(_PART)[0], binding=True):
        _unlink(folder, cursor)


def _unlink(folder: Path, cursor: str) -> None:
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
    wait: Wait = Ask.wait,
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
        wait: As for `commit`.

    Returns:
        The position of the first remaining row.

    Raises:
        LocalError: As for `commit`. Nothing is deleted.
        JournalMismatch: The name belongs to another query, or the cursor to another log. Nothing is deleted.
        JournalError: As for `commit`.

    """
    position = check_count(position, f"the position of reader {reader!r}")
    retain_rows, retain_bytes = check_count(retain_rows, "retain_rows"), check_count(retain_bytes, "retain_bytes")
    with locked(folder) as log:
        recorded = _check_owner(folder, log, reader, query)
        position = position if recorded is None else max(position, recorded.position)
        _check_end(folder, log, reader, position, recorded)
        if load_sealed(folder) is not None:
            first = next((first for first, _ in LogFolder.local(folder).segments()), 0)
        else:
            positions = {name: cursor.position for name, cursor in cursors(folder).items()}
            positions[reader] = position
            # Segments are deleted before the commit is recorded: on a full disk this makes space for the record.
            first = delete_free(folder, min(positions.values()), retain_rows, retain_bytes)
        ask = _record(folder, log, reader, position, query, recorded)
    if ask is not None:
        wait(ask)
    return first


def delete(folder: Path, position: int, *, force: bool) -> list[Extent]:
    """Delete the segments below a position; the last segment stays, and so do those that are to be sealed.

    Args:
        folder: The log's folder.
        position: Rows below it are deleted, in whole segments.
        force: Delete rows although readers have not committed them.

    Returns:
        What was deleted.

    Raises:
        LocalError: A reader has not committed rows below the position. Nothing is deleted.
        JournalError: The disk failed.

    """
    with locked(folder):
        free, limit = deletable(folder, position), _deletable_end(folder, position)
        waiting = {name: at for name, at in commits(folder).items() if at < position}
        if waiting and not force:
            listed = ", ".join(f"{name} at {at:,}" for name, at in sorted(waiting.items()))
            raise LocalError(f"{folder}: readers have not committed the rows below {position:,}: {listed}")
        delete_free(folder, limit, 0, 0)
    return free


def deletable(folder: Path, position: int) -> list[Extent]:
    """Return the segments that `delete` deletes, if no reader needs them."""
    return free_segments(LogFolder.local(folder).segments(), _deletable_end(folder, position))


def _deletable_end(folder: Path, position: int) -> int:
    """Return a position below which segments may be deleted: in a log with cold storage, only sealed ones."""
    sealed = load_sealed(folder)
    end = check_count(position, "the position")
    return end if sealed is None else min(end, sealed.end)


def logs(folder: Path) -> set[str]:
    """Return the UUIDs of the logs in which a log's readers have committed positions, from valid cursors."""
    return {cursor.log for _, cursor in _checked(folder) if cursor is not None}


def damaged(folder: Path, log: str) -> list[str]:
    """Return the names of the cursors that are damaged, or that belong to another log than the one with this UUID."""
    return [name for name, cursor in _checked(folder) if cursor is None or cursor.log != log]


def _checked(folder: Path) -> Iterator[tuple[str, Committed | None]]:
    """Yield name and content of each cursor of a log; the content of a damaged one, or under no valid name, is None."""
    for name in _names(folder):
        try:
            reader_of(name)
            cursor = _read(folder / COMMITTED / name)
        except (JournalCorrupt, LocalError):
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
            f"{path}: is not a reader's cursor ({error}); `weirpool journal forget` drops the reader"
        ) from None
    return cursor
