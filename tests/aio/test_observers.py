from __future__ import annotations

import asyncio
from typing import Any

import pytest

import weirpool
from tests.aio.taps import Notes
from tests.aio.test_client import Proxy
from tests.aio.test_hooks import URL, Hook, service
from tests.waiting import until
from weirpool import (
    Connection,
    Metrics,
    Next,
    Request,
    Service,
    SessionError,
    Settings,
)
from weirpool.aio.driver import Driver
from weirpool.aio.observers import Observers
from weirpool.protocols import client_session

# The driver.


async def test_observers_add_only_what_is_installed() -> None:
    async def look(request: Request, after: Next) -> Any:
        return await after(request)

    def made(observers: Observers, offered: Service, is_client: bool = True) -> Driver:
        settings = Settings()
        connection = Connection("rsocket", "place", is_client)
        return observers.driver(client_session("rsocket", settings), settings, offered, connection)

    plain = Service()
    driver = made(Observers(), plain)
    assert (driver.sink, driver.admission, driver.taps) == (driver.dispatch, None, None)
    assert (driver.dispatch.service, driver.flow.name) == (plain, "place")
    assert type(driver.session).__name__ == "RSocketSession"
    tapped = made(Observers([Notes()]), plain)
    assert tapped.session is tapped.taps and tapped.sink is tapped.dispatch
    hooked = made(Observers(hook=Hook()), plain)
    assert hooked.sink is hooked.admission and type(hooked.session).__name__ == "RSocketSession"
    served = made(Observers(), plain, is_client=False)
    assert served.sink is served.admission
    intercepted = made(Observers(), Service(interceptors=[look]))
    assert type(intercepted.dispatch.service) is not Service


async def test_admission_is_removed_after_the_client_is_admitted() -> None:
    async with weirpool.serve(service(), URL) as server, weirpool.connect(URL) as peer:
        await peer.call("echo", b"x")
        (driver,) = server._drivers.values()
        assert (driver.sink, driver.admission) == (driver.dispatch, None)
        assert driver.dispatch.service is server._service


# Taps.


async def test_taps_of_both_sides_see_the_same_bytes() -> None:
    ours, theirs = Notes(), Notes()
    async with weirpool.serve(service(), "rsocket+tcp://127.0.0.1:0", taps=[theirs]) as server:
        async with weirpool.connect(server.urls[0], taps=[ours]) as peer:
            await peer.call("echo", bytes(100_000))
            async with peer.stream("count", b"100") as items:
                assert len([item async for item in items]) == 100
        await until(lambda: bool(theirs.of("closed")))
    assert ours.bytes["sent"] == theirs.bytes["received"]
    assert ours.bytes["received"] == theirs.bytes["sent"]
    assert len(ours.bytes["sent"]) > 100_000


async def test_resumption_is_reported_once_on_each_side() -> None:
    ours, theirs, hook = Notes(), Notes(), Hook()
    settings = Settings(resume=True)
    async with weirpool.serve(
        service(), "rsocket+tcp://127.0.0.1:0", taps=[theirs], on_connection=hook, settings=settings
    ) as server:
        async with Proxy(int(server.urls[0].rpartition(":")[2])) as proxy:
            async with weirpool.connect(proxy.url, settings=settings, taps=[ours]) as peer:
                await peer.call("echo", b"x")
                proxy.cut()
                assert (await peer.call("echo", b"y")).data == b"y"
            await until(lambda: bool(theirs.of("closed")))
    for notes in (ours, theirs):
        assert [told[0] for told in notes.of("opened", "resumed", "closed")] == ["opened", "resumed", "closed"]
    assert hook.told == ["entering", "entered", "left"]


async def test_refused_links_are_reported_to_taps(caplog: pytest.LogCaptureFixture) -> None:
    notes = Notes()
    settings = Settings(max_connections=1)
    async with weirpool.serve(service(), "rsocket+tcp://127.0.0.1:0", taps=[notes], settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        await until(lambda: len(notes.told) == 1)
        writer.close()
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("echo")
            async with weirpool.connect(server.urls[0]) as other:
                with pytest.raises(SessionError, match="max_connections"):
                    await other.call("echo")
    refused = notes.of("refused")
    assert [address for _, address, _ in refused] == ["127.0.0.1", "127.0.0.1"]
    assert refused[1][2] == "max_connections (1) are open"


async def test_detach_closes_the_connection_for_taps_and_hook() -> None:
    notes, hook = Notes(), Hook()
    async with weirpool.serve(service(), URL, settings=Settings(resume_timeout=0.0)):
        peer = await weirpool.connect(URL, taps=[notes], on_connection=hook)
        await peer.call("echo")
        peer.detach()
        await until(lambda: hook.told == ["entering", "entered", "left"])
        assert notes.of("opened", "closed") == [("opened",), ("closed", None)]


async def test_one_metrics_serves_both_sides() -> None:
    metrics = Metrics()
    async with weirpool.serve(service(), URL, taps=[metrics]), weirpool.connect(URL, taps=[metrics]) as peer:
        await peer.call("echo")
        assert metrics.snapshot().connections == 2
    assert metrics.snapshot().connections == 0
