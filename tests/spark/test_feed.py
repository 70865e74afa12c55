from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

from weirpool.spark.feed import Attempt, Chunk, Feed, Part
from weirpool.spark.items import Origin, Packer


def batch(first: int, end: int) -> pa.RecordBatch:
    return pa.record_batch({"data": pa.array([b"%d" % number for number in range(first, end)], pa.binary())})


def feed(batches: Iterator[pa.RecordBatch], rate: int | None = None) -> Feed:
    return Feed(Packer("data", None, keyed=False), Origin("q", 0, 0), batches, rate)


def data(parts: list[Part]) -> list[bytes]:
    return [value for part in parts for value in part.items["data"].to_pylist()]


async def test_canceled_wait_loses_no_rows() -> None:
    go = threading.Event()

    def rows() -> Iterator[pa.RecordBatch]:
        assert go.wait(20)
        yield batch(0, 3)

    source = feed(rows())
    chunk = Chunk(source, 1 << 20)
    first = asyncio.ensure_future(anext(chunk.parts()))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.wait([first])
    go.set()
    assert data([part async for part in chunk.parts()]) == [b"0", b"1", b"2"]
    # Again, as after a reset link.
    assert data([part async for part in chunk.parts()]) == [b"0", b"1", b"2"]
    assert (chunk.rows, await source.ready()) == (3, False)


async def test_chunk_ends_at_its_limit() -> None:
    source = feed(iter([batch(0, 3), batch(3, 6)]))
    chunks = []
    while await source.ready():
        chunk = Chunk(source, 1)
        attempt = Attempt(chunk)
        chunks.append([row async for items in attempt.items() for row in items["data"].to_pylist()])
        assert attempt.complete and attempt.over.is_set()
    assert chunks == [[b"0", b"1", b"2"], [b"3", b"4", b"5"]]


async def test_row_is_found_by_its_index() -> None:
    source = feed(iter([batch(0, 3), batch(3, 6)]))
    chunk = Chunk(source, 1 << 20)
    assert [part.first async for part in chunk.parts()] == [0, 3]
    assert (chunk.row(4), chunk.row(6)) == ((b"4", None), None)


async def test_error_of_the_rows_is_kept() -> None:
    def rows() -> Iterator[pa.RecordBatch]:
        yield batch(0, 1)
        raise OSError("the JVM is gone")

    source = feed(rows())
    with pytest.raises(OSError, match="JVM"):
        assert [part async for part in Chunk(source, 1 << 20).parts()]
    assert isinstance(source.error, OSError)


async def test_rate_divides_rows_and_delays_them(monkeypatch: pytest.MonkeyPatch) -> None:
    delays: list[float] = []

    async def sleep(seconds: float) -> None:
        delays.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    source = feed(iter([batch(0, 45)]), rate=200)
    parts = [part async for part in Chunk(source, 1 << 20).parts()]
    assert [part.items.num_rows for part in parts] == [20, 20, 5]
    # Each part waits for the time of those before it.
    assert delays[0] <= 0
    assert 0 < delays[1] <= 0.1 < delays[2] <= 0.2
