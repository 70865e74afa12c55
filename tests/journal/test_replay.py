from __future__ import annotations

from pathlib import Path

import pytest

from tests.disk.lying import LyingDisk
from tests.journal.logs import SOURCE, all_numbers, entries, segment, uuid, write
from weirpool import JournalCorrupt, JournalError
from weirpool.journal import Journal, JournalReader, JournalWriter
from weirpool.journal.layout import LOCK, UNSYNCED
from weirpool.journal.lock import Lock
from weirpool.journal.records import FrameBuffer, Record
from weirpool.journal.replay import FILES, REDO, Reliance, boot, reliance, remove, replay, sweep

NAME = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of three batches in one segment, which relies on redo files."""
    folder = write(tmp_path, 3, 2, 4)
    (tmp_path / REDO / NAME).mkdir(parents=True)
    (folder / UNSYNCED).write_bytes(Reliance(NAME, 0).encode())
    return folder


def batches(folder: Path) -> list[Record]:
    content = segment(folder).read_bytes()
    return [
        Record(uuid(folder), 0, entry.offset, [content[entry.offset : entry.end_offset]])
        for _, entry in entries(folder)
    ]


def encode(number: int, records: list[Record]) -> bytes:
    return bytes(FrameBuffer().encode(number, records))


def keep(folder: Path, *frames: bytes, file: str = FILES[0]) -> None:
    (folder.parent / REDO / NAME / file).write_bytes(b"".join(frames))


def damage(folder: Path, *records: Record) -> None:
    content = bytearray(segment(folder).read_bytes())
    for record in records:
        content[record.offset : record.offset + record.size] = bytes(record.size)
    segment(folder).write_bytes(content)


def test_missing_batches_are_written_again(folder: Path) -> None:
    content = segment(folder).read_bytes()
    one, two, three = batches(folder)
    keep(folder, encode(5, [three]), file=FILES[0])
    keep(folder, encode(4, [one, two]), file=FILES[1])
    damage(folder, two, three)
    replay(folder, uuid(folder))
    assert segment(folder).read_bytes() == content
    assert reliance(folder) is None


def test_rows_are_durable_before_their_redo_files_are_given_up(tmp_path: Path) -> None:
    # The power may be cut again at any step of the recovery.
    before = tmp_path / "before"
    folder = write(before, 3, 2, 4)
    content, known = segment(folder).read_bytes(), uuid(folder)
    (before / REDO / NAME).mkdir(parents=True)
    (folder / UNSYNCED).write_bytes(Reliance(NAME, 0).encode())
    _, two, three = batches(folder)
    keep(folder, encode(0, [two, three]))
    damage(folder, two, three)
    cuts: list[Path] = []

    def cut(step: int) -> None:
        cuts.append(tmp_path / f"{step}")
        cuts[-1].mkdir()
        disk.power_cut(cuts[-1], None)

    disk = LyingDisk(before, before_step=cut)
    with disk.installed():
        replay(folder, known)
    cut(disk.steps + 1)
    assert len(cuts) > 4
    for each in cuts:
        replay(each / folder.name, known)
        assert segment(each / folder.name).read_bytes() == content


def test_a_writer_completes_the_log_before_it_looks_at_it(folder: Path, tmp_path: Path) -> None:
    _, two, three = batches(folder)
    keep(folder, encode(0, [two]), encode(1, [three]))
    damage(folder, two)
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        assert writer.position == 9
    assert all_numbers(tmp_path) == list(range(9))


def test_earlier_frames_and_other_logs_do_not_count(folder: Path) -> None:
    one, two, _ = batches(folder)
    content = segment(folder).read_bytes()
    junk = one._replace(chunks=[b"junk"])
    keep(folder, encode(6, [junk]), encode(7, [two, junk._replace(uuid="f" * 36)]))
    (folder / UNSYNCED).write_bytes(Reliance(NAME, 7).encode())
    replay(folder, uuid(folder))
    assert segment(folder).read_bytes() == content


def test_trimmed_segments_and_copies_that_end_earlier_are_left_alone(folder: Path) -> None:
    one, _, three = batches(folder)
    keep(folder, encode(0, [one._replace(segment=77), three]))
    shorter = segment(folder).read_bytes()[: three.offset - 1]
    segment(folder).write_bytes(shorter)
    replay(folder, uuid(folder))
    assert segment(folder).read_bytes() == shorter
    assert not segment(folder, 77).exists()


def test_without_redo_files_the_log_is_as_it_is(folder: Path) -> None:
    content = segment(folder).read_bytes()
    remove(folder.parent / REDO / NAME)
    replay(folder, uuid(folder))
    assert (segment(folder).read_bytes(), reliance(folder)) == (content, None)


@pytest.mark.parametrize("data", [b"", b"junk\n", NAME.encode() + b"\n", NAME.encode() + b" 1\n"])
def test_a_damaged_reliance_is_reported(folder: Path, data: bytes) -> None:
    (folder / UNSYNCED).write_bytes(data)
    with pytest.raises(JournalCorrupt, match="does not name the redo files"):
        replay(folder, uuid(folder))


def test_only_redo_files_that_nobody_needs_are_swept(folder: Path, tmp_path: Path) -> None:
    alive, dead = tmp_path / REDO / ("a" * 32), tmp_path / REDO / ("b" * 32)
    for path in (alive, dead):
        path.mkdir()
    with Lock(alive / LOCK):
        sweep(tmp_path)
        assert sorted(path.name for path in (tmp_path / REDO).iterdir()) == [NAME, alive.name]
    replay(folder, uuid(folder))
    sweep(tmp_path)
    assert list((tmp_path / REDO).iterdir()) == []


def test_a_reader_does_not_take_for_lost_what_redo_files_have(folder: Path, tmp_path: Path) -> None:
    *_, three = batches(folder)
    keep(folder, encode(0, [three]))
    damage(folder, three)
    (folder / UNSYNCED).write_bytes(Reliance(NAME, 0, "0b-0b").encode())
    with pytest.raises(JournalError, match="start the collector") as raised:
        JournalReader(tmp_path, SOURCE)
    assert type(raised.value) is JournalError
    # While the machine runs, damage is damage.
    (folder / UNSYNCED).write_bytes(Reliance(NAME, 0, boot()).encode())
    with pytest.raises(JournalCorrupt):
        all_numbers(tmp_path)
    JournalWriter.open(tmp_path, SOURCE).close()
    assert all_numbers(tmp_path) == list(range(9))


def test_a_repair_replays_first(folder: Path, tmp_path: Path) -> None:
    *_, three = batches(folder)
    keep(folder, encode(0, [three]))
    damage(folder, three)
    done = Journal(tmp_path).repair(SOURCE, apply=True)
    assert (done.refused, done.lost) == ("", [])
    assert all_numbers(tmp_path) == list(range(9))


def test_a_repair_sets_a_damaged_reliance_aside(folder: Path, tmp_path: Path) -> None:
    (folder / UNSYNCED).write_bytes(b"junk")
    Journal(tmp_path).repair(SOURCE, apply=True)
    assert (folder / f"{UNSYNCED}.damaged").read_bytes() == b"junk"
    JournalWriter.open(tmp_path, SOURCE).close()
    assert all_numbers(tmp_path) == list(range(9))
