"""Several collectors of one journal."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.spark.journals import fill
from weirpool.errors import JournalMissing, LocalError, UrlError
from weirpool.journal import Journal
from weirpool.serving.collectors import Collectors

from .served import serving


def test_each_log_is_read_where_it_is(tmp_path: Path) -> None:
    fill(tmp_path / "a", "one", 10)
    fill(tmp_path / "b", "two", 20)
    with serving(tmp_path / "a") as first, serving(tmp_path / "b") as second:
        journal = Journal(f"{first.url}, {second.url}")
        assert journal.sources() == ["one", "two"]
        assert [journal.reader(source).end for source in ("two", "one")] == [20, 10]
        fresh = Collectors(f"{second.url},{first.url}")
        with pytest.raises(JournalMissing, match="none of the collectors"):
            fresh.call("three", "losses", None, None)


def test_urls_are_checked_at_once() -> None:
    with pytest.raises(UrlError, match="port is missing"):
        Collectors("rsocket+tcp://host")
    with pytest.raises(LocalError, match="use another protocol"):
        Collectors("river+ws://host:1")
    with pytest.raises(LocalError, match="names no collector"):
        Collectors(" , ")
