"""Items as typed batches and as tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pandas
import polars
import pyarrow as pa
import pytest

import weirpool
from tests.aio.serving import world
from tests.waiting import until
from weirpool import LimitExceeded, LocalError, Next, Payload, Request, Settings

SCHEMA = pa.schema([("value", pa.int64())])
NUMBERS = weirpool.Service()


@NUMBERS.stream("json")
async def json(request: Payload) -> AsyncIterator[bytes]:
    for number in range(int(request.data)):
        yield b'{"value": %d, "other": 1}' % number


async def test_next_items_are_those_that_have_arrived_and_no_more_than_the_window() -> None:
    async with world() as w, w.peer.stream("count", b"100", credit=8) as items:
        found: list[int] = []
        while chunk := await items.next_items():
            assert len(chunk) <= 8
            found += [int(item.data) for item in chunk]
        assert found == list(range(100))


async def test_canceled_wait_for_next_items_loses_none() -> None:
    async with world() as w, w.peer.stream("count", b"20", credit=1) as items:
        found: list[int] = []
        while len(found) < 20:
            try:
                async with asyncio.timeout(0):
                    found += [int(item.data) for item in await items.next_items()]
            except TimeoutError:
                await asyncio.sleep(0)
        assert found == list(range(20)) and await items.next_items() == []


async def test_next_items_of_an_interceptor_come_one_by_one() -> None:
    async def louder(request: Request, next: Next) -> object:
        return (Payload(item.data + b"!") async for item in await next(request))

    async with weirpool.serve(NUMBERS, "rsocket+memory://wrapped"):
        async with weirpool.connect("rsocket+memory://wrapped", interceptors=[louder]) as peer:
            async with peer.stream("json", b"2") as items:
                assert [len(await items.next_items()) for _ in range(3)] == [1, 1, 0]


async def test_schema_makes_columns() -> None:
    settings = Settings(data_mime="application/json")
    async with weirpool.serve(NUMBERS, "rsocket+memory://columns"):
        async with weirpool.connect("rsocket+memory://columns", settings=settings) as peer:
            batches = [batch async for batch in peer.stream("json", b"10").batches(4, schema=SCHEMA)]
            assert pa.Table.from_batches(batches).to_pydict() == {"value": list(range(10))}
            assert max(batch.num_rows for batch in batches) <= 4
            frame = await peer.stream("json", b"3").to_polars(schema=SCHEMA)
            assert isinstance(frame, polars.DataFrame) and frame["value"].to_list() == [0, 1, 2]
            other = await peer.stream("json", b"3").to_pandas(schema=SCHEMA, encoding="json")
            assert isinstance(other, pandas.DataFrame) and other["value"].tolist() == [0, 1, 2]
            with pytest.raises(LocalError, match="items of json need a schema"):
                peer.stream("json", b"3").batches(encoding="json")


async def test_limit_leaves_the_rest_in_a_block_and_cancels_without() -> None:
    async with world() as w:
        async with w.peer.stream("count", b"10") as items:
            assert [(await items.to_arrow(4)).num_rows for _ in range(3)] == [4, 4, 2]
        stream = w.peer.stream("count", b"100000")
        assert (await stream.to_arrow(4))["data"].to_pylist() == [b"0", b"1", b"2", b"3"]
        await until(lambda: stream.over)


async def test_table_that_is_too_large_cancels_the_stream() -> None:
    async with world() as w:
        stream = w.peer.stream("count", b"100000")
        with pytest.raises(LimitExceeded, match="more than 1,000 bytes"):
            await stream.to_arrow(max_bytes=1_000)
        await until(lambda: stream.over)
