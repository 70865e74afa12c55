"""A service that describes itself: what it says, what it never says, and how long it may be."""

from __future__ import annotations

import msgspec
import pytest

import weirpool
from weirpool import Connection, Kind, LocalError, Payload, Service, Settings
from weirpool.reflection.description import ROUTE, read
from weirpool.reflection.served import MAX_BYTES, Reflecting, description_of
from weirpool.schema.codegen import generate_python
from weirpool.schema.shapes import Loss

from .quotes import service

ON = Settings(reflection=True)
CONNECTION = Connection("rsocket", "", False, data_mime="application/json")


def test_says_kinds_types_documentation_and_errors() -> None:
    [latest] = description_of(service, CONNECTION).find("quotes.latest")
    assert (latest.kind, latest.description, latest.raw) == ("call", "Return the price of the last trade.", False)
    assert latest.request == {"$ref": "#/$defs/Symbol"} and latest.response == {"$ref": "#/$defs/Quote"}
    [error] = latest.errors
    assert (error.code, error.description, error.extras) == (
        "UNKNOWN_SYMBOL", "There is no such symbol.", {"$ref": "#/$defs/Symbol"},
    )  # fmt: skip


def test_an_untyped_handler_says_so() -> None:
    [numbers] = description_of(service, CONNECTION).find("numbers")
    assert numbers.raw and numbers.request is None and numbers.encodings == []


def test_a_typed_handler_that_takes_no_request_is_asked_with_null() -> None:
    service = Service()

    @service.call("now")
    def now() -> str:
        return "noon"

    [described] = description_of(service, CONNECTION).routes
    assert (described.request, described.response) == ({"type": "null"}, {"type": "string"})
    losses: list[Loss] = []
    assert "async def now(self) -> str:" in generate_python(service.schema(), losses)
    assert losses == []


@pytest.mark.parametrize(
    ("mime", "expected"),
    [
        ("application/json", ["application/json", "application/msgpack"]),
        ("text/plain", ["application/json", "application/msgpack"]),
        ("application/vnd.river+json", ["application/vnd.river+json"]),
    ],
)
def test_says_the_encodings_of_the_connection(mime: str, expected: list[str]) -> None:
    [latest] = description_of(service, Connection("rsocket", "", False, data_mime=mime)).find("quotes.latest")
    assert latest.encodings == expected


def test_handlers_that_are_added_later_are_described() -> None:
    growing = Service()
    growing.call("first")(lambda request: request)
    assert len(description_of(growing, CONNECTION).routes) == 1
    growing.call("second")(lambda request: request)
    assert len(description_of(growing, CONNECTION).routes) == 2


def test_a_long_description_leaves_out_schemas_then_routes() -> None:
    whole = Service()
    for number in range(20):

        def documented(request: Payload) -> Payload:
            return request

        documented.__doc__ = "word " * 20_000
        whole.call(f"route {number}")(documented)
    short = description_of(whole, CONNECTION)
    assert len(short.routes) == 20 and not short.complete and short.routes[0].description == ""
    for number in range(20):
        whole.call(f"{number}".ljust(100_000, "x"))(lambda request: request)
    shorter = description_of(whole, CONNECTION)
    assert 0 < len(shorter.routes) < 40 and len(msgspec.json.encode(shorter)) <= MAX_BYTES


async def test_the_route_is_reserved_while_reflection_is_on() -> None:
    url = "rsocket+memory://reserved"
    mine = Service()
    mine.call(ROUTE)(lambda request: request)
    with pytest.raises(LocalError, match="has the route of descriptions; choose another"):
        async with weirpool.serve(mine, url, settings=ON):
            pass
    free = Service()
    async with weirpool.serve(free, url, settings=ON):
        with pytest.raises(LocalError, match="has the route of descriptions"):
            free.stream(ROUTE)(lambda request: [])
    async with weirpool.serve(mine, url), weirpool.connect(url) as peer:
        assert (await peer.call(ROUTE, b"mine")).data == b"mine"


async def test_one_server_of_a_service_may_describe_it_and_another_not() -> None:
    inside, outside = "rsocket+memory://inside", "rsocket+memory://outside"
    async with weirpool.serve(service, inside, settings=ON), weirpool.serve(service, outside):
        async with weirpool.connect(inside) as peer:
            assert (await weirpool.describe(peer)).routes
        async with weirpool.connect(outside) as peer:
            with pytest.raises(weirpool.NotDescribed):
                await weirpool.describe(peer)


def test_taps_know_which_routes_have_a_handler() -> None:
    reflecting = Reflecting(service, CONNECTION)
    assert reflecting.handles(Kind.CALL, ROUTE) and reflecting.handles(Kind.CALL, "tree")
    # Calls arrive as streams in some protocols.
    assert reflecting.handles(Kind.STREAM, ROUTE) and not reflecting.handles(Kind.FIRE, ROUTE)
    assert not reflecting.handles(Kind.CALL, "nowhere")
    assert (Kind.CALL, ROUTE) in reflecting.routes() and reflecting.kind_of(ROUTE) is Kind.CALL


async def test_other_requests_are_answered_as_before() -> None:
    url = "river+memory://others"
    pushed: list[bytes] = []
    plain = Service()
    plain.call("a.call")(lambda request: request)
    plain.stream("a.stream")(lambda request: [b"1", b"2"])
    plain.push(pushed.append)
    async with weirpool.serve(plain, url, settings=ON), weirpool.connect(url) as peer:
        assert (await peer.call("a.call", b"1")).data == b"1"
        assert [item.data async for item in peer.stream("a.stream")] == [b"1", b"2"]
    url = "rsocket+memory://others"
    async with weirpool.serve(plain, url, settings=ON), weirpool.connect(url) as peer:
        await peer.push(b"news")
        assert (await peer.call("a.call", b"2")).data == b"2" and pushed == [b"news"]


@pytest.mark.parametrize("mime", ["application/x+json", "evil $(x)+json", "+json", "\x1b/x+json"])
def test_says_nothing_that_a_client_would_refuse(mime: str) -> None:
    service = Service()
    fields = {"code": {"const": "WRONG"}}
    errors = [{"properties": fields, "title": "No such thing"}, {"properties": {"code": {"const": "A\x1bB"}}}]

    @service.call("a", errors=errors)
    def handler(request: int) -> int:
        return request

    described = description_of(service, Connection("rsocket", "", False, data_mime=mime))
    [route] = read(msgspec.json.encode(described)).routes
    assert [(error.code, error.name) for error in route.errors] == [("WRONG", "")]
    assert route.encodings in ([], ["application/x+json"], ["application/json", "application/msgpack"])
