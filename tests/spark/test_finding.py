"""Tasks on machines without the journal's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import JournalMissing
from weirpool.serving.discovery import Announcements, discovered
from weirpool.spark.finding import collector_of, with_collector
from weirpool.spark.partitions import JournalPartition, Range

from .journals import EARLIEST, advance, fill, options, stream_reader

URL = "rsocket+tls://collector.example.org:7879"


def test_partitions_name_the_collector_while_it_serves(tmp_path: Path) -> None:
    parts = [JournalPartition([Range("a", 0, 5, "log")])]
    assert [each.served for each in with_collector(options(tmp_path), parts)] == [None]
    announcements = Announcements(URL)
    announcements.update({"market": str(tmp_path)})
    [part] = with_collector(options(tmp_path), parts)
    found = discovered(str(tmp_path))
    assert found is not None and part.served == (f"{URL}?journal=market", found.host) and part.ranges == parts[0].ranges
    # A URL says itself where the rows are.
    assert with_collector(options("rsocket+tcp://h:1"), parts)[0].served is None
    announcements.close()
    assert with_collector(options(tmp_path), parts)[0].served is None


def test_a_driver_hands_it_to_the_tasks_of_streams_and_batches(tmp_path: Path) -> None:
    fill(tmp_path, "a", 10)
    announcements = Announcements(URL)
    announcements.update({"market": str(tmp_path)})
    reader = stream_reader(tmp_path)
    start = EARLIEST.json()
    [part] = reader.partitions(start, advance(reader, start))
    assert isinstance(part, JournalPartition) and part.served is not None
    announcements.close()


def test_a_collector_that_may_not_be_used_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIRPOOL_JOURNAL_TOKEN", "geheim")
    monkeypatch.delenv("WEIRPOOL_JOURNAL_HOSTS", raising=False)
    with pytest.raises(JournalMissing, match=r"/data/x is not on this machine, and its collector is at .*HOSTS"):
        collector_of("/data/x", (URL, "h"))
    monkeypatch.delenv("WEIRPOOL_JOURNAL_TOKEN")
    assert collector_of("/data/x", (URL, "h")) == URL
