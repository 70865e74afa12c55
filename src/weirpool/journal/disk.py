"""The interface to the operating system: durable writes, and conversion of its errors."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType

from ..access.private import open_private
from ..errors import DiskFull, JournalError, JournalUnavailable
from ..store.log import sync_folder

__all__ = [
    "NO_RESOURCES",
    "NO_ROOM",
    "converted",
    "disk_errors",
    "locking",
    "make_folder",
    "open_private",
    "read_file",
    "replace_file",
    "sync_folder",
    "write_at",
]

NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
"""The numbers of errors that mean that the disk is full."""
NO_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN}
"""The numbers of errors that mean that the process, or the system, has no descriptors or memory at the moment."""


class disk_errors:
    """Convert an `OSError` inside the block, as :func:`converted` does.

    `action` is what failed at this path, as in "be listed".
    """

    # A generator would take longer than the write inside the block.
    __slots__ = ("_action", "_path")

    def __init__(self, path: Path | str, action: str) -> None:
        self._path = path
        self._action = action

    def __enter__(self) -> None:
        return

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, OSError):
            raise converted(error, self._path, self._action) from error


def converted(error: OSError, path: Path | str, action: str) -> JournalError:
    """Return the error to raise instead of one of the system.

    It is `DiskFull` if there was no space or quota, and `JournalUnavailable` if there were no descriptors or no memory:
    the same call may succeed later. Otherwise it is `JournalError`. `action` is what failed, as in "be listed".
    """
    if error.errno in NO_ROOM:
        return DiskFull(
            f"{path}: cannot {action}: the disk is full; free some space, or let the readers commit, which trims "
            "the journal; no row for which append has returned is lost"
        )
    if error.errno in NO_RESOURCES:
        return JournalUnavailable(
            f"{path}: cannot {action} at the moment ({error.strerror or error}); nothing was changed; raise the limit "
            "of open files (ulimit -n), or let this process do less at once"
        )
    return JournalError(
        f"{path}: cannot {action} ({error.strerror or error}); check the path, its permissions and the disk"
    )


def read_file(path: Path, limit: int) -> bytes | None:
    """Return at most `limit` bytes of a file, or None if there is no such file; an `OSError` is converted."""
    try:
        with open(path, "rb") as file:
            return file.read(limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise converted(error, path, "be read") from error


@contextmanager
def locking(fd: int) -> Iterator[None]:
    """Keep other processes and threads that lock this file waiting inside the block; the file is closed after it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        # A child process may have inherited the file: closing it here would not be enough.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def write_at(fd: int, chunks: Iterable[bytes | memoryview], offset: int) -> int:
    """Write all of `chunks` in order, and return the offset after them."""
    for chunk in chunks:
        view = memoryview(chunk)
        while view:
            written = os.pwrite(fd, view, offset)
            view = view[written:]
            offset += written
    return offset


def make_folder(folder: Path, *, fsync: bool = True) -> None:
    """Create a folder and its parents, for this user only regardless of the umask; an existing one stays unchanged.

    With `fsync` the names are durable on return: a power cut must not remove a log together with the folder above it.
    """
    unsure = []
    while not folder.is_dir() or (fsync and folder != folder.parent and _may_be_new(folder)):
        unsure.append(folder)
        folder = folder.parent
    for each in reversed(unsure):
        try:
            each.mkdir(mode=0o700)
        except FileExistsError:
            if not each.is_dir():
                raise
        else:
            each.chmod(0o700)
        if fsync:
            sync_folder(each.parent)


def _may_be_new(folder: Path) -> bool:
    """Return True for an empty folder: whoever made it may have been stopped before its name was durable."""
    try:
        # A folder that this user may use, but neither list nor sync, was made by somebody else.
        return next(folder.iterdir(), None) is None and os.access(folder.parent, os.R_OK)
    except PermissionError:
        return False


def replace_file(path: Path, data: bytes, *, fsync: bool = True) -> None:
    """Replace a file atomically: a reader finds the old or the new content, even after a power cut.

    The file is for this user only. After a crash, a temporary file may remain whose name begins with a dot.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.unlink(missing_ok=True)
        fd = open_private(temporary, os.O_WRONLY | os.O_EXCL)
        try:
            write_at(fd, [data], 0)
            if fsync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if fsync:
        sync_folder(path.parent)
