"""Compares what a publisher has sent on a stream with the rows that a log has of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pyarrow as pa

from ..journal import LogReader
from .digest import BLOCK_ITEMS, digest_of
from .sent import Sent

__all__ = ["Audit", "compare"]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of comparing a log with what was sent."""

    start: int
    """The position of the stream's first item in the log."""
    sent: int
    """Items that the publisher has sent."""
    rows: int
    """Rows that the log has of the stream, including those that were trimmed."""
    compared: int
    """Items whose digests were compared."""
    differing: list[tuple[int, int]] = field(default_factory=list)
    """First and end position of the rows that differ from what was sent."""
    surplus: int = 0
    """Rows that the log has, and that were not sent: they are there twice, or the stream is another client's."""
    partial: int = 0
    """Rows at the end of the log that cannot be compared yet, because the rest of their block is on its way."""

    @property
    def waiting(self) -> int:
        """Items that were sent and are not in the log yet: they are on their way, or lost."""
        return max(0, self.sent - self.rows)

    @property
    def unknown(self) -> int:
        """Items that cannot be compared: the log has trimmed them, or the publisher has forgotten their digests."""
        return min(self.sent, self.rows) - self.compared - self.partial

    @property
    def agrees(self) -> bool:
        """True if no row differs, and the log has no more rows than were sent."""
        return not self.differing and not self.surplus

    def __str__(self) -> str:
        if self.differing:
            first, end = self.differing[0]
            more = f" and {len(self.differing) - 1} more ranges" if len(self.differing) > 1 else ""
            return f"positions {first:,} to {end - 1:,}{more} differ from what the publisher sent"
        if self.surplus:
            return f"the log has {self.surplus:,} more rows of the stream than the publisher has sent"
        waiting = f"; {self.waiting:,} more items are on their way" if self.waiting else ""
        if self.partial:
            waiting = f"; the last {self.partial:,} rows are compared when the rest of their block is there{waiting}"
        untold = (
            f"; {self.unknown:,} cannot be compared: their rows or digests are no longer kept" if self.unknown else ""
        )
        return f"{self.compared:,} of {self.sent:,} items are in the journal as they were sent{untold}{waiting}"


def compare(log: LogReader, start: int, sent: Sent, rows: int = 0) -> Audit:
    """Compare a log with what was sent on a stream.

    Args:
        log: The log, refreshed after `sent` was asked for.
        start: The position of the stream's first item.
        sent: What was sent.
        rows: The rows that the log had of the stream before the publisher was asked.

    Raises:
        JournalCorrupt: Rows of the log are damaged.
        DataLost: They are trimmed meanwhile.

    """
    known = {sent.first + at: bytes.fromhex(digest) for at, digest in enumerate(sent.blocks)}
    if sent.items % BLOCK_ITEMS:
        known[sent.items // BLOCK_ITEMS] = bytes.fromhex(sent.rest)
    compared = partial = 0
    differing = []
    for number, digest in known.items():
        first = start + number * BLOCK_ITEMS
        end = min(first + BLOCK_ITEMS, start + sent.items)
        if first >= log.first and first < log.end < end:
            partial = log.end - first
        if first < log.first or end > log.end:
            continue
        compared += end - first
        if _digest(log, first, end) != digest:
            differing.append((first, end))
    surplus = max(0, rows - max(sent.items, sent.taken))
    return Audit(start, sent.items, log.end - start, compared, _joined(differing), surplus, partial)


def _digest(log: LogReader, first: int, end: int) -> bytes:
    rows = pa.Table.from_batches(log.read(first, end))
    return digest_of(rows["data"], rows["metadata"])


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return ranges with consecutive ones joined."""
    joined: list[tuple[int, int]] = []
    for first, end in ranges:
        if joined and joined[-1][1] == first:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((first, end))
    return joined
