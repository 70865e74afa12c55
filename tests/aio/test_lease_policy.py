"""A lease policy of the application that fails ends no connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

import weirpool
from tests.sim.clockwork import run
from weirpool import FixedLease, Lease, LeaseUsage, Payload, Service, Settings
from weirpool.aio.lease_policy import NOTHING, contained_lease

USED_UP = LeaseUsage(0, True, 0)


class Scripted:
    """A policy that grants, returns or raises one thing after another, and the last one for ever."""

    def __init__(self, *script: Any) -> None:
        self.script = list(script)

    def grant(self, usage: LeaseUsage) -> Any:
        now = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if isinstance(now, Exception):
            raise now
        return now


def failures(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.message for record in caplog.records if "the lease policy" in record.message]


@pytest.mark.parametrize("wrong", [ZeroDivisionError(), (5, 1.0), Lease(1.5, 1.0), Lease(5, "long")])  # type: ignore[arg-type]
def test_policy_that_fails_grants_nothing(wrong: Any, caplog: pytest.LogCaptureFixture) -> None:
    policy: Any = contained_lease(Settings(lease=Scripted(wrong, Lease(5, 1.0)))).lease
    assert policy.grant(USED_UP) == NOTHING
    assert len(failures(caplog)) == 1 and "Scripted" in failures(caplog)[0]
    assert caplog.records[0].levelno == logging.ERROR and caplog.records[0].exc_info
    assert policy.grant(USED_UP) == Lease(5, 1.0)


def test_policy_that_fails_takes_nothing_away() -> None:
    policy: Any = contained_lease(Settings(lease=Scripted(ZeroDivisionError()))).lease
    assert policy.grant(LeaseUsage(1, False, 5)) is None


def test_failures_in_a_row_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    error = RuntimeError("no")
    policy: Any = contained_lease(Settings(lease=Scripted(error, error, None, error))).lease
    logged = []
    for _ in range(4):
        policy.grant(USED_UP)
        logged.append(len(failures(caplog)))
    assert logged == [1, 1, 1, 2]


@pytest.mark.parametrize("lease", [True, False])
def test_settings_without_a_policy_are_not_changed(lease: bool) -> None:
    settings = Settings(lease=lease)
    assert contained_lease(settings) is settings


def test_policy_is_contained_once() -> None:
    settings = contained_lease(Settings(lease=FixedLease()))
    assert contained_lease(settings) is settings


def test_server_serves_on_when_its_policy_fails(caplog: pytest.LogCaptureFixture) -> None:
    # It fails at the set-up, and when the lease is used up while a stream is open.
    error = RuntimeError("the policy is broken")
    service = Service()
    service.call("echo")(lambda request: request)

    @service.stream("count")
    async def count(request: Payload) -> AsyncIterator[bytes]:
        for number in range(4):
            yield b"%d" % number

    async def main() -> None:
        settings = Settings(lease=Scripted(error, Lease(2, 3600.0), error, Lease(9, 3600.0)))
        async with weirpool.serve(service, "rsocket+memory://broken", settings=settings) as server:
            client = Settings(lease=True)
            async with weirpool.connect(server.urls[0], settings=client) as peer:
                async with peer.stream("count", credit=1, manual=True) as stream:
                    items = aiter(stream)
                    assert (await anext(items)).data == b"0"
                    assert (await peer.call("echo", b"1")).data == b"1"
                    calls = asyncio.gather(*(peer.call("echo", b"%d" % number) for number in range(2, 5)))
                    stream.grant(10)
                    assert [item.data async for item in items] == [b"1", b"2", b"3"]
                    assert [answer.data for answer in await calls] == [b"2", b"3", b"4"]

    run(main())
    assert len(failures(caplog)) == 2


def test_client_stays_connected_when_its_policy_fails(caplog: pytest.LogCaptureFixture) -> None:
    service = Service()
    service.call("echo")(lambda request: request)

    async def main() -> None:
        mine = Settings(lease=Scripted(RuntimeError("the policy is broken"), Lease(9, 3600.0)))
        settings = Settings(lease=FixedLease())
        async with weirpool.serve(Service(), "rsocket+memory://back", settings=settings) as server:
            async with weirpool.connect(server.urls[0], service=service, settings=mine, confirm=True):
                assert (await server.peers[0].call("echo", b"hi")).data == b"hi"

    run(main())
    assert len(failures(caplog)) == 1
