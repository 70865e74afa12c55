from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

import weirpool
from tests.aio.serving import alone, make_service
from tests.waiting import turns, until
from weirpool import (
    ConnectError,
    PeerClosed,
    Reconnect,
    SessionClosed,
    SessionError,
    Settings,
    SetupRejected,
    UrlError,
)
from weirpool.aio.reconnecting import Reconnecting

pytestmark = pytest.mark.usefixtures("tidy")

URL = "rsocket+memory://lasting"
CONNECTION_CLOSE = bytes.fromhex("00000a 00000000 2c00 00000102")
"""RSocket 1.0, Error Codes: open streams may end."""
AT_ONCE = Reconnect(first_delay=0.0, longest_delay=0.0)


class Host:
    """A server that is killed and restarted at the same address."""

    def __init__(self, url: str, settings: Settings | None = None) -> None:
        self.url = url
        self.seen: list[object] = []
        self.reached = asyncio.Event()
        self.service = make_service(self.seen, self.reached)
        self._settings = settings
        self._server: weirpool.Server | None = None

    async def start(self) -> None:
        self._server = await weirpool.serve(self.service, self.url, settings=self._settings)
        self.url = self._server.urls[0]

    async def kill(self) -> None:
        if self._server is not None:
            await self._server.close(0)
            self._server = None


@asynccontextmanager
async def host(url: str = URL, settings: Settings | None = None) -> AsyncIterator[Host]:
    it = Host(url, settings)
    await it.start()
    try:
        yield it
    finally:
        await it.kill()
    await alone()


async def lose(it: Host, peer: weirpool.Peer) -> None:
    """Kill the server, and wait until the peer has noticed."""
    connector = peer._connector
    assert isinstance(connector, Reconnecting)
    await it.kill()
    await until(lambda: not connector.connected)


# A server that restarts.


@pytest.mark.parametrize("url", [URL, "rsocket+tcp://127.0.0.1:0"])
async def test_a_server_that_was_restarted_is_found_again(url: str) -> None:
    async with host(url) as it, weirpool.connect(it.url, reconnect=AT_ONCE) as peer:
        for number in range(3):
            assert (await peer.call("echo", b"%d" % number)).data == b"%d" % number
            await lose(it, peer)
            waiting = asyncio.create_task(peer.call("echo", b"waited"))
            await turns(5)
            assert not waiting.done()
            await it.start()
            assert (await waiting).data == b"waited"
        assert not peer.closed


async def test_all_requests_use_the_new_connection() -> None:
    async with host() as it, weirpool.connect(it.url, reconnect=AT_ONCE) as peer:
        stream = peer.stream("count", b"3")
        await lose(it, peer)
        pushed: list[bytes] = []
        it.service.push(pushed.append)
        work = asyncio.gather(
            peer.fire("log", b"fired"),
            peer.upload("sum", b"", [b"1", b"2"]),
            peer.push(b"pushed"),
        )
        await turns(3)
        await it.start()
        assert (await work)[1].data == b"3"
        assert [item.data async for item in stream] == [b"0", b"1", b"2"]
        async with peer.channel("double", b"", [b"4"]) as items:
            assert [item.data async for item in items] == [b"8"]
        await it.reached.wait()
        assert it.seen[0] == b"fired"
        assert pushed == [b"pushed"]


async def test_open_streams_fail_with_the_reason() -> None:
    async with host("rsocket+tcp://127.0.0.1:0") as it, weirpool.connect(it.url, reconnect=AT_ONCE) as peer:
        call = asyncio.create_task(peer.call("never"))
        stream = peer.stream("count", b"1000000", credit=4)
        taken = 0
        with pytest.raises(PeerClosed, match="closed the connection"):
            async with stream:
                async for _ in stream:
                    taken += 1
                    if taken == 2:
                        await it.reached.wait()
                        await it.kill()
        assert taken >= 2
        assert isinstance(stream.error, PeerClosed)
        with pytest.raises(PeerClosed):
            await call
        await it.start()
        assert (await peer.call("echo", b"again")).data == b"again"


