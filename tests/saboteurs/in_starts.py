"""Mistakes in starts at a time."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import AbstractContextManager
from unittest import mock

from weirpool.archive import reader as archive_reader
from weirpool.journal import since
from weirpool.journal.index import Index
from weirpool.journal.layout import Extent

from .patching import edited, together
from .saboteur import Saboteur

__all__ = ["SABOTEURS"]

Sabotage = AbstractContextManager[object]


def _sorted(segments: list[Extent], time: int) -> list[Extent]:
    """Return the segments from the last one on that begins before a time."""
    later = bisect_left(segments, True, key=lambda each: each.times is not None and each.times[0] >= time)
    return segments[max(later - 1, 0) :]


def times_taken_for_sorted() -> Sabotage:
    return together(
        mock.patch.object(since, "_sorted", _sorted, create=True),
        edited(
            since,
            "first_since",
            ("reader.segments(timed=True)", "_sorted(reader.segments(timed=True), since)"),
        ),
    )


def last_time_for_the_latest() -> Sabotage:
    return edited(Index, "add", ("max(latest, note.time)", "note.time"))


def sealed_times_of_the_first_row() -> Sabotage:
    return edited(
        archive_reader,
        "_below",
        ("each.raw_bytes, each.times)\n", "each.raw_bytes, each.times and each.times[:1] * 2)\n"),
    )


SABOTEURS: Sequence[Saboteur] = (
    Saboteur(
        "times taken for sorted",
        "a start at a time looks only after the last segment that begins before it",
        "THREATS 114",
        "starts",
        times_taken_for_sorted,
    ),
    Saboteur(
        "last time for the latest",
        "a segment whose clock went back counts as received before its latest row",
        "THREATS 114",
        "starts",
        last_time_for_the_latest,
    ),
    Saboteur(
        "earliest time of sealed rows",
        "a sealed segment counts as received when its earliest row was",
        "THREATS 114",
        "starts",
        sealed_times_of_the_first_row,
    ),
)
