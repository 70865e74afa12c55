from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

import penstock
from penstock import Service
from penstock.aio.limits import WINDOW, Limits, RefusalCounter
from penstock.rsocket.dialect import RSOCKET_1_0
from penstock.session import Session
from penstock.settings import Settings
from penstock.wire.rsocket.frames import ResumeFrame
from tests.waiting import until


def session(name: str) -> Session:
    return cast(Session, name)


def limits(**settings: Any) -> Limits:
    return Limits(Settings(max_connections=5, max_connections_per_address=2, max_sessions=2, **settings))


def test_full_address_accepts_links_that_may_resume() -> None:
    # THREATS 94
    counts = limits()
    for name in "ab":
        counts.linked(session(name), "x")
    assert "max_connections_per_address (2) are open" in counts.full("x")
    assert not counts.full("y") and not counts.refuses("x", 0.0)
    counts.arrived("x")
    counts.arrived("x")
    assert "max_connections_per_address (2) links" in counts.refuses("x", 0.0)
    counts.identified("x")
    assert not counts.refuses("x", 0.0)


def test_a_session_without_a_link_is_no_connection() -> None:
    # THREATS 94
    counts = limits()
    for name in "abc":
        counts.linked(session(name), "x")
        assert counts.unlinked(session(name)) == ("a" if name == "c" else None)
    assert not counts.full("x")
    counts.ended(session("a"))
    # A session that reconnects no longer waits. If it waits again, it is the newest.
    counts.linked(session("b"), "y")
    assert counts.unlinked(session("b")) is None
    counts.linked(session("d"), "x")
    assert counts.unlinked(session("d")) == "c"


def test_links_lost_together_leave_max_sessions_waiting() -> None:
    # THREATS 94: none of the sessions to end has ended before the last link is lost.
    counts = limits()
    for name in "abcde":
        counts.linked(session(name), name)
    assert [counts.unlinked(session(name)) for name in "abcde"] == [None, None, "a", "b", "c"]
    for name in "abcde":
        counts.ended(session(name))
    assert not counts


def test_a_session_that_changes_its_link_counts_once() -> None:
    counts = limits()
    counts.linked(session("a"), "x")
    counts.linked(session("a"), "y")
    counts.linked(session("b"), "y")
    assert counts.full("y") and not counts.full("x")
    counts.ended(session("a"))
    counts.ended(session("b"))
    counts.ended(session("b"))
    assert not counts


def test_all_addresses_have_a_limit_together() -> None:
    counts = limits()
    for name in "abcde":
        counts.linked(session(name), name)
        counts.arrived(name)
    assert "max_connections (5) are open" in counts.full("f")
    assert "max_connections (5)" in counts.refuses("f", 0.0)


def test_unrecognized_links_are_counted() -> None:
    # THREATS 28
    counts = limits(max_refusals_per_address=1)
    counts.unrecognized("x", 0.0)
    assert "max_refusals_per_address (1)" in counts.refuses("x", 0.0)
    assert not counts.refuses("y", 0.0)


# Refusals.


def test_address_is_refused_after_the_limit_of_a_window() -> None:
    refusals = RefusalCounter(2)
    refusals.note("a", 100.0)
    assert not refusals.too_many("a", 100.0)
    refusals.note("a", 101.0)
    assert refusals.too_many("a", 102.0)
    assert not refusals.too_many("b", 102.0)
    assert not refusals.too_many("a", 100.0 + WINDOW)


@pytest.mark.parametrize(("limit", "address"), [(0, "a"), (1, "")])
def test_no_refusal_without_limit_or_address(limit: int, address: str) -> None:
    refusals = RefusalCounter(limit)
    for _ in range(10):
        refusals.note(address, 0.0)
    assert not refusals.too_many(address, 0.0)


async def guess(port: int) -> bytes:
    """Try to resume a session with a guessed token; return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(RSOCKET_1_0.codec().frame(ResumeFrame(b"guessed")))
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await until(writer.transport.is_closing)


async def test_address_guessing_tokens_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 28
    settings = Settings(max_refusals_per_address=3)
    async with penstock.serve(Service(), "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        answers = [await guess(port) for _ in range(5)]
        assert [b"there is no session with this token" in answer for answer in answers] == [True] * 3 + [False] * 2
        assert answers[3:] == [b"", b""]
    assert "max_refusals_per_address (3)" in caplog.text
