from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

import weirpool
from tests.aio.serving import alone
from tests.waiting import turns, until
from weirpool import ApplicationError, ConnectError, LinkLost, LocalError, Reconnect, SetupRejected
from weirpool.aio import reconnect as module
from weirpool.aio.reconnect import MAX_RESUME_DELAY, Backoff, BudgetedReconnect, RetryBudget, resuming
from weirpool.aio.reconnecting import Reconnecting

pytestmark = pytest.mark.usefixtures("tidy")

URL = "river+memory://budget"


# Policies.


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ({"attempts": 0}, "attempts is 0"),
        ({"first_delay": -1.0}, "first_delay is -1"),
        ({"first_delay": 2.0, "longest_delay": 1.0}, "longest_delay"),
        ({"factor": 0.5}, "factor is 0.5"),
        ({"jitter": 1.5}, "jitter is 1.5"),
        ({"new_calls": "sleep"}, "'sleep'"),
    ],
)
def test_invalid_policy_values_raise(wrong: dict[str, Any], part: str) -> None:
    with pytest.raises(LocalError, match=part):
        Reconnect(**wrong)


def test_default_policy_retries_all_but_rejections() -> None:
    policy = Reconnect()
    assert policy.retry(ConnectError("refused"))
    assert policy.retry(LinkLost("broke"))
    assert not policy.retry(SetupRejected("no"))


def test_delays_are_those_of_the_policy() -> None:
    backoff = Reconnect(first_delay=1.0, longest_delay=5.0, factor=4.0, jitter=0.0).backoff()
    assert [backoff.next() for _ in range(3)] == [1.0, 4.0, 5.0]


def test_policies_are_values() -> None:
    assert Reconnect(attempts=3) == Reconnect(attempts=3)
    with pytest.raises(AttributeError):
        Reconnect().attempts = 3  # type: ignore[misc]


def test_resumable_session_is_retried_often() -> None:
    patient = Reconnect(first_delay=5.0, longest_delay=60.0, jitter=0.0).resuming()
    assert [patient.next() for _ in range(3)] == [MAX_RESUME_DELAY] * 3
    hasty = Reconnect(first_delay=0.0, longest_delay=0.0).resuming()
    assert [hasty.next() for _ in range(3)] == [0.0, 0.0, 0.0]


# Delays.


def test_delays_double_with_jitter_up_to_half() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    for whole in (1.0, 2.0, 4.0, 8.0, 8.0, 8.0):
        assert whole / 2 <= backoff.next() <= whole


def test_reset_restarts_the_delays() -> None:
    backoff = Backoff(first=1.0, longest=8.0)
    for _ in range(5):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_it_never_overflows() -> None:
    backoff = Backoff()
    assert all(backoff.next() <= 10.0 for _ in range(5000))


def test_factor_and_jitter_may_be_chosen() -> None:
    backoff = Backoff(first=1.0, longest=100.0, factor=3.0, jitter=0.0)
    assert [backoff.next() for _ in range(6)] == [1.0, 3.0, 9.0, 27.0, 81.0, 100.0]
    backoff = Backoff(first=1.0, jitter=1.0)
    assert 0.0 <= backoff.next() <= 1.0


def test_the_longest_time_bounds_the_first_one() -> None:
    assert Backoff(first=5.0, longest=1.0, jitter=0.0).next() == 1.0


def test_excuse_resets_the_delays() -> None:
    backoff = Backoff(jitter=0)
    assert [backoff.next(), backoff.next()] == [0.1, 0.2]
    backoff.excuse()
    assert backoff.next() == 0.1


def test_resuming_delays_are_short() -> None:
    backoff = resuming()
    assert all(backoff.next() <= 1.0 for _ in range(50))


# River's budget.


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make delays zero, and restore no attempts."""
    for name in ("BASE_DELAY", "MAX_SPREAD"):
        monkeypatch.setattr(module, name, 0.0)
    monkeypatch.setattr(module, "RESTORE_SECONDS", 1e9)


@pytest.fixture
def jitter(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The random part of delays: its maximum, unless a test changes it."""
    shares = [1.0]
    monkeypatch.setattr(random, "uniform", lambda low, high: low + shares[0] * (high - low))
    return shares


