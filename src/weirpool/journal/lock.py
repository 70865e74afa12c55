"""One writer per log: a lock that the kernel releases when its owner dies."""

from __future__ import annotations

import fcntl
import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

import msgspec

from ..errors import JournalLocked
from .disk import disk_errors, open_private

__all__ = ["Lock", "Owner", "owner_of"]


class Owner(msgspec.Struct, frozen=True):
    """The owner of a lock, as recorded in its file."""

    pid: int
    host: str
    since: datetime
    parent: int = 0
    """The process that started it; 0 if unknown."""

    @classmethod
    def here(cls) -> Owner:
        """Return this process."""
        return cls(os.getpid(), socket.gethostname(), datetime.now(UTC).replace(microsecond=0), os.getppid())

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since:%Y-%m-%d %H:%M:%S %Z}"


class Lock:
    """A lock on a file, held until `close`, or until the process ends for any reason.

    The file is created if necessary, and remains. If another process holds it, `JournalLocked` names that.

    Args:
        path: The file.
        owner: The process for which this one holds the lock; None: for itself.
        temporary: Remove the file when the lock is released: nobody but its owner knows that it will be used again.

    """

    def __init__(self, path: Path, owner: Owner | None = None, *, temporary: bool = False) -> None:
        self.path = path
        self._temporary = temporary
        self._pid = os.getpid()
        with disk_errors(path, "be locked"):
            self._fd = self._locked()
            while not self._in_place():
                # The previous owner removed the file before it released the lock.
                os.close(self._fd)
                self._fd = self._locked()
        self._write_owner(owner or Owner.here())

    def _locked(self) -> int:
        fd = open_private(self.path, os.O_RDWR)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = owner_of(self.path) or "another process"
            os.close(fd)
            raise JournalLocked(
                f"{self.path.parent}: {owner} writes to this log; stop it, or choose another source name"
            ) from None
        except OSError:
            os.close(fd)
            raise
        return fd

    def _in_place(self) -> bool:
        """True if the locked file still has this name."""
        try:
            there = os.stat(self.path)
        except FileNotFoundError:
            return False
        return os.path.samestat(there, os.fstat(self._fd))

    @property
    def closed(self) -> bool:
        """True if the lock was released."""
        return self._fd < 0

    @property
    def inherited(self) -> bool:
        """True in a process that was forked from the one which took the lock."""
        return self._pid != os.getpid()

    def remove(self) -> None:
        """Remove the file while the lock is held: for a folder that is to be deleted."""
        with suppress(FileNotFoundError):
            self.path.unlink()

    def _write_owner(self, owner: Owner) -> None:
        # The owner's name is for people: on a full disk the lock works without it.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, msgspec.json.encode(owner) + b"\n", 0)

    def close(self) -> None:
        """Release the lock. May be called twice. In a forked process, its parent keeps the lock."""
        if self._fd >= 0:
            if not self.inherited:
                if self._temporary:
                    with suppress(OSError):
                        self.path.unlink()
                # A child process may have inherited the file: closing it here would not be enough.
                fcntl.flock(self._fd, fcntl.LOCK_UN)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Lock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def owner_of(path: Path) -> Owner | None:
    """Return the process that holds, or last held, the lock on a file; None if that is unknown."""
    try:
        return _decoded(path.read_bytes())
    except OSError:
        return None


def _decoded(data: bytes) -> Owner | None:
    """Return the owner recorded in a lock's file, or None if it is unreadable, as on another machine's disk."""
    try:
        return msgspec.json.decode(data, type=Owner)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
