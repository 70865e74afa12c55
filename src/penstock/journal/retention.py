"""What may go: readers say how far they are, and segments that nobody needs any more are deleted.

Each reader has a file in the log's folder, ``_committed/READER``, with the position up to which it has no
further use for the rows. The least of these positions rules: rows at or above it stay, and count against the
writer's budget. Below it a margin stays too, for readers that go back a little, and for people.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ..errors import JournalCorrupt, LocalError
from .disk import disk_errors, make_folder, replace_file
from .layout import COMMITTED, check_name
from .trimming import delete_free

__all__ = ["DEFAULT_READER", "DEFAULT_RETAIN_BYTES", "commit", "commits", "forget", "trim"]

DEFAULT_READER = "default"

DEFAULT_RETAIN_BYTES = 64 * 1024 * 1024
"""What stays below the committed position, so that an operator can take back a reader's last steps.

Spark itself never reads below what it has committed; who rewinds a query by deleting the newest files of its
checkpoint goes back by a batch a file. 64 MiB are some four batches of 100,000 rows of 128 bytes.
"""


def commit(folder: Path, reader: str, position: int) -> int:
    """Record that `reader` has no further use for rows below `position`; return what is recorded now.

    It is durable when this returns. A position lower than the one recorded changes nothing.
    """
    path = folder / COMMITTED / check_name(reader, "reader")
    if position < 0:
        raise LocalError(f"reader {reader!r} commits position {position}; positions start at 0")
    with disk_errors(path, "be written"):
        make_folder(path.parent)
        recorded = _read(path)
        if recorded is not None and position <= recorded:
            return recorded
        replace_file(path, b"%d\n" % position)
    return position


def commits(folder: Path) -> dict[str, int]:
    """Return the position up to which each reader has committed."""
    found = {}
    with disk_errors(folder / COMMITTED, "be listed"), suppress(FileNotFoundError):
        for name in sorted(os.listdir(folder / COMMITTED)):
            position = None if name.startswith(".") else _read(folder / COMMITTED / name)
            if position is not None:
                found[name] = position
    return found


def forget(folder: Path, reader: str) -> None:
    """Drop a reader that will not come back, so that it holds nothing up any more."""
    path = folder / COMMITTED / check_name(reader, "reader")
    with disk_errors(path, "be removed"):
        path.unlink(missing_ok=True)


def trim(
    folder: Path,
    position: int,
    *,
    reader: str = DEFAULT_READER,
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
        reader: Who commits. Several readers need several names.
        retain_rows: Rows to keep below the least committed position.
        retain_bytes: Bytes to keep below it, counted in whole segments.

    Returns:
        The position of the first row that is left.

    Raises:
        JournalError: The disk refused.

    """
    positions = commits(folder)
    positions[check_name(reader, "reader")] = max(position, positions.get(reader, 0))
    # Deleted before it is recorded: on a full disk this makes the room for the record.
    first = delete_free(folder, min(positions.values()), retain_rows, retain_bytes)
    commit(folder, reader, position)
    return first


def _read(path: Path) -> int | None:
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    if not text.strip().isdigit():
        raise JournalCorrupt(f"{path}: holds no position; remove the file if that reader may start again")
    return int(text)
