from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from penstock import JournalCorrupt
from penstock.journal import JournalWriter
from penstock.journal.layout import DURABLE, Mark
from penstock.journal.recovery import Tail, recover
from tests.journal.logs import SOURCE, append, flip, items, segment, write


def mark(folder: Path, first: int, offset: int) -> None:
    (folder / DURABLE).write_bytes(Mark(first, offset).encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of two batches in one segment."""
    return write(tmp_path, 3, 2)


def first_batch_ends(tmp_path: Path) -> int:
    """Return how large a segment with the first batch alone is."""
    return segment(write(tmp_path / "another", 3)).stat().st_size


def test_there_is_no_log(tmp_path: Path) -> None:
    assert recover(tmp_path / "absent") is None
    assert recover(tmp_path) is None


def test_a_log_that_was_closed(folder: Path) -> None:
    assert recover(folder) == Tail(0, segment(folder).stat().st_size, 0, 0, 5, b"at 5")


def test_a_tail_cut_at_every_byte(tmp_path: Path, folder: Path) -> None:
    # THREATS 80
    kept = first_batch_ends(tmp_path)
    octets = segment(folder).read_bytes()
    for size in range(kept, len(octets)):
        segment(folder).write_bytes(octets[:size])
        # Whether the cut bytes were never durable, or are missing: what is left is the same.
        mark(folder, 0, kept)
        assert recover(folder) == Tail(0, kept, size - kept, 0, 3, b"at 3")
        mark(folder, 0, len(octets))
        assert recover(folder) == Tail(0, kept, size - kept, len(octets) - size, 3, b"at 3")
        (folder / DURABLE).unlink()
        assert recover(folder) == Tail(0, kept, size - kept, 0, 3, b"at 3")


def test_any_bit_behind_the_mark_makes_the_tail_a_torn_one(tmp_path: Path, folder: Path) -> None:
    kept = first_batch_ends(tmp_path)
    mark(folder, 0, kept)
    size = segment(folder).stat().st_size
    assert recover(folder) == Tail(0, size, 0, 0, 5, b"at 5")
    for offset in range(kept, size):
        flip(segment(folder), offset, offset % 8)
        assert recover(folder) == Tail(0, kept, size - kept, 0, 3, b"at 3")
        flip(segment(folder), offset, offset % 8)


def test_junk_behind_the_mark_is_cut(folder: Path) -> None:
    size = segment(folder).stat().st_size
    for junk in (b"\0", b"\0" * 4096, b"junk" * 100, b"\xff\xff\xff\xff\x10\0\0\0" + b"x" * 100):
        with open(segment(folder), "ab") as file:
            file.write(junk)
        assert recover(folder) == Tail(0, size, len(junk), 0, 5, b"at 5")
        with open(segment(folder), "ab") as file:
            file.truncate(size)


def test_a_header_below_the_mark_is_damage(tmp_path: Path, folder: Path) -> None:
    # THREATS 80
    kept = first_batch_ends(tmp_path)
    header_bytes = 8 + int.from_bytes(segment(folder).read_bytes()[kept + 4 : kept + 8], "little")
    for offset in range(kept, kept + header_bytes):
        flip(segment(folder), offset, offset % 8)
        with pytest.raises(JournalCorrupt, match="positions from 3 on are damaged"):
            recover(folder)
        flip(segment(folder), offset, offset % 8)


def test_damage_is_damage_where_the_end_is_missing_too(tmp_path: Path, folder: Path) -> None:
    flip(segment(folder), 400)
    size = segment(folder).stat().st_size
    with open(segment(folder), "r+b") as file:
        file.truncate(size - 1)
    with pytest.raises(JournalCorrupt, match=r"positions from 0 on are damaged \(the CRC32C of its header"):
        recover(folder)


def test_a_body_below_the_mark_is_its_readers_matter(folder: Path) -> None:
    flip(segment(folder), segment(folder).stat().st_size - 1)
    tail = recover(folder)
    assert tail is not None
    assert tail.position == 5


def test_without_a_mark_everything_whole_must_be_sound(folder: Path) -> None:
    (folder / DURABLE).unlink()
    flip(segment(folder), segment(folder).stat().st_size - 1)
    with pytest.raises(JournalCorrupt, match="positions from 3 on are damaged"):
        recover(folder)


def test_a_segment_that_was_never_durable_goes(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    shutil.copy(segment(folder), segment(folder, 3))
    assert recover(folder) == Tail(0, segment(folder).stat().st_size, 0, 0, 3, b"at 3")
    assert not segment(folder, 3).exists()


def test_a_segment_is_kept_that_its_writer_had_no_time_to_mark(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 2, segment_bytes=1)
    mark(folder, 0, segment(folder).stat().st_size)
    assert recover(folder) == Tail(3, segment(folder, 3).stat().st_size, 0, 0, 5, b"at 5")


def test_the_first_batch_of_all_may_be_torn(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    octets = segment(folder).read_bytes()
    for size in (len(octets) - 1, 400, 0):
        segment(folder).write_bytes(octets[:size])
        mark(folder, 0, 0)
        assert recover(folder) is None
        assert not segment(folder).exists()


def test_a_file_that_is_gone_is_damage(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 2, segment_bytes=1)
    segment(folder, 3).unlink()
    with pytest.raises(JournalCorrupt, match=r"00000000000000000003.arrows: positions from 3 on are damaged .*gone"):
        recover(folder)
    segment(folder).unlink()
    with pytest.raises(JournalCorrupt, match="gone"):
        recover(folder)


def test_state_and_position_survive_gaps_and_empty_batches(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False) as writer:
        append(writer, 3)
        writer.append_gap("lost", b"after the gap")
        writer.append(items(0, 0), "numbers")
    tail = recover(segment(write(tmp_path)).parent)
    assert tail is not None
    assert (tail.first, tail.position, tail.state) == (3, 3, b"after the gap")
