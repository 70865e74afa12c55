"""The edge to the operating system: writes that last, and its errors as ours."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import DiskFull, JournalError

__all__ = ["disk_errors", "replace_file", "sync_folder", "write_at"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


@contextmanager
def disk_errors(path: Path | str, action: str) -> Iterator[None]:
    """Turn an `OSError` inside the block into one of ours.

    Args:
        path: What the error is about.
        action: What could not be done to it, as in "cannot be listed".

    Raises:
        DiskFull: There was no room, or no more of it for this user.
        JournalError: Any other error.

    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise DiskFull(
                f"{path}: no room on the disk, it cannot {action}; free some, or let the readers commit, which trims "
                "the journal; nothing that append returned for is lost"
            ) from error
        raise JournalError(
            f"{path}: cannot {action} ({error.strerror or error}); check the path, its permissions and the disk"
        ) from error


def write_at(fd: int, chunks: Iterable[bytes | memoryview], offset: int) -> int:
    """Write all of `chunks`, one after the other, and return the offset behind them."""
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            written = os.pwrite(fd, view, offset)
            view = view[written:]
            offset += written
    return offset


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Write a file so that whoever reads it, even after a power cut, finds all of the old or all of the new.

    A file whose name begins with a dot is what a crash has left of this.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)
