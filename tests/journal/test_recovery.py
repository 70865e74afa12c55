from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, entries, flip, items, segment, set_mark, uuid, write
from weirpool.journal import JournalWriter
from weirpool.journal.format import genesis
from weirpool.journal.layout import DURABLE
from weirpool.journal.recovery import Tail, recover
from weirpool.journal.storage import LogFolder

ANY_TIME = 0


def end_of(folder: Path) -> Tail:
    """Return where a log ends, whenever its last row was appended."""
    tail = recover(LogFolder.local(folder), uuid(folder), LogFolder.local(folder).mark())
    return replace(tail, last_time=ANY_TIME)


def sound(folder: Path, end: int, torn: int = 0) -> Tail:
    """Return how a log that is sound ends behind a batch."""
    first, entry = [each for each in entries(folder) if each[1].end == end][-1]
    return Tail(first, entry.end_offset, torn, end, entry.digest, b"at %d" % end, ANY_TIME)


def damage(folder: Path) -> list[tuple[int, int | None]]:
    return [(each.first, each.end) for _, each in end_of(folder).damage]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of two batches in one segment."""
    return write(tmp_path, 3, 2)


def test_there_is_no_log(tmp_path: Path) -> None:
    nothing = Tail(0, 0, 0, 0, genesis("log"))
    assert recover(LogFolder.local(tmp_path / "absent"), "log", None) == nothing
    assert recover(LogFolder.local(tmp_path), "log", None) == nothing


def test_a_log_that_was_closed(folder: Path) -> None:
    assert end_of(folder) == sound(folder, 5)


def test_a_tail_cut_at_every_byte(folder: Path) -> None:
    # THREATS 80, 97
    mark = LogFolder.local(folder).mark()
    assert mark is not None
    before = set_mark(folder, 3)
    kept = sound(folder, 3)
    content = segment(folder).read_bytes()
    for size in range(len(content)):
        segment(folder).write_bytes(content[:size])
        # Below the mark, rows are gone: whoever goes on begins behind them.
        (folder / DURABLE).write_bytes(mark.encode(1))
        lost = 3 if size >= before.offset else 0
        assert damage(folder) == [(lost, 5)]
        tail = end_of(folder)
        assert (tail.first, tail.size, tail.position) == (5, 0, 5)
        assert tail.head == (kept.head if lost else mark.head)
        assert tail.state == (b"at 3" if lost else None)
        if size >= before.offset:
            # Behind the mark, or without one, they were never promised.
            for durable in (before.encode(1), None):
                (folder / DURABLE).unlink()
                if durable is not None:
                    (folder / DURABLE).write_bytes(durable)
                assert end_of(folder) == replace(kept, torn=size - before.offset)


def test_any_bit_behind_the_mark_makes_the_tail_a_torn_one(folder: Path) -> None:
    whole, kept = sound(folder, 5), sound(folder, 3, torn=0)
    set_mark(folder, 3)
    assert end_of(folder) == whole
    for offset in range(kept.size, whole.size):
        flip(segment(folder), offset, offset % 8)
        assert end_of(folder) == replace(kept, torn=whole.size - kept.size)
        flip(segment(folder), offset, offset % 8)


def test_a_batch_behind_the_mark_with_others_behind_it_is_no_torn_tail(tmp_path: Path) -> None:
    # THREATS 97: the mark may be old, and batches are written one after the other.
    folder = write(tmp_path, 3, 2, 4)
    set_mark(folder, 3)
    (_, second) = entries(folder)[1]
    for offset in range(second.offset, second.offset + second.header_bytes):
        flip(segment(folder), offset, offset % 8)
        assert damage(folder) == [(3, 5)]
        tail = end_of(folder)
        assert (tail.position, tail.state, tail.torn) == (9, b"at 9", 0)
        flip(segment(folder), offset, offset % 8)


def test_junk_behind_the_mark_is_cut(folder: Path) -> None:
    whole = sound(folder, 5)
    for junk in (b"\0", b"\0" * 4096, b"junk" * 100, b"\xff\xff\xff\xff\x10\0\0\0" + b"x" * 100):
        with open(segment(folder), "ab") as file:
            file.write(junk)
        assert end_of(folder) == replace(whole, torn=len(junk))
        with open(segment(folder), "ab") as file:
            file.truncate(whole.size)


def test_a_header_below_the_mark_is_damage(folder: Path) -> None:
    # THREATS 80
    whole, first = sound(folder, 5), sound(folder, 3).head
    for (_, entry), lost in zip(entries(folder), [(0, 3), (3, 5)], strict=True):
        for offset in range(entry.offset, entry.offset + entry.header_bytes):
            flip(segment(folder), offset, offset % 8)
            assert damage(folder) == [lost]
            tail = end_of(folder)
            assert (tail.position, tail.head) == (5, first if lost == (3, 5) else whole.head)
            flip(segment(folder), offset, offset % 8)


def test_a_body_below_the_mark_is_its_readers_matter(folder: Path) -> None:
    flip(segment(folder), segment(folder).stat().st_size - 1)
    assert (damage(folder), end_of(folder).position) == ([], 5)


def test_without_a_mark_everything_whole_must_be_sound(folder: Path) -> None:
    (folder / DURABLE).unlink()
    size = segment(folder).stat().st_size
    flip(segment(folder), size - 1)
    assert damage(folder) == [(3, 5)]
    flip(segment(folder), size - 1)
    for _, entry in entries(folder):
        flip(segment(folder), entry.offset + 100)
    assert damage(folder) == [(0, None)]


def test_a_segment_that_was_never_durable_goes(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    content = segment(folder).read_bytes()
    for data in (b"", content[:100], content[:-1], bytes(500), content[:-1] + bytes([content[-1] ^ 1])):
        segment(folder, 3).write_bytes(data)
        tail = end_of(folder)
        assert (tail.leftovers, tail.position, tail.damage) == ([3], 3, [])
    # With a sound batch in it, it may have been durable; but this one belongs elsewhere.
    shutil.copy(segment(folder), segment(folder, 3))
    assert damage(folder) == [(3, None)]


def test_a_segment_is_kept_that_its_writer_had_no_time_to_mark(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 2, segment_bytes=1)
    set_mark(folder, 3)
    assert end_of(folder) == sound(folder, 5)


def test_segments_behind_an_old_mark_must_follow_it(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3, 2, 4, segment_bytes=1)
    set_mark(folder, 3)
    segment(folder, 3).unlink()
    assert damage(folder) == [(3, 5)]
    assert end_of(folder).position == 9


def test_the_first_batch_of_all_may_be_torn(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    content = segment(folder).read_bytes()
    (folder / DURABLE).unlink()
    for size in (len(content) - 1, 400, 0):
        segment(folder).write_bytes(content[:size])
        tail = end_of(folder)
        assert (tail.first, tail.size, tail.leftovers) == (0, 0, [0])


def test_a_file_that_is_gone_is_damage(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3, 2, segment_bytes=1)
    first = sound(folder, 3).head
    segment(folder, 3).unlink()
    assert damage(folder) == [(3, 5)]
    tail = end_of(folder)
    assert (tail.first, tail.size, tail.position, tail.head, tail.state) == (5, 0, 5, first, b"at 3")
    segment(folder).unlink()
    assert damage(folder) == [(0, 3), (3, 5)]


def test_state_and_position_survive_gaps_and_empty_batches(tmp_path: Path) -> None:
    with JournalWriter.open(tmp_path, SOURCE, segment_bytes=1, fsync=False, clock=lambda: 7.0) as writer:
        append(writer, 3)
        writer.append_gap("lost", b"after the gap")
        writer.append(items(0, 0), "numbers")
    folder = write(tmp_path)
    tail = recover(LogFolder.local(folder), uuid(folder), LogFolder.local(folder).mark())
    assert (tail.first, tail.position, tail.state, tail.last_time) == (3, 3, b"after the gap", 7_000_000)
