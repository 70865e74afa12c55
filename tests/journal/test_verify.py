from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, entries, flip, segment, write
from weirpool.journal import JournalWriter
from weirpool.journal.retention import trim
from weirpool.journal.storage import LogFolder
from weirpool.journal.verify import Report, verify


def report(folder: Path) -> Report:
    return verify(LogFolder.local(folder), SOURCE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three segments of two batches."""
    return write(tmp_path, *[3] * 6, segment_bytes=2_500)


def test_a_sound_log(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 3, 4)
        writer.append_gap("lost")
        folder = segment(tmp_path / f"source={SOURCE}", 0).parent
        found = report(folder)
    size = sum(segment(folder, first).stat().st_size for first in (0, 3, 7))
    assert (found.first, found.end, found.rows, found.batches, found.segments) == (0, 7, 7, 3, 3)
    assert (found.size, found.torn_bytes, found.problems, found.sound) == (size, 0, [], True)
    assert [gap.reason for gap in found.gaps] == ["lost"]


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    found = report(tmp_path)
    assert (found.sound, found.rows) == (False, 0)
    assert "there is no such log" in found.problems[0]
    assert found == Report(SOURCE, problems=found.problems)


def test_every_damage_is_reported(folder: Path) -> None:
    firsts = [int(path.stem) for path in sorted(folder.glob("*.arrows"))]
    assert firsts == [0, 6, 12]
    flip(segment(folder, 0), segment(folder, 0).stat().st_size - 1)
    flip(segment(folder, 6), 600)
    found = report(folder)
    assert (found.first, found.end, found.rows, found.sound) == (0, 18, 12, False)
    assert len(found.problems) == 2
    assert "0.arrows: positions 3 to 5 are damaged" in found.problems[0]
    assert "6.arrows: positions 6 to 8 are damaged" in found.problems[1]


def test_a_segment_that_is_cut_or_gone(folder: Path) -> None:
    encoded = segment(folder, 6).read_bytes()
    segment(folder, 6).write_bytes(encoded[:-1])
    assert "positions 9 to 11 are damaged" in "\n".join(report(folder).problems)
    segment(folder, 6).unlink()
    found = report(folder)
    assert ["positions 6 to 11 are damaged" in problem for problem in found.problems] == [True]
    assert found.damage == [(6, 12)]
    assert (found.first, found.end, found.rows, found.segments) == (0, 18, 12, 2)


def test_a_torn_tail_is_no_problem(folder: Path) -> None:
    with open(segment(folder, 12), "ab") as file:
        file.write(b"half a batch")
    found = report(folder)
    assert (found.torn_bytes, found.sound, found.end) == (12, True, 18)
    (folder / "_durable").unlink()
    with open(segment(folder, 12), "ab") as file:
        file.truncate(segment(folder, 12).stat().st_size - 20)
    found = report(folder)
    assert (found.sound, found.end, found.rows) == (True, 15, 15)
    assert found.torn_bytes > 0


def test_a_trimmed_log_begins_where_it_begins(folder: Path) -> None:
    trim(folder, 6, retain_bytes=0)
    found = report(folder)
    assert (found.first, found.end, found.rows, found.sound) == (6, 18, 12, True)


def test_a_segment_trimmed_meanwhile_is_passed_over(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = LogFolder.content
    monkeypatch.setattr(LogFolder, "content", lambda log, first: None if first == 0 else content(log, first))
    found = report(folder)
    assert (found.first, found.rows, found.sound) == (6, 12, True)


def test_a_damaged_record_does_not_hide_the_rows_behind_it(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 3)
        writer.append_gap("lost")
        append(writer, 3)
        append(writer, 3)
    damaged = segment(tmp_path / f"source={SOURCE}", 3)
    record = next(entry for _, entry in entries(damaged.parent) if not entry.note.rows)
    # The header of the gap's record, and the last row's body.
    flip(damaged, record.offset + 20)
    flip(damaged, damaged.stat().st_size - 1)
    assert sorted(report(damaged.parent).damage) == [(3, 3), (3, 6)]
