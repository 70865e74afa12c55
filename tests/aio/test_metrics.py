from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import (
    Admitted,
    ApplicationError,
    Connection,
    Kind,
    LimitExceeded,
    LinkLost,
    Metrics,
    Next,
    Outcome,
    Payload,
    PeerClosed,
    RefusalCause,
    Rejected,
    Request,
    Service,
    Settings,
    Setup,
    SetupRejected,
)
from weirpool.rsocket.dialect import RSOCKET_1_0
from weirpool.tap import Refusal
from weirpool.wire.rsocket.frames import ResumeFrame

URL = "rsocket+memory://metrics"


async def test_known_traffic_is_counted_exactly() -> None:
    ours, theirs = Metrics(), Metrics()
    reached = asyncio.Event()
    async with weirpool.serve(make_service([], reached), URL, taps=[theirs]) as server:
        async with weirpool.connect(URL, taps=[ours]) as peer:
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
    metrics.refused("", Refusal(RefusalCause.LOST, "gone"))
    snapshot = metrics.snapshot()
    assert (snapshot.connections_closed, snapshot.connections_failed, snapshot.limits_exceeded) == (4, 2, 1)
    assert (snapshot.connections_resumed, snapshot.connections_refused) == (1, 1)
    assert {cause: count for cause, count in snapshot.refusals.items() if count} == {RefusalCause.LOST: 1}


def test_rejected_set_ups_are_refusals_on_the_server() -> None:
    metrics = Metrics()
    for is_client in (False, True):
        for error in (SetupRejected("not you", 3), SetupRejected.full("max_connections_per_address (1) are open", 3)):
            metrics.closed(Connection("rsocket", "", is_client), error)
    refusals = {cause: count for cause, count in metrics.snapshot().refusals.items() if count}
    assert refusals == {RefusalCause.REJECTED: 1, RefusalCause.CLIENT_LIMIT: 1}


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
    async with weirpool.serve(make_service([], reached), URL, taps=[metrics]) as server:
        # Other tests may have left items that are not collected yet.
        before = server.metrics()
        async with weirpool.connect(URL) as peer:
            # The handler waits, and the request with it.
            call = asyncio.create_task(peer.call("never", bytes(100_000)))
            await reached.wait()
            await until(lambda: server.metrics().held_bytes >= before.held_bytes + 100_000)
            shown = metrics.snapshot().ledger
            assert shown == server.metrics()
            assert 100_000 <= shown.largest_connection_bytes <= shown.held_bytes < shown.limit_bytes
            # Both ends are in this process.
            assert shown.connections - before.connections == 2
            assert (shown.paused_connections, shown.payments) == (before.paused_connections, before.payments)
            call.cancel()
            await until(lambda: server.metrics().held_bytes <= before.held_bytes)
            assert server.metrics().peak_bytes >= 100_000


def shown(metrics: Metrics) -> dict[tuple[str, bool, str | None, str], int]:
    """Return how many requests each histogram has counted."""
    found = metrics.snapshot().durations
    return {(each.kind.name, each.ours, each.route, each.outcome.value): sum(found[each].counts) for each in found}


@pytest.mark.parametrize("intercepted", [False, True])
async def test_durations_are_by_route_of_handlers_only(intercepted: bool) -> None:
    # THREATS 103
    async def passes(request: Request, after: Next) -> object:
        return await after(request)

    ours, theirs = Metrics(), Metrics()
    service = make_service([], asyncio.Event())
    if intercepted:
        service.intercept(passes)
    async with weirpool.serve(service, URL, taps=[theirs]) as server:
        async with weirpool.connect(URL, taps=[ours]) as peer:
            await peer.call("echo")
            await peer.fire("log", b"x")
            with pytest.raises(ApplicationError):
                await peer.call("fail")
            assert len([item async for item in peer.stream("count", b"3")]) == 3
            for number in range(100):
                with pytest.raises(Rejected):
                    await peer.call(f"stranger-{number}")
        await until(lambda: server.connections == 0)
    assert shown(theirs) == {
        ("CALL", False, "echo", "completed"): 1,
        ("CALL", False, "fail", "failed"): 1,
        ("CALL", False, None, "rejected"): 100,
        ("STREAM", False, "count", "completed"): 1,
    }
    assert shown(ours) == {
        ("CALL", True, None, "completed"): 1,
        ("CALL", True, None, "failed"): 1,
        ("CALL", True, None, "rejected"): 100,
        ("STREAM", True, None, "completed"): 1,
    }


async def test_durations_are_those_of_the_service_that_the_acceptor_chose() -> None:
    metrics, mine = Metrics(), Service()

    @mine.call("mine")
    def answer(request: Payload) -> Payload:
        return request

    async with weirpool.serve(Service(), URL, taps=[metrics], acceptor=lambda setup: mine) as server:
        async with weirpool.connect(URL) as peer:
            await peer.call("mine")
        await until(lambda: server.connections == 0)
    assert shown(metrics) == {("CALL", False, "mine", "completed"): 1}


async def send(port: int, data: bytes) -> None:
    """Open a link, send its first bytes, and wait until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    with suppress(ConnectionError):
        await reader.read()
    writer.transport.abort()


def named(setup: Setup) -> Admitted:
    if setup.payload.data == b"mallory":
        raise Rejected(message="not you")
    return Admitted(principal=setup.payload.data.decode())


async def test_refusals_are_counted_by_cause() -> None:
    # THREATS 94, 95
    metrics, port = Metrics(), 0
    settings = Settings(max_connections_per_address=1, max_refusals_per_address=1, first_frame_timeout=0.2)
    service = make_service([], asyncio.Event())
    where = "rsocket+tcp://127.0.0.1:0"
    async with weirpool.serve(service, where, taps=[metrics], settings=settings, acceptor=named) as server:
        port = int(server.urls[0].rpartition(":")[2])
        await send(port, b"GET / HTTP/1.1\r\n\r\n")
        for _ in range(2):
            await send(port, RSOCKET_1_0.codec().frame(ResumeFrame(b"guessed it")))
        await send(port, b"\0")
        async with weirpool.connect(server.urls[0], setup="alice") as peer:
            await peer.call("echo")
            for setup in ("alice", "mallory"):
                with pytest.raises(SetupRejected):
                    async with weirpool.connect(server.urls[0], setup=setup, confirm=True):
                        pass
        await until(lambda: server.connections == 0)
    assert {cause.value: count for cause, count in metrics.snapshot().refusals.items() if count} == {
        "invalid": 1,
        "unknown_session": 1,
        "locked_out": 1,
        "timeout": 1,
        "client_limit": 1,
        "rejected": 1,
    }


async def test_links_over_a_limit_are_counted_by_cause() -> None:
    metrics = Metrics()
    service = make_service([], asyncio.Event())
    settings = Settings(max_connections_per_address=1)
    where = "rsocket+tcp://127.0.0.1:0"
    async with weirpool.serve(service, where, taps=[metrics], settings=settings) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("echo")
            with pytest.raises(SetupRejected):
                async with weirpool.connect(server.urls[0], confirm=True):
                    pass
    assert {cause.value: count for cause, count in metrics.snapshot().refusals.items() if count} == {"client_limit": 1}
