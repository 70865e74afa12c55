from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weirpool
from weirpool import ApplicationError, Deduplicated, Items, LocalError, Payload, Peer, Service


def rows(batch: int, *indices: int, partition: int = 0) -> list[Payload]:
    text = b'{"query":"q","batch":%d,"partition":%d,"index":%d}'
    return [Payload(b"%d %d" % (batch, index), text % (batch, partition, index)) for index in indices]


@asynccontextmanager
async def served(service: Service) -> AsyncIterator[Peer]:
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with weirpool.connect(server.urls[0]) as peer:
            yield peer


async def channel(peer: Peer, items: list[Payload]) -> list[bytes]:
    async with peer.channel("rows", b"", items) as answers:
        return [answer.data async for answer in answers]


async def test_items_of_a_channel_are_handled_once(tmp_path: Path) -> None:
    once, service, seen = Deduplicated(tmp_path / "db"), Service(), list[bytes]()

    @service.channel("rows")
    @once
    async def handle(request: Payload, items: Items) -> list[bytes]:
        async for item in items:
            seen.append(item.data)
            if item.data == b"1 1" and len(seen) < 6:
                raise ApplicationError(0x301, "no room")
        return [b"done"]

    async with served(service) as peer:
        assert await channel(peer, rows(0, 0, 1)) == [b"done"]
        assert await channel(peer, rows(0, 0, 1, 2)) == [b"done"]
        with pytest.raises(ApplicationError, match="no room"):
            await channel(peer, rows(1, 0, 1, 2))
        # The handler has failed, so its items are new.
        assert await channel(peer, rows(1, 0, 1, 2)) == [b"done"]
        # A late repetition of an earlier micro-batch.
        assert await channel(peer, rows(0, 0, 1, 2, 3)) == [b"done"]
    once.close()
    assert seen == [b"0 0", b"0 1", b"0 2", b"1 0", b"1 1", b"1 0", b"1 1", b"1 2"]


async def test_generators_and_uploads_are_wrapped_too(tmp_path: Path) -> None:
    once, service = Deduplicated(tmp_path / "db"), Service()

    @service.channel("rows")
    @once
    async def echo(request: Payload, items: Items) -> AsyncIterator[bytes]:
        async for item in items:
            yield item.data

    @service.upload("sum")
    @once
    async def count(request: Payload, items: Items) -> bytes:
        return b"%d" % len([item async for item in items])

    async with served(service) as peer:
        assert await channel(peer, rows(0, 0, 1)) == [b"0 0", b"0 1"]
        assert await channel(peer, rows(0, 0, 1, 2)) == [b"0 2"]
        assert (await peer.upload("sum", b"", rows(0, 0, partition=1))).data == b"1"
        assert (await peer.upload("sum", b"", rows(0, 0, 1, partition=1))).data == b"1"
    once.close()


class Order(msgspec.Struct):
    """An order."""

    id: int


class Receipt(msgspec.Struct):
    """What becomes of an order."""

    id: int
    text: str


async def test_typed_handlers_are_wrapped_too(tmp_path: Path) -> None:
    once, service, seen = Deduplicated(tmp_path / "db"), Service(), list[Order]()

    @service.call("one")
    @once
    async def one(order: Order) -> Receipt:
        seen.append(order)
        return Receipt(order.id, "done")

    @service.upload("sum")
    @once.atomic
    async def total(request: Payload, items: AsyncIterator[Order], database: sqlite3.Connection) -> Receipt:
        database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
        return Receipt(sum([item.id async for item in items]), "sum")

    @service.channel("rows")
    @once
    async def echo(request: Payload, items: AsyncIterator[Order]) -> AsyncIterator[Receipt]:
        async for item in items:
            yield Receipt(item.id, "yes")

    @service.channel("list")
    @once
    async def listed(request: Payload, items: AsyncIterator[Order]) -> list[Receipt]:
        return [Receipt(item.id, "yes") async for item in items]

    def sent(partition: int, *indices: int) -> list[Payload]:
        found = rows(0, *indices, partition=partition)
        return [Payload(b'{"id":%d}' % (2**n), each.metadata) for n, each in enumerate(found)]

    settings = weirpool.Settings(data_mime="application/json")
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with weirpool.connect(server.urls[0], settings=settings) as peer:
            answers = [await peer.call("one", item.data, metadata=item.metadata) for item in sent(0, 0, 0, 1)]
            assert [answer.data for answer in answers] == [
                b'{"id":1,"text":"done"}',
                b"null",
                b'{"id":4,"text":"done"}',
            ]
            assert (await peer.upload("sum", b"", sent(1, 0, 1))).data == b'{"id":3,"text":"sum"}'
            assert (await peer.upload("sum", b"", sent(1, 0, 1, 2))).data == b'{"id":4,"text":"sum"}'
            for partition, route in ((2, "rows"), (3, "list")):
                for expected in ([b'{"id":1,"text":"yes"}'], []):
                    async with peer.channel(route, b"", sent(partition, 0)) as found:
                        assert [answer.data async for answer in found] == expected
    once.close()
    assert seen == [Order(1), Order(4)]


