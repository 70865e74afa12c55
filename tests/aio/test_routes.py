from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterator
from datetime import datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

import weirpool
from weirpool import Invalid, Kind, LocalError, Next, Payload, Rejected, Request, Service, Settings
from weirpool.aio.handlers import Handler
from weirpool.aio.intercept import bound
from weirpool.aio.routes import Patterns

URL = "rsocket+memory://routes"
JSON = Settings(data_mime="application/json")
ID = UUID("123e4567-e89b-12d3-a456-426614174000")


class Side(Enum):
    BUY = "buy"


def make_service() -> Service:
    service = Service()

    @service.call("quotes.{symbol}")
    def latest(request: Payload, symbol: str) -> bytes:
        return f"latest {symbol}".encode()

    @service.call("quotes.all")
    def everything(request: Payload) -> bytes:
        return b"all"

    @service.call("orders.{id}.{side}.{count}")
    async def order(request: dict[str, int], id: UUID, side: Side, count: int) -> list[Any]:
        return [request, str(id), side.value, count + 1]

    @service.stream("quotes.{symbol}.live")
    def live(request: Payload, symbol: str) -> Iterator[bytes]:
        for number in range(3):
            yield f"{symbol} {number}".encode()

    @service.channel("sums.{start}")
    async def sums(first: int, numbers: AsyncIterable[int], start: int) -> AsyncIterator[int]:
        yield start + first
        async for number in numbers:
            yield start + number

    return service


async def test_calls_receive_the_variables_of_their_route() -> None:
    async with weirpool.serve(make_service(), URL), weirpool.connect(URL, settings=JSON) as peer:
        assert (await peer.call("quotes.ACME")).data == b"latest ACME"
        assert (await peer.call("quotes.{other}")).data == b"latest {other}"
        assert (await peer.call("quotes.all")).data == b"all"
        # As Spring's clients write BRK.B.
        assert (await peer.call("quotes.BRK%2EB")).data == b"latest BRK.B"
        typed = weirpool.typed(peer)
        assert await typed.call(f"orders.{ID}.buy.7", {"a": 1}) == [{"a": 1}, str(ID), "buy", 8]


async def test_streams_and_channels_receive_variables() -> None:
    async with weirpool.serve(make_service(), URL), weirpool.connect(URL, settings=JSON) as peer:
        async with peer.stream("quotes.ACME.live") as stream:
            assert [item.data async for item in stream] == [b"ACME 0", b"ACME 1", b"ACME 2"]
        async with weirpool.typed(peer).channel("sums.100", 1, [2, 3]) as sums:
            assert [number async for number in sums] == [101, 102, 103]


@pytest.mark.parametrize("route", ["orders.1.buy.7", f"orders.{ID}.hold.7", f"orders.{ID}.buy.x"])
async def test_values_of_another_type_are_invalid(route: str) -> None:
    async with weirpool.serve(make_service(), URL), weirpool.connect(URL, settings=JSON) as peer:
        with pytest.raises(Invalid, match="in the route is not valid"):
            await weirpool.typed(peer).call(route, {})


async def test_times_in_a_route_lose_digits_beyond_the_microsecond() -> None:
    service = weirpool.Service()

    @service.call("events.{since}.{name}")
    async def events(_: Payload, since: datetime, name: str) -> bytes:
        return f"{since.isoformat()} {name}".encode()

    # Dots separate the parts of a route.
    time = "2024-12-31T23:59:59%2E9999999Z"
    async with weirpool.serve(service, URL), weirpool.connect(URL) as peer:
        answer = await peer.call(f"events.{time}.{time}")
        assert answer.data == b"2024-12-31T23:59:59.999999+00:00 2024-12-31T23:59:59.9999999Z"


async def test_variable_that_was_not_filled_in_is_invalid() -> None:
    async with weirpool.serve(make_service(), URL), weirpool.connect(URL) as peer:
        with pytest.raises(Invalid, match=r"the variable \{symbol\} in the route has no value"):
            await peer.call("quotes.{symbol}")


