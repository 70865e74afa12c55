"""Gaps that outlive their segments: a log's losses, in a separate file.

A gap is recorded in a segment, between the rows on both sides of it. Before that segment is deleted, its gaps are moved
to ``_gaps``. Losses of rows that were already written are recorded there too.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from ..errors import JournalCorrupt
from .disk import disk_errors, locking, open_private, read_file, replace_file
from .layout import GAPS

__all__ = [
    "LATE",
    "MAX_GAPS",
    "MAX_GAPS_BYTES",
    "Gap",
    "add",
    "decode",
    "encode",
    "load",
    "locked",
    "merge",
    "number_of",
    "time_of",
]

MAX_GAPS = 50_000
"""The number of gaps to keep separately; beyond it, the older half is merged into one."""
MAX_GAPS_BYTES = 1 << 28
"""The size of the file: far more than that many gaps need."""

LATE = -1
"""A placeholder for the number of a gap that is recorded at an earlier position: `add` assigns the number."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MAX_TIME = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MAX_POSITION = (1 << 63) - 1
_DIGEST_BYTES = 64


@dataclass(frozen=True, slots=True)
class Gap:
    """A loss: the rows on both sides of it exist, but items between them never arrived, or were destroyed.

    Attributes:
        position: The position of the first row after it, which may not be written yet.
        time: When it was recorded.
        reason: The reason, for people.
        previous: When the last row before it was appended; None if unknown, or if there is none.
        lost: The permanently lost positions of this log, first and end; None for items that never had a position.
        query: The id of the query that skipped `lost`; other readers may still find these rows.
        number: Orders gaps by the time of recording if their positions do not: losses of written rows, and others that
            are `LATE`. 0 for gaps recorded by the collector.

    """

    position: int
    time: datetime
    reason: str
    previous: datetime | None = None
    lost: tuple[int, int] | None = None
    query: str | None = None
    number: int = field(default=0, compare=False)


def merge(*groups: Iterable[Gap]) -> list[Gap]:
    """Return all gaps once, in the order of their positions. If a gap exists twice, the first one counts.

    At one position the order is that of the groups: the order of recording, regardless of the clock.
    """
    found: dict[tuple[int, datetime, str, tuple[int, int] | None, str | None], Gap] = {}
    for group in groups:
        for gap in group:
            found.setdefault((gap.position, gap.time, gap.reason, gap.lost, gap.query), gap)
    return sorted(found.values(), key=lambda gap: gap.position)


def add(folder: Path, gaps: Iterable[Gap]) -> None:
    """Add gaps to a log's file of gaps; they are durable on return. Existing ones are ignored.

    Any process may do so at any time, even while another one writes to the log. On `DiskFull`, `JournalError`, and
    `JournalCorrupt` for a damaged file, nothing was changed.
    """
    new = list(gaps)
    if not new:
        return
    path = folder / GAPS
    with disk_errors(path, "be written"), locked(folder):
        before = load(folder)
        after = _bounded(_numbered(merge(before, new)))
        if after != before:
            replace_file(path, encode(after))


def load(folder: Path) -> list[Gap]:
    """Return the gaps in the file of a log on this machine, in order; `JournalCorrupt` if it is damaged."""
    path = folder / GAPS
    data = read_file(path, MAX_GAPS_BYTES + 1)
    return [] if data is None else decode(data, path)


def encode(gaps: Iterable[Gap]) -> bytes:
    """Return the content of the file: a SHA-256 of everything after it, and a line of JSON per gap."""
    rows = [_row(gap) for gap in gaps]
    text = msgspec.json.Encoder().encode_lines(rows)
    return hashlib.sha256(text).hexdigest().encode() + b"\n" + text


def decode(data: bytes, name: Path | str) -> list[Gap]:
    """Return the gaps in the file `name`; `JournalCorrupt` if they differ from what was written."""
    digest, text = data[:_DIGEST_BYTES], data[_DIGEST_BYTES + 1 :]
    try:
        if len(data) > MAX_GAPS_BYTES:
            raise ValueError(f"longer than {MAX_GAPS_BYTES} bytes")
        if hashlib.sha256(text).hexdigest().encode() != digest or data[_DIGEST_BYTES : _DIGEST_BYTES + 1] != b"\n":
            raise ValueError("its SHA-256 does not match")
        return [_gap(row) for row in msgspec.json.Decoder(_Row).decode_lines(text)]
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise JournalCorrupt(
            f"{name}: the file is damaged ({error}); restore it from a copy, or remove it to forget the gaps "
            "whose segments were trimmed"
        ) from None


class _Row(msgspec.Struct, array_like=True):
    """A gap in the file; times in microseconds since 1970."""

    position: int
    time: int
    reason: str
    previous: int | None = None
    lost: tuple[int, int] | None = None
    query: str | None = None
    number: int = 0


def _row(gap: Gap) -> _Row:
    previous = None if gap.previous is None else number_of(gap.previous)
    return _Row(gap.position, number_of(gap.time), gap.reason, previous, gap.lost, gap.query, gap.number)


def _gap(row: _Row) -> Gap:
    if (
        not 0 <= row.position <= _MAX_POSITION
        or not 0 <= row.time <= _MAX_TIME
        or not 0 <= (row.previous or 0) <= _MAX_TIME
        or not 0 <= row.number <= _MAX_POSITION
    ):
        raise ValueError("a number is out of range")
    if row.lost is not None and not 0 <= row.lost[0] <= row.lost[1] <= _MAX_POSITION:
        raise ValueError("a range ends before it starts")
    previous = None if row.previous is None else time_of(row.previous)
    return Gap(row.position, time_of(row.time), row.reason, previous, row.lost, row.query, row.number)


def time_of(number: int) -> datetime:
    """Return a time of a journal, which is stored in microseconds since 1970."""
    return _EPOCH + number * _MICROSECOND


def number_of(time: datetime) -> int:
    """Return a time as a journal stores it: microseconds since 1970."""
    return (time - _EPOCH) // _MICROSECOND


def _numbered(gaps: list[Gap]) -> list[Gap]:
    """Return the gaps with a number for each one that was recorded late."""
    last = max((gap.number for gap in gaps), default=0)
    # Not from 1: after a damaged file was set aside, numbers must not repeat.
    numbers = itertools.count(max(last + 1, number_of(datetime.now(UTC))))
    return [
        replace(gap, number=next(numbers)) if gap.number < 0 or (gap.lost is not None and not gap.number) else gap
        for gap in gaps
    ]


def _bounded(gaps: list[Gap]) -> list[Gap]:
    """Return the gaps; if there are too many, the older half is merged. Lost positions stay unchanged."""
    if len(gaps) <= MAX_GAPS:
        return gaps
    older, newer = gaps[: len(gaps) // 2], gaps[len(gaps) // 2 :]
    kept = [gap for gap in older if gap.lost is not None]
    joined = [gap for gap in older if gap.lost is None]
    if len(joined) > 1:
        first, last = joined[0], joined[-1]
        reason = f"{len(joined)} gaps from position {first.position} on, the first of them: {first.reason[:300]}"
        joined = [Gap(last.position, last.time, reason, first.previous)]
    return merge(kept, joined, newer)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Prevent other processes and threads from changing the file, and the other files that trimming writes."""
    with locking(open_private(folder / f"{GAPS}.lock", os.O_RDWR)):
        yield
