"""Errors between the items of a stream, from the handler to the client, and where there are none."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import Any

import msgspec
import pytest

from tests.aio.protocols import PROTOCOLS, RIVER, serving
from weirpool import (
    ApplicationError,
    Invalid,
    LocalError,
    Payload,
    Service,
    TypedError,
    UnsupportedKind,
    typed,
)  # fmt: skip
from weirpool.river.item_errors import RiverItemErrors
from weirpool.river.streams import RiverStreams
from weirpool.settings import Settings
from weirpool.wire.river.codec import codec_of


class Gap(msgspec.Struct):
    size: int


class Missing(TypedError, code="MISSING"):
    extras: Gap


def make_service(ended: list[str]) -> Service:
    service = Service()

    @service.stream("n.count", errors=[Missing])
    async def count(first: int) -> AsyncIterator[int | Missing]:
        try:
            yield first
            yield first + 1
            yield Missing("nothing here", Gap(3))
            yield 777
        finally:
            ended.append("count")

    @service.stream("n.plain")
    def plain(first: int) -> Iterator[Any]:
        yield first
        yield ApplicationError("WORD", "no")
        yield ApplicationError(0x301, "no")
        yield 777

    @service.channel("n.halves")
    async def halves(items: AsyncIterator[int]) -> AsyncIterator[Any]:
        async for item in items:
            yield item // 2 if item % 2 == 0 else ApplicationError("ODD", str(item))

    @service.stream("n.raw")
    def raw(request: Payload) -> Iterator[Any]:
        yield b"1"
        yield ApplicationError("WORD", "x" * 3_000_000)
        yield b"2"

    @service.stream("n.invalid")
    def invalid(first: int) -> Iterator[Any]:
        yield first
        yield Invalid(message="this ends both halves")
        yield 777

    @service.stream("n.secret")
    def secret(first: int) -> Iterator[Any]:
        yield first
        yield ValueError("a secret")
        yield 777

    @service.stream("n.many")
    def many(first: int) -> Iterator[Any]:
        for number in range(3_000):
            yield ApplicationError("ODD", str(number)) if number % 2 else number

    @service.stream("n.ends")
    async def ends(first: int) -> AsyncIterator[Any]:
        yield ApplicationError("BETWEEN", "one")
        raise ApplicationError("END", "two")

    return service


def shown(item: Any) -> Any:
    return (type(item), item.code, item.message) if isinstance(item, ApplicationError) else item


@pytest.mark.parametrize("protocol", RIVER)
async def test_errors_between_items_are_yielded_in_order(protocol: str) -> None:
    ended: list[str] = []
    async with serving(make_service(ended), protocol) as peer:
        asked = typed(peer)
        async with asked.stream("n.count", 0, returns=int, results=True, errors=[Missing]) as items:
            got = [item async for item in items]
        assert [*got[:2], shown(got[2]), got[3]] == [0, 1, (Missing, "MISSING", "nothing here"), 777]
        assert isinstance(got[2], Missing) and got[2].extras == Gap(3)
        plain = [shown(item) async for item in asked.stream("n.plain", 0, results=True)]
        assert plain == [0, (ApplicationError, "WORD", "no"), (ApplicationError, 0x301, "no"), 777]
        async with asked.channel("n.halves", None, [2, 3, 4], results=True) as halves:
            assert [shown(item) async for item in halves] == [1, (ApplicationError, "ODD", "3"), 2]
    assert ended == ["count"]


@pytest.mark.parametrize("protocol", RIVER)
async def test_raw_streams_yield_errors_of_any_size(protocol: str) -> None:
    async with serving(make_service([]), protocol) as peer:
        got = [item async for item in peer.stream("n.raw", b"0").with_errors()]
        assert [type(item) for item in got] == [Payload, ApplicationError, Payload]
        assert isinstance(got[1], ApplicationError) and len(got[1].message) == 3_000_000


@pytest.mark.parametrize("protocol", RIVER)
async def test_errors_count_as_items(protocol: str) -> None:
    async with serving(make_service([]), protocol) as peer:
        async with typed(peer).stream("n.many", 0, results=True, credit=2) as items:
            got = [item async for item in items]
    assert got[::2] == list(range(0, 3_000, 2))
    assert [error.message for error in got[1::2]] == [str(number) for number in range(1, 3_000, 2)]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_without_results_an_error_ends_the_stream(protocol: str) -> None:
    ended: list[str] = []
    async with serving(make_service(ended), protocol) as peer:
        got = []
        with pytest.raises(Missing, match="nothing here") as error:
            async with typed(peer).stream("n.count", 0, returns=int, errors=[Missing]) as items:
                async for item in items:
                    got.append(item)  # noqa: PERF401
        assert (got, error.value.extras) == ([0, 1], Gap(3))
        assert await typed(peer).stream("n.count", 5).__aiter__().__anext__() == 5


@pytest.mark.parametrize("protocol", RIVER)
async def test_errors_that_end_a_stream_are_raised(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(make_service([]), protocol) as peer:
        for route, cls, between in [
            ("n.invalid", Invalid, 0),
            ("n.secret", ApplicationError, 0),
            ("n.ends", ApplicationError, 1),
        ]:
            got = []
            with pytest.raises(cls) as error, caplog.at_level(logging.CRITICAL):
                async for item in typed(peer).stream(route, 0, results=True):
                    got.append(item)  # noqa: PERF401
            assert type(error.value) is cls
            assert len(got) == 1 and isinstance(got[0], ApplicationError) == bool(between)
            assert "secret" not in str(error.value)


@pytest.mark.parametrize("protocol", [each for each in PROTOCOLS if each not in RIVER])
async def test_other_protocols_refuse_results(protocol: str) -> None:
    ended: list[str] = []
    async with serving(make_service(ended), protocol) as peer:
        with pytest.raises(UnsupportedKind, match="no errors between items"):
            async with typed(peer).stream("n.count", 0, results=True):
                pass
        with pytest.raises(UnsupportedKind, match="no errors between items"):
            await anext(peer.stream("n.count", b"0").with_errors())
    assert ended == []


async def test_errors_are_asked_for_before_the_stream_is_open() -> None:
    async with serving(make_service([]), "river-json") as peer:
        async with peer.stream("n.count", b"0") as items:
            with pytest.raises(LocalError, match="before the stream is open"):
                items.with_errors()


def test_clients_cannot_send_errors_between_items() -> None:
    errors = RiverItemErrors(codec_of("json"), RiverStreams(Settings().max_streams), True)
    with pytest.raises(ApplicationError, match="WORD"):
        errors.payload_of(ApplicationError("WORD", "no"))
    with pytest.raises(LocalError, match="stream 1 is not open"):
        errors.report(1)
