"""A BaseException of an acceptor, a hook or a tap costs at most its connection."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.aio.test_dispatch_isolation import PLACES, Panic, service_of
from weirpool import WeirpoolError


@pytest.mark.parametrize("error", [Panic, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
async def test_base_exception_of_an_acceptor_rejects_its_client(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    def accept(setup: weirpool.Setup) -> None:
        raise error("a secret")

    async def accept_later(setup: weirpool.Setup) -> None:
        await asyncio.sleep(0)
        raise error("a secret")

    for acceptor in (accept, accept_later):
        caplog.clear()
        async with weirpool.serve(service_of(lambda name: None), PLACES[0], acceptor=acceptor) as server:
            async with weirpool.connect(server.urls[0]) as peer:
                with pytest.raises(WeirpoolError, match="the server rejected the set-up"):
                    await peer.call("call.plain")
        assert "the acceptor failed" in [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("error", [Panic, SystemExit, KeyboardInterrupt])
async def test_base_exception_of_a_hook_refuses_its_connection(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    @asynccontextmanager
    async def hook(connection: weirpool.Connection) -> AsyncIterator[None]:
        raise error("a secret")
        yield

    @asynccontextmanager
    async def late(connection: weirpool.Connection) -> AsyncIterator[None]:
        yield
        raise error("a secret")

    service = service_of(lambda name: None)
    async with weirpool.serve(service, PLACES[0], on_connection=hook) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            with pytest.raises(WeirpoolError, match="refused the connection"):
                await peer.call("call.plain")
    async with weirpool.serve(service, PLACES[0], on_connection=late) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("call.plain")
        with pytest.raises(RuntimeError, match=f"on_connection raised {error.__name__}"):
            await weirpool.connect(server.urls[0], on_connection=hook)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert [message.partition(": ")[2] for message in said] == [
        "on_connection failed",
        "on_connection failed when it exited",
    ]


@pytest.mark.parametrize("error", [Panic, SystemExit, KeyboardInterrupt])
async def test_base_exception_of_a_tap_disables_it(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(weirpool.Tap):
        def stream_opened(self, *arguments: object) -> None:
            raise error("boom")

    service = service_of(lambda name: None)
    async with weirpool.serve(service, PLACES[0], taps=[Broken()]) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            await peer.call("call.plain")
    assert "it is disabled for this connection" in caplog.text