# The numbers, with the test's own clock.


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_delays_double_and_end(jitter: list[float], share: float) -> None:
    jitter[0] = share
    budget = RetryBudget()
    extra = 0.2 * share
    # The first attempt was made at once, outside the budget object.
    assert [budget.take(0.0) for _ in range(4)] == pytest.approx([at + extra for at in (0.15, 0.3, 0.6, 1.2)])
    assert budget.take(0.0) is None
    assert budget.remaining(1e6) == 0


def test_attempts_are_restored_while_a_link_is_alive(jitter: list[float]) -> None:
    jitter[0] = 0.0
    budget = RetryBudget()
    budget.take(0.0)
    budget.take(0.0)
    assert [budget.remaining(now) for now in (0.0, 100.0)] == [2, 2]
    budget.linked(10.0)
    assert [budget.remaining(now) for now in (10.0, 10.19, 10.2, 10.4, 10.6, 99.0)] == [2, 2, 3, 4, 5, 5]
    # An attempt stops the restoring, and the same link restores nothing again.
    assert budget.take(10.45) == pytest.approx(0.15)
    budget.linked(10.0)
    assert budget.remaining(99.0) == 3
    budget.linked(20.0)
    assert budget.take(21.0) == 0.0


def test_attempts_are_not_restored_without_a_handshake() -> None:
    budget = RetryBudget()
    budget.linked(None)
    assert budget.remaining(1e6) == 4
    budget.reset()
    assert budget.remaining(1e6) == 4


