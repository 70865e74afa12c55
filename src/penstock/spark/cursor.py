"""How a query tells the journal what it has committed, so that this may go; and who may say so.

Spark does not tell a source which query it belongs to, so a query has a name in the journal: the option
`reader`. One process at a time holds that name. After a driver was killed its source may live on for a
moment beside the one of the new driver: it is fenced off, because a token in the file ``_readers/NAME`` is no
longer its own, and all that it could still do happens under a lock on that file.
"""

from __future__ import annotations

import fcntl
import os
import socket
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ..errors import JournalError, JournalLocked, LocalError
from ..journal import retention
from ..journal.layout import log_folder

__all__ = ["Cursor"]

FOLDER = "_readers"


class Lease(msgspec.Struct, frozen=True):
    """What the file of a name holds."""

    token: str
    pid: int
    host: str
    since: datetime


class Cursor:
    """A name in a journal, held from `claim` until somebody else claims it.

    Args:
        journal: The journal's folder.
        reader: The name.
        retain_bytes: Bytes of committed rows that stay nevertheless.

    """

    def __init__(self, journal: str, reader: str, retain_bytes: int) -> None:
        self._journal = journal
        self._reader = reader
        self._retain_bytes = retain_bytes
        self._path = Path(journal, FOLDER, reader)
        self._token = uuid.uuid4().hex
        self._committed: dict[str, int] = {}
        self.claimed = False

    def claim(self, positions: Mapping[str, int]) -> bool:
        """Take the name, and stand at these positions, even if it stood further on before.

        Returns:
            Whether it was taken: a journal that is not there yet has no names.

        Raises:
            LocalError: The journal can only be read.

        """
        if not self._path.parent.parent.is_dir():
            return False
        lease = Lease(self._token, os.getpid(), socket.gethostname(), datetime.now(UTC).replace(microsecond=0))
        try:
            with self._locked() as fd:
                os.ftruncate(fd, 0)
                os.pwrite(fd, msgspec.json.encode(lease) + b"\n", 0)
                for source, position in positions.items():
                    self._stand(source, position)
        except (OSError, JournalError) as error:
            raise LocalError(
                f"journal {self._journal} cannot be told what this query commits ({error}); "
                "make it writable, or set the option trim to false and trim it yourself"
            ) from error
        self.claimed = True
        return True

    def check(self) -> None:
        """Make sure that the name is still ours.

        Raises:
            JournalLocked: Another query has it.

        """
        try:
            lease = msgspec.json.decode(self._path.read_bytes(), type=Lease)
        except (OSError, msgspec.DecodeError):
            # The journal is gone, or its disk is: what reads it finds out.
            return
        if lease.token != self._token:
            raise JournalLocked(
                f"journal {self._journal}: process {lease.pid} on {lease.host} reads it as {self._reader!r} since "
                f"{lease.since:%Y-%m-%d %H:%M:%S %Z}; give each query a name of its own with the option reader"
            )

    def commit(self, positions: Mapping[str, int]) -> None:
        """Let the journal delete what lies before these positions.

        Raises:
            JournalLocked: Another query has the name.
            JournalError: The disk refused; call again.

        """
        news = {source: at for source, at in positions.items() if at > self._committed.get(source, -1)}
        if not news:
            return
        try:
            with self._locked():
                self.check()
                for source, position in news.items():
                    folder = log_folder(self._journal, source)
                    if folder.is_dir():
                        retention.trim(folder, position, reader=self._reader, retain_bytes=self._retain_bytes)
                        self._committed[source] = position
        except OSError as error:
            raise JournalError(f"{self._path}: cannot be locked ({error.strerror}); check the disk") from error

    def _stand(self, source: str, position: int) -> None:
        folder = log_folder(self._journal, source)
        if not folder.is_dir():
            return
        if retention.commits(folder).get(self._reader, 0) > position:
            # A query that began anew: what it stood at before would let rows go that it has still to read.
            retention.forget(folder, self._reader)
        self._committed[source] = retention.commit(folder, self._reader, position)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        self._path.parent.mkdir(exist_ok=True)
        fd = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield fd
        finally:
            os.close(fd)
