from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from tests.aio.fakes import FakeLink, FakeSession, fake_connection
from tests.aio.serving import alone
from tests.builds import Build
from tests.waiting import turns, until

pytestmark = pytest.mark.usefixtures("tidy")

pytestmark = pytest.mark.usefixtures("tidy")


class FakeDialer:
    """A dialer of fake links, with sessions that send nothing.

    Attributes:
        breaks: How many of the next links break at once.

    """

    def __init__(self, build: Build, *outcomes: Exception | None) -> None:
        self._build = build
        self._outcomes = list(outcomes)
        self.settings = build.module("weirpool.settings").Settings()
        self.drivers: list[Any] = []
        self.links: list[FakeLink] = []
        self.breaks = 0

    def driver(self) -> Any:
        kind = self._build.module("weirpool.aio.driver").Driver
        session = FakeSession(self._build)
        service = self._build.module("weirpool.aio.service").Service()
        connection = fake_connection(self._build, is_client=True)
        self.drivers.append(kind(session, self.settings, service, connection))
        return self.drivers[-1]

    async def open(self, driver: Any) -> None:
        outcome = self._outcomes.pop(0) if self._outcomes else None
        if outcome is not None:
            raise outcome
        self.links.append(FakeLink(driver))
        driver.link_made(self.links[-1])
        if self.breaks:
            self.breaks -= 1
            happened(self._build, driver, "Closed", self._build.module("weirpool.errors").PeerClosed("no"))
            driver.link_lost(None)


def policy_of(build: Build, **changed: Any) -> Any:
    return build.module("weirpool.aio.reconnect").Reconnect(first_delay=0.0, longest_delay=0.0, **changed)


def happened(build: Build, driver: Any, name: str, *arguments: Any) -> None:
    """Let the session of `driver` report this event."""
    driver.session.events.append(getattr(build.module("weirpool.events"), name)(*arguments))
    driver.flush()


async def test_a_dead_link_is_not_waited_for(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.module("weirpool.aio.driver"), "CLOSE_TIMEOUT", 0.0)
    dialer = FakeDialer(build)
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy_of(build))
    await connector.open()
    first = dialer.drivers[0]
    silent = build.module("weirpool.errors").KeepaliveTimeout("nothing was heard")
    happened(build, first, "Closed", silent)
    assert connector.last_error is silent
    # Its link never reports its loss.
    await until(lambda: connector.connected)
    assert len(dialer.drivers) == 2
    await until(lambda: "abort" in dialer.links[0].told)
    first.link_lost(None)
    dialer.drivers[1].session.link_wanted = False
    happened(build, dialer.drivers[1], "Closed", None)
    dialer.drivers[1].link_lost(None)
    await connector.close(0)
    await alone()


async def test_closing_waits_until_dead_links_are_gone(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build.module("weirpool.aio.driver"), "CLOSE_TIMEOUT", 0.0)
    dialer = FakeDialer(build)
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy_of(build))
    await connector.open()
    happened(build, dialer.drivers[0], "Closed", build.module("weirpool.errors").KeepaliveTimeout("silent"))
    await until(lambda: connector.connected)
    closing = asyncio.create_task(connector.close(0))
    await turns(1)
    happened(build, dialer.drivers[1], "Closed", None)
    dialer.drivers[1].link_lost(None)
    await until(lambda: "abort" in dialer.links[0].told)
    await turns(10)
    assert not closing.done()
    dialer.drivers[0].link_lost(None)
    await closing
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_detach_stops_retries(build: Build) -> None:
    dialer = FakeDialer(build)
    policy = replace(policy_of(build), first_delay=1000.0, longest_delay=1000.0)
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy)
    await connector.open()
    happened(build, dialer.drivers[0], "Closed", build.module("weirpool.errors").LinkLost("broke"))
    dialer.drivers[0].link_lost(None)
    # It waits for the next attempt.
    await until(lambda: len(dialer.drivers) == 2)
    connector.detach()
    await alone()


async def test_draining_server_gets_no_new_requests(build: Build) -> None:
    dialer = FakeDialer(build)
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy_of(build, new_calls="fail"))
    await connector.open()
    old = dialer.drivers[0]
    happened(build, old, "Draining")
    with pytest.raises(build.module("weirpool.errors").ConnectError, match="the server is closing"):
        await connector.peer.call("echo")
    # There is another connection while streams may still end on this one.
    await until(lambda: connector.connected)
    assert await connector.driver() is dialer.drivers[1]
    assert not old.closed and "close" not in dialer.links[0].told
    happened(build, old, "Closed", None)
    old.link_lost(None)
    await until(lambda: old.over.done())
    assert connector.connected and len(dialer.drivers) == 2
    connector.detach()
    await alone()


async def test_session_without_link_retries_on_the_next_attempt(build: Build) -> None:
    errors = build.module("weirpool.errors")
    dialer = FakeDialer(build, errors.ConnectError("one"), errors.ConnectError("two"))
    changes: list[object] = []
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(
        dialer, policy_of(build), lambda: changes.append(1)
    )
    connector.begin()
    await until(lambda: connector.connected)
    assert (len(dialer.drivers), len(changes), connector.last_error) == (1, 3, None)
    connector.detach()


async def test_connection_that_breaks_at_once_is_a_failed_attempt(build: Build) -> None:
    told: list[Any] = []

    async def tell(peer: Any) -> None:
        told.append(peer)

    dialer = FakeDialer(build)
    dialer.breaks = 2
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy_of(build, on_connect=tell))
    await connector.open()
    assert not connector.connected
    assert await connector.driver() is dialer.drivers[2]
    await until(lambda: told == [connector.peer])
    connector.detach()
    await alone()


async def test_connections_that_break_at_once_are_counted(build: Build) -> None:
    dialer = FakeDialer(build)
    dialer.breaks = 10
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(
        dialer, policy_of(build, initial=True, attempts=3)
    )
    with pytest.raises(build.module("weirpool.errors").PeerClosed):
        await connector.open()
    assert len(dialer.links) == 3
    await alone()


@pytest.mark.parametrize("held", [True, False])
async def test_stable_connection_resets_the_attempts(build: Build, monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    errors, module = build.module("weirpool.errors"), build.module("weirpool.aio.reconnecting")
    monkeypatch.setattr(module, "STABLE_SECONDS", 0.0 if held else 1000.0)
    resets: list[Any] = []
    monkeypatch.setattr(build.module("weirpool.aio.reconnect").Backoff, "reset", lambda backoff: resets.append(backoff))
    dialer = FakeDialer(build)
    connector = module.Reconnecting(dialer, policy_of(build, attempts=2))
    await connector.open()
    for _ in range(5):
        count = len(dialer.drivers)
        happened(build, dialer.drivers[-1], "Closed", errors.PeerClosed("no"))
        dialer.drivers[-1].link_lost(None)
        await until(lambda count=count: connector.closed or (len(dialer.drivers) > count and connector.connected))
        if connector.closed:
            break
    assert (connector.closed, len(dialer.drivers), len(resets)) == ((False, 6, 5) if held else (True, 2, 0))
    connector.detach()
    await alone()


async def test_permanent_failure_raises_without_retries(build: Build) -> None:
    errors = build.module("weirpool.errors")
    dialer = FakeDialer(build)
    connector = build.module("weirpool.aio.reconnecting").Reconnecting(dialer, policy_of(build))
    await connector.open()
    happened(build, dialer.drivers[0], "Closed", errors.SetupRejected("no"))
    await until(lambda: connector.closed)
    assert isinstance(connector.last_error, errors.SetupRejected)
    assert len(dialer.links) == 1
    dialer.drivers[0].link_lost(None)
