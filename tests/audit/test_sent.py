from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import weirpool
from weirpool import ApplicationError, LocalError, MetadataPush, Payload, PayloadRun, Service
from weirpool.audit import sent as sent_module
from weirpool.audit.digest import digest_of
from weirpool.audit.sent import ROUTE, Query, Sent, State, audited
from weirpool.schema.formats import format_of

COUNT = 5_000
EXPECTED = [b"%d" % number for number in range(COUNT)]


def texts() -> Iterator[str]:
    yield from map(str, range(COUNT))


async def payloads() -> AsyncIterator[Payload]:
    for data in EXPECTED:
        yield Payload(data)


def runs() -> Iterator[PayloadRun | MetadataPush]:
    for start in range(0, COUNT, 1_000):
        yield PayloadRun.of([Payload(data) for data in EXPECTED[start : start + 1_000]])


def batches() -> Iterator[pa.RecordBatch]:
    yield pa.record_batch([pa.array(EXPECTED[:10], pa.binary())], ["data"])
    yield pa.record_batch([pa.array(EXPECTED[10:], pa.binary())], ["data"])


async def ask(peer: weirpool.Peer, **query: str) -> list[Sent]:
    mime = "" if format_of(peer.data_mime) else "application/json"
    return await weirpool.typed(peer, mime).call(ROUTE, Query(**query), returns=list[Sent])


async def by_name(setup: weirpool.Setup) -> weirpool.Admitted:
    return weirpool.Admitted(principal=setup.payload.data.decode())


def digests(values: list[bytes]) -> tuple[list[str], str]:
    """Return the digests of complete blocks, and of the rest."""
    parts = [values[start : start + 4_096] for start in range(0, len(values) + 1, 4_096)]
    found = [digest_of(pa.array(part, pa.binary()), pa.nulls(len(part), pa.binary())).hex() for part in parts]
    return found[:-1], found[-1]


@pytest.mark.parametrize("handler", [texts, payloads, runs, batches, lambda: list(EXPECTED)])
async def test_whatever_is_sent_has_the_same_digests(handler: Callable[[], Any]) -> None:
    service = Service()
    service.stream("numbers")(lambda request: handler())
    async with (
        weirpool.serve(audited(service), "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        assert [item.data async for item in peer.stream("numbers")] == EXPECTED
        (found,) = await ask(peer, route="numbers")
    assert (found.items, found.taken, found.state, found.first) == (COUNT, COUNT, State.COMPLETE, 0)
    assert (found.blocks, found.rest) == digests(EXPECTED)


@pytest.mark.parametrize(
    "url", ["river+ws://127.0.0.1:0", "reactive-streams+tcp://127.0.0.1:0", "reactivesocket-0.2+tcp://127.0.0.1:0"]
)
async def test_other_protocols_are_audited(url: str) -> None:
    service = Service()

    @service.stream("test.numbers")
    def numbers(request: Payload) -> list[bytes]:
        return [b"1"] * 10

    async with weirpool.serve(audited(service), url) as server, weirpool.connect(server.urls[0]) as peer:
        sent = [item.data async for item in peer.stream("test.numbers", b"1")]
        (found,) = await ask(peer, route="test.numbers")
    assert (found.items, found.rest) == (10, digests(sent)[1])


@pytest.mark.parametrize("item", [b'{"x": 1}', b" [1,\n2]", b'{"x":1.0}', b'"\\u00e4 b"', b""])
async def test_items_are_digested_as_river_sends_them(item: bytes) -> None:
    service = Service()
    service.stream("test.items")(lambda request: [Payload(item), Payload(item)])
    async with (
        weirpool.serve(audited(service), "river+ws://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        sent = [each.data async for each in peer.stream("test.items")]
        (found,) = await ask(peer, route="test.items")
    assert (found.items, found.rest) == (2, digests(sent)[1])


async def test_only_what_the_peer_asked_for_counts() -> None:
    service = Service()
    service.stream("numbers")(lambda request: texts())
    async with (
        weirpool.serve(audited(service), "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        async with peer.stream("numbers", credit=10, manual=True) as stream:
            items = aiter(stream)
            for _ in range(10):
                await anext(items)
            (found,) = await ask(peer, route="numbers")
            assert found.state is State.OPEN
            assert 9 <= found.items <= 10
            assert found.rest == digests(EXPECTED[: found.items])[1]
        # The cancellation was sent before this request.
        assert (await ask(peer, route="numbers"))[0].state is State.ENDED


async def test_streams_are_told_apart_by_their_request() -> None:
    service = Service()
    service.stream("numbers")(lambda request: [request.data])
    salted = hashlib.sha256(b"salt\0two").hexdigest()
    async with (
        weirpool.serve(audited(service), "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        for data in (b"one", b"two"):
            assert [item.data async for item in peer.stream("numbers", data)] == [data]
        first, second = await ask(peer, route="numbers")
        assert [first.rest, second.rest] == [digests([b"two"])[1], digests([b"one"])[1]]
        assert await ask(peer, route="numbers", salt="salt", request=salted) == [first]
        assert await ask(peer, route="none") == []


async def test_old_streams_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent_module, "MAX_STREAMS", 2)
    service = Service()
    for name in "ab":
        service.stream(name)(lambda request: [b"item"])
    async with (
        weirpool.serve(audited(service), "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        for route in ("a", "b", "b"):
            assert [item.data async for item in peer.stream(route)] == [b"item"]
        assert await ask(peer, route="a") == []
        assert len(await ask(peer, route="b")) == 2


async def test_a_client_makes_the_service_forget_no_streams_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 94
    monkeypatch.setattr(sent_module, "MAX_STREAMS", 4)
    service = Service()
    service.stream("mine")(lambda request: [b"item"])
    service.stream("theirs")(lambda request: [b"item"])
    async with weirpool.serve(audited(service), "rsocket+tcp://127.0.0.1:0", acceptor=by_name) as server:
        async with weirpool.connect(server.urls[0], setup=b"honest") as honest:
            assert [item.data async for item in honest.stream("mine")] == [b"item"]
            async with weirpool.connect(server.urls[0], setup=b"greedy") as greedy:
                for _ in range(10):
                    assert [item.data async for item in greedy.stream("theirs")] == [b"item"]
            assert len(await ask(honest, route="mine")) == 1
            assert len(await ask(honest, route="theirs")) == 3


def test_a_service_is_audited_once() -> None:
    service = Service()
    assert audited(service) is service
    with pytest.raises(LocalError, match="already registered"):
        audited(service)


async def test_typed_streams_are_audited_as_they_travel() -> None:
    service = Service()

    @service.stream("test.numbers")
    def numbers(request: int) -> Iterator[int]:
        yield from range(request)

    async with (
        weirpool.serve(audited(service), "river+ws://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        sent = [item.data async for item in peer.stream("test.numbers", msgspec.json.encode(5))]
        (found,) = await ask(peer, route="test.numbers")
    assert (found.items, found.rest) == (5, digests(sent)[1])


async def test_other_requests_are_refused() -> None:
    async with (
        weirpool.serve(audited(Service()), "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0]) as peer,
    ):
        for data in (b"", b"{}", b"[" * 10_000, b'{"route": "a", "more": 1}'):
            with pytest.raises(ApplicationError, match="not a query"):
                await peer.call(ROUTE, data)