async def test_calls_are_handled_once_in_any_order(tmp_path: Path) -> None:
    once, service, seen = Deduplicated(tmp_path / "db"), Service(), list[bytes]()

    @service.call("one")
    @once
    async def one(request: Payload) -> bytes:
        await asyncio.sleep(0)
        seen.append(request.data)
        return b"new"

    @service.fire("log")
    @once
    def log(request: Payload) -> None:
        seen.append(request.data)

    async with served(service) as peer:
        sent = rows(0, *range(20), *range(10), 25, 24)
        answers = await asyncio.gather(*(peer.call("one", item.data, metadata=item.metadata) for item in sent))
        assert sorted(answer.data for answer in answers) == [b""] * 10 + [b"new"] * 22
        for item in rows(0, 3, 30, 30):
            await peer.fire("log", item.data, metadata=item.metadata)
        await peer.call("one", b"end", metadata=rows(0, 99)[0].metadata)
    once.close()
    assert sorted(seen) == sorted([b"0 %d" % index for index in (*range(20), 25, 24, 30)] + [b"end"])


async def test_same_task_is_handled_by_one_request_at_a_time(tmp_path: Path) -> None:
    once, service, seen = Deduplicated(tmp_path / "db"), Service(), list[bytes]()

    @service.channel("rows")
    @once
    async def handle(request: Payload, items: Items) -> list[bytes]:
        async for item in items:
            await asyncio.sleep(0)
            seen.append(item.data)
        return []

    async with served(service) as peer:
        # A task, its repetition, and one that nobody has stopped.
        await asyncio.gather(*(channel(peer, rows(0, *range(50))) for _ in range(3)))
    once.close()
    assert seen == [b"0 %d" % index for index in range(50)]


async def test_effects_and_their_record_are_one_transaction(tmp_path: Path) -> None:
    path, service = tmp_path / "db", Service()
    once = Deduplicated(path)
    fails = [True]

    @service.channel("rows")
    @once.atomic
    async def handle(request: Payload, items: Items, database: sqlite3.Connection) -> list[bytes]:
        database.execute("CREATE TABLE IF NOT EXISTS delays (text TEXT)")
        async for item in items:
            database.execute("INSERT INTO delays VALUES (?)", (item.data.decode(),))
        if fails.pop():
            raise ApplicationError(0x301, "no room")
        return []

    fails += [False, False, True]
    async with served(service) as peer:
        with pytest.raises(ApplicationError, match="no room"):
            await channel(peer, rows(0, 0, 1))
        await channel(peer, rows(0, 0, 1))
        await channel(peer, rows(0, 0, 1, 2))
    once.close()
    with sqlite3.connect(path) as database:
        found = database.execute("SELECT text FROM delays ORDER BY rowid").fetchall()
    database.close()
    assert found == [("0 0",), ("0 1",), ("0 2",)]


async def test_next_process_knows_what_was_handled(tmp_path: Path) -> None:
    seen = list[bytes]()
    for _ in range(2):
        once, service = Deduplicated(tmp_path / "db", key=lambda item: item.data.decode()), Service()

        @service.channel("rows")
        @once
        async def handle(request: Payload, items: Items) -> list[bytes]:
            async for item in items:
                seen.append(item.data)
            return []

        async with served(service) as peer:
            await channel(peer, [Payload(b"a"), Payload(b"b"), Payload(b"a")])
        once.close()
    assert seen == [b"a", b"b"]


def test_a_handler_must_be_able_to_wait(tmp_path: Path) -> None:
    once = Deduplicated(tmp_path / "db")

    def handle(request: Payload, items: Any) -> Any:
        yield b""

    with pytest.raises(LocalError, match="make it async"):
        once(handle)
    once.close()


@pytest.mark.parametrize("point", ["row", "before", "after"])
async def test_killed_receiver_has_each_effect_once(tmp_path: Path, point: str) -> None:
    for killed in (point, "never"):
        command = [sys.executable, "-m", "tests.dedup.killed", killed, str(tmp_path / "db")]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        try:
            async with weirpool.connect(url, reconnect=False) as peer:
                sent = [channel(peer, rows(0, *range(100), partition=partition)) for partition in (0, 1)]
                results = await asyncio.gather(*sent, return_exceptions=True)
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        assert all(result == [] for result in results) == (killed == "never")
    with closing(sqlite3.connect(tmp_path / "db")) as database:
        found = [text for (text,) in database.execute("SELECT text FROM effects")]
    assert sorted(found) == sorted(2 * [f"0 {index}" for index in range(100)])
