"""The first row since a time. `tests/spark/test_source_since.py` tests it with damage, and as a start of queries."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.journal.clocks import NOON, STEPS, Step, times, write_at, wrong_starts
from tests.journal.logs import SOURCE
from weirpool.journal import Journal, JournalReader, reader
from weirpool.journal.layout import log_folder
from weirpool.journal.since import first_since


def test_it_is_found_within_and_between_segments(tmp_path: Path) -> None:
    write_at(tmp_path, [(1, 10)] * 9)
    assert len(list(log_folder(tmp_path, SOURCE).glob("*.arrows"))) > 2
    assert not list(wrong_starts(JournalReader(tmp_path, SOURCE)))


@pytest.mark.parametrize("segment_bytes", [1, 1 << 26], ids=["between segments", "within a segment"])
@pytest.mark.parametrize(
    "moves",
    [{40: -1800}, {40: 1800}, {20: 1800, 40: -1800}, {20: -1800, 40: -1800}, {20: -900, 21: 3600, 60: -7200}],
    ids=["back", "ahead", "ahead and back", "back twice", "all ways"],
)
def test_a_clock_that_moves_skips_no_row(tmp_path: Path, moves: dict[int, int], segment_bytes: int) -> None:
    # THREATS 114
    write_at(tmp_path, [(moves.get(number, 10), 2) for number in range(80)], segment_bytes=segment_bytes)
    assert not list(wrong_starts(JournalReader(tmp_path, SOURCE)))


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, more=STEPS)
def test_it_is_that_of_a_linear_search(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Step], more: list[Step]
) -> None:
    path = tmp_path_factory.mktemp("journal")
    clock = write_at(path, steps)
    log = JournalReader(path, SOURCE)
    assert not list(wrong_starts(log))
    # Another collector continues, and some rows go.
    write_at(path, more, clock - timedelta(hours=1))
    if log.end:
        Journal(path).delete(SOURCE, log.end // 2)
    log.refresh()
    assert not list(wrong_starts(log))
    assert not list(wrong_starts(JournalReader(path, SOURCE)))


def test_an_empty_log_begins_at_its_end(tmp_path: Path) -> None:
    write_at(tmp_path, [])
    assert first_since(JournalReader(tmp_path, SOURCE), NOON) == 0


def test_rows_that_are_trimmed_during_the_search_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock was ahead for a while. The rows with those times go while the search has begun.
    write_at(tmp_path, [(3600, 10), (-3600, 10), (10, 10), (10, 10)], segment_bytes=1)
    log = JournalReader(tmp_path, SOURCE)
    real = reader.JournalReader.read

    def trimmed(self: JournalReader, *arguments: object, **named: object) -> object:
        Journal(tmp_path).delete(SOURCE, 20)
        return real(self, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(reader.JournalReader, "read", trimmed)
    assert first_since(log, NOON + timedelta(seconds=15)) == 30
    assert log.first == 20


def test_times_of_segments_are_those_of_their_rows(tmp_path: Path) -> None:
    write_at(tmp_path, [(10, 2), (-5, 2), (60, 1), (-30, 3), (0, 0)], segment_bytes=2_000)
    log = JournalReader(tmp_path, SOURCE)
    extents = log.segments(timed=True)
    assert [(each.first, each.end) for each in extents] == [(each.first, each.end) for each in log.segments()]
    for extent in extents:
        rows = [time for position, time in times(log) if extent.first <= position < extent.end]
        if not rows:
            assert extent.times is None
            continue
        assert extent.times is not None
        assert [round((time - NOON).total_seconds()) for time in (min(rows), max(rows))] == [
            round(number / 1e6 - NOON.timestamp()) for number in extent.times
        ]
