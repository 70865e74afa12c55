"""What makes staged appends durable."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from .records import Record
from .replay import Reliance

if TYPE_CHECKING:
    from .format import Note
    from .layout import Extent

__all__ = ["Durability", "Replica", "Staged", "StagedAppend", "StagedLog"]


class StagedLog(Protocol):
    """The writer of a log, as far as those who make its appends durable use it."""

    @property
    def folder(self) -> Path:
        """The folder of the log."""

    @property
    def source(self) -> str:
        """The name of the log."""

    @property
    def uuid(self) -> str:
        """The UUID of the log."""

    @property
    def position(self) -> int:
        """The position of the next row."""

    def rely_on(self, reliance: Reliance) -> None:
        """Record, durably, that redo files will have appends of this log which its segment may lack."""

    def sync(self) -> None:
        """Make all appends so far durable in the segment."""

    def settle(self) -> None:
        """Make all appends durable in the segment, so that no redo file is needed."""


class StagedAppend(Protocol):
    """An append that is written to its segment and not synced."""

    @property
    def log(self) -> StagedLog:
        """The writer of its log."""

    @property
    def record(self) -> Record:
        """The bytes to write again after a failure, and where."""

    @property
    def digest(self) -> str:
        """The digest of the batch."""

    @property
    def note(self) -> Note:
        """Its positions, and the state that is recorded with it."""


@dataclass(frozen=True, slots=True)
class Staged:
    """An append that is written and not durable yet."""

    log: StagedLog
    record: Record
    """What makes it durable."""
    digest: str
    note: Note
    replaces: Extent | None
    """The segment that ends before it, if it starts another one."""


class Durability(Protocol):
    """Makes staged appends of many logs durable together. It is called by one thread at a time, and may block."""

    def write(self, appends: Sequence[StagedAppend]) -> None:
        """Make appends durable.

        Raises:
            JournalError: None of them counts as durable. The caller cancels them.

        """

    def close(self) -> None:
        """Release everything. Logs that are still open rely on it no more."""


class Replica(Durability, Protocol):
    """Keeps logs elsewhere, so that they outlive this machine: what is not there does not count.

    Folders on this machine are copies, and are not synced. Any thread may call its methods.
    """

    def adopt(self, log: StagedLog) -> None:
        """Begin to keep a log, with the rows that it has on this machine only; see `write` for the errors."""

    def state(self, source: str) -> bytes | None:
        """Return the last recorded state of a log; None if there is none."""

    def keep(self, source: str, secret: bytes | None) -> Future[None]:
        """Keep the secret of a log, which may not exist yet; None: it has none any more.

        It is there before anything that is written later. Its owner may wait for that.
        """

    def confirm(self) -> Future[None]:
        """Find out whether this process may still write; the result raises `JournalError` if not."""