async def test_without_a_policy_the_peer_is_closed() -> None:
    async with host() as it, weirpool.connect(it.url) as peer:
        await peer.call("echo")
        await it.kill()
        await until(lambda: peer.closed)
        with pytest.raises(PeerClosed):
            await peer.call("echo")


# Calls without a connection.


async def test_calls_fail_at_once_with_new_calls_fail() -> None:
    policy = replace(AT_ONCE, new_calls="fail")
    async with host() as it, weirpool.connect(it.url, reconnect=policy) as peer:
        await lose(it, peer)
        with pytest.raises(ConnectError, match=r"no connection at the moment .*Weirpool is reconnecting"):
            await peer.call("echo")
        with pytest.raises(ConnectError):
            async for _ in peer.stream("count", b"1"):
                pass
        await it.start()
        await until(lambda: peer._connector.connected)  # type: ignore[attr-defined]
        assert (await peer.call("echo", b"x")).data == b"x"


async def test_calls_wait_up_to_the_timeout() -> None:
    policy = replace(AT_ONCE, wait_timeout=0.01)
    async with host() as it, weirpool.connect(it.url, reconnect=policy) as peer:
        await lose(it, peer)
        with pytest.raises(ConnectError, match=r"wait_timeout \(0.01 s\)"):
            await peer.call("echo")


