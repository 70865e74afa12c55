from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.aio.fakes import FakeLink
from tests.aio.serving import alone
from tests.waiting import turns, until
from weirpool import ConnectError, Payload, Settings
from weirpool.aio import dialer as module
from weirpool.aio.dialer import Dialer
from weirpool.aio.driver import Driver
from weirpool.aio.reconnect import Backoff
from weirpool.aio.service import Service
from weirpool.urls import parse_url

pytestmark = pytest.mark.usefixtures("tidy")


def dialer_of(
    settings: Settings,
    delays: list[float] | None = None,
    checkpoint: bytes | None = None,
    delay: float = 0.0,
    secret: bytes = b"",
) -> Dialer:
    """Return a dialer that waits for `delay` seconds each time; `delays` gets one entry a wait."""

    class Noted(Backoff):
        def next(self) -> float:
            if delays is not None:
                delays.append(delay)
            return delay

    url = parse_url("rsocket+memory://dialer")
    return Dialer(url, Service(), settings, Payload(b"hello"), None, Noted, checkpoint, secret=secret)


@pytest.fixture
def connecting(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Results of attempts to connect: a link, an exception, or by default a working link."""
    outcomes: list[Any] = []

    async def connect(url: Any, driver: Driver, settings: Settings, ssl: Any) -> None:
        outcome = outcomes.pop(0) if outcomes else FakeLink()
        if isinstance(outcome, FakeLink):
            driver.link_made(outcome)
            return
        raise outcome

    monkeypatch.setattr(module.transports, "connect", connect)
    return outcomes


async def test_new_session_sends_its_set_up_on_its_first_link(connecting: list[Any]) -> None:
    dialer, link = dialer_of(Settings()), FakeLink()
    connecting.append(link)
    driver = dialer.driver()
    assert driver.link is None
    await dialer.link(driver)
    assert driver.link is link
    assert b"hello" in b"".join(link.written)
    driver.detach()


async def test_dialer_creates_a_new_connection_for_each_session(connecting: list[Any]) -> None:
    dialer = dialer_of(Settings())
    before = dialer.connection
    drivers = [dialer.driver(), dialer.driver()]
    assert drivers[0].session is not drivers[1].session
    assert dialer.connection is not before


async def test_session_can_be_opened_again_after_a_failed_attempt(connecting: list[Any]) -> None:
    dialer, link = dialer_of(Settings()), FakeLink()
    connecting += [ConnectError("nobody there"), link]
    driver = dialer.driver()
    with pytest.raises(ConnectError, match="nobody there"):
        await dialer.link(driver)
    await dialer.link(driver)
    assert driver.link is link
    driver.detach()


async def test_link_opened_during_cancellation_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    link = FakeLink()

    async def connect(url: Any, driver: Driver, settings: Settings, ssl: Any) -> None:
        driver.link_made(link)
        raise asyncio.CancelledError

    monkeypatch.setattr(module.transports, "connect", connect)
    dialer = dialer_of(Settings())
    driver = dialer.driver()
    with pytest.raises(asyncio.CancelledError):
        await dialer.link(driver)
    assert link.told == ["abort"]


async def test_lost_link_is_replaced(connecting: list[Any]) -> None:
    delays: list[float] = []
    dialer, link = dialer_of(Settings(resume=True), delays), FakeLink()
    driver = dialer.driver()
    await dialer.link(driver)
    connecting += [ConnectError("one"), ConnectError("two"), link]
    driver.link_lost(None)
    await until(lambda: driver.link is link)
    assert len(delays) == 3
    assert not driver.closed
    driver.detach()
    await alone()


async def test_delays_grow_until_a_link_has_held(connecting: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # A server that drops each connection at once is not retried as fast as the network allows.
    delays: list[str] = []
    dialer = dialer_of(Settings(resume=True))

    class Noting(Backoff):
        async def wait(self) -> None:
            delays.append("wait")

        def reset(self) -> None:
            delays.append("reset")

    dialer.backoff = Noting
    driver = dialer.driver()
    await dialer.link(driver)
    for held in (0.0, module.STABLE_SECONDS, 0.0):
        monkeypatch.setattr(module, "STABLE_SECONDS", 1e9 if held == 0.0 else 0.0)
        before = driver.link
        driver.link_lost(None)
        await until(lambda before=before: driver.link not in (None, before))
    # The first link was opened outside the dialer.
    assert delays == ["reset", "wait", "reset", "wait", "wait"]
    driver.detach()
    await alone()


async def test_ended_session_gets_no_link(connecting: list[Any]) -> None:
    dialer = dialer_of(Settings(resume=True), delay=1000.0)
    driver = dialer.driver()
    await dialer.link(driver)
    driver.link_lost(None)
    await turns(3)
    driver.detach()
    await alone()


async def test_checkpoint_is_used_for_the_first_linked_session(connecting: list[Any]) -> None:
    settings = Settings(resume=True)
    before = dialer_of(settings)
    left = before.driver()
    await before.link(left)
    checkpoint, secret = left.session.checkpoint(0, 0), left.session.secret
    left.detach()

    dialer, links = dialer_of(settings, checkpoint=checkpoint, secret=secret), [FakeLink(), FakeLink()]
    connecting += [ConnectError("away"), *links]
    with pytest.raises(ConnectError):
        await dialer.link(dialer.driver())
    for _ in links:
        driver = dialer.driver()
        await dialer.link(driver)
        driver.detach()
    # The first one resumes; the other one sends its set-up.
    assert [b"hello" in b"".join(link.written) for link in links] == [False, True]
