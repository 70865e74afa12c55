from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

import weirpool
from tests.bridging.worlds import KINDS, PAIRS, World, bridged
from tests.waiting import turns, until
from weirpool import (
    ApplicationError,
    LocalError,
    Metadata,
    Payload,
    Rejected,
    Service,
    SessionError,
    Settings,
    TypedError,
    typed,
)
from weirpool.bridging.bridge import bridge
from weirpool.bridging.counters import Counters
from weirpool.kinds import Kind

pairs = pytest.mark.parametrize(("source", "target"), PAIRS)


async def used(world: World, kind: Kind) -> object:
    """Use one kind of request, and return what came back."""
    peer = world.peer
    match kind:
        case Kind.CALL:
            return (await peer.call("t.echo", b"42")).data
        case Kind.FIRE:
            await peer.fire("t.fire", b"1")
            await world.upstream.fired.wait()
            return None
        case Kind.STREAM:
            return [item.data async for item in peer.stream("t.count", b"3")]
        case Kind.UPLOAD:
            return (await peer.upload("t.sum", b"1", [b"2", b"3"])).data
    return [item.data async for item in peer.channel("t.double", b"1", [b"2", b"3"])]


EXPECTED = {
    Kind.CALL: b"42",
    Kind.FIRE: None,
    Kind.STREAM: [b"0", b"1", b"2"],
    Kind.UPLOAD: b"6",
    Kind.CHANNEL: [b"4", b"6"],
}


