from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, flip, numbers, segment, uuid, write
from weirpool import JournalCorrupt, JournalLocked, LocalError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.layout import COMMITTED, DURABLE, GAPS, IDENTITY, TRIMMED
from weirpool.journal.repair import Repair, RepairedLog, repair
from weirpool.journal.retention import commits
from weirpool.journal.storage import LogFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three segments of a batch."""
    return write(tmp_path, 3, 2, 4, segment_bytes=1)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def only_shown(path: Path, folder: Path, *, accept_loss: bool = False) -> Repair:
    """Return what would be done, after a look that nothing was."""
    before = files(folder)
    found = repair(path, SOURCE, accept_loss=accept_loss)
    assert files(folder) == before
    return found


def test_a_sound_log_needs_nothing(tmp_path: Path, folder: Path) -> None:
    assert only_shown(tmp_path, folder) == Repair(SOURCE)
    assert repair(tmp_path, SOURCE, apply=True) == Repair(SOURCE)
    with pytest.raises(LocalError, match="there is no such log"):
        repair(tmp_path, "another")


def test_a_log_that_is_written_to_is_left_alone(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE):
        with pytest.raises(JournalLocked):
            repair(tmp_path, SOURCE, apply=True)


def test_damage_is_accepted_when_that_is_said(tmp_path: Path, folder: Path) -> None:
    # THREATS 97
    flip(segment(folder, 3), segment(folder, 3).stat().st_size - 1)
    os.truncate(segment(folder, 5), 800)
    damaged = segment(folder, 5).read_bytes()
    found = only_shown(tmp_path, folder)
    assert (found.lost, found.loses) == ([(5, 9), (3, 5)], True)
    assert "use --accept-loss" in found.refused
    assert "--apply" in only_shown(tmp_path, folder, accept_loss=True).refused
    assert repair(tmp_path, SOURCE, apply=True).refused == found.refused
    done = repair(tmp_path, SOURCE, apply=True, accept_loss=True, clock=lambda: 7.0)
    assert (done.lost, done.refused) == (found.lost, "")
    assert only_shown(tmp_path, folder) == Repair(SOURCE)
    reader = JournalReader(tmp_path, SOURCE)
    assert (numbers(reader), reader.end) == ([0, 1, 2], 9)
    assert [(gap.position, gap.lost, gap.time.timestamp()) for gap in reader.gaps()] == [
        (5, (3, 5), 7.0),
        (9, (5, 9), 7.0),
    ]
    assert segment(folder, 5).read_bytes() == damaged
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert append(writer, 1) == 10


def test_an_identity_is_told_by_the_segments(tmp_path: Path, folder: Path) -> None:
    before = uuid(folder)
    for content in (b"junk", None):
        if content is None:
            (folder / IDENTITY).unlink()
        else:
            (folder / IDENTITY).write_bytes(content)
        assert not only_shown(tmp_path, folder).loses
        assert repair(tmp_path, SOURCE, apply=True).refused == ""
        assert uuid(folder) == before
    assert (folder / f"{IDENTITY}.damaged").read_bytes() == b"junk"
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(9))
    (folder / IDENTITY).unlink()
    for path in folder.glob("*.arrows"):
        path.write_bytes(b"junk")
    with pytest.raises(JournalCorrupt, match="do not identify the log"):
        repair(tmp_path, SOURCE)


def test_a_mark_that_is_damaged_is_replaced(tmp_path: Path, folder: Path) -> None:
    (folder / DURABLE).write_bytes(b"junk")
    assert only_shown(tmp_path, folder).lost == [(9, 9)]
    assert repair(tmp_path, SOURCE, apply=True, accept_loss=True).refused == ""
    assert (folder / f"{DURABLE}.damaged").read_bytes() == b"junk"
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(9))


def test_small_files_are_set_aside_and_the_rest_is_looked_at_then(tmp_path: Path, folder: Path) -> None:
    Journal(tmp_path).trim(SOURCE, 3, reader="spark", retain_bytes=0)
    (folder / COMMITTED / "spark").write_bytes(b"junk")
    (folder / GAPS).write_bytes(b"junk")
    os.truncate(segment(folder, 5), 800)
    found = only_shown(tmp_path, folder)
    assert (found.loses, found.lost) == (True, [(5, 9)])
    done = repair(tmp_path, SOURCE, apply=True, accept_loss=True)
    assert (done.refused, done.lost, done.actions) == ("", [(5, 9)], found.actions)
    assert any(
        each.startswith("set aside _committed/spark, and hold rows for that reader from 3") for each in done.actions
    )
    # What it has not read is not deleted.
    assert commits(folder) == {"spark": 3}
    assert (folder / f"{GAPS}.damaged").read_bytes() == b"junk"
    assert (folder / COMMITTED / ".spark.damaged").read_bytes() == b"junk"
    assert numbers(JournalReader(tmp_path, SOURCE)) == [3, 4]


def test_rows_that_are_missing_without_a_mark_are_a_gap_at_once(tmp_path: Path) -> None:
    # THREATS 97: the mark that the writer makes must not be what shows that they are missing.
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    segment(folder).unlink()
    (folder / DURABLE).unlink()
    with pytest.raises(JournalCorrupt, match=r"positions 0 to 2 are damaged \(the file is missing"):
        JournalWriter.open(tmp_path, SOURCE)
    assert repair(tmp_path, SOURCE, apply=True, accept_loss=True).lost == [(0, 3)]
    assert numbers(JournalReader(tmp_path, SOURCE), 3, 9) == list(range(3, 9))
    assert repair(tmp_path, SOURCE).actions == []
    assert Journal(tmp_path).verify()[SOURCE].sound


def test_a_mark_that_is_damaged_again_is_another_loss(tmp_path: Path, folder: Path) -> None:
    for times in (1, 2):
        (folder / DURABLE).write_bytes(b"damaged")
        assert repair(tmp_path, SOURCE, apply=True).refused
        assert repair(tmp_path, SOURCE, apply=True, accept_loss=True).loses
        assert len(JournalReader(tmp_path, SOURCE).gaps()) == times


def test_a_mark_of_another_log_takes_no_rows_along(tmp_path: Path) -> None:
    # THREATS 97: no other rows may get the positions behind it.
    folder = write(tmp_path / "log", 3, 2, 4)
    other = write(tmp_path / "other", 2, 2, segment_bytes=1)
    (folder / DURABLE).write_bytes((other / DURABLE).read_bytes())
    found = only_shown(tmp_path / "log", folder)
    assert (found.lost, found.loses) == ([(9, 9)], True)
    assert repair(tmp_path / "log", SOURCE, apply=True, accept_loss=True).actions == found.actions
    assert repair(tmp_path / "log", SOURCE).actions == []
    assert numbers(JournalReader(tmp_path / "log", SOURCE)) == list(range(9))
    with JournalWriter.open(tmp_path / "log", SOURCE) as writer:
        assert append(writer, 1) == 10


def test_segments_bear_their_new_names(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 2, 4, segment_bytes=1)
    log = LogFolder.local(folder)
    mended = RepairedLog(log, {0: 3, 3: 0, 5: None}, [])
    assert [first for first, _ in mended.segments()] == [0, 3]
    for first, name in ((0, 3), (3, 0)):
        content = mended.content(first)
        assert content is not None
        assert bytes(content) == segment(folder, name).read_bytes()
    assert mended.content(5) is None
    assert mended.mark() == log.mark()


def test_small_files_are_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    for name in (GAPS, TRIMMED):
        (folder / name).write_bytes(b"junk")
    mended = RepairedLog(LogFolder.local(folder), {}, [GAPS, TRIMMED, DURABLE])
    assert (mended.kept_gaps(), mended.trimmed(uuid(folder))) == ([], 0)
    with pytest.raises(JournalCorrupt, match="names a batch that no segment of this log has"):
        mended.mark()