def test_delays_have_a_maximum(jitter: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ATTEMPTS", 100)
    budget = RetryBudget()
    delays = [budget.take(0.0) for _ in range(20)]
    assert max(delay for delay in delays if delay is not None) == pytest.approx(32.2)


async def test_refill_wakes_waiting_attempts(hasty: None) -> None:
    budget = RetryBudget()
    for _ in range(4):
        await budget.wait()
    assert budget.used_up
    waiting = asyncio.ensure_future(budget.wait())
    await turns(5)
    assert not waiting.done()
    budget.refill()
    await waiting
    assert not budget.used_up


def test_all_that_connects_shares_one_budget() -> None:
    policy = BudgetedReconnect()
    assert policy.backoff() is policy.backoff() is policy.budget
    assert BudgetedReconnect().budget is not policy.budget


# Peers.


def make_service() -> weirpool.Service:
    service = weirpool.Service()

    @service.call("demo.echo")
    def echo(request: weirpool.Payload) -> weirpool.Payload:
        return request

    @service.call("demo.never")
    async def never(request: weirpool.Payload) -> None:
        await asyncio.get_running_loop().create_future()

    return service


@pytest.mark.parametrize("url", [URL, "river+tcp://127.0.0.1:0", "river+ws://127.0.0.1:0/river"])
async def test_restart_fails_open_streams_and_next_call_works(
    url: str, hasty: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without delays, the attempts would be used up while the server starts.
    monkeypatch.setattr(module, "MAX_ATTEMPTS", 1_000_000)
    server = await weirpool.serve(make_service(), url)
    url = server.urls[0]
    async with weirpool.connect(url) as peer:
        connector = peer._connector
        assert isinstance(connector, Reconnecting)
        assert (await peer.call("demo.echo", b"1")).data == b"1"
        open_call = asyncio.ensure_future(peer.call("demo.never"))
        await until(lambda: peer.outstanding == 1)
        await peer.call("demo.echo", b"2")
        await server.close(0)
        server = await weirpool.serve(make_service(), url)
        with pytest.raises(ApplicationError) as failed:
            await open_call
        assert failed.value.code == "UNEXPECTED_DISCONNECT"
        assert (await peer.call("demo.echo", b"3")).data == b"3"
        assert not peer.closed
    await server.close()
    await alone()


async def test_used_up_budget_fails_calls_until_it_is_refilled(hasty: None) -> None:
    server = await weirpool.serve(make_service(), URL)
    settings = weirpool.Settings(session_grace=0.0)
    async with weirpool.connect(URL, settings=settings) as peer:
        connector = peer._connector
        assert isinstance(connector, Reconnecting)
        await peer.call("demo.echo", b"1")
        await server.close(0)
        waiting = asyncio.ensure_future(peer.call("demo.echo", b"2"))
        with pytest.raises((ConnectError, ApplicationError), match=r"reset_budget|disconnected"):
            await waiting
        await until(lambda: connector._backoff.used_up)
        async with weirpool.serve(make_service(), URL):
            await turns(50)
            with pytest.raises(ConnectError, match=r"retry budget is used up .*reset_budget\(\)"):
                await peer.call("demo.echo", b"3")
            assert not peer.closed and not connector.connected
            peer.reset_budget()
            assert (await peer.call("demo.echo", b"4")).data == b"4"
    await alone()


async def test_budget_is_exhausted_while_an_attempt_is_awaited(hasty: None) -> None:
    budget = RetryBudget()
    for _ in range(4):
        assert not budget.exhausted
        await budget.wait()
    # The last attempt is running.
    assert budget.used_up and not budget.exhausted
    waiting = [asyncio.ensure_future(budget.wait()) for _ in range(2)]
    await turns(2)
    assert budget.exhausted
    waiting.pop().cancel()
    await turns(2)
    assert budget.exhausted
    budget.refill()
    assert not budget.exhausted
    await waiting[0]
    assert not budget.exhausted


async def test_peer_without_reconnect_is_closed(hasty: None) -> None:
    server = await weirpool.serve(make_service(), URL)
    async with weirpool.connect(URL, reconnect=False, settings=weirpool.Settings(session_grace=0.0)) as peer:
        await peer.call("demo.echo", b"1")
        peer.reset_budget()
        await server.close(0)
        await until(lambda: peer.closed)
        with suppress(weirpool.WeirpoolError):
            await peer.call("demo.echo", b"2")
    await alone()


async def test_interceptors_and_taps_work_together(hasty: None) -> None:
    async def through(request: weirpool.Request, proceed: weirpool.Next) -> object:
        return await proceed(request)

    server = await weirpool.serve(make_service(), URL)
    settings = weirpool.Settings(session_grace=0.0)
    async with weirpool.connect(URL, interceptors=[through], taps=[weirpool.Tap()], settings=settings) as peer:
        await peer.call("demo.echo", b"1")
        await server.close(0)
        connector = peer._connector
        assert isinstance(connector, Reconnecting)
        await until(lambda: connector._backoff.used_up)
        async with weirpool.serve(make_service(), URL):
            peer.reset_budget()
            # The budget is also informed of handshakes when taps are installed.
            assert connector.latest.session.linked_at is None
            assert (await peer.call("demo.echo", b"2")).data == b"2"
            assert connector.latest.session.linked_at is not None
    await alone()


@pytest.mark.parametrize("holds", [True, False])
async def test_live_links_restore_attempts(hasty: None, monkeypatch: pytest.MonkeyPatch, holds: bool) -> None:
    if holds:
        monkeypatch.setattr(module, "RESTORE_SECONDS", 1e-9)
    async with weirpool.serve(make_service(), URL), weirpool.connect(URL) as peer:
        connector = peer._connector
        assert isinstance(connector, Reconnecting)
        for turn in range(12):
            link = connector.latest.link
            assert link is not None
            link.abort()
            if turn >= 4 and not holds:
                call = asyncio.ensure_future(peer.call("demo.echo", b"1"))
                await turns(20)
                assert connector._backoff.used_up and not call.done()
                peer.reset_budget()
                assert (await call).data == b"1"
                break
            assert (await peer.call("demo.echo", b"1")).data == b"1"
        assert turn == (11 if holds else 4)
    await alone()


def test_excused_failure_uses_no_attempt() -> None:
    budget = RetryBudget()
    for _ in range(100):
        budget.excuse()
        assert budget.take(0.0) == 0.0
    assert budget.remaining(0.0) == 4
    budget.excuse()
    budget.excuse()
    assert budget.remaining(0.0) == 5
