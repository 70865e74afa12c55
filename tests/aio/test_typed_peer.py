from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import msgspec
import pytest
from examples import interop

import weirpool
from tests.aio.test_typed import Quote, Symbol, Unknown, make_service
from weirpool import (
    ApplicationError,
    Balancer,
    Invalid,
    LocalError,
    Metadata,
    Mismatch,
    Payload,
    Peer,
    Reconnect,
    Settings,
    TypedError,
    typed,
)

URL = "rsocket+memory://typed-peer"
JSON = Settings(data_mime="application/json")
ACME = Symbol("ACME")


@asynccontextmanager
async def asking(seen: list[object] | None = None, mime: str = "application/json") -> AsyncIterator[Peer]:
    settings = Settings(data_mime=mime)
    async with weirpool.serve(make_service([] if seen is None else seen), URL):
        async with weirpool.connect(URL, settings=settings) as peer:
            yield peer


@pytest.mark.parametrize("codec", ["json", "msgpack"])
async def test_river_codec_selects_the_format(codec: str) -> None:
    url = f"river+memory://typed-peer?codec={codec}"
    async with weirpool.serve(interop.service, url), weirpool.connect(url) as peer:
        asked, three = typed(peer), interop.Number(3)
        assert peer.data_mime == f"application/vnd.river+{codec}"
        async with weirpool.balance([url]) as balancer:
            assert balancer.data_mime == peer.data_mime
        assert await asked.call("interop.echo", interop.Echo(b"\xff"), returns=interop.Echo) == interop.Echo(b"\xff")
        assert await asked.upload("interop.sum", three, [three, three], returns=interop.Number) == interop.Number(9)
        async with asked.stream("interop.count", three, returns=interop.Number) as items:
            assert [item.n async for item in items] == [0, 1, 2]
        async with asked.channel("interop.double", three, [three], returns=interop.Number) as doubles:
            assert [double.n async for double in doubles] == [6, 6]
        with pytest.raises(interop.Boom) as error:
            await asked.call("interop.fail", three, errors=[interop.Boom])
        assert (error.value.message, error.value.extras) == ("boom", three)
        with pytest.raises(Invalid) as refused:
            await asked.call("interop.slow", {"m": 1})
        assert refused.value.code == "INVALID_REQUEST" and b"firstValidationErrors" in refused.value.data


@pytest.mark.parametrize("mime", ["application/json", "application/msgpack"])
async def test_every_kind_takes_and_gives_values(mime: str) -> None:
    seen: list[object] = []
    quotes = [Quote("a", 1), Quote("b", 2)]

    async def each() -> AsyncIterator[Quote]:
        for quote in quotes:
            yield quote

    async with asking(seen, mime) as peer:
        asked = typed(peer)
        assert await asked.call("latest", ACME, returns=Quote) == Quote("ACME")
        await asked.fire("log", ACME)
        assert await asked.upload("load", ACME, quotes, returns=float) == 3
        assert await asked.upload("load", ACME, each(), returns=float) == 3
        async with asked.stream("opened", ACME, returns=Quote) as items:
            assert [item async for item in items] == [Quote("ACME")]
        async with asked.channel("double", ACME, each(), returns=float) as doubles:
            assert [double async for double in doubles] == [2, 4]
        assert ACME in seen
        assert repr(asked).startswith("<TypedPeer of <Peer")


async def test_untyped_values_are_those_of_json() -> None:
    async with asking() as peer:
        asked = typed(peer)
        assert await asked.call("latest", {"name": "x"}) == {"name": "x", "price": 1.5}
        assert await asked.call("latest", ACME, returns=dict[str, str | float]) == {"name": "ACME", "price": 1.5}
        assert await asked.call("latest", Payload(b'{"name":"x"}'), returns=Quote) == Quote("x")


async def test_stream_can_be_exited_early() -> None:
    seen: list[object] = []
    async with asking(seen) as peer:
        async with typed(peer).stream("live", ACME, returns=Quote, credit=2) as items:
            async for item in items:
                assert item == Quote("ACME", 0)
                break
            items.cancel()
            assert items.raw is not None
        async for item in typed(peer).stream("opened", ACME, returns=Quote):
            assert item == Quote("ACME")


class Other(TypedError, code="OTHER"):
    pass


async def test_errors_are_raised_as_their_class() -> None:
    async with asking() as peer:
        asked = typed(peer)
        with pytest.raises(Unknown) as error:
            await asked.call("latest", Symbol("?"), returns=Quote, errors=[Other, Unknown])
        assert (error.value.message, error.value.extras) == ("nobody knows it", Symbol("?"))
        for errors in ([], [Other]):
            with pytest.raises(ApplicationError) as other:
                await asked.call("latest", Symbol("?"), returns=Quote, errors=errors)
            assert type(other.value) is ApplicationError