@pytest.mark.parametrize("route", ["quotes", "quotes.", "quotes..x", "quotes.A.B", "quotes.A.live.more", "." * 10_000])
async def test_other_routes_have_no_handler(route: str) -> None:
    assert make_service().find(Kind.CALL, route) is None


async def test_interceptors_see_the_route_of_the_request() -> None:
    seen = []
    service = make_service()

    @service.intercept
    async def note(request: Request, next: Next) -> Any:
        seen.append((request.route, request.pattern, request.handled))
        return await next(request)

    async with weirpool.serve(service, URL), weirpool.connect(URL) as peer:
        assert (await peer.call("quotes.ACME")).data == b"latest ACME"
        with pytest.raises(Rejected):
            await peer.call("nothing.here.at.all")
    assert seen == [("quotes.ACME", "quotes.{symbol}", True), ("nothing.here.at.all", "nothing.here.at.all", False)]
    # THREATS 103: strangers choose the values.
    assert not service.handles(Kind.CALL, "quotes.ACME") and service.handles(Kind.CALL, "quotes.all")


def test_handlers_of_values_are_not_kept() -> None:
    # THREATS 103: strangers choose them.
    service = make_service()
    connection = weirpool.Connection("rsocket", "memory", data_mime="application/json", is_client=False)
    once = bound(service, connection)
    for number in range(100):
        handler = once.find(Kind.CALL, f"quotes.{number}")
        assert handler is not None and not handler.lasting
    assert not any(once._handlers.values())
    kept = once.find(Kind.CALL, "quotes.all")
    assert kept is not None and kept.lasting


def test_a_kind_is_found_by_route() -> None:
    service = make_service()
    assert service.kind_of("quotes.A.live") is Kind.STREAM
    assert service.kind_of("sums.1") is Kind.CHANNEL
    assert service.kind_of("nothing") is None


def test_routes_and_schema_list_the_variables() -> None:
    service = make_service()
    assert (Kind.CALL, "quotes.{symbol}") in service.routes()
    assert (Kind.STREAM, "quotes.{symbol}.live") in service.routes()


def test_literal_segments_go_before_variables() -> None:
    patterns = Patterns()
    for route in ("{a}.{b}", "{a}.x", "y.{b}", "y.z.{c}", "{a}.{b}.w"):
        patterns.add(route, Handler(lambda request: None, Kind.CALL, route))

    def found(route: str) -> str | None:
        match = patterns.find(route)
        return None if match is None else match[0].name.partition("'")[2][:-1] + " " + ",".join(match[1])

    assert found("q.r") == "{a}.{b} q,r"
    assert found("q.x") == "{a}.x q"
    assert found("y.x") == "y.{b} x"
    assert found("y.z.v") == "y.z.{c} v"
    # The literal branch has no handler for it.
    assert found("y.q.w") == "{a}.{b}.w y,q"


@pytest.mark.parametrize(
    ("route", "why"),
    [
        ("quotes.{name}", "is already registered, and matches the same routes"),
        ("a.{}", "is not a variable; write {name}"),
        ("a.{*rest}", "is not a variable"),
        ("a.{n:[0-9]+}", "is not a variable"),
        ("a.x{n}", "is not a variable"),
        ("a.}n{", "is not a variable"),
        ("a..{n}", "an empty segment"),
        ("a.{n}.{n}", "two variables named 'n'"),
        ("a.{other}", "must accept other as arguments"),
    ],
)
def test_routes_are_checked_when_registered(route: str, why: str) -> None:
    service = make_service()
    with pytest.raises(LocalError) as caught:
        service.call(route)(lambda request, name="", n="": request)
    assert why in str(caught.value)


def test_types_of_variables_are_checked_when_registered() -> None:
    def handler(request: Payload, n: Unknown) -> None:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    with pytest.raises(LocalError, match=r"a variable of the route 'a\.\{n\}' is annotated as 'Unknown'"):
        Service().call("a.{n}")(handler)
