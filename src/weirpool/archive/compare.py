"""Compares two copies of a log of which one is sealed, at least in part.

Batches have digests that cover all batches before them. A manifest has those at the ends of sealed segments, so two
copies are compared where both have one.
"""

from __future__ import annotations

import os

from ..journal.compare import Comparison, batches
from ..journal.storage import LogFolder
from .snapshot import snapshot

__all__ = ["compare_sealed"]

Heads = dict[int, set[str]]
"""The digests of the batches that end at each position: records without rows have that of the row after them."""


def compare_sealed(
    journal: str | os.PathLike[str],
    other: str | os.PathLike[str],
    source: str,
    *,
    stored: tuple[bool, bool] = (False, False),
) -> Comparison:
    """Compare two copies of a log. One may be longer, or trimmed further.

    Args:
        journal: The journal: a folder, or the URI of a store.
        other: Another one, with a copy.
        source: The log's name.
        stored: Whether they are stores, without Arrow segments.

    """
    (uuid, mine), (another, theirs) = (
        _heads(path, source, alone) for path, alone in zip((journal, other), stored, strict=True)
    )
    name = f"{os.fspath(other).partition('?')[0]}/source={source}"
    if uuid != another:
        return Comparison(False, 0, f"{name} is another log: its UUID is {another}, not {uuid}")
    common = sorted(mine.keys() & theirs.keys())
    if not common:
        return Comparison(not mine and not theirs, 0, f"{name} has no end of a segment in common with this copy")
    end = 0
    for position in common:
        if not mine[position] & theirs[position]:
            text = f"{name} differs from this copy between positions {end} and {position - 1}"
            return Comparison(False, end, text)
        end = position
    last, other_last = max(mine), max(theirs)
    longer = "" if last == other_last else "this copy" if last > other_last else name
    more = f"; {longer} continues to {max(last, other_last)}" if longer else ""
    return Comparison(True, end, f"{name} has the same rows up to position {end}{more}")


def _heads(journal: str | os.PathLike[str], source: str, stored: bool) -> tuple[str, Heads]:
    log = snapshot(journal, source)
    heads: Heads = {segment.end: {segment.head} for _, segment in log.files}
    if not stored:
        for entry in batches(LogFolder.of(journal, source), log.uuid):
            heads.setdefault(entry.end, set()).add(entry.digest)
    return log.uuid, heads
