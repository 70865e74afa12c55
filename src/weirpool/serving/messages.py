"""What a collector that serves a journal and its clients say to each other: JSON, and errors by name."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, TypeVar

import msgspec

from ..errors import (
    ApplicationError,
    DataLost,
    DiskFull,
    Invalid,
    JournalCorrupt,
    JournalError,
    JournalLocked,
    JournalMismatch,
    JournalMissing,
    LocalError,
    WeirpoolError,
)
from ..journal.gaps import Gap
from ..journal.lock import Owner
from ..texts import shown_line

__all__ = [
    "NOT_ALLOWED",
    "PREFIX",
    "STANDBY",
    "Commit",
    "Delete",
    "Describe",
    "Description",
    "File",
    "Hold",
    "LogState",
    "Named",
    "Read",
    "Record",
    "answered",
    "check_owner",
    "decode",
    "error_from",
    "error_of",
    "failure",
    "refusal_of",
]

PREFIX: Final = "weirpool.journal."
"""The beginning of the reserved routes."""
NOT_ALLOWED: Final = "is not allowed to this client"
"""In the refusal of a request."""
STANDBY: Final = "this collector stands by"
"""In the refusal of a collector whose logs another one continues: readers ask that one, or again later."""

MAX_HOST_CHARS: Final = 255
MAX_PROCESS: Final = 1 << 32

T = TypeVar("T")
Span = tuple[int, int]
Position = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]
"""A position in a question; the number of the format's own limit."""
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]

_ERRORS: Final = {
    kind.__name__: kind
    for kind in (JournalError, JournalCorrupt, JournalLocked, JournalMismatch, JournalMissing, DataLost, DiskFull)
}


_NAMED: Final = re.compile(rf"\b(?:{'|'.join(_ERRORS)}): ")


class LogState(msgspec.Struct, frozen=True, array_like=True):
    """A log as `list` and `follow` show it."""

    source: str
    uuid: str = ""
    """Empty if the log is not readable."""
    first: int = 0
    end: int = 0
    trouble: str = ""
    """The error that makes it unreadable, by name: ``JournalMissing`` also for one that has no row yet."""
    awaited: bool = False
    """True if its collector has no row yet."""


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A question about a log, or about a reader of it."""

    source: str
    reader: str | None = None

    @property
    def named(self) -> str:
        """The reader; `Invalid` without one."""
        if self.reader is None:
            raise Invalid(message="the reader is missing")
        return self.reader


class Describe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question about a log; each field asks for one more part of the description."""

    source: str
    uuid: str | None = None
    """The log that is meant; another one of this name is an error."""
    segments: Position | None = None
    """The segments that end after this position."""
    timed: bool = False
    """With the times of their rows."""
    gaps: tuple[Position | None, Position | None] | None = None
    """The losses in a range."""
    damage: tuple[Position | None, Position | None, bool] | None = None
    """The damage in a range, and whether that of records without rows is included."""
    locate: Position | None = None
    """The batch with this row."""
    split: tuple[Position, Position, Count | None, Count | None] | None = None
    """The parts of a range, with at most so many rows and bytes."""


class Description(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A log, and what was asked about it."""

    uuid: str
    first: int
    end: int
    segments: list[tuple[int, int, int, Span | None]] | None = None
    """First position, end position, bytes, and the times of the earliest and the latest row if known."""
    gaps: list[Gap] | None = None
    damage: list[Span] | None = None
    batch: Span | None = None
    parts: list[Span] | None = None


class Read(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for the rows of a range."""

    source: str
    uuid: str
    first: Position
    end: Position
    columns: list[str] | None = None
    skip_records: bool = False


class File(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for a file of a log."""

    source: str
    name: str
    limit: Count | None = None
    """The bytes that are wanted; None: all that there are now."""


class Delete(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Segments to delete."""

    source: str
    position: int
    """Those below it."""
    force: bool = False
    """Also rows that readers have not committed."""


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reader's position."""

    source: str
    cursor: str
    position: int
    """It is compared with the end of the log when it is recorded, whatever it is."""
    query: str | None = None
    retain_bytes: Count | None = None
    """Trim the log, and keep this many bytes below the position; None: set the position, even to a lower one."""


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Losses that a query has skipped."""

    source: str
    losses: list[Gap]


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's name, to be held as long as the stream is open."""

    name: str
    owner: Owner


def decode(data: bytes, kind: type[T]) -> T:
    """Return a message from a peer; `Invalid` if it is not one."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Invalid(message=f"this is not a request of a journal: {error}") from None


def answered(data: bytes, kind: Any) -> Any:
    """Return an answer of a collector; `JournalError` if it is not one."""
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalError(f"the collector has sent an answer that is not one ({error}); update Weirpool") from None


def check_owner(owner: Owner) -> None:
    """Check what a client says of its process, which is stored, and shown to others; `Invalid` if it is not valid."""
    if len(owner.host) > MAX_HOST_CHARS or shown_line(owner.host) != owner.host:
        raise Invalid(message=f"the host of a process has up to {MAX_HOST_CHARS} printable characters")
    if not (0 <= owner.pid < MAX_PROCESS and 0 <= owner.parent < MAX_PROCESS and owner.since.tzinfo is not None):
        raise Invalid(message="a process has a number, its parent's, and the time of its start with a zone")


def failure(error: JournalError) -> ApplicationError:
    """Return the error to send to a client, which `error_of` turns into the same one."""
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    return ApplicationError(message=f"{name}: {error}")


def error_of(text: str, where: str) -> JournalError:
    """Return the error that a collector has sent as text; `where` is its URL."""
    name, _, rest = text.partition(": ")
    kind = _ERRORS.get(name)
    return JournalError(f"{where}: {text}") if kind is None else kind(f"{where}: {rest}")


def error_from(error: ApplicationError, where: str) -> WeirpoolError:
    """Return the error that a collector's answer stands for: this side's own if the request was not valid."""
    return LocalError(f"{where}: {error.message}") if isinstance(error, Invalid) else error_of(error.message, where)


def refusal_of(text: str, where: str) -> JournalError | None:
    """Return the error that is a part of the text of a refused set-up; None if there is none."""
    found = _NAMED.search(text)
    return None if found is None else error_of(text[found.start() :], where)
