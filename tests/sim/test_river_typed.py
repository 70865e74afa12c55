"""Typed handlers over River: invalid data never reaches them, and the caller gets the reason."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import weirpool
from tests.waiting import until
from weirpool import (
    ApplicationError,
    Canceled,
    Invalid,
    Items,
    Mismatch,
    Payload,
    Peer,
    Rejected,
    Service,
    TypedError,
    typed,
)  # fmt: skip
from weirpool.wire.river.values import decode_value, encode_value


class Add(msgspec.Struct):
    a: int
    b: int = 0


class Number(msgspec.Struct):
    n: int


class Negative(TypedError, code="NEGATIVE"):
    """The sum is negative."""

    extras: Number


class Nothing(TypedError, code="NOTHING"):
    """There is nothing to add."""


NUMBER = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
ADD = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
MANY = {"type": "object", "required": list("abcdefg")}
KINDS = ["call", "stream", "upload", "channel"]


def by_types(seen: list[object]) -> Service:
    service = Service()

    @service.call("demo.call", errors=[Negative, Nothing])
    async def call(init: Add) -> Number:
        seen.append(init)
        if init.a < 0:
            raise Negative("the sum is negative", Number(init.a))
        if init.a == 0:
            raise Nothing("nothing to add")
        return Number(init.a + init.b)

    @service.stream("demo.stream", errors=[Negative])
    async def stream(init: Add) -> AsyncIterator[Number]:
        seen.append(init)
        if init.a < 0:
            raise Negative("the sum is negative", Number(init.a))
        yield Number(init.a)

    @service.upload("demo.upload", errors=[Negative])
    async def upload(init: Add, items: AsyncIterator[Number]) -> Number:
        seen.append(init)
        if init.a < 0:
            raise Negative("the sum is negative", Number(init.a))
        async for item in items:
            seen.append(item)  # noqa: PERF401 - those before the wrong one count
        return Number(init.a)

    @service.channel("demo.channel", errors=[Negative])
    async def channel(init: Add, items: AsyncIterator[Number]) -> AsyncIterator[Number]:
        seen.append(init)
        if init.a < 0:
            raise Negative("the sum is negative", Number(init.a))
        async for item in items:
            seen.append(item)
            yield item

    return service


def by_schemas(seen: list[object]) -> Service:
    service = Service()

    @service.call("demo.call", init=ADD, response=NUMBER)
    def call(init: Any) -> Any:
        seen.append(init)
        return {"n": init["a"]}

    @service.stream("demo.stream", init=ADD, response=NUMBER)
    def stream(init: Any) -> Any:
        seen.append(init)
        return [{"n": init["a"]}]

    @service.upload("demo.upload", init=ADD, request=NUMBER, response=NUMBER)
    async def upload(init: Any, items: Any) -> Any:
        seen.append(init)
        async for item in items:
            seen.append(item)  # noqa: PERF401 - those before the wrong one count
        return {"n": init["a"]}

    @service.channel("demo.channel", init=ADD, request=NUMBER, response=NUMBER)
    async def channel(init: Any, items: Any) -> Any:
        seen.append(init)
        async for item in items:
            seen.append(item)
            yield item

    @service.call("demo.many", init=MANY)
    def many(init: Any) -> Any:
        seen.append(init)

    return service


@asynccontextmanager
async def asking(service: Service, codec: str = "json", **options: Any) -> AsyncIterator[Peer]:
    url = f"river+memory://typed?codec={codec}"
    async with weirpool.serve(service, url), weirpool.connect(url, **options) as peer:
        yield peer


async def ask(peer: Peer, kind: str, init: object, items: list[object], codec: str) -> list[Any]:
    """Send a request of `kind`; return the values of the response."""
    data, each = encode_value(init, codec), [encode_value(item, codec) for item in items]
    route = f"demo.{kind}"
    if kind == "call":
        answers = [await peer.call(route, data)]
    elif kind == "upload":
        answers = [await peer.upload(route, data, each)]
    else:
        async with peer.stream(route, data) if kind == "stream" else peer.channel(route, data, each) as answer:
            answers = [item async for item in answer]
    return [decode_value(answer.data, codec) for answer in answers]


SERVICES = pytest.mark.parametrize("make", [by_types, by_schemas])
CODECS = pytest.mark.parametrize("codec", ["json", "msgpack"])


@SERVICES
@CODECS
@pytest.mark.parametrize("kind", KINDS)
async def test_what_matches_is_served(make: Any, codec: str, kind: str) -> None:
    seen: list[object] = []
    async with asking(make(seen), codec) as peer:
        assert await ask(peer, kind, {"a": 3}, [{"n": 3}], codec) == [{"n": 3}]
    assert len(seen) == (2 if kind in ("upload", "channel") else 1)


@SERVICES
@CODECS
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("init", "path"), [({"a": "x"}, "/a"), ({}, "/a"), ([], ""), (None, ""), ({"a": 1.5}, "/a")])
async def test_an_init_that_does_not_match_reaches_nobody(
    make: Any, codec: str, kind: str, init: object, path: str
) -> None:
    seen: list[object] = []
    async with asking(make(seen), codec) as peer:
        with pytest.raises(Invalid) as failed:
            await ask(peer, kind, init, [{"n": 1}], codec)
        assert failed.value.code == "INVALID_REQUEST"
        extras = decode_value(failed.value.data, codec)
        assert extras["totalErrors"] == 1 and set(extras) == {"totalErrors", "firstValidationErrors"}
        [first] = extras["firstValidationErrors"]
        assert first["path"] == path and first["message"] and set(first) == {"path", "message"}
        await until(lambda: peer.outstanding == 0)
        assert seen == []
        # The session still works.
        assert await ask(peer, kind, {"a": 3}, [{"n": 3}], codec) == [{"n": 3}]


@SERVICES
@CODECS
@pytest.mark.parametrize("kind", ["upload", "channel"])
async def test_a_request_that_does_not_match_ends_the_stream(make: Any, codec: str, kind: str) -> None:
    seen: list[object] = []
    async with asking(make(seen), codec) as peer:
        with pytest.raises(Invalid) as failed:
            await ask(peer, kind, {"a": 3}, [{"n": 1}, {"n": "x"}, {"n": 3}], codec)
        extras = decode_value(failed.value.data, codec)
        assert extras["totalErrors"] == 1 and extras["firstValidationErrors"][0]["path"] == "/n"
        assert len(seen) == 2
        await until(lambda: peer.outstanding == 0)


@CODECS
async def test_no_more_than_five_problems_are_told(codec: str) -> None:
    async with asking(by_schemas([]), codec) as peer:
        with pytest.raises(Invalid) as failed:
            await peer.call("demo.many", encode_value({}, codec))
    extras = decode_value(failed.value.data, codec)
    assert extras["totalErrors"] == 7
    assert [each["path"] for each in extras["firstValidationErrors"]] == ["/a", "/b", "/c", "/d", "/e"]


@CODECS
@pytest.mark.parametrize("kind", KINDS)
async def test_an_error_has_its_extras(codec: str, kind: str) -> None:
    async with asking(by_types([]), codec) as peer:
        with pytest.raises(ApplicationError) as failed:
            await ask(peer, kind, {"a": -1}, [], codec)
        error = failed.value
        # Any client sees only the extras.
        assert (error.code, error.message) == ("NEGATIVE", "the sum is negative")
        assert decode_value(error.data, codec) == {"n": -1}
        asked = typed(peer)
        with pytest.raises(Negative) as named:
            await asked.call("demo.call", Add(-1), returns=Number, errors=[Negative])
        assert named.value.extras == Number(-1)
        with pytest.raises(Nothing) as nothing:
            await asked.call("demo.call", Add(0), returns=Number, errors=[Nothing])
        assert nothing.value.extras is None


@CODECS
async def test_answers_and_errors_are_held_against_types_at_the_client(codec: str) -> None:
    class Other(TypedError, code="NEGATIVE"):
        extras: Add

    async with asking(by_types([]), codec) as peer:
        asked = typed(peer)
        assert await asked.call("demo.call", Add(1, 2), returns=Number) == Number(3)
        with pytest.raises(Mismatch):
            await asked.call("demo.call", Add(1, 2), returns=Add)
        with pytest.raises(Mismatch):
            async with asked.stream("demo.stream", Add(1), returns=Add) as items:
                [item async for item in items]
        with pytest.raises(ApplicationError) as failed:
            await asked.call("demo.call", Add(-1), returns=Number, errors=[Other])
        assert not isinstance(failed.value, Other) and failed.value.code == "NEGATIVE"


@CODECS
async def test_protocol_errors_are_told_apart(codec: str) -> None:
    service = Service()
    text = encode_value("m", codec)
    retriable = encode_value({"retriable": True, "totalErrors": 0, "firstValidationErrors": []}, codec)

    @service.call("demo.raise")
    def raising(request: Payload) -> bytes:
        errors: dict[str, Exception] = {
            "cancel": Canceled(message="no thanks"),
            "invalid": Invalid(message="wrong"),
            "later": Rejected(message="later"),
            "bug": KeyError("a secret"),
            "own": ApplicationError("OWN", "mine", text),
            "alone": ApplicationError("ALONE", "no extras"),
            "number": ApplicationError(0x301, "a number"),
        }
        raise errors[decode_value(request.data, codec)]

    @service.channel("demo.late")
    async def late(request: Payload, items: Items) -> AsyncIterator[Payload]:
        yield request
        raise KeyError("a secret")

    async with asking(service, codec) as peer:
        for word, code, message, data in (
            ("cancel", "CANCEL", "no thanks", b"no thanks"),
            ("invalid", "INVALID_REQUEST", "wrong", b"wrong"),
            ("later", "INVALID_REQUEST", "later", retriable),
            ("bug", "UNCAUGHT_ERROR", "the handler failed", b"the handler failed"),
            ("own", "OWN", "mine", text),
            ("alone", "ALONE", "no extras", b"no extras"),
            ("number", 0x301, "a number", b"a number"),
        ):
            with pytest.raises(ApplicationError) as failed:
                await peer.call("demo.raise", encode_value(word, codec))
            error = failed.value
            assert (error.code, error.message, error.data) == (code, message, data)
            assert isinstance(error, Canceled) == (word == "cancel")
            assert isinstance(error, Invalid) == (word == "invalid")
            assert isinstance(error, Rejected) == (word == "later")
        got = []
        with pytest.raises(ApplicationError) as failed:
            async with peer.channel("demo.late", text, []) as items:
                async for item in items:
                    got.append(item.data)  # noqa: PERF401 - those before the error count
        assert got == [text] and failed.value.code == "UNCAUGHT_ERROR" and "secret" not in failed.value.message
        for route in ("nope.call", "demo.nope"):
            with pytest.raises(Rejected, match="nope"):
                await peer.call(route)
        assert peer.outstanding == 0


async def test_extras_that_cannot_travel_are_our_fault() -> None:
    class Big(TypedError, code="BIG"):
        extras: Any

    service = Service()

    @service.call("demo.big")
    def big(request: Any) -> Number:
        raise Big("big", [float("nan")])

    async with asking(service) as peer:
        with pytest.raises(ApplicationError) as failed:
            await peer.call("demo.big", b"{}")
    assert failed.value.code == "UNCAUGHT_ERROR"
    assert json.loads(Big("m", [1]).data)["extras"] == [1]


class Blob(msgspec.Struct):
    data: bytes
    n: int


class TooMany(TypedError, code="TOO_MANY"):
    extras: Blob


@CODECS
async def test_bytes_and_large_integers_travel_as_rivers_own(codec: str) -> None:
    service, large = Service(), Blob(b"\x00\xff", 2**64)

    @service.call("demo.blob", errors=[TooMany])
    def blob(init: Blob) -> Blob:
        if init.n == 0:
            raise TooMany("too many", large)
        return init

    async with asking(service, codec) as peer:
        answer = await peer.call("demo.blob", encode_value({"data": b"\x00\xff", "n": 2**64}, codec))
        assert decode_value(answer.data, codec) == {"data": b"\x00\xff", "n": 2**64}
        asked = typed(peer)
        assert await asked.call("demo.blob", large, returns=Blob) == large
        with pytest.raises(TooMany) as failed:
            await asked.call("demo.blob", Blob(b"", 0), returns=Blob, errors=[TooMany])
        assert failed.value.extras == large