@pairs
async def test_every_kind_that_both_have_is_forwarded(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        for kind in KINDS[source] & KINDS[target]:
            assert await used(world, kind) == EXPECTED[kind]
        assert world.counters.errors == {}


@pairs
async def test_kind_that_the_upstream_lacks_is_a_clear_error(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        for kind in (KINDS[source] - KINDS[target]) - {Kind.FIRE}:
            with pytest.raises(ApplicationError, match=f"{target} does not support"):
                await used(world, kind)
        assert (await world.peer.call("t.echo", b"1")).data == b"1"


@pairs
async def test_error_of_the_upstream_keeps_its_text(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        with pytest.raises(ApplicationError, match="boom"):
            await world.peer.call("t.fail", b"1")
        items = []
        with pytest.raises(ApplicationError, match="boom"):
            items.extend([item async for item in world.peer.stream("t.fail-stream", b"1")])
        assert items == []
        with pytest.raises(ApplicationError, match=r"no (call|stream) handler is named 't\.nothing'"):
            await world.peer.call("t.nothing", b"1")


class Missing(TypedError, code="MISSING"):
    extras: dict[str, int]


def find(number: int) -> int:
    raise Missing("there is no such number", {"number": number})


def as_json(protocol: str) -> Settings:
    return Settings() if protocol == "river" else Settings(data_mime="application/json")


@pairs
async def test_typed_error_of_the_upstream_keeps_its_class_and_extras(source: str, target: str) -> None:
    service = Service()
    service.call("t.find")(find)
    async with (
        weirpool.serve(service, f"{target}+memory://typed", settings=as_json(target)) as server,
        bridge(server.urls[0], f"{source}+memory://between", settings=as_json(source)) as between,
        weirpool.connect(between.urls[0], settings=as_json(source)) as peer,
    ):
        with pytest.raises(Missing, match="there is no such number") as caught:
            await typed(peer).call("t.find", 7, returns=int, errors=[Missing])
        assert caught.value.extras == {"number": 7}


@pytest.mark.parametrize("target", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"])
@pytest.mark.parametrize("source", ["rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams"])
async def test_credit_of_the_client_is_the_credit_at_the_upstream(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        async with world.peer.stream("t.flood", b"10", credit=3, manual=True) as stream:
            items = aiter(stream)
            for granted, total in ((0, 3), (5, 8), (2, 10)):
                if granted:
                    stream.grant(granted)
                for _ in range(granted or 3):
                    await anext(items)
                await turns(50)
                # A handler is asked for one item ahead of the credit.
                assert world.upstream.pulled == total + 1


@pairs
async def test_slow_consumer_bounds_what_is_on_the_way(source: str, target: str) -> None:
    settings = weirpool.Settings(resume_bytes=200_000, max_held_bytes=100_000)
    # Without credit, a client and a bridge hold what was not requested, up to a limit.
    there, client = (settings if each == "river" else None for each in (target, source))
    async with bridged(source, target, client, to_settings=there) as world:
        async with world.peer.stream("t.flood", b"1000", credit=1, manual=True) as stream:
            await anext(aiter(stream))
            seen = -1
            # Without a bound, the endless publisher would never come to rest.
            while seen != world.upstream.pulled:
                seen = world.upstream.pulled
                await turns(300)
            assert seen < 20_000
            assert stream.error is None


@pairs
async def test_cancellation_reaches_the_upstream(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        async with world.peer.stream("t.flood", b"1") as stream:
            await anext(aiter(stream))
        await until(lambda: world.upstream.canceled == 1)
        call = asyncio.ensure_future(world.peer.call("t.forever", b"1"))
        await until(lambda: world.peer.outstanding > 0)
        await turns(50)
        call.cancel()
        await until(lambda: world.upstream.canceled == 2)
    assert call.cancelled()


@pairs
async def test_requests_of_a_lost_client_end_at_the_upstream(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        async with world.peer.stream("t.flood", b"1", credit=1, manual=True) as stream:
            await anext(aiter(stream))
            await world.peer.close(0)
        await until(lambda: world.upstream.canceled == 1)
        assert world.upstream.canceled == 1


@pairs
async def test_upstream_that_is_down_is_an_error_and_found_again(source: str, target: str) -> None:
    to = f"{target}+memory://later"
    async with bridge(to, f"{source}+memory://bridge") as between, weirpool.connect(between.urls[0]) as peer:
        with pytest.raises(ApplicationError, match="cannot be reached"):
            await peer.call("t.echo", b"1")
        service = Service()
        service.call("t.echo")(lambda request: request.data)
        async with weirpool.serve(service, to):
            while True:
                try:
                    assert (await peer.call("t.echo", b"2")).data == b"2"
                    break
                except ApplicationError as error:
                    assert "cannot be reached" in error.message
                    await turns(10)


@pairs
async def test_lost_upstream_ends_open_requests_only(source: str, target: str) -> None:
    async with bridged(source, target) as world:
        async with world.peer.stream("t.flood", b"1", credit=1, manual=True) as stream:
            items = aiter(stream)
            await anext(items)
            stream.grant(1)
            await anext(items)
            await world.server.close(0)
            # Items that have arrived come before the error.
            stream.grant(100_000)
            with pytest.raises(ApplicationError):
                while True:
                    await anext(items)
        with pytest.raises(ApplicationError, match=r"cannot be reached|closing|lost"):
            await world.peer.call("t.echo", b"1")
        assert not world.peer.closed


async def test_composite_metadata_passes_unchanged() -> None:
    sent = Metadata("t.echo", auth=weirpool.Bearer("t0ken"), entries=[("x/shop", b"main")]).encode()
    async with bridged("rsocket", "rsocket") as world:
        await world.peer.call("", Payload(b"1", sent))
        assert world.upstream.seen[0].metadata == sent
        assert world.counters.metadata_dropped == 0


async def test_trace_is_translated() -> None:
    trace = weirpool.TraceContext(0x1234, 0x56, sampled=True, wide=True)
    async with bridged("rsocket", "river") as world:
        await world.peer.call("t.echo", b"1", metadata=Metadata(trace=trace))
        assert b"00000000000000000000000000001234-0000000000000056-01" in (world.upstream.seen[0].metadata or b"")
        assert world.counters.metadata_dropped == 0
    async with bridged("river", "rsocket") as world:
        parent = b'{"traceparent":"00-00000000000000000000000000001234-0000000000000056-01"}'
        await world.peer.call("t.echo", b"1", metadata=parent)
        entries = dict(Metadata.decode(world.upstream.seen[0].metadata).entries)
        assert b"1234-0000000000000056-01" in entries["message/x.w3c.traceparent"]


async def test_metadata_without_a_place_is_counted() -> None:
    async with bridged("rsocket", "reactive-streams") as world:
        await world.peer.call("t.echo", b"1", metadata=b"more")
        assert world.upstream.seen[0].metadata is None
        assert world.counters.metadata_dropped == 1


async def test_setup_of_the_client_is_the_setup_of_its_upstream_connection() -> None:
    service, seen = Service(), []

    def accept(setup: weirpool.Setup) -> None:
        seen.append((setup.payload.data, setup.data_mime))
        if setup.payload.data == b"mallory":
            raise weirpool.SetupRejected("go away")

    @service.call("x")
    def x(request: Payload) -> bytes:
        return b"y"

    async with weirpool.serve(service, "rsocket+memory://up", acceptor=accept):
        async with bridge("rsocket+memory://up", "rsocket+memory://bridge"):
            settings = weirpool.Settings(data_mime="application/json")
            async with weirpool.connect("rsocket+memory://bridge", setup=b"ann", settings=settings) as peer:
                assert (await peer.call("x")).data == b"y"
            async with weirpool.connect("rsocket+memory://bridge", setup=b"mallory") as peer:
                with pytest.raises((ApplicationError, SessionError), match="go away"):
                    await peer.call("x")
    assert seen[0] == (b"ann", "application/json")


async def test_upstream_may_call_its_client() -> None:
    mine, theirs = Service(), Service()
    mine.call("who")(lambda request: b"ann")

    @theirs.call("ask")
    async def ask(request: Payload) -> bytes:
        return (await weirpool.current_connection().peer.call("who")).data  # type: ignore[no-any-return]

    async with weirpool.serve(theirs, "rsocket+memory://up"):
        async with bridge("rsocket+memory://up", "reactivesocket-0.2+memory://bridge"):
            async with weirpool.connect("reactivesocket-0.2+memory://bridge", service=mine) as peer:
                assert (await peer.call("ask")).data == b"ann"


async def test_push_reaches_the_upstream() -> None:
    async with bridged("rsocket", "reactivesocket-0.2") as world:
        await world.peer.push(b"late")
        await until(lambda: world.upstream.pushed == [b"late"])
    async with bridged("rsocket", "river") as world:
        await world.peer.push(b"late")
        await until(lambda: world.counters.metadata_dropped == 1)
    assert world.upstream.pushed == []


async def test_codecs_of_river_are_converted() -> None:
    service = Service()
    service.call("t.echo")(lambda request: request.data)
    async with weirpool.serve(service, "rsocket+memory://up"):
        async with bridge("rsocket+memory://up", "river+memory://bridge?codec=msgpack") as between:
            async with weirpool.connect(between.urls[0]) as peer:
                assert await weirpool.typed(peer).call("t.echo", {"a": [1, None]}) == {"a": [1, None]}


async def test_declared_kind_is_used() -> None:
    service, seen = Service(), []

    @service.call("t.both")
    def one(request: Payload) -> bytes:
        seen.append(Kind.CALL)
        return b"1"

    @service.stream("t.both")
    def many(request: Payload) -> Iterator[bytes]:
        seen.append(Kind.STREAM)
        return iter([b"1"])

    async with weirpool.serve(service, "rsocket+memory://up"):
        for kinds, expected in (({}, Kind.STREAM), ({"t.both": Kind.CALL}, Kind.CALL)):
            async with bridge("rsocket+memory://up", "river+memory://bridge", kinds=kinds):
                async with weirpool.connect("river+memory://bridge") as peer:
                    assert (await peer.call("t.both", b"0")).data == b"1"
            assert seen.pop() is expected


async def test_each_client_has_its_own_upstream_connection() -> None:
    counters = Counters()
    service = Service()
    service.call("x")(lambda request: b"")
    async with weirpool.serve(service, "rsocket+memory://up") as server:
        async with bridge("rsocket+memory://up", "rsocket+memory://bridge", counters=counters):
            peers = [await weirpool.connect("rsocket+memory://bridge") for _ in range(5)]
            for peer in peers:
                await peer.call("x")
            assert (server.connections, counters.clients, counters.upstream_connects) == (5, 5, 5)
            for peer in peers:
                await peer.close()
            await until(lambda: counters.clients == 0 and server.connections == 0)


async def test_requests_in_flight_finish_when_the_bridge_closes() -> None:
    service, go = Service(), asyncio.Event()

    @service.call("wait")
    async def wait(request: Payload) -> bytes:
        go.set()
        await turns(100)
        return b"done"

    async with weirpool.serve(service, "rsocket+memory://up"):
        async with bridge("rsocket+memory://up", "rsocket+memory://bridge"):
            peer = await weirpool.connect("rsocket+memory://bridge")
            call = asyncio.ensure_future(peer.call("wait"))
            await go.wait()
        assert (await call).data == b"done"
        await peer.close()


@pytest.mark.parametrize("urls", [(), ("nonsense",)])
def test_wrong_urls_are_local_errors(urls: tuple[str, ...]) -> None:
    with pytest.raises(LocalError):
        bridge("rsocket+memory://up", *urls)


def test_invalid_data_for_the_upstream_is_the_fault_of_the_client() -> None:
    async def run() -> None:
        async with bridged("rsocket", "river") as world:
            with pytest.raises(weirpool.Invalid, match="river"):
                await world.peer.call("t.echo", b"not json")
            with pytest.raises(Rejected):
                await world.peer.call("t.nothing", b"1")

    asyncio.run(run())
