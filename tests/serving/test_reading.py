"""Ranges that are read on demand: the bytes are the same wherever the reading rests."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.journal.logs import SOURCE, segment
from weirpool.errors import JournalUnavailable
from weirpool.journal import JournalReader, JournalWriter
from weirpool.journal.layout import log_folder
from weirpool.journal.retention import trim
from weirpool.serving.frames import PIECE_BYTES, Assembler, Form
from weirpool.serving.ranges import CHUNK_BYTES, Part, Place, chunks
from weirpool.serving.reading import RangeReading


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


def written(path: Path, *sizes: int) -> JournalReader:
    """Write batches of 50 rows, each row with so many bytes, and return a reader."""
    with JournalWriter.open(path, SOURCE, fsync=False, budget_bytes=1 << 40) as writer:
        for size in sizes:
            data = pa.array([os.urandom(size) for _ in range(50)], pa.binary())
            writer.append(pa.RecordBatch.from_arrays([data, pa.nulls(50, pa.binary())], ["data", "metadata"]), "s")
    return JournalReader(path, SOURCE)


def open_files(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open."""
    # The descriptor of the listing is gone.
    names = [os.path.realpath(each) for each in Path("/proc/self/fd").iterdir()]
    return [name for name in names if name.startswith(str(folder))]


def reading(reader: JournalReader, first: int, end: int, columns: Sequence[str] | None = None) -> RangeReading:
    def parts(place: Place) -> Generator[Part, None, None]:
        yield from chunks(reader, lambda: reader, place, end, columns=columns)

    return RangeReading(first, parts, at_once)


async def bytes_of(found: RangeReading, credit: Callable[[], int], rests: Callable[[], bool]) -> bytes:
    """Return all bytes of a range, read with any credit, and with rests between."""
    data = []
    while found.ready:
        await found.fill()
        if rests():
            await found.rest()
            assert found.held <= 2 * CHUNK_BYTES
        count = credit()
        chunk = found.take(count)
        if chunk is not None:
            assert chunk.count <= count and chunk.size <= count * PIECE_BYTES
            data += [item.as_py() for item in chunk.items.column("data")]
    await found.close()
    return b"".join(data)


async def taken(found: RangeReading, count: int) -> int:
    """Read, and return the bytes of at most so many pieces."""
    await found.fill()
    chunk = found.take(count)
    assert chunk is not None
    return chunk.size


SIZES = [10, 100, 30_000, 5, 90_000, 1_000, 1_000, 1_000]
"""Batches of some bytes, and of more than a chunk."""


@pytest.mark.parametrize("columns", [None, ["position", "data"], ["position", "time"]])
@pytest.mark.parametrize(("first", "end"), [(0, 400), (3, 399), (140, 260), (120, 130)])
async def test_bytes_are_the_same_with_any_credit_and_rests(
    tmp_path: Path, first: int, end: int, columns: list[str] | None
) -> None:
    reader = written(tmp_path, *SIZES)
    whole = await bytes_of(reading(reader, first, end, columns), lambda: 1 << 40, lambda: False)
    chance = random.Random(first + end)
    for share in (0.0, 0.3, 0.7):
        credit = partial(chance.choice, (1, 2, 5, 17, 1_000))
        found = reading(reader, first, end, columns)
        assert await bytes_of(found, credit, lambda share=share: chance.random() < share) == whole
        assert found.held == 0
    heads = [head for head, _ in Assembler().feed(memoryview(whole))]
    assert heads[-1].form == Form.NOTHING and heads[-1].end == end
    assert all(head.size <= 2 * CHUNK_BYTES for head in heads if head.form == Form.ROWS)


async def test_a_rest_holds_nothing_of_a_stored_batch_and_no_file(tmp_path: Path) -> None:
    reader = written(tmp_path, 90_000)
    found = reading(reader, 0, 50)
    for number in range(3):
        assert await taken(found, 1) == PIECE_BYTES
        assert found.held == CHUNK_BYTES + 40 - (number + 1) * PIECE_BYTES
    assert not open_files(tmp_path)
    await found.rest()
    assert found.held == 0 and found.ready


async def test_a_frame_that_is_encoded_again_is_finished_from_memory(tmp_path: Path) -> None:
    reader = written(tmp_path, 30_000)
    found = reading(reader, 10, 20)
    assert await taken(found, 1) == 40
    await found.rest()
    assert 290_000 < found.held < 2 * CHUNK_BYTES


async def test_rows_that_changed_their_form_are_not_mixed(tmp_path: Path) -> None:
    reader = written(tmp_path, 90_000, 90_000)
    later = JournalReader(tmp_path, SOURCE)
    found = reading(reader, 0, 100)
    assert await taken(found, 5) == 5 * PIECE_BYTES
    await found.rest()
    # They are in a store now: as frames of another form.
    with JournalWriter.open(tmp_path, SOURCE, fsync=False, segment_bytes=1) as writer:
        data = pa.RecordBatch.from_arrays([pa.array([b"x"]), pa.nulls(1, pa.binary())], ["data", "metadata"])
        writer.append(data, "s")
    trim(log_folder(tmp_path, SOURCE), 100, retain_bytes=0)
    assert not segment(log_folder(tmp_path, SOURCE)).exists()
    hot = JournalReader(tmp_path, SOURCE)
    begin: Any = lambda place: chunks(hot, lambda: later, place, 100)  # noqa: E731
    moved = RangeReading(0, begin, at_once)
    moved._place = found._place
    with pytest.raises(JournalUnavailable, match="ask for the rest again"):
        await moved.fill()


async def test_an_empty_range_has_an_end(tmp_path: Path) -> None:
    reader = written(tmp_path, 10)
    found = reading(reader, 7, 7)
    data = await bytes_of(found, lambda: 1, lambda: False)
    assert len(data) == 40 and not await found.more() and not found.ready
