from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

import pytest

import weirpool
from weirpool import ApplicationError, Invalid, Kind, Settings, typed
from weirpool.playground.service import (
    FIRST_PRICES,
    Order,
    Quote,
    Symbol,
    Ticks,
    Total,
    UnknownSymbol,
    service,
)

JSON = Settings(data_mime="application/json")
URLS = ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0"]
VALUES = [(URLS[0], JSON), (URLS[1], Settings())]
"""URLs, and the settings with which data there are values."""


async def first(number: int, items: AsyncIterable[Any]) -> list[Any]:
    """Return the first items of a stream that does not end."""
    found: list[Any] = []
    async for item in items:
        found.append(item)
        if len(found) == number:
            break
    return found


def test_service_has_every_kind_and_describes_each_route() -> None:
    found = service.routes()
    assert {kind for kind, _ in found} == set(Kind)
    for kind, route in found:
        handler = service.find(kind, route)
        assert handler is not None and handler.types.description.endswith(".")


async def test_texts_are_answered() -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        assert await peer.call("echo", "hello") == weirpool.Payload(b"hello")
        async with peer.stream("count", "3") as items:
            assert [item.data async for item in items] == [b"0", b"1", b"2"]
        assert (await peer.upload("sum", "1", ["2", "3.5"])).data == b"6.5"
        async with peer.channel("double", "", ["1", "-2"]) as items:
            assert [item.data async for item in items] == [b"2", b"-4"]
        assert (await peer.call("slow", "1")).data == b"1 ms later"


@pytest.mark.parametrize("data", ["x", "nan", "1e999"])
async def test_text_that_is_not_a_number_is_an_error(data: str) -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        with pytest.raises(ApplicationError, match="is not a number") as failed:
            await peer.call("slow", data)
        assert failed.value.code == 0x302


async def test_fail_fails() -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        with pytest.raises(ApplicationError) as failed:
            await peer.call("fail")
        assert failed.value.code == 0x301


async def test_log_prints_safe_text(capsys: pytest.CaptureFixture[str]) -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        await peer.fire("log", "careful\x1b[31m" + 2_000 * "x")
        await peer.call("echo")
    text = capsys.readouterr().out
    assert text.startswith("log: careful\\x1b[31mxxx") and len(text) < 1_100


async def test_ticker_never_ends_and_follows_its_client() -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        async with peer.stream("ticker", "0", credit=8) as items:
            seen = [item.data.decode() for item in await first(3_000, items)]
        assert {line.split()[0] for line in seen} == set(FIRST_PRICES)
        assert all(float(line.split()[1]) > 0 for line in seen)


async def test_ticker_keeps_its_rate() -> None:
    clock = asyncio.get_running_loop().time
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0]) as peer:
        async with peer.stream("ticker", "50") as items:
            began = clock()
            await first(11, items)
        assert clock() - began > 0.19


@pytest.mark.parametrize(("url", "settings"), VALUES)
async def test_values_are_answered(url: str, settings: Settings) -> None:
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0], settings=settings) as peer:
        asked = typed(peer)
        assert await asked.call("quotes.latest", Symbol("ACME"), returns=Quote) == Quote("ACME", 100.0)
        orders = [Order("ACME", 2), Order("INITECH", -2)]
        assert await asked.upload("orders.load", Total(), orders, returns=Total) == Total(2, 185.0)
        async with asked.channel("quotes.watch", Symbol("ACME"), [Symbol("GLOBEX")], returns=Quote) as quotes:
            assert [quote.symbol async for quote in quotes] == ["ACME", "GLOBEX"]
        async with asked.stream("quotes.live", Ticks("GLOBEX", 0), returns=Quote) as quotes:
            assert {quote.symbol for quote in await first(10, quotes)} == {"GLOBEX"}


@pytest.mark.parametrize(("url", "settings"), VALUES)
async def test_unknown_symbol_is_a_typed_error(url: str, settings: Settings) -> None:
    async with weirpool.serve(service, url) as server, weirpool.connect(server.urls[0], settings=settings) as peer:
        asked = typed(peer)
        with pytest.raises(UnknownSymbol) as failed:
            await asked.call("quotes.latest", Symbol("?"), returns=Quote, errors=[UnknownSymbol])
        assert failed.value.extras == Symbol("?")
        with pytest.raises(UnknownSymbol):
            async with asked.stream("quotes.live", Ticks("?"), returns=Quote, errors=[UnknownSymbol]) as quotes:
                await first(1, quotes)


async def test_negative_rate_is_invalid() -> None:
    async with weirpool.serve(service, URLS[0]) as server, weirpool.connect(server.urls[0], settings=JSON) as peer:
        with pytest.raises(Invalid):
            async with typed(peer).stream("quotes.live", {"rate": -1}) as quotes:
                await first(1, quotes)
