from __future__ import annotations

import asyncio

import pytest

import penstock
from penstock import Service, Settings
from penstock.aio.refusals import WINDOW, Refusals
from penstock.rsocket.dialect import RSOCKET_1_0
from penstock.wire.rsocket.frames import ResumeFrame
from tests.waiting import until


def test_an_address_may_be_refused_so_often_in_a_window() -> None:
    refusals = Refusals(2)
    refusals.note("a", 100.0)
    assert not refusals.too_many("a", 100.0)
    refusals.note("a", 101.0)
    assert refusals.too_many("a", 102.0)
    assert not refusals.too_many("b", 102.0)
    assert not refusals.too_many("a", 100.0 + WINDOW)


@pytest.mark.parametrize(("limit", "address"), [(0, "a"), (1, "")])
def test_without_a_limit_or_an_address_nobody_is_kept_out(limit: int, address: str) -> None:
    refusals = Refusals(limit)
    for _ in range(10):
        refusals.note(address, 0.0)
    assert not refusals.too_many(address, 0.0)


async def guess(port: int) -> bytes:
    """Try to resume a session by a guessed token; return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(RSOCKET_1_0.codec().frame(ResumeFrame(b"guessed")))
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await until(writer.transport.is_closing)


async def test_who_guesses_tokens_is_kept_out_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 28
    settings = Settings(max_refusals_per_address=3)
    async with penstock.serve(Service(), "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        answers = [await guess(port) for _ in range(5)]
        assert [b"there is no session of that token" in answer for answer in answers] == [True] * 3 + [False] * 2
        assert answers[3:] == [b"", b""]
    assert "max_refusals_per_address (3)" in caplog.text
