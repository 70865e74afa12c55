from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from tests.dedup.postgres import postgres
from tests.dedup.test_deduplicated import channel, rows, served
from weirpool import ApplicationError, DedupError, Deduplicated, Items, Payload, Service
from weirpool.dedup.database import SqlAlchemyDatabase, SqliteDatabase, database_of
from weirpool.dedup.progress import Origin, Progress
from weirpool.dedup.store import Store

TASK = Origin("q", 3)


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres() as url:
        yield url


def test_database_is_a_path_or_a_url(tmp_path: Path) -> None:
    sqlite = database_of(str(tmp_path / "db"))
    other = database_of(f"sqlite+pysqlite:///{tmp_path}/other")
    assert isinstance(sqlite, SqliteDatabase) and isinstance(other, SqlAlchemyDatabase)
    for each in (sqlite, other):
        each.execute("CREATE TABLE t (x INTEGER)", {})
        each.end()
        each.begin()
        each.execute("INSERT INTO t VALUES (:x)", [{"x": 1}, {"x": 2}])
        each.execute("INSERT INTO t VALUES (:x)", [])
        each.commit()
        each.begin()
        each.execute("DELETE FROM t", {})
        each.rollback()
        each.rollback()
        assert [row[0] for row in each.execute("SELECT x FROM t WHERE x > :least ORDER BY x", {"least": 0})] == [1, 2]
        each.close()


def test_other_database_remembers_too(server: str) -> None:
    store = Store(server)
    assert store.load(TASK) == Progress() and not store.has("k")
    for batch in (4, 5):
        store.save({TASK: Progress(batch, [0, 7], [3, 8])}, ["k"])
    store.close()
    again = Store(server)
    assert again.load(TASK) == Progress(5, [0, 7], [3, 8]) and again.has("k")
    again.close()


def test_an_unreachable_database_is_named_without_its_password() -> None:
    with pytest.raises(DedupError, match=r"postgresql\+pg8000 database cannot be used") as caught:
        Store("postgresql+pg8000://ada:geheim@/x?unix_sock=/no/such/socket")
    assert "geheim" not in str(caught.value)


async def test_processes_with_atomic_handlers_exclude_each_other(server: str) -> None:
    # Each has its own store, as two receivers behind one address have.
    engine = sqlalchemy.create_engine(server)
    with engine.begin() as connection:
        connection.execute(sqlalchemy.text("CREATE TABLE effects (value TEXT)"))
    stores = [Deduplicated(server) for _ in range(2)]
    inside, both = [0], asyncio.Event()

    async def send(once: Deduplicated) -> list[bytes]:
        service = Service()

        @service.channel("rows")
        @once.atomic
        async def handle(request: Payload, items: Items, database: Any) -> list[bytes]:
            inside[0] += 1
            if inside[0] > 1:
                both.set()
            with suppress(TimeoutError):
                # Time for the other one, which must not come in.
                await asyncio.wait_for(both.wait(), 0.2)
            inside[0] -= 1
            async for item in items:
                value = {"value": item.data.decode()}
                await asyncio.to_thread(database.execute, sqlalchemy.text("INSERT INTO effects VALUES (:value)"), value)
                if item.data == b"1 0":
                    raise ApplicationError(0x301, "no room")
            return []

        async with served(service) as peer:
            with pytest.raises(ApplicationError, match="no room"):
                await channel(peer, [*rows(0, *range(20)), *rows(1, 0)])
            return await channel(peer, rows(0, *range(20)))

    assert await asyncio.gather(*map(send, stores)) == [[], []]
    assert not both.is_set()
    for each in stores:
        each.close()
    with engine.begin() as connection:
        found = list(connection.execute(sqlalchemy.text("SELECT value FROM effects")).scalars())
    engine.dispose()
    assert sorted(found) == sorted(f"0 {index}" for index in range(20))
