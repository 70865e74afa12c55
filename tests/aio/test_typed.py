from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import weirpool
from tests.missing import need_module
from tests.waiting import until
from weirpool import (
    ApplicationError,
    Connection,
    Invalid,
    Kind,
    LocalError,
    Metadata,
    Next,
    Payload,
    PayloadRun,
    Request,
    Service,
    Settings,
    TypedError,
)  # fmt: skip
from weirpool.aio.intercept import bound
from weirpool.aio.service import Handler

URL = "rsocket+memory://typed"


class Symbol(msgspec.Struct):
    name: str


class Quote(msgspec.Struct):
    name: str
    price: float = 1.5


class Unknown(TypedError, code="UNKNOWN"):
    extras: Symbol


def make_service(seen: list[object]) -> Service:
    service = Service()

    @service.call("latest", errors=[Unknown])
    async def latest(symbol: Symbol) -> Quote:
        if symbol.name == "?":
            raise Unknown("nobody knows it", symbol)
        return Quote(symbol.name)

    @service.call("plain")
    def plain(symbol: Symbol) -> Quote:
        return Quote(symbol.name)

    @service.call("promised")
    def promised(symbol: Symbol) -> Awaitable[Quote]:
        return latest(symbol)

    @service.call("raw")
    def raw(request: Payload) -> bytes:
        return request.data

    @service.call("encoded")
    def encoded(symbol: Symbol) -> Payload:
        return Payload(b"as it is", b"m")

    @service.call("bug")
    def bug(symbol: Symbol) -> Any:
        return object()

    @service.fire("log")
    async def log(symbol: Symbol) -> None:
        seen.append(symbol)

    @service.stream("live")
    async def live(symbol: Symbol) -> AsyncIterator[Quote]:
        try:
            for number in range(100):
                yield Quote(symbol.name, number)
        finally:
            seen.append("left")

    @service.stream("listed")
    def listed(symbol: Symbol) -> Iterator[Quote]:
        try:
            for number in range(100):
                yield Quote(symbol.name, number)
        finally:
            seen.append("left")

    @service.stream("opened")
    async def opened(symbol: Symbol) -> list[Quote]:
        return [Quote(symbol.name)]

    @service.stream("awaited")
    def awaited(symbol: Symbol) -> Awaitable[list[Quote]]:
        return opened(symbol)

    @service.stream("wrong")
    def wrong(symbol: Symbol) -> Any:
        return 3

    @service.stream("run")
    def run(symbol: Symbol) -> Iterator[Any]:
        yield PayloadRun.of([Payload(b"1"), Payload(b"2")])
        yield 3

    @service.upload("load")
    async def load(init: Symbol, items: AsyncIterator[Quote]) -> float:
        return sum([item.price async for item in items])

    @service.channel("double")
    async def double(init: Symbol, items: AsyncIterator[Quote]) -> AsyncIterator[float]:
        async for item in items:
            yield 2 * item.price

    return service


@asynccontextmanager
async def asking(service: Service, mime: str = "application/json") -> AsyncIterator[weirpool.Peer]:
    async with weirpool.serve(service, URL), weirpool.connect(URL, settings=Settings(data_mime=mime)) as peer:
        yield peer


ACME = b'{"name":"ACME"}'
QUOTE = b'{"name":"ACME","price":1.5}'


@pytest.mark.parametrize("route", ["latest", "plain", "promised"])
async def test_calls_are_answered_by_values(route: str) -> None:
    async with asking(make_service([])) as peer:
        assert (await peer.call(route, ACME)).data == QUOTE


async def test_connection_mime_selects_msgpack() -> None:
    for mime in ("application/msgpack", "application/x-msgpack", "application/vnd.msgpack"):
        async with asking(make_service([]), mime) as peer:
            answer = await peer.call("latest", msgspec.msgpack.encode(Symbol("ACME")))
            assert msgspec.msgpack.decode(answer.data, type=Quote) == Quote("ACME")


