from __future__ import annotations

import threading
from itertools import islice

import polars
import pyarrow as pa
import pytest

import weirpool
import weirpool.sync
from tests.sync.served import Watch
from weirpool import LocalError, Next, Payload, Request, StreamClosed
from weirpool.sync import Peer


def test_iteration_gives_all_items_in_order(peer: Peer) -> None:
    with peer.stream("count", b"1000") as items:
        assert [int(item.data) for item in items] == list(range(1_000))
        assert items.over and items.error is None and items.stream_id


@pytest.mark.parametrize("credit", [1, 2, 7, 64])
def test_peer_sends_no_more_than_its_credit_ahead(peer: Peer, watch: Watch, credit: int) -> None:
    with peer.stream("count", b"100000", credit=credit) as items:
        for taken, _ in enumerate(islice(items, 200), 1):
            # The order of requests on one connection: what was granted before has arrived.
            if taken % 20 == 0:
                peer.call("echo")
                # A source is read one item ahead.
                assert watch.yielded <= taken + credit + 1


def test_stream_that_nobody_reads_stops_at_its_credit(peer: Peer, watch: Watch) -> None:
    with peer.stream("count", b"1000", credit=10):
        for _ in range(3):
            peer.call("echo")
        assert watch.yielded <= 11


def test_another_loop_continues_at_the_next_item(peer: Peer) -> None:
    with peer.stream("count", b"10") as items:
        assert [int(item.data) for item in islice(items, 3)] == [0, 1, 2]
        assert [int(item.data) for item in items] == list(range(3, 10))


def test_loop_without_a_block_cancels_the_stream_at_its_end(peer: Peer, watch: Watch) -> None:
    for item in peer.stream("silence"):
        assert item.data == b"first"
        break
    assert watch.canceled.wait(10)


def test_block_that_is_left_cancels_the_stream(peer: Peer, watch: Watch) -> None:
    with pytest.raises(KeyError), peer.stream("silence"):
        raise KeyError
    assert watch.canceled.wait(10) or not watch.began.is_set()


def test_iteration_continues_after_a_timeout(url: str) -> None:
    ready = threading.Event()
    service = weirpool.Service()

    @service.stream("late")
    async def late(request: Payload):  # type: ignore[no-untyped-def]
        yield b"one"
        import asyncio

        await asyncio.to_thread(ready.wait)
        yield b"two"

    with weirpool.sync.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        with weirpool.sync.connect(server.urls[0]) as peer, peer.stream("late", timeout=0.01) as items:
            found = []
            while len(found) < 2:
                try:
                    found.extend(item.data for item in items)
                except TimeoutError as error:
                    assert "the next item of stream 'late' took more than 0.01 s" in str(error)
                    if found:
                        ready.set()
    assert found == [b"one", b"two"]


def test_several_threads_share_the_items_of_a_stream(peer: Peer) -> None:
    found: list[list[int]] = []
    with peer.stream("count", b"2000") as items:
        threads = [threading.Thread(target=lambda: found.append([int(item.data) for item in items])) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(found) == 4 and sorted(number for each in found for number in each) == list(range(2_000))


def test_cancel_in_another_thread_ends_the_iteration(peer: Peer, watch: Watch) -> None:
    with peer.stream("silence") as items:
        numbers = iter(items)
        next(numbers)
        thread = threading.Thread(target=items.cancel)
        thread.start()
        with pytest.raises(StreamClosed, match="this side canceled"):
            next(numbers)
        thread.join()
    assert watch.canceled.wait(10)


def test_manual_stream_gets_what_is_granted(peer: Peer) -> None:
    with peer.stream("count", b"10", credit=2, manual=True) as items:
        numbers = iter(items)
        assert [int(next(numbers).data) for _ in range(2)] == [0, 1]
        items.grant(8)
        assert len(list(numbers)) == 8
    with pytest.raises(LocalError, match="not open"):
        peer.stream("count", b"1").grant(1)


def test_batches_follow_single_items(peer: Peer) -> None:
    with peer.stream("count", b"1000") as items:
        first = [item.data for item in islice(items, 3)]
        batches = [batch.column("data").to_pylist() for batch in items.batches(100)]
    assert first + [data for batch in batches for data in batch] == [b"%d" % number for number in range(1_000)]
    assert max(map(len, batches)) <= 100


def test_batches_without_a_block_cancel_the_stream_at_their_end(peer: Peer, watch: Watch) -> None:
    for batch in peer.stream("silence").batches():
        assert batch.column("data").to_pylist() == [b"first"]
        break
    assert watch.canceled.wait(10)


def test_items_of_an_interceptor_are_taken_one_by_one(url: str) -> None:
    closed: list[str] = []

    async def louder(request: Request, next: Next) -> object:
        items = await next(request)

        async def wrapped():  # type: ignore[no-untyped-def]
            try:
                async for item in items:
                    yield Payload(item.data + b"!")
            finally:
                closed.append("closed")

        return wrapped()

    with weirpool.sync.connect(url, interceptors=[louder]) as peer:
        with pytest.raises(TimeoutError), peer.stream("silence", timeout=0.01) as items:
            list(items)
        assert closed == ["closed"]
        assert [item.data for item in peer.stream("count", b"3")] == [b"0!", b"1!", b"2!"]
        assert peer.stream("count", b"3").to_arrow()["data"].to_pylist() == [b"0!", b"1!", b"2!"]


def test_table_of_raw_items_has_data_and_metadata(peer: Peer) -> None:
    table = peer.stream("count", b"5").to_arrow()
    assert table.to_pydict() == {"data": [b"%d" % number for number in range(5)], "metadata": [None] * 5}
    assert peer.stream("count", b"0").to_arrow().schema == table.schema
    assert peer.stream("count", b"5").to_pandas()["data"].tolist() == table["data"].to_pylist()


def test_limit_of_a_table_leaves_the_rest_in_a_block(peer: Peer) -> None:
    with peer.stream("count", b"10") as items:
        assert [items.to_arrow(4).num_rows, items.to_arrow(4).num_rows, items.to_arrow(4).num_rows] == [4, 4, 2]


def test_schema_makes_columns_of_the_fields_of_items(peer: Peer) -> None:
    schema = pa.schema([("y", pa.float64()), ("x", pa.int32())])
    assert peer.stream("points", b"3").to_arrow(schema=schema).to_pydict() == {"y": [0.0, 0.5, 1.0], "x": [0, 1, 2]}
    frame = peer.stream("points", b"3").to_polars(schema=schema)
    assert isinstance(frame, polars.DataFrame) and frame.shape == (3, 2)


def test_stream_tells_what_it_is(peer: Peer) -> None:
    with peer.stream("silence") as items:
        assert repr(items) == "<Stream stream 'silence'>"
        next(iter(items))
        assert not items.ready


def test_iteration_that_is_garbage_of_the_loop_cancels_the_stream(peer: Peer, watch: Watch) -> None:
    numbers = iter(peer.stream("silence"))
    next(numbers)

    async def collect() -> None:
        numbers.close()

    weirpool.sync.run(collect())
    assert watch.canceled.wait(10)
