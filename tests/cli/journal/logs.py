"""Journals for the verbs of `weirpool journal`: rows that contain their positions."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from weirpool.journal.format import ITEMS
from weirpool.journal.writer import JournalWriter


def fill(journal: Path, source: str, rows: int) -> None:
    """Write a log whose rows contain their positions."""
    data = pa.array([b"%d" % position for position in range(rows)], pa.binary())
    batch = pa.RecordBatch.from_arrays([data, pa.nulls(rows, pa.binary())], schema=ITEMS)
    with JournalWriter.open(journal, source, fsync=False) as writer:
        writer.append(batch, "flights")


def spoil(journal: Path) -> None:
    """Create three logs, of which the second is garbage and the third is truncated."""
    for source in "abc":
        fill(journal, source, 3)
        fill(journal, source, 2)
    for path in (journal / "source=b").iterdir():
        path.unlink()
    (journal / "source=b" / "00000000000000000000.arrows").write_bytes(b"junk")
    (cut,) = (journal / "source=c").glob("*.arrows")
    os.truncate(cut, cut.stat().st_size - 1)
