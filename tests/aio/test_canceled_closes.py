"""Tasks that are canceled while they connect or close, and what must not outlive them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

import weirpool
from tests.aio.serving import make_service
from tests.waiting import turns, until
from weirpool import Connection, Payload, Reconnect, Service, Settings, transports

pytestmark = pytest.mark.usefixtures("tidy")

URL = "rsocket+memory://canceled"
PATIENT = Settings(resume=True, close_grace=1_000)


async def canceled(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel `work` when it waits."""
    task = asyncio.ensure_future(work)
    await turns(5)
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


def others() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


@pytest.mark.parametrize("between", range(4))
@pytest.mark.parametrize("after", range(1, 5))
@pytest.mark.parametrize("kind", ["direct", "reconnecting", "balanced"])
async def test_close_that_is_canceled_twice_ends_all_sessions(kind: str, after: int, between: int) -> None:
    # The second one may arrive before the tasks of the first one have begun.
    reached = asyncio.Event()
    async with weirpool.serve(make_service([], reached), URL) as server:
        if kind == "balanced":
            peer: weirpool.Peer = await weirpool.balance([URL], settings=PATIENT)
        else:
            reconnect = Reconnect() if kind == "reconnecting" else None
            peer = await weirpool.connect(URL, settings=PATIENT, reconnect=reconnect)
        call = asyncio.ensure_future(peer.call("never"))
        await reached.wait()
        closing = asyncio.ensure_future(peer.close())
        await turns(after)
        closing.cancel()
        await turns(between)
        closing.cancel()
        with pytest.raises(weirpool.SessionError):
            await call
        await until(lambda: server.connections == 0)
        with suppress(asyncio.CancelledError):
            await closing
        await until(lambda: not others())
    assert peer.closed


@pytest.mark.parametrize("reconnect", [None, Reconnect()])
async def test_canceled_close_ends_a_session_at_once(reconnect: Reconnect | None) -> None:
    seen: list[object] = []
    reached = asyncio.Event()
    async with weirpool.serve(make_service(seen, reached), URL) as server:
        peer = await weirpool.connect(URL, settings=PATIENT, reconnect=reconnect)
        call = asyncio.ensure_future(peer.call("never"))
        await reached.wait()
        await canceled(peer.close())
        with pytest.raises(weirpool.SessionError):
            await call
        # It would resume otherwise.
        await until(lambda: server.connections == 0)
    assert peer.closed and not others()


async def test_canceled_close_ends_a_balancer_at_once() -> None:
    reached = asyncio.Event()
    async with weirpool.serve(make_service([], reached), URL) as server:
        balancer = await weirpool.balance([URL], settings=PATIENT)
        call = asyncio.ensure_future(balancer.call("never"))
        await reached.wait()
        await canceled(balancer.close())
        with pytest.raises(weirpool.SessionError):
            await call
        await until(lambda: server.connections == 0)
    assert not others()


async def test_canceled_close_of_a_server_ends_it_at_once() -> None:
    reached = asyncio.Event()
    server = await weirpool.serve(make_service([], reached), URL, "rsocket+memory://another", settings=PATIENT)
    peer = await weirpool.connect(URL)
    call = asyncio.ensure_future(peer.call("never"))
    await reached.wait()
    await canceled(server.close())
    with pytest.raises(weirpool.SessionError):
        await call
    await peer.close()
    assert server.connections == 0 and not others()
    # Both names are free.
    async with weirpool.serve(Service(), URL, "rsocket+memory://another"):
        pass


async def test_second_close_leaves_a_successor_alone() -> None:
    server = await weirpool.serve(make_service([], asyncio.Event()), URL)
    await server.close()
    async with weirpool.serve(make_service([], asyncio.Event()), URL):
        await server.close()
        async with weirpool.connect(URL) as peer:
            assert (await peer.call("echo", b"hi")).data == b"hi"


async def test_two_tasks_may_close_and_one_be_canceled() -> None:
    reached = asyncio.Event()
    async with weirpool.serve(make_service([], reached), URL):
        peer = await weirpool.connect(URL, settings=PATIENT)
        call = asyncio.ensure_future(peer.call("never"))
        await reached.wait()
        patient = asyncio.ensure_future(peer.close())
        await turns(3)
        await canceled(peer.close())
        await patient
        with pytest.raises(weirpool.SessionError):
            await call


@pytest.mark.parametrize("reconnect", [None, Reconnect()])
@pytest.mark.parametrize("error", [asyncio.CancelledError(), weirpool.ConnectError("no answer within 3 s")])
async def test_link_made_too_late_is_not_resumed(
    error: BaseException, reconnect: Reconnect | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect = transports.connect

    async def fail(*arguments: Any) -> None:
        await connect(*arguments)
        raise error

    async with weirpool.serve(make_service([], asyncio.Event()), URL) as server:
        monkeypatch.setattr(transports, "connect", fail)
        with pytest.raises(type(error)):
            await weirpool.connect(URL, settings=PATIENT, reconnect=reconnect)
        monkeypatch.undo()
        await turns(10)
        assert server.connections == 0 and not others()


async def test_connect_is_canceled_while_its_hook_is_entered() -> None:
    told: list[str] = []

    @asynccontextmanager
    async def hook(connection: Connection) -> AsyncIterator[None]:
        try:
            told.append("entering")
            await asyncio.get_running_loop().create_future()
            yield
        finally:
            told.append("canceled")

    async with weirpool.serve(make_service([], asyncio.Event()), URL):
        await canceled(weirpool.connect(URL, on_connection=hook)._open())
    assert told == ["entering", "canceled"] and not others()


async def test_handler_of_a_fire_outlives_its_connection_but_not_its_server() -> None:
    service, told = Service(), list[str]()

    @service.fire("work")
    async def work(request: Payload) -> None:
        told.append("begun")
        try:
            # Nothing else refers to this future, nor to the task that waits for it.
            await asyncio.get_running_loop().create_future()
        finally:
            told.append("canceled")

    async with weirpool.serve(service, URL) as server:
        async with weirpool.connect(URL) as peer:
            await peer.fire("work")
            await until(lambda: told == ["begun"])
        await until(lambda: server.connections == 0)
        gc.collect()
        await turns(3)
        assert told == ["begun"]
    assert told == ["begun", "canceled"] and not others()