async def test_a_call_that_waits_can_be_canceled() -> None:
    async with host() as it, weirpool.connect(it.url, reconnect=AT_ONCE) as peer:
        await lose(it, peer)
        tasks = [asyncio.create_task(peer.call("echo")) for _ in range(2)]
        await turns(3)
        tasks[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[0]
        await it.start()
        assert (await tasks[1]).data == b""


# The end.


async def test_close_stops_retries_and_fails_waiting_calls() -> None:
    async with host() as it:
        peer = await weirpool.connect(it.url, reconnect=AT_ONCE)
        await lose(it, peer)
        waiting = asyncio.create_task(peer.call("echo"))
        await turns(3)
        await peer.close()
        with pytest.raises(SessionClosed, match="this side closed"):
            await waiting
        assert peer.closed
        assert "closed" in repr(peer)
        with pytest.raises(SessionClosed):
            await peer.fire("log")
        await peer.close()
        await alone()


async def test_last_error_does_not_accumulate_frames() -> None:
    async with host() as it:
        peer = await weirpool.connect(it.url, reconnect=AT_ONCE)
        await peer.close()
        lengths = []
        for _ in range(3):
            with pytest.raises(SessionClosed) as closed:
                await peer.call("echo")
            lengths.append(len(closed.traceback))
        assert len(set(lengths)) == 1


async def test_close_lets_calls_end_and_accepts_no_more() -> None:
    async with host() as it:
        peer = await weirpool.connect(it.url, reconnect=AT_ONCE)
        call = asyncio.create_task(peer.call("later", b"x"))
        await turns(1)
        closing = asyncio.create_task(peer.close())
        await turns(1)
        with pytest.raises(SessionClosed):
            await peer.call("echo")
        assert (await call).data == b"x"
        await closing


async def test_detach_fails_later_calls() -> None:
    async with host() as it:
        peer = await weirpool.connect(it.url, reconnect=AT_ONCE)
        await peer.call("echo")
        peer.detach()
        with pytest.raises(SessionClosed, match="detached"):
            await peer.call("echo")


async def test_failed_attempts_are_counted() -> None:
    tried: list[Exception] = []

    def retry(error: Exception) -> bool:
        tried.append(error)
        return True

    async with host() as it:
        policy = replace(AT_ONCE, attempts=3, retry=retry)
        async with weirpool.connect(it.url, reconnect=policy) as peer:
            await peer.call("echo")
            await it.kill()
            await until(lambda: peer.closed)
            # The connection broke within a second, which is one of the three. The last one does not call `retry`.
            assert [type(error) for error in tried] == [PeerClosed, ConnectError]
            with pytest.raises(ConnectError, match="nothing in this event loop listens"):
                await peer.call("echo")


async def test_retry_function_decides_about_attempts() -> None:
    async with host() as it:
        policy = replace(AT_ONCE, retry=lambda error: not isinstance(error, PeerClosed))
        async with weirpool.connect(it.url, reconnect=policy) as peer:
            await peer.call("echo")
            await it.kill()
            await until(lambda: peer.closed)
            with pytest.raises(PeerClosed):
                await peer.call("echo")


async def test_a_hook_that_fails_ends_the_tries_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def retry(error: Exception) -> bool:
        raise KeyError("a bug")

    async with host() as it, weirpool.connect(it.url, reconnect=replace(AT_ONCE, retry=retry)) as peer:
        await peer.call("echo")
        await it.kill()
        await until(lambda: peer.closed)
        with pytest.raises(SessionError, match="KeyError"):
            await peer.call("echo")
        assert "a bug" in caplog.text


async def test_a_refused_set_up_ends_the_tries() -> None:
    # A server without resumption rejects clients that request it.
    async with host(settings=Settings(resume_timeout=0)) as it:
        async with weirpool.connect(it.url, settings=Settings(resume=True), reconnect=AT_ONCE) as peer:
            await until(lambda: peer.closed)
            with pytest.raises(SetupRejected):
                await peer.call("echo")


# The first connection.


async def test_first_connection_raises_without_initial() -> None:
    with pytest.raises(ConnectError, match="nothing in this event loop"):
        async with weirpool.connect(URL, reconnect=AT_ONCE):
            pass
    await alone()


async def test_the_first_connection_is_tried_again_where_the_policy_says_so() -> None:
    async with host() as it:
        await it.kill()
        connecting = weirpool.connect(it.url, reconnect=replace(AT_ONCE, initial=True))
        opening = asyncio.ensure_future(connecting.__aenter__())
        await turns(10)
        assert not opening.done()
        await it.start()
        peer = await opening
        assert (await peer.call("echo", b"x")).data == b"x"
        await peer.close()


async def test_the_first_connection_is_tried_as_often_as_the_policy_says() -> None:
    with pytest.raises(ConnectError, match="nothing in this event loop"):
        await weirpool.connect(URL, reconnect=replace(AT_ONCE, initial=True, attempts=3))
    await alone()


async def test_connecting_can_be_canceled() -> None:
    task = asyncio.ensure_future(weirpool.connect(URL, reconnect=replace(AT_ONCE, initial=True)).__aenter__())
    await turns(5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await alone()


async def test_errors_that_retries_cannot_fix_are_raised() -> None:
    with pytest.raises(UrlError, match="unknown option"):
        await weirpool.connect(f"{URL}?what=1", reconnect=replace(AT_ONCE, initial=True))
    await alone()


# The hook for connections.


async def test_on_connect_runs_for_each_connection() -> None:
    found: list[bytes] = []

    async def subscribe(peer: weirpool.Peer) -> None:
        found.extend([item.data async for item in peer.stream("count", b"2")])

    async with host() as it, weirpool.connect(it.url, reconnect=replace(AT_ONCE, on_connect=subscribe)) as peer:
        await until(lambda: len(found) == 2)
        await lose(it, peer)
        await it.start()
        await until(lambda: len(found) == 4)


async def test_the_hook_ends_with_its_connection_and_its_errors_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    async def subscribe(peer: weirpool.Peer) -> None:
        told.append("begun")
        try:
            if len(told) == 1:
                await asyncio.get_running_loop().create_future()
            raise KeyError("a bug")
        finally:
            told.append("ended")

    async with host() as it, weirpool.connect(it.url, reconnect=replace(AT_ONCE, on_connect=subscribe)) as peer:
        await until(lambda: told == ["begun"])
        await lose(it, peer)
        await it.start()
        await until(lambda: told == ["begun", "ended", "begun", "ended"])
        assert (await peer.call("echo", b"x")).data == b"x"
        assert "on_connect failed" in caplog.text


async def test_the_hook_may_close_the_peer() -> None:
    told: list[str] = []

    async def close(peer: weirpool.Peer) -> None:
        await peer.close()
        told.append("closed")

    async with host() as it:
        peer = await weirpool.connect(it.url, reconnect=replace(AT_ONCE, on_connect=close))
        await until(lambda: peer.closed)
        await alone()
        assert told == ["closed"]
