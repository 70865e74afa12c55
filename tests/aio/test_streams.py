from __future__ import annotations

import pytest

from penstock import ConnectError, Kind, LocalError, Payload, Settings
from penstock.aio.driver import Driver
from penstock.aio.streams import LateStream
from tests.aio.serving import world


async def test_items_come_in_order_one_by_one() -> None:
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


async def test_the_producer_is_never_ahead_of_credit() -> None:
    async with world() as w, w.peer.stream("count", b"1000000", credit=10) as items:
        taken = 0
        async for _ in items:
            taken += 1
            # One item is made ahead of credit, so that a stream of just as many items ends at once.
            assert len(w.seen) <= taken + 10 + 1
            if taken == 100:
                break


async def test_leaving_the_block_cancels_the_handler() -> None:
    async with world() as w:
        async with w.peer.stream("acount", b"1000000", credit=4) as items:
            async for _ in items:
                break
        await w.reached.wait()
        assert w.seen[-1] == "closed"


async def test_a_loop_that_goes_on_misses_nothing() -> None:
    async with world() as w, w.peer.stream("count", b"20", credit=3) as items:
        found = []
        async for item in items:
            found.append(int(item.data))
            if len(found) == 7:
                break
        found += [int(item.data) async for item in items]
        assert found == list(range(20))


async def test_manual_credit_waits_for_grant() -> None:
    async with world() as w, w.peer.stream("count", b"100", credit=5, manual=True) as items:
        found = 0
        async for _ in items:
            found += 1
            if found == 5:
                assert len(w.seen) <= 6
                items.grant(95)
        assert found == 100


async def test_no_credit_at_all_is_refused() -> None:
    async with world() as w:
        with pytest.raises(LocalError, match="at least 1"):
            w.peer.stream("count", b"1", credit=0)


async def test_a_failing_stream_gives_its_items_first() -> None:
    async with world() as w:
        with pytest.raises(Exception, match="handler failed"):
            async with w.peer.stream("count", b"no number") as items:
                async for _ in items:
                    pass


async def test_ready_tells_whether_the_next_item_is_here() -> None:
    async with world() as w, w.peer.stream("count", "3", credit=8) as items:
        assert not items.ready
        seen = [items.ready async for _ in items]
        # They came together: after each but the last one, another is here.
        assert seen == [True, True, False]


async def test_a_late_stream_finds_its_connection_when_it_is_opened() -> None:
    async with world() as w:
        found: list[Driver] = []

        async def find() -> Driver:
            found.append(w.peer.stream("count")._driver)
            return found[-1]

        stream = LateStream(find, Settings(), Kind.STREAM, "count", Payload(b"3"), None, False, None)
        stream.cancel()
        assert (stream.stream_id, stream.over, stream.error, stream.ready, found) == (0, False, None, False, [])
        async with stream:
            assert [item.data async for item in stream] == [b"0", b"1", b"2"]
        assert len(found) == 1


async def test_a_late_stream_that_finds_none_can_be_opened_later() -> None:
    async with world() as w:
        errors = [ConnectError("away")]

        async def find() -> Driver:
            if errors:
                raise errors.pop()
            return w.peer.stream("count")._driver

        stream = LateStream(find, Settings(), Kind.STREAM, "count", Payload(b"1"), None, False, None)
        with pytest.raises(ConnectError):
            await stream.__aenter__()
        assert [item.data async for item in stream] == [b"0"]


def test_a_late_stream_checks_its_credit_at_once() -> None:
    async def find() -> Driver:
        raise AssertionError

    with pytest.raises(LocalError, match="credit is 0"):
        LateStream(find, Settings(), Kind.STREAM, "count", Payload(), 0, False, None)
