"""The frames of a range: what is sent as it is, and what is encoded again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, segment, write
from weirpool.errors import DataLost, JournalError
from weirpool.journal import JournalReader
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim
from weirpool.serving.frames import Assembler, Form, Head
from weirpool.serving.ranges import Place, chunks


def frames(reader: JournalReader, first: int, end: int, *columns: str) -> list[tuple[Head, bytes]]:
    """Return the frames of a range."""
    assembler = Assembler()
    return [
        (head, body.to_pybytes())
        for chunk in chunks(reader, lambda: reader, Place(first), end, columns=columns or None)
        for head, body in assembler.feed(memoryview(chunk.content).cast("B"))
    ]


def forms(reader: JournalReader, first: int, end: int, *columns: str) -> list[tuple[int, int, int]]:
    return [(head.form, head.first, head.end) for head, _ in frames(reader, first, end, *columns)]


def test_batches_are_sent_as_they_are_in_the_file(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 20, 30)
    found = frames(JournalReader(tmp_path, SOURCE), 0, 60)
    assert [head[:3] for head, _ in found] == [(0, 0, 60), (60, 60, 60)]
    assert segment(folder).read_bytes().endswith(found[0][1])
    assert found[1] == (Head(60, 60, 60, 0, Form.NOTHING), b"")


def test_small_batches_are_not_cut_and_of_a_large_one_only_what_is_wanted(tmp_path: Path) -> None:
    write(tmp_path, 10, 10, 20_000)
    reader = JournalReader(tmp_path, SOURCE)
    assert forms(reader, 5, 15)[0] == (Form.STORED, 0, 20)
    assert forms(reader, 30, 40)[0] == (Form.ROWS, 30, 40)
    assert forms(reader, 5_000, 20_020)[0] == (Form.STORED, 20, 20_020)
    assert forms(reader, 3, 3) == [(Form.NOTHING, 3, 3)]


def test_columns_without_data_are_encoded_again(tmp_path: Path) -> None:
    write(tmp_path, 10)
    reader = JournalReader(tmp_path, SOURCE)
    assert forms(reader, 0, 10, "data", "position")[0][0] == Form.STORED
    assert forms(reader, 0, 10, "time") == [(Form.ROWS, 0, 10), (Form.NOTHING, 10, 10)]


def test_a_segment_that_goes_meanwhile_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10, segment_bytes=1)
    reader = JournalReader(tmp_path, SOURCE)
    list(reader.read(0, 20))
    stored = list(reader.stored(0, 20))
    assert [(each.first, each.end) for each in stored] == [(0, 10), (10, 20)]
    parts = chunks(reader, lambda: reader, Place(0), 20)
    assert next(parts).content.size
    segment(folder, 10).unlink()
    with pytest.raises((DataLost, JournalError), match="10"):
        list(parts)


def test_rows_before_the_first_segment_come_from_elsewhere(tmp_path: Path) -> None:
    write(tmp_path / "whole", 10, 10, segment_bytes=1)
    shutil.copytree(tmp_path / "whole", tmp_path / "hot")
    trim(log_folder(tmp_path / "hot", SOURCE), 10, retain_bytes=0)
    hot, whole = (JournalReader(tmp_path / name, SOURCE) for name in ("hot", "whole"))
    parts = b"".join(memoryview(chunk.content).cast("B") for chunk in chunks(hot, lambda: whole, Place(5), 15))
    heads = [head for head, _ in Assembler().feed(memoryview(parts))]
    assert [(head.form, head.first, head.end) for head in heads] == [
        (Form.ROWS, 5, 10),
        (Form.STORED, 10, 20),
        (Form.NOTHING, 15, 15),
    ]
