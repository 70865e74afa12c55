from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from penstock.journal.reader import JournalReader
from penstock.journal.writer import JournalWriter
from penstock.spark.since import first_since, is_time

from .journals import damage, item, items, segments

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def second(number: float) -> datetime:
    return NOON + timedelta(seconds=number)


def collect(journal: Path, *seconds: float, rows: int = 10, segment_bytes: int = 1) -> JournalReader:
    """Append some rows at each of these seconds after noon."""
    now = NOON
    with JournalWriter.open(
        journal, "a", segment_bytes=segment_bytes, fsync=False, clock=lambda: now.timestamp()
    ) as writer:
        for number in seconds:
            now = second(number)
            writer.append(items(writer.position, writer.position + rows), "flights")
    return JournalReader(journal, "a")


@pytest.mark.parametrize("segment_bytes", [1, 1 << 26])
def test_first_row_since_a_time_is_found(tmp_path: Path, segment_bytes: int) -> None:
    reader = collect(tmp_path, *range(1, 8), segment_bytes=segment_bytes)
    assert len(segments(tmp_path, "a")) == (7 if segment_bytes == 1 else 1)
    for number in range(1, 8):
        assert first_since(reader, second(number)) == 10 * (number - 1)
        assert first_since(reader, second(number - 0.5)) == 10 * (number - 1)
    assert first_since(reader, second(8)) == reader.end == 70


def test_an_empty_log_begins_at_its_end(tmp_path: Path) -> None:
    assert first_since(collect(tmp_path), NOON) == 0


def test_damage_counts_as_received_since(tmp_path: Path) -> None:
    # Rows that came since may be in it, so the query must meet it.
    reader = collect(tmp_path, 1, 2, 3, 4, rows=10_000, segment_bytes=1 << 26)
    damage(segments(tmp_path, "a")[0], item(15_000))
    assert first_since(reader, second(3)) == 10_000
    assert first_since(reader, second(1)) == 0


def test_damaged_segments_count_as_received_since(tmp_path: Path) -> None:
    reader = collect(tmp_path, 1, 2, 3, 4)
    for path in segments(tmp_path, "a")[1:3]:
        damage(path, b"item")
    assert first_since(reader, second(2)) == 10
    assert first_since(reader, second(4)) == 10


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("2026-01-02T12:00:00+00:00", True), ("2026-01-02T12:00:00", False), ("latest", False), ("", False)],
)
def test_times_have_a_zone(text: str, is_one: bool) -> None:
    assert is_time(text) == is_one
