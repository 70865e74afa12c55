"""The reader and damaged logs: every flipped bit is found, and what is whole is read."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, flip, numbers, segment, uuid, write
from weirpool import JournalCorrupt, JournalMismatch, JournalMissing
from weirpool.journal import JournalReader
from weirpool.journal.format import preamble


def test_a_tail_that_is_not_durable_is_not_there(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    with open(segment(folder), "ab") as file:
        file.write(b"\xff\xff\xff\xff half a batch")
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader) == list(range(3))
    # A segment with its name, but whose writer has not returned yet.
    shutil.copy(segment(folder), segment(folder, 3))
    reader.refresh()
    assert numbers(reader) == numbers(JournalReader(tmp_path, SOURCE)) == list(range(3))


def test_a_log_cut_below_its_mark_is_damaged(tmp_path: Path) -> None:
    # THREATS 80, 97: at every byte, and just the rows that are gone.
    folder = write(tmp_path, 3)
    before = segment(folder).stat().st_size
    write(tmp_path, 2)
    content = segment(folder).read_bytes()
    for size in range(len(content)):
        segment(folder).write_bytes(content[:size])
        reader = JournalReader(tmp_path, SOURCE)
        kept = 3 if size >= before else 0
        assert reader.end == 5
        assert numbers(reader, 0, kept) == list(range(kept))
        with pytest.raises(JournalCorrupt, match=f"positions {kept} to 4 are damaged"):
            numbers(reader)
        assert reader.damage() == [(kept, 5)]


def test_a_copy_without_its_mark_holds_what_is_whole(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    before = segment(folder).stat().st_size
    write(tmp_path, 2)
    content = segment(folder).read_bytes()
    (folder / "_durable").unlink()
    for size in range(0, len(content), 7):
        segment(folder).write_bytes(content[:size])
        assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(3 if size >= before else 0))
    segment(folder).write_bytes(content)
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(5))


def test_a_mark_that_is_damaged_is_an_error(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3)
    for junk in (b"", b"junk", b"\0" * 5_000):
        (folder / "_durable").write_bytes(junk)
        with pytest.raises(JournalCorrupt, match="_durable: neither of its two slots has a valid mark"):
            JournalReader(tmp_path, SOURCE)


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    # THREATS 80
    folder = write(tmp_path, 3, 3, 3, 3, segment_bytes=2_500)
    files = sorted(folder.glob("*.arrows"))
    assert len(files) == 2
    for path in files:
        for offset in range(0, path.stat().st_size, 3):
            flip(path, offset, offset % 8)
            try:
                rows = numbers(JournalReader(tmp_path, SOURCE))
            except JournalCorrupt as error:
                assert re.search(
                    rf"{path.name}: (positions \d+ to \d+ are|a record before position \d+ is) damaged", str(error)
                )
            else:
                # Some bits of the schema mean nothing.
                assert offset < len(preamble(uuid(folder)))
                assert rows == list(range(12))
            flip(path, offset, offset % 8)
    assert numbers(JournalReader(tmp_path, SOURCE)) == list(range(12))


def test_damage_does_not_spoil_other_rows(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    flip(segment(folder, 3), segment(folder, 3).stat().st_size - 20)
    reader = JournalReader(tmp_path, SOURCE)
    assert numbers(reader, 0, 3) == [0, 1, 2]
    assert numbers(reader, 6, 9) == [6, 7, 8]
    with pytest.raises(JournalCorrupt, match="positions 3 to 5 are damaged"):
        numbers(reader, 0, 9)


def test_a_segment_that_is_cut_or_gone(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, 3, segment_bytes=2_500)
    first, second = sorted(folder.glob("*.arrows"))
    following = int(second.stem)
    content = first.read_bytes()
    first.write_bytes(content[:-1])
    with pytest.raises(JournalCorrupt, match=rf"positions {following - 3} to {following - 1} are damaged"):
        numbers(JournalReader(tmp_path, SOURCE))
    first.unlink()
    reader = JournalReader(tmp_path, SOURCE)
    assert reader.first == 0
    with pytest.raises(JournalCorrupt, match=rf"positions 0 to {following - 1} are damaged \(the file is missing"):
        numbers(reader, 0, 12)


def test_a_hole_between_segments_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, 3, 3, 3, segment_bytes=1)
    segment(folder, 3).unlink()
    reader = JournalReader(tmp_path, SOURCE)
    batches = reader.read(0, 9)
    with pytest.raises(JournalCorrupt, match=r"00000.arrows: positions 3 to 5 are damaged \(its rows end before"):
        list(batches)
    assert numbers(reader, 6, 9) == [6, 7, 8]
    assert reader.damage() == [(3, 6)]


def test_a_last_segment_that_is_gone_is_named(tmp_path: Path) -> None:
    # THREATS 97
    folder = write(tmp_path, 3, 3, segment_bytes=1)
    for gone in (3, 0):
        segment(folder, gone).unlink()
        reader = JournalReader(tmp_path, SOURCE)
        assert reader.end == 6
        with pytest.raises(JournalCorrupt, match=r"03.arrows: positions 3 to 5 are damaged \(the file is missing"):
            numbers(reader, 3, 6)
    assert (reader.first, reader.damage()) == (0, [(0, 3), (3, 6)])


def test_a_log_that_is_gone_or_another_is_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    reader = JournalReader(tmp_path, SOURCE)
    before = reader.uuid
    shutil.rmtree(folder)
    with pytest.raises(JournalMissing):
        reader.refresh()
    # Whether it is shorter, or longer.
    for count in (2, 5):
        shutil.rmtree(folder, ignore_errors=True)
        write(tmp_path, count)
        with pytest.raises(JournalMismatch, match=f"the log with the UUID {before} was deleted, and another one"):
            reader.refresh()


def test_positions_that_go_back_are_an_error(tmp_path: Path) -> None:
    folder = write(tmp_path, 3)
    old = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    write(tmp_path, 2)
    reader = JournalReader(tmp_path, SOURCE)
    for path, data in old.items():
        path.write_bytes(data)
    with pytest.raises(JournalCorrupt, match="ended at position 5 and now ends at 3"):
        reader.refresh()
