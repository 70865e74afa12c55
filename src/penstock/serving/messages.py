"""What a collector that serves a journal and its clients say to each other: JSON, and errors by name."""

from __future__ import annotations

import re
from typing import Any, Final, TypeVar

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
)
from ..journal.gaps import Gap
from ..journal.lock import Owner

__all__ = [
    "PREFIX",
    "STANDBY",
    "Commit",
    "Describe",
    "Description",
    "Hold",
    "LogState",
    "Named",
    "Read",
    "Record",
    "answered",
    "decode",
    "error_of",
    "failure",
    "refusal_of",
]

PREFIX: Final = "penstock.journal."
"""The beginning of the reserved routes."""
STANDBY: Final = "this collector stands by"
"""In the refusal of a collector whose logs another one continues: readers ask that one, or again later."""

T = TypeVar("T")
Span = tuple[int, int]

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


class Describe(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question about a log; each field asks for one more part of the description."""

    source: str
    uuid: str | None = None
    """The log that is meant; another one of this name is an error."""
    segments: int | None = None
    """The segments that end after this position."""
    gaps: tuple[int | None, int | None] | None = None
    """The losses in a range."""
    damage: tuple[int | None, int | None, bool] | None = None
    """The damage in a range, and whether that of records without rows is included."""
    locate: int | None = None
    """The batch with this row."""
    split: tuple[int, int, int | None, int | None] | None = None
    """The parts of a range, with at most so many rows and bytes."""


class Description(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A log, and what was asked about it."""

    uuid: str
    first: int
    end: int
    segments: list[tuple[int, int, int, Span | None]] | None = None
    """First position, end position, bytes, and the times of the first and the last row if known."""
    gaps: list[Gap] | None = None
    damage: list[Span] | None = None
    batch: Span | None = None
    parts: list[Span] | None = None


class Read(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for the rows of a range."""

    source: str
    uuid: str
    first: int
    end: int
    columns: list[str] | None = None
    skip_records: bool = False


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reader's position."""

    source: str
    cursor: str
    position: int
    query: str | None = None
    retain_bytes: int | None = None
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
        raise JournalError(f"the collector has sent an answer that is not one ({error}); update Penstock") from None


def failure(error: JournalError) -> ApplicationError:
    """Return the error to send to a client, which `error_of` turns into the same one."""
    name = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _ERRORS)
    return ApplicationError(message=f"{name}: {error}")


def error_of(text: str, where: str) -> JournalError:
    """Return the error that a collector has sent as text; `where` is its URL."""
    name, _, rest = text.partition(": ")
    kind = _ERRORS.get(name)
    return JournalError(f"{where}: {text}") if kind is None else kind(f"{where}: {rest}")


def refusal_of(text: str, where: str) -> JournalError | None:
    """Return the error that is a part of the text of a refused set-up; None if there is none."""
    found = _NAMED.search(text)
    return None if found is None else error_of(text[found.start() :], where)
