from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

import weirpool
from tests.aio.serving import noted_drivers
from tests.aio.test_reconnecting_served import AT_ONCE, CONNECTION_CLOSE, host
from tests.waiting import until
from weirpool import (
    ResumeRejected,
    SessionError,
    Settings,
)
from weirpool.aio.reconnecting import Reconnecting

pytestmark = pytest.mark.usefixtures("tidy")

# Resuming.


async def test_resumable_session_is_resumed() -> None:
    async with host("rsocket+tcp://127.0.0.1:0") as it:
        async with weirpool.connect(it.url, settings=Settings(resume=True), reconnect=AT_ONCE) as peer:
            connector = peer._connector
            assert isinstance(connector, Reconnecting)
            await peer.call("echo")
            session = connector.latest.session
            call = asyncio.create_task(peer.call("never"))
            await it.reached.wait()
            assert connector.latest.link is not None
            connector.latest.link.abort()
            await until(lambda: not connector.connected)
            await until(lambda: connector.connected)
            assert (await peer.call("echo", b"x")).data == b"x"
            assert connector.latest.session is session
            assert not call.done()
            call.cancel()


async def test_a_session_that_cannot_be_resumed_is_followed_by_another() -> None:
    async with host() as it:
        async with weirpool.connect(it.url, settings=Settings(resume=True), reconnect=AT_ONCE) as peer:
            connector = peer._connector
            assert isinstance(connector, Reconnecting)
            await peer.call("echo")
            call = asyncio.create_task(peer.call("never"))
            await it.reached.wait()
            # The link breaks silently, and the new server does not know the session.
            old = it._server
            assert old is not None and connector.latest.link is not None
            for listener in old._listeners:
                await listener.close()
            await it.start()
            connector.latest.link.abort()
            with pytest.raises(ResumeRejected, match="no session with this token"):
                await call
            assert (await peer.call("echo", b"x")).data == b"x"
            await old.close(0)


# A server that drains.


async def test_streams_of_a_draining_server_may_end() -> None:
    hooked: list[str] = []

    async def hook(peer: weirpool.Peer) -> None:
        hooked.append("begun")
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            hooked.append("ended")

    policy = replace(AT_ONCE, on_connect=hook, first_delay=1000.0, longest_delay=1000.0)
    with noted_drivers() as drivers:
        async with host() as it, weirpool.connect(it.url, reconnect=policy) as peer:
            connector = peer._connector
            assert isinstance(connector, Reconnecting)
            stream = peer.stream("acount", b"10", credit=2, manual=True)
            async with stream:
                assert (await anext(aiter(stream))).data == b"0"
                connector._connected_at = -1e9
                drivers[0].received(CONNECTION_CLOSE)
                assert not connector.connected
                assert (await peer.call("echo", b"x")).data == b"x"
                assert len(drivers) == 2
                assert peer.outstanding == 1
                assert hooked == ["begun", "begun"]
                stream.grant(20)
                assert [item.data async for item in stream] == [b"%d" % number for number in range(1, 10)]
            if drivers[0].link is not None:
                drivers[0].link.abort()
            await until(lambda: hooked == ["begun", "begun", "ended"])
            assert (await peer.call("echo", b"x")).data == b"x"


async def test_close_ends_streams_on_a_draining_server() -> None:
    with noted_drivers() as drivers:
        async with host() as it, weirpool.connect(it.url, reconnect=AT_ONCE) as peer:
            never = asyncio.create_task(peer.call("never"))
            await it.reached.wait()
            drivers[0].received(CONNECTION_CLOSE)
            assert (await peer.call("echo", b"x")).data == b"x"
            await peer.close(0)
            with pytest.raises(SessionError):
                await never
