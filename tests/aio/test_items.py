from __future__ import annotations

from penstock import Settings
from tests.aio.serving import world


async def test_items_arrive_in_order_one_by_one() -> None:
    async with world() as w, w.peer.stream("count", b"1000") as items:
        assert [int(item.data) async for item in items] == list(range(1000))


async def test_batches_hold_the_same_items() -> None:
    async with world(client=Settings(batch_rows=300)) as w, w.peer.stream("acount", b"1000", credit=500) as items:
        found: list[int] = []
        async for batch in items.batches():
            assert batch.schema.names == ["data", "metadata"]
            assert batch.num_rows <= 300
            found += [int(value) for value in batch.column("data").to_pylist()]
        assert found == list(range(1000))


async def test_second_loop_continues_after_the_first() -> None:
    async with world() as w, w.peer.stream("count", b"20", credit=3) as items:
        found = []
        async for item in items:
            found.append(int(item.data))
            if len(found) == 7:
                break
        found += [int(item.data) async for item in items]
        assert found == list(range(20))


async def test_ready_tells_whether_the_next_item_is_here() -> None:
    async with world() as w, w.peer.stream("count", "3", credit=8) as items:
        assert not items.ready
        seen = [items.ready async for _ in items]
        # They arrived together, so another one is ready after each but the last.
        assert seen == [True, True, False]
