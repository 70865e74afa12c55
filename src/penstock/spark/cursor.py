"""How a query tells the journal what it has committed, so that this may go.

Spark does not tell a source which query it belongs to, so a query has a name in the journal: the option
`reader`. One process at a time holds that name, by a lock on the file ``_readers/NAME`` that the kernel takes
back when the process dies. So what is left of a driver that was killed, and the source of its successor, never
commit for one query at the same time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from ..errors import JournalError, JournalLocked, LocalError
from ..journal import retention
from ..journal.layout import log_folder
from ..journal.lock import Lock, Owner

__all__ = ["Cursor"]

FOLDER: Final = "_readers"
PATIENCE: Final = 10.0
"""Seconds: the source of a driver that was killed ends when it next asks, which takes a moment."""
RETRY: Final = 0.1


class Cursor:
    """A name in a journal, held from `claim` to the end of the process.

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
        self._lock: Lock | None = None
        self._committed: dict[str, int] = {}

    @property
    def claimed(self) -> bool:
        """Whether the name is ours."""
        return self._lock is not None

    def claim(self, positions: Mapping[str, int]) -> None:
        """Take the name, and stand at these positions, even if it stood further on before.

        A journal that is not there yet has no names: then nothing happens.

        Raises:
            JournalLocked: Another query has the name, and keeps it.
            LocalError: The journal can only be read.

        """
        if self.claimed or not self._path.parent.parent.is_dir():
            return
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._lock = self._acquire()
            for source, position in positions.items():
                self._stand(source, position)
        except JournalLocked:
            raise
        except (OSError, JournalError) as error:
            raise LocalError(
                f"journal {self._journal} cannot be told what this query commits ({error}); "
                "make it writable, or set the option trim to false and trim it yourself"
            ) from error

    def commit(self, positions: Mapping[str, int]) -> None:
        """Let the journal delete what lies before these positions; call it with the name claimed.

        Raises:
            JournalError: The disk refused; call again.

        """
        for source, position in positions.items():
            folder = log_folder(self._journal, source)
            if position > self._committed.get(source, -1) and folder.is_dir():
                retention.trim(folder, position, reader=self._reader, retain_bytes=self._retain_bytes)
                self._committed[source] = position

    def release(self) -> None:
        """Give the name back, for another query in this process."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _acquire(self) -> Lock:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return Lock(self._path)
            except JournalLocked:
                if time.monotonic() > deadline:
                    raise JournalLocked(
                        f"journal {self._journal}: {self._owner()} reads it as {self._reader!r}; give each query a "
                        "name of its own with the option reader, or set trim to false in one of them"
                    ) from None
            time.sleep(RETRY)

    def _owner(self) -> str:
        try:
            return str(msgspec.json.decode(self._path.read_bytes(), type=Owner))
        except (OSError, msgspec.DecodeError):
            return "another process"

    def _stand(self, source: str, position: int) -> None:
        folder = log_folder(self._journal, source)
        if not folder.is_dir():
            return
        if retention.commits(folder).get(self._reader, 0) > position:
            # A query that began anew: where it stood before would let rows go that it has still to read.
            retention.forget(folder, self._reader)
        self._committed[source] = retention.commit(folder, self._reader, position)
