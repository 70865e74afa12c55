"""Values as batches and as tables. `tests/frames/test_columns.py` has the types."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import msgspec
import pyarrow as pa
import pytest

import weirpool
from weirpool import LocalError, Mismatch, Service, Settings, TypedError, TypedPeer, typed


class Point(msgspec.Struct):
    x: int
    y: float = 0.5


class Wrong(TypedError, code="WRONG"):
    """An error with a name."""


@asynccontextmanager
async def asking() -> AsyncIterator[TypedPeer]:
    service = Service()

    @service.stream("points")
    def points(n: int) -> Iterator[Point]:
        return (Point(number) for number in range(n))

    @service.stream("wrong", errors=[Wrong])
    def wrong(n: int) -> Iterator[Point]:
        yield Point(n)
        raise Wrong("it is wrong")

    url, settings = "rsocket+memory://tables", Settings(data_mime="application/json")
    async with weirpool.serve(service, url), weirpool.connect(url, settings=settings) as peer:
        yield typed(peer)


async def test_values_become_batches_and_tables() -> None:
    async with asking() as asked:
        table = await asked.stream("points", 10, returns=Point).to_arrow()
        assert table.to_pydict() == {"x": list(range(10)), "y": [0.5] * 10}
        batches = [batch async for batch in asked.stream("points", 10, returns=Point).batches(4)]
        assert pa.Table.from_batches(batches).equals(table) and max(map(len, batches)) <= 4
        assert (await asked.stream("points", 2, returns=Point).to_polars()).rows() == [(0, 0.5), (1, 0.5)]
        assert (await asked.stream("points", 3, returns=Point).to_pandas(2))["x"].tolist() == [0, 1]


async def test_schema_replaces_a_type() -> None:
    schema = pa.schema([("x", pa.int8())])
    async with asking() as asked:
        for returns in (Point, {"type": "object"}):
            assert (await asked.stream("points", 2, returns=returns).to_arrow(schema=schema)).to_pydict() == {
                "x": [0, 1]
            }
        with pytest.raises(LocalError, match="pass returns= or schema="):
            await asked.stream("points", 2).to_arrow()
        with pytest.raises(Mismatch):
            await asked.stream("points", 2, returns=int).to_arrow()


async def test_errors_have_their_classes() -> None:
    async with asking() as asked:
        with pytest.raises(Wrong):
            await asked.stream("wrong", 1, returns=Point, errors=[Wrong]).to_arrow()
        with pytest.raises(Wrong):
            [batch async for batch in asked.stream("wrong", 1, returns=Point, errors=[Wrong]).batches()]