async def test_errors_of_other_kinds_are_raised_as_their_class() -> None:
    service = weirpool.Service()

    @service.stream("s", init=int)
    async def stream(number: int) -> AsyncIterator[int]:
        yield number
        raise Unknown("late", Symbol("x"))

    @service.upload("u", init=int)
    async def upload(number: int, items: Any) -> int:
        raise Unknown("early", Symbol("x"))

    async with weirpool.serve(service, URL), weirpool.connect(URL, settings=JSON) as peer:
        asked = typed(peer)
        async with asked.stream("s", 1, returns=int, errors=[Unknown]) as stream:
            items = aiter(stream)
            assert await anext(items) == 1
            with pytest.raises(Unknown, match="late"):
                await anext(items)
        with pytest.raises(Unknown, match="early"):
            await asked.upload("u", 1, [], returns=int, errors=[Unknown])


async def test_an_answer_of_another_type_is_a_mismatch() -> None:
    async with asking() as peer:
        with pytest.raises(Mismatch, match="/price"):
            await typed(peer).call("latest", ACME, returns=msgspec.defstruct("Whole", [("price", int)]))
        with pytest.raises(Mismatch):
            async with typed(peer).stream("opened", ACME, returns=int) as items:
                [item async for item in items]


async def test_metadata_mime_overrides_the_format() -> None:
    async with asking(mime="application/octet-stream") as peer:
        asked = typed(peer, "application/json")
        metadata = Metadata(mime="application/msgpack")
        assert await asked.call("latest", ACME, returns=Quote, metadata=metadata) == Quote("ACME")
        with pytest.raises(LocalError, match="text/plain"):
            await asked.call("latest", ACME, metadata=Metadata(mime="text/plain"))


async def test_every_peer_has_a_data_mime() -> None:
    async def through(request: Any, after: Any) -> Any:
        return await after(request)

    async with weirpool.serve(make_service([]), URL):
        for options in ({}, {"interceptors": [through]}, {"reconnect": Reconnect()}):
            async with weirpool.connect(URL, settings=JSON, **options) as peer:
                assert await typed(peer).call("latest", ACME, returns=Quote) == Quote("ACME")
        balanced: Balancer
        async with weirpool.balance([URL], settings=JSON) as balanced:
            assert await typed(balanced).call("latest", ACME, returns=Quote) == Quote("ACME")


async def test_wrong_values_raise_before_anything_is_sent() -> None:
    async with asking(mime="application/octet-stream") as peer:
        with pytest.raises(LocalError, match="connect with Settings"):
            typed(peer)
        asked = typed(peer, "application/json")
        with pytest.raises(LocalError, match="cannot be written"):
            await asked.call("latest", object())
        with pytest.raises(LocalError, match="not str"):
            await asked.upload("load", ACME, "text")
        with pytest.raises(LocalError, match="not a type"):
            await asked.call("latest", ACME, returns=list[int] | set[int])
        assert peer.outstanding == 0


class Tick(msgspec.Struct):
    ts: int
    at: datetime | None = None


FOREIGN = {
    "application/msgpack": b"\x82\xa2ts\xcb\x42\x7a\x21\xea\xa4\x6c\x70\x00\xa2at\xd4\x00\x00",
    "application/cbor": b"\xb9\x00\x02\x62ts\xfb\x42\x7a\x21\xea\xa4\x6c\x70\x00\x62at\xf7",
    "application/vnd.river+msgpack": b"\x81\xa2ts\xcb\x42\x7a\x21\xea\xa4\x6c\x70\x00",
    "application/json": b'\xef\xbb\xbf{"ts":1795810805447,"at":null,"more":"\\ud800"}',
}
"""A tick as clients in other languages write it."""
foreign = weirpool.Service()


@foreign.call("ticks.same")
async def same(tick: Tick) -> Tick:
    return tick


@foreign.call("ticks.last")
async def last(request: Payload) -> Payload:
    return request


@foreign.channel("ticks.live")
async def live(first: Tick, ticks: AsyncIterator[Tick]) -> AsyncIterator[Tick]:
    yield first
    async for tick in ticks:
        yield tick


@pytest.mark.parametrize("mime", FOREIGN)
async def test_handlers_and_clients_read_what_other_languages_write(mime: str) -> None:
    river = "river" in mime
    url = "river+memory://foreign?codec=msgpack" if river else "rsocket+memory://foreign"
    settings = Settings() if river else Settings(data_mime=mime)
    item, tick = Payload(FOREIGN[mime]), Tick(1795810805447)
    async with weirpool.serve(foreign, url), weirpool.connect(url, settings=settings) as peer:
        assert await typed(peer).call("ticks.same", item, returns=Tick) == tick
        assert await typed(peer).call("ticks.last", item, returns=Tick) == tick
        async with typed(peer).channel("ticks.live", item, [item, item], returns=Tick) as ticks:
            assert [each async for each in ticks] == [tick] * 3
