from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import ApplicationError, Connection, Kind, LimitExceeded, LinkLost, Metrics, Outcome, PeerClosed, Rejected
from tests.aio.serving import make_service
from tests.waiting import until

URL = "rsocket+memory://metrics"


async def test_known_traffic_is_counted_exactly() -> None:
    ours, theirs = Metrics(), Metrics()
    reached = asyncio.Event()
    async with penstock.serve(make_service([], reached), URL, taps=[theirs]) as server:
        async with penstock.connect(URL, taps=[ours]) as peer:
            for _ in range(3):
                await peer.call("echo", b"x")
            for route, error in (("fail", ApplicationError), ("nobody", Rejected)):
                with pytest.raises(error):
                    await peer.call(route)
            call = asyncio.create_task(peer.call("never"))
            await reached.wait()
            assert theirs.snapshot().streams(Kind.CALL, False) == ours.snapshot().streams(Kind.CALL, True) == 1
            call.cancel()
            await peer.fire("log", b"x")
            async with peer.stream("count", b"1000") as items:
                assert len([item async for item in items]) == 1000
            async with peer.stream("acount", b"1000000", credit=5) as items:
                await items.arrival()
            assert (await peer.upload("sum", b"", [b"1", b"2"])).data == b"3"
            async with peer.channel("double", b"", [b"1"]) as items:
                assert len([item async for item in items]) == 1
            await until(lambda: theirs.snapshot().streams(Kind.STREAM, False) == 0)
            before = (ours.snapshot(), theirs.snapshot())
        await until(lambda: server.connections == 0)
    done, canceled = Outcome.COMPLETED, Outcome.CANCELED
    calls = {done: 3, Outcome.FAILED: 1, Outcome.REJECTED: 1, canceled: 1}
    ended = {(Kind.CALL, outcome): count for outcome, count in calls.items()}
    ended |= {(Kind.FIRE, done): 1, (Kind.STREAM, done): 1, (Kind.STREAM, canceled): 1}
    for snapshot, ours_there, many in (
        (ours.snapshot(), True, {(Kind.UPLOAD, done): 1, (Kind.CHANNEL, done): 1}),
        (theirs.snapshot(), False, {(Kind.CHANNEL, done): 2}),
    ):
        found = {(kind, outcome): n for (kind, side, outcome), n in snapshot.streams_ended.items() if n}
        assert found == ended | many
        assert {side for (_, side, _), count in snapshot.streams_ended.items() if count} == {ours_there}
        assert sum(snapshot.streams_opened.values()) == sum(found.values())
        assert (snapshot.connections_opened, snapshot.connections_closed, snapshot.connections_failed) == (1, 1, 0)
        assert (snapshot.connections, snapshot.connections_refused, snapshot.limits_exceeded) == (0, 0, 0)
    # 3 echoes, 1,000 items, 5 of the canceled stream, a sum and a double; 2 and 1 uploaded.
    assert ours.snapshot().received_items == 3 + 1000 + 5 + 1 + 1
    assert ours.snapshot().sent_items == theirs.snapshot().received_items == 3
    assert theirs.snapshot().sent_items == ours.snapshot().received_items
    assert ours.snapshot().sent_bytes == theirs.snapshot().received_bytes > before[0].sent_bytes
    assert ours.snapshot().received_bytes == theirs.snapshot().sent_bytes > 1000


def test_kinds_of_ends_are_distinguished() -> None:
    metrics, connection = Metrics(), Connection("rsocket", "", False)
    for error in (None, PeerClosed("in order"), LinkLost("broken"), LimitExceeded("too much")):
        metrics.opened(connection)
        metrics.closed(connection, error)
    metrics.resumed(connection)
    metrics.refused("", "")
    snapshot = metrics.snapshot()
    assert (snapshot.connections_closed, snapshot.connections_failed, snapshot.limits_exceeded) == (4, 2, 1)
    assert (snapshot.connections_resumed, snapshot.connections_refused) == (1, 1)


def test_a_snapshot_does_not_change() -> None:
    metrics, connection = Metrics(), Connection("rsocket", "", False)
    snapshot = metrics.snapshot()
    metrics.stream_opened(connection, Kind.CALL, True)
    metrics.items_sent(connection, 5)
    assert (snapshot.streams(Kind.CALL, True), snapshot.sent_items) == (0, 0)
    assert (metrics.snapshot().streams(Kind.CALL, True), metrics.snapshot().sent_items) == (1, 5)


async def test_metrics_show_what_is_not_consumed() -> None:
    # THREATS 84
    metrics = Metrics()
    reached = asyncio.Event()
    async with penstock.serve(make_service([], reached), URL, taps=[metrics]) as server:
        assert metrics.snapshot().ledger.connections == 0
        async with penstock.connect(URL) as peer:
            # The handler waits, and the request with it.
            call = asyncio.create_task(peer.call("never", bytes(100_000)))
            await reached.wait()
            await until(lambda: server.metrics().held_bytes >= 100_000)
            shown = metrics.snapshot().ledger
            assert shown == server.metrics()
            assert shown.largest_connection_bytes == shown.held_bytes < shown.limit_bytes
            # Both ends are in this process.
            assert (shown.connections, shown.paused_connections, shown.payments) == (2, 0, 0)
            call.cancel()
            await until(lambda: server.metrics().held_bytes == 0)
            assert server.metrics().peak_bytes >= 100_000
