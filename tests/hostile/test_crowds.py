"""Many clients with one address: all are served, resume, or receive the limit that they exceeded."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.aio.taps import Notes
from tests.hostile.cutting import Relay
from tests.waiting import until
from weirpool import Reconnect, ResumeRejected, Service, SessionError, Settings, SetupRejected, WeirpoolError
from weirpool.errors import ConnectError
from weirpool.urls import fitting

# Long enough that a slow machine misses no heartbeat.
PATIENT: dict[str, Any] = {"heartbeat_interval": 20.0, "handshake_timeout": 20.0, "session_grace": 60.0}
CLIENT = Settings(resume=True, **PATIENT)
URLS = (
    "river+tcp://127.0.0.1:0",
    "river+ws://127.0.0.1:0/x",
    "rsocket+tcp://127.0.0.1:0",
    "rsocket+ws://127.0.0.1:0/x",
)


def service() -> Service:
    made = Service()

    @made.call("demo.echo")
    def echo(request: weirpool.Payload) -> bytes:
        return request.data

    return made


async def echo(peer: weirpool.Peer) -> bytes:
    return bytes((await peer.call("demo.echo", b'"x"')).data)


@pytest.mark.slow
@pytest.mark.parametrize("url", URLS)
async def test_a_thousand_short_clients_of_one_address_are_served(url: str) -> None:
    # THREATS 94
    settings = Settings(max_connections_per_address=3, max_sessions=20, **PATIENT)
    async with weirpool.serve(service(), url, settings=fitting(settings, url, serving=True)) as server:
        for _ in range(1_000):
            async with weirpool.connect(server.urls[0], settings=fitting(CLIENT, server.urls[0])) as peer:
                assert await echo(peer) == b'"x"'
        await until(lambda: server.connections <= 21)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("count", [1, 8])
async def test_every_client_of_a_full_address_comes_back(url: str, noticed: bool, count: int) -> None:
    # THREATS 94
    settings = Settings(max_connections_per_address=count, **PATIENT)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            weirpool.serve(service(), url, settings=fitting(settings, url, serving=True))
        )
        relay = await stack.enter_async_context(Relay(server.urls[0]))
        peers = [
            await stack.enter_async_context(
                weirpool.connect(relay.url, settings=fitting(CLIENT, relay.url), reconnect=False)
            )
            for _ in range(count)
        ]
        for peer in peers:
            assert await echo(peer) == b'"x"'
        sessions = set(server._drivers)
        links = [driver.link for driver in server._drivers.values()]
        relay.cut(both=noticed)
        assert [await echo(peer) for peer in peers] == [b'"x"'] * count
        assert set(server._drivers) == sessions
        assert not set(links) & {driver.link for driver in server._drivers.values()}


@pytest.mark.parametrize("url", URLS)
async def test_a_refusal_names_its_limit_and_is_temporary(url: str) -> None:
    # THREATS 94
    settings = Settings(max_connections_per_address=1, **PATIENT)
    async with weirpool.serve(service(), url, settings=fitting(settings, url, serving=True)) as server:
        first = await weirpool.connect(server.urls[0], settings=fitting(CLIENT, server.urls[0]))
        await echo(first)
        with pytest.raises(SessionError, match=r"max_connections_per_address \(1\) are open") as refused:
            async with weirpool.connect(
                server.urls[0], settings=fitting(CLIENT, server.urls[0]), reconnect=False
            ) as other:
                await echo(other)
        cause = refused.value if isinstance(refused.value, SetupRejected) else refused.value.__cause__
        assert isinstance(cause, SetupRejected) and cause.temporary
        # A retry is accepted when there is capacity.
        patience = Reconnect(first_delay=0.01, longest_delay=0.01)
        async with weirpool.connect(
            server.urls[0], settings=fitting(CLIENT, server.urls[0]), reconnect=patience
        ) as third:
            with pytest.raises(SessionError):
                await echo(third)
            await first.close()

            async def served() -> bool:
                try:
                    return await echo(third) == b'"x"'
                except SessionError:
                    return False

            async with asyncio.timeout(60):
                while not await served():
                    pass


@pytest.mark.usefixtures("silence_spared")
@pytest.mark.parametrize("scheme", ["river+ws", "rsocket+h2c"])
async def test_links_that_say_nothing_have_a_limit_of_their_own(scheme: str) -> None:
    # THREATS 94
    url = f"{scheme}://127.0.0.1:0/x"
    settings = Settings(max_connections_per_address=2, first_frame_timeout=60.0, **PATIENT)
    notes = Notes()
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            weirpool.serve(service(), url, settings=fitting(settings, url, serving=True), taps=[notes])
        )
        port = int(server.urls[0].rpartition(":")[2].partition("/")[0])
        for _ in range(2):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.push_async_callback(writer.wait_closed)
            stack.callback(writer.close)
        await until(lambda: len(server._arrivals) == 2)
        with pytest.raises(
            ConnectError, match=r"max_connections_per_address \(2\) links have not sent their first message"
        ):
            await weirpool.connect(server.urls[0], settings=fitting(CLIENT, server.urls[0]), reconnect=False)
        assert notes.of("refused")


@pytest.mark.parametrize("url", ["river+tcp://127.0.0.1:0", "rsocket+tcp://127.0.0.1:0"])
@pytest.mark.parametrize("stored", [False, True])
async def test_oldest_waiting_session_is_ended_with_a_reason(url: str, stored: bool, tmp_path: Path) -> None:
    # THREATS 94
    store = str(tmp_path) if stored else ""
    settings = Settings(max_sessions=2, resume_store=store, **PATIENT)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            weirpool.serve(service(), url, settings=fitting(settings, url, serving=True))
        )
        relays = [await stack.enter_async_context(Relay(server.urls[0])) for _ in range(3)]
        peers = [
            await stack.enter_async_context(
                weirpool.connect(relay.url, settings=fitting(CLIENT, relay.url), reconnect=False)
            )
            for relay in relays
        ]
        for number, (peer, relay) in enumerate(zip(peers, relays, strict=True)):
            await echo(peer)
            relay.refusing = True
            relay.cut()
            waiting = min(number + 1, 2)
            await until(lambda waiting=waiting: sum(each.link is None for each in server._drivers.values()) == waiting)
        await until(lambda: len(server._drivers) == 2)
        for relay in relays:
            relay.refusing = False
        with pytest.raises(WeirpoolError, match=r"max_sessions \(2\)") as ended:
            await echo(peers[0])
        assert isinstance(ended.value, ResumeRejected) or isinstance(ended.value.__cause__, ResumeRejected)
        assert [await echo(peer) for peer in peers[1:]] == [b'"x"'] * 2
