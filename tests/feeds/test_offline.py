from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa

from tests.feeds.helpers import feeds
from weirpool.feeds.offline import statuses
from weirpool.feeds.status import FeedState
from weirpool.journal import ITEMS, JournalWriter
from weirpool.journal.layout import DURABLE, log_folder

BATCH = pa.record_batch([[b"x"] * 10, [None] * 10], schema=ITEMS)


def test_positions_are_read_from_disk(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    for name in ("live", "old"):
        with JournalWriter.open(journal, name, fsync=False) as writer:
            writer.append(BATCH, "r")
    os.utime(log_folder(journal, "old") / DURABLE, (1, 1))
    (log_folder(journal, "torn")).mkdir()
    (log_folder(journal, "torn") / DURABLE).write_text("?")
    found = {each.name: each for each in statuses(feeds(tmp_path, "live", "old", "none", "torn", "bad budget = 0"))}
    assert {name: (each.state, each.position) for name, each in found.items()} == {
        "live": (FeedState.LIVE, 10),
        "old": (FeedState.STOPPED, 10),
        "none": (FeedState.STOPPED, 0),
        "torn": (FeedState.STOPPED, 0),
        "bad": (FeedState.REFUSED, 0),
    }
    assert "neither of its two slots" in found["torn"].problem
