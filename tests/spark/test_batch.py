from __future__ import annotations

from pathlib import Path

import pytest

from weirpool import JournalCorrupt, LocalError
from weirpool.spark.batch import plan
from weirpool.spark.partitions import JournalPartition, Range

from .journals import fill, options, span


def ranges(journal: Path, **more: str) -> list[Range]:
    """Return what the tasks of a batch read."""
    found = []
    for part in plan(options(journal, **more)):
        assert isinstance(part, JournalPartition)
        found += part.ranges
    return found


def test_a_batch_is_what_is_there_when_it_is_planned(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    fill(tmp_path, "b", 7)
    assert ranges(tmp_path) == [span(tmp_path, "a", 0, 5), span(tmp_path, "b", 0, 7)]
    assert ranges(tmp_path, startingOffsets='{"a": 2}', endingOffsets='{"b": 3}') == [
        span(tmp_path, "a", 2, 5),
        span(tmp_path, "b", 0, 3),
    ]


def test_a_batch_of_sources_that_match_a_pattern(tmp_path: Path) -> None:
    for source in ("flights-1", "flights-2", "delays"):
        fill(tmp_path, source, 5)
    assert [one.source for one in ranges(tmp_path, sourcePattern="flights-.")] == ["flights-1", "flights-2"]


def test_the_option_with_an_unknown_name_is_named(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    for option, place in {"startingOffsets": "1", "endingOffsetsByTimestamp": '"2026-01-31T12:00:00Z"'}.items():
        with pytest.raises(LocalError, match=f"\"{option}\" names source 'aa', .*; its sources are a"):
            ranges(tmp_path, **{option: f'{{"aa": {place}}}'})


def test_a_damaged_log_ends_a_batch(tmp_path: Path) -> None:
    fill(tmp_path, "a", 5)
    (tmp_path / "source=a" / "_log.json").write_bytes(b"junk")
    with pytest.raises(JournalCorrupt):
        ranges(tmp_path)


def test_a_batch_collects_nothing(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match='option "url" is for streams'):
        plan(options(tmp_path, url="rsocket+tcp://h:1", route="a"))
