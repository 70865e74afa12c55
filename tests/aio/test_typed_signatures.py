"""Signatures of typed handlers, over every protocol: Any, None, and no parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.aio.protocols import PROTOCOLS, WITH_ITEMS, serving
from weirpool import Items, Kind, LocalError, Payload, Service, typed

VALUE = {"a": [1, None, "x"]}


def make_service(seen: list[Any]) -> Service:
    service = Service()

    @service.call("get.any")
    async def take_any(value: Any) -> Any:
        seen.append(value)
        return value

    @service.call("get.object")
    def take_object(value: object) -> object:
        seen.append(value)
        return value

    @service.call("get.null")
    async def take_null(value: None) -> None:
        seen.append(value)

    @service.call("get.number")
    async def number() -> float:
        return 1.5

    @service.call("get.text")
    def text() -> str:
        return "text"

    @service.call("get.reset")
    async def reset() -> None:
        seen.append("reset")

    @service.call("get.raw")
    def raw() -> Payload:
        return Payload(b"[1]")

    @service.call("get.unannotated")
    def unannotated():  # type: ignore[no-untyped-def]
        return b"[2]"

    @service.stream("get.ticks")
    async def ticks() -> AsyncIterator[int]:
        for number in range(3):
            yield number

    @service.stream("get.anys")
    def anys(value: Any) -> Iterator[Any]:
        yield from [value, None]

    @service.upload("put.sum")
    async def add(items: AsyncIterator[Any]) -> list[Any]:
        return [item async for item in items]

    @service.upload("put.null")
    async def drop(value: Any, items: AsyncIterator[None]) -> None:
        seen.append([item async for item in items])

    @service.upload("put.raw")
    async def count(items: Items) -> bytes:
        return b"%d" % len([item async for item in items])

    @service.channel("put.echo")
    async def echo(items: AsyncIterator[int]) -> AsyncIterator[int]:
        async for item in items:
            yield -item

    @service.fire("get.fired")
    def fired() -> None:
        seen.append("fired")

    return service


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_any_object_and_none_are_types(protocol: str) -> None:
    seen: list[Any] = []
    async with serving(make_service(seen), protocol) as peer:
        asked = typed(peer)
        for route in ("get.any", "get.object"):
            assert await asked.call(route, VALUE) == VALUE
        assert await asked.call("get.null", None, returns=None) is None
        async with asked.stream("get.anys", VALUE) as items:
            assert [item async for item in items] == [VALUE, None]
    assert seen == [VALUE, VALUE, None]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_handlers_may_have_no_parameters(protocol: str) -> None:
    seen: list[Any] = []
    async with serving(make_service(seen), protocol) as peer:
        asked = typed(peer)
        assert await asked.call("get.number", returns=float) == 1.5
        assert await asked.call("get.text", {"ignored": True}, returns=str) == "text"
        assert await asked.call("get.reset", returns=None) is None
        assert (await peer.call("get.reset")).data in (b"null", b"\xc0")
        async with asked.stream("get.ticks", returns=int) as items:
            assert [item async for item in items] == [0, 1, 2]
        if not protocol.startswith("river"):
            assert [await asked.call("get.raw"), await asked.call("get.unannotated")] == [[1], [2]]
    assert seen == ["reset", "reset"]


@pytest.mark.parametrize("protocol", WITH_ITEMS)
async def test_handlers_may_take_only_items(protocol: str) -> None:
    seen: list[Any] = []
    async with serving(make_service(seen), protocol) as peer:
        asked = typed(peer)
        assert await asked.upload("put.sum", None, [1, None, VALUE]) == [1, None, VALUE]
        assert await asked.upload("put.null", VALUE, [None, None], returns=None) is None
        assert (await peer.upload("put.raw", b"0", [b"1", b"2"])).data == b"2"
        async with asked.channel("put.echo", None, [1, 2], returns=int) as items:
            assert [item async for item in items] == [-1, -2]
    assert seen == [[None, None]]


async def test_fired_request_needs_no_parameter() -> None:
    seen: list[Any] = []
    async with serving(make_service(seen), "rsocket") as peer:
        await typed(peer).fire("get.fired", VALUE)
        await peer.call("get.number")
    assert seen == ["fired"]


def test_schema_has_the_types_of_these_signatures() -> None:
    procedures = make_service([]).schema()["services"]["get"]["procedures"]
    assert procedures["null"]["init"] == procedures["reset"]["output"] == {"type": "null"}
    assert procedures["any"]["init"] == procedures["any"]["output"] == {}
    # It takes no request: clients send null, and it accepts anything.
    assert procedures["number"]["init"] == {"type": "null"}
    assert procedures["number"]["output"] == {"type": "number"}


class Strange:
    pass


@pytest.mark.parametrize("kind", [Kind.CALL, Kind.STREAM])
def test_unsupported_types_are_refused_with_their_part_and_place(kind: Kind) -> None:
    service = Service()
    register = service.call if kind is Kind.CALL else service.stream

    async def takes(value: list[Strange]) -> AsyncIterator[int]: ...  # type: ignore[empty-body]
    async def gives(value: int) -> AsyncIterator[dict[str, Strange]]: ...  # type: ignore[empty-body]

    with pytest.raises(LocalError, match=r"the request of the \w+ handler 'a': Strange in list\[Strange\] is a class"):
        register("a")(takes)
    if kind is Kind.STREAM:
        with pytest.raises(LocalError, match=r"the response of .* Strange in dict\[str, Strange\] is a class"):
            register("a")(gives)


async def test_unsupported_returns_is_refused_before_anything_is_sent() -> None:
    async with serving(make_service([]), "rsocket") as peer:
        with pytest.raises(LocalError, match=r"Strange in list\[Strange\] is a class"):
            await typed(peer).call("get.number", returns=list[Strange])