async def test_the_mime_type_of_a_request_wins() -> None:
    async with asking(make_service([]), "application/octet-stream") as peer:
        for entries in ((), [("x/long", b"x" * 300)]):
            metadata = Metadata(mime="application/vnd.quotes+json", entries=entries)
            assert (await peer.call("latest", ACME, metadata=metadata)).data == QUOTE
    async with asking(make_service([])) as peer:
        packed = await peer.call("latest", b"\x81\xa4name\xa1A", metadata=Metadata(mime="application/msgpack"))
        assert msgspec.msgpack.decode(packed.data, type=Quote) == Quote("A")


async def test_an_unknown_type_fails_the_request_and_names_those_that_work() -> None:
    async with asking(make_service([]), "application/octet-stream") as peer:
        with pytest.raises(Invalid, match=r"'application/octet-stream'.*application/json.*application/msgpack"):
            await peer.call("latest", ACME)
        assert (await peer.call("raw", b"x")).data == b"x"
        with pytest.raises(Invalid, match="0x70"):
            await peer.call("latest", ACME, metadata=Metadata(mime=0x70))


async def test_data_that_does_not_fit_is_invalid() -> None:
    async with asking(make_service([])) as peer:
        with pytest.raises(Invalid) as error:
            await peer.call("latest", b'{"name": 1}')
        assert error.value.code == 0x204
        assert json.loads(error.value.data) == {"errors": [{"path": "/name", "message": "Expected `str`, got `int`"}]}
        with pytest.raises(Invalid, match="nested more than"):
            await peer.call("latest", b"[" * 100_000)
        with pytest.raises(Invalid):
            async with peer.stream("live", b"{}") as items:
                [item async for item in items]
        with pytest.raises(Invalid, match="/price"):
            await peer.upload("load", ACME, [QUOTE, b'{"name":"x","price":"y"}'])


def test_river_reports_invalid_requests_with_its_code() -> None:
    service = bound(make_service([]), Connection("river", "", False, data_mime="application/json"))
    handler = service.find(Kind.CALL, "plain")
    assert handler is not None
    with pytest.raises(Invalid) as error:
        handler.function(Payload(b"{}"))
    assert error.value.code == "INVALID_REQUEST"
    problem = {"path": "/name", "message": "Object missing required field `name`"}
    assert json.loads(error.value.data) == {"firstValidationErrors": [problem], "totalErrors": 1}


async def test_typed_errors_travel_with_their_name() -> None:
    async with asking(make_service([])) as peer:
        with pytest.raises(ApplicationError) as error:
            await peer.call("latest", b'{"name":"?"}')
        assert error.value.code == 0x201
        body = {"code": "UNKNOWN", "message": "nobody knows it", "extras": {"name": "?"}}
        assert json.loads(error.value.data) == body


async def test_payloads_are_sent_unchanged() -> None:
    async with asking(make_service([])) as peer:
        assert await peer.call("encoded", ACME) == Payload(b"as it is", b"m")
        async with peer.stream("run", ACME) as items:
            assert [item.data async for item in items] == [b"1", b"2", b"3"]


async def test_unencodable_value_raises_local_error(caplog: pytest.LogCaptureFixture) -> None:
    async with asking(make_service([])) as peer:
        with pytest.raises(ApplicationError, match="the handler failed"):
            await peer.call("bug", ACME)
        with pytest.raises(ApplicationError, match="the handler failed"):
            async with peer.stream("wrong", ACME) as items:
                [item async for item in items]
    assert "cannot be written as json" in caplog.text


@pytest.mark.parametrize("route", ["live", "listed"])
async def test_streams_are_closed_on_exit(route: str) -> None:
    seen: list[object] = []
    async with asking(make_service(seen)) as peer:
        async with peer.stream(route, ACME) as items:
            assert len([item async for item in items]) == 100
        async with peer.stream(route, ACME, credit=1) as items:
            async for item in items:
                assert item.data == b'{"name":"ACME","price":0}'
                break
        await until(lambda: seen == ["left", "left"])


@pytest.mark.parametrize("route", ["opened", "awaited"])
async def test_streams_may_be_opened_later(route: str) -> None:
    async with asking(make_service([])) as peer, peer.stream(route, ACME) as items:
        assert [item.data async for item in items] == [QUOTE]


async def test_items_are_values_too() -> None:
    async with asking(make_service([])) as peer:
        assert (await peer.upload("load", ACME, [QUOTE, QUOTE])).data == b"3.0"
        async with peer.channel("double", ACME, [QUOTE, QUOTE]) as items:
            assert [item.data async for item in items] == [b"3.0", b"3.0"]


async def test_fired_request_is_decoded() -> None:
    seen: list[object] = []
    async with asking(make_service(seen)) as peer:
        await peer.fire("log", b"no json")
        await peer.fire("log", ACME)
        await until(lambda: seen == [Symbol("ACME")])


async def test_interceptors_see_payloads() -> None:
    seen: list[bytes] = []

    async def look(request: Request, after: Next) -> Any:
        seen.append(request.payload.data)
        return await after(request)

    service = make_service([])
    service.intercept(look)
    async with asking(service) as peer:
        assert (await peer.call("latest", ACME)).data == QUOTE
        async with peer.stream("listed", ACME) as items:
            assert len([item async for item in items]) == 100
    assert seen == [ACME, ACME]


async def test_a_canceled_call_leaves_nothing_behind() -> None:
    service, reached = Service(), asyncio.Event()

    @service.call("never")
    async def never(symbol: Symbol) -> Quote:
        reached.set()
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    async with asking(service) as peer:
        task = asyncio.ensure_future(peer.call("never", ACME))
        await reached.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: peer.outstanding == 0)


async def test_server_sends_typed_requests_to_its_client() -> None:
    service = bound(make_service([]), Connection("rsocket", "", True, data_mime="application/json"))
    handler = service.find(Kind.CALL, "plain")
    assert handler is not None
    assert handler.function(Payload(ACME, Metadata("plain").encode())).data == QUOTE
    with pytest.raises(Invalid, match="not valid composite metadata"):
        handler.function(Payload(ACME, b"\x01"))


def test_untyped_handlers_are_not_converted() -> None:
    service = Service()
    service.call("raw")(lambda request: b"")
    connection = Connection("rsocket", "", False)
    assert not service.typed
    assert bound(service, connection) is service
    typed = make_service([])
    assert typed.typed
    view = bound(typed, connection)
    raw = typed.find(Kind.CALL, "raw")
    assert type(raw) is Handler
    assert view.find(Kind.CALL, "raw") is raw
    assert view.find(Kind.CALL, "plain") is view.find(Kind.CALL, "plain")
    assert view.find(Kind.CHANNEL, "load") is not None
    assert view.find(Kind.CALL, "nobody") is None
    assert view.routes() == typed.routes()


def test_pushed_metadata_passes() -> None:
    service, seen = make_service([]), list[bytes]()
    service.push(seen.append)
    bound(service, Connection("rsocket", "", False)).pushed(b"m")
    assert seen == [b"m"]


def test_types_that_cannot_be_decoded_are_refused_when_they_are_registered() -> None:
    service = Service()
    with pytest.raises(LocalError, match="the call handler 'x'"):
        service.call("x", init=list[int] | set[int])(lambda request: b"")
    service.serving = True
    with pytest.raises(LocalError, match="already in use"):
        service.call("y", init=int)(lambda request: b"")


def test_a_handler_without_a_connection_is_not_called() -> None:
    handler = make_service([]).find(Kind.CALL, "plain")
    assert handler is not None
    with pytest.raises(LocalError, match="before it was bound"):
        handler.function(Payload())


async def test_a_schema_validates_what_a_payload_handler_gets() -> None:
    need_module("jsonschema_rs")
    service = Service()
    schema = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}

    @service.call("checked", init=schema)
    def checked(request: Payload) -> Payload:
        return request

    @service.call("read", init=schema)
    def read(value: dict[str, Any]) -> Any:
        return value["n"]

    async with asking(service) as peer:
        assert (await peer.call("checked", b'{"n": 1}')).data == b'{"n": 1}'
        assert (await peer.call("read", b'{"n": 1}')).data == b"1"
        with pytest.raises(Invalid, match=r"/n.*is a required property"):
            await peer.call("checked", b"{}")
