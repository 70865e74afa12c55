"""One hostile client among honest ones with the same address, or behind the same proxy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import weirpool
from tests.aio.taps import Notes
from tests.hostile.cutting import Relay
from tests.hostile.test_crowds import CLIENT, PATIENT, echo, service
from tests.waiting import until
from weirpool import Admitted, Connection, Reconnect, Service, Settings, Setup, SetupRejected, WeirpoolError
from weirpool.aio import limits
from weirpool.aio import server as servers
from weirpool.rsocket.dialect import RSOCKET_1_0
from weirpool.urls import fitting
from weirpool.wire.rsocket.frames import ResumeFrame

LOOPBACK = ("127.0.0.0/8",)
JUNK = b"GET /health HTTP/1.1\r\n\r\n"
TCP = ("rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0", "reactive-streams+tcp://127.0.0.1:0")
HTTP = ("rsocket+ws://127.0.0.1:0/x", "river+ws://127.0.0.1:0/x", "rsocket+h2c://127.0.0.1:0/x")
ALONE = Settings(**PATIENT)


def port_of(server: weirpool.Server) -> int:
    return int(server.urls[0].rpartition(":")[2].partition("/")[0])


@asynccontextmanager
async def through_proxy(server: weirpool.Server, client: str) -> AsyncIterator[str]:
    """Yield the URL of a proxy that names `client` in a PROXY header."""
    async with Relay(server.urls[0], f"PROXY TCP4 {client} 192.0.2.200 1 2\r\n".encode()) as relay:
        yield relay.url


async def send_junk(server: weirpool.Server, head: bytes = b"") -> None:
    """Open a link that begins with junk, and wait until it is closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(head + JUNK)
    try:
        await reader.read()
    except ConnectionError:
        pass
    writer.transport.abort()


@pytest.mark.parametrize("url", TCP)
async def test_junk_behind_a_proxy_concerns_no_other_client(url: str) -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=LOOPBACK, proxy_protocol=True, max_refusals_per_address=5, **PATIENT)
    notes = Notes()
    async with weirpool.serve(service(), url, settings=fitting(settings, url, serving=True), taps=[notes]) as server:
        for _ in range(12):
            await send_junk(server, b"PROXY TCP4 192.0.2.66 192.0.2.200 1 2\r\n")
        await until(lambda: len(notes.of("refused")) == 12)
        assert {address for _, address, _ in notes.of("refused")} == {"192.0.2.66"}
        async with through_proxy(server, "192.0.2.1") as other:
            async with weirpool.connect(other, settings=fitting(ALONE, other), reconnect=False) as peer:
                assert await echo(peer) == b'"x"'
        assert [connection.address for connection in notes.connections] == ["192.0.2.1"]


@pytest.mark.parametrize("url", TCP)
async def test_junk_concerns_no_other_link_of_its_address(url: str, caplog: pytest.LogCaptureFixture) -> None:
    # THREATS 95: a port scan or a health probe from behind the same NAT.
    settings = Settings(max_refusals_per_address=5, **PATIENT)
    async with weirpool.serve(service(), url, settings=fitting(settings, url, serving=True)) as server:
        for _ in range(12):
            await send_junk(server)
        async with weirpool.connect(server.urls[0], settings=fitting(ALONE, server.urls[0]), reconnect=False) as peer:
            assert await echo(peer) == b'"x"'
    assert sum("127.0.0.1 refused" in message for message in caplog.messages) == 5


@pytest.mark.parametrize("url", HTTP)
async def test_idle_links_behind_a_proxy_concern_no_other_client(url: str) -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=LOOPBACK, max_connections_per_address=2, first_frame_timeout=60.0, **PATIENT)
    service_ = service()
    async with (
        weirpool.serve(service_, url, settings=fitting(settings, url, serving=True)) as server,
        AsyncExitStack() as stack,
    ):
        hostile = Settings(headers=(("X-Forwarded-For", "192.0.2.1, 192.0.2.66"),), **PATIENT)
        for _ in range(2):
            peer = await stack.enter_async_context(
                weirpool.connect(server.urls[0], settings=fitting(hostile, server.urls[0]), reconnect=False)
            )
            assert await echo(peer) == b'"x"'
        with pytest.raises(WeirpoolError, match=r"max_connections_per_address \(2\)"):
            async with weirpool.connect(
                server.urls[0], settings=fitting(hostile, server.urls[0]), reconnect=False
            ) as peer:
                await echo(peer)
        honest = Settings(headers=(("X-Forwarded-For", "192.0.2.1"),), **PATIENT)
        async with weirpool.connect(server.urls[0], settings=fitting(honest, server.urls[0]), reconnect=False) as peer:
            assert await echo(peer) == b'"x"'


async def guess(server: weirpool.Server) -> bytes:
    """Try to resume a session with a guessed token; return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(RSOCKET_1_0.codec().frame(ResumeFrame(b"guessed")))
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.transport.abort()


async def test_guesses_lock_out_resumption_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 28, 95
    settings = Settings(max_refusals_per_address=3, **PATIENT)
    notes = Notes()
    async with weirpool.serve(
        service(), TCP[0], settings=fitting(settings, TCP[0], serving=True), taps=[notes]
    ) as server:
        async with Relay(server.urls[0]) as relay:
            patience = Reconnect(first_delay=0.01, longest_delay=0.05)
            async with weirpool.connect(relay.url, settings=fitting(CLIENT, relay.url), reconnect=patience) as resuming:
                assert await echo(resuming) == b'"x"'
                sessions = set(server._drivers)
                answers = [await guess(server) for _ in range(5)]
                assert [bool(answer) for answer in answers] == [True] * 3 + [False] * 2
                # A new client of the address is served.
                async with weirpool.connect(
                    server.urls[0], settings=fitting(CLIENT, server.urls[0]), reconnect=False
                ) as other:
                    assert await echo(other) == b'"x"'
                # A client that resumes is told nothing final, and retries until it may.
                before = len(notes.of("refused"))
                relay.cut()
                await until(lambda: len(notes.of("refused")) > before)
                assert "max_refusals_per_address (3) unknown tokens" in notes.of("refused")[-1][2]
                monkeypatch.setattr(limits, "WINDOW", 0.01)
                assert await echo(resuming) == b'"x"'
                assert sessions <= set(server._drivers)


# The reason.


async def open_idle(stack: AsyncExitStack, server: weirpool.Server, count: int) -> None:
    """Open links that send nothing."""
    for _ in range(count):
        url = server.urls[0]
        if "unix" in url:
            _, writer = await asyncio.open_unix_connection(url.partition("://")[2])
        else:
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        stack.push_async_callback(writer.wait_closed)
        stack.callback(writer.close)
    await until(lambda: len(server._arrivals) == count)


@pytest.mark.usefixtures("silence_spared")
@pytest.mark.parametrize("url", [*TCP, "rsocket+unix://"])
async def test_refused_link_receives_the_limit(url: str, tmp_path: Path) -> None:
    # THREATS 94, 95
    url = f"{url}{tmp_path}/s" if "unix" in url else url
    settings = Settings(max_connections=2, first_frame_timeout=60.0, **PATIENT)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(
            weirpool.serve(service(), url, settings=fitting(settings, url, serving=True))
        )
        await open_idle(stack, server, 2)
        with pytest.raises(WeirpoolError) as refused:
            async with weirpool.connect(
                server.urls[0], settings=fitting(ALONE, server.urls[0]), reconnect=False
            ) as peer:
                await echo(peer)
        cause = refused.value if isinstance(refused.value, SetupRejected) else refused.value.__cause__
        assert isinstance(cause, SetupRejected) and cause.temporary
        assert "max_connections (2) links have not sent their first message" in str(cause)
        await until(lambda: len(server._arrivals) == 2)


@pytest.mark.usefixtures("silence_spared")
@pytest.mark.parametrize("url", TCP[:2])
async def test_refused_link_does_not_end_the_session_that_it_resumes(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    # THREATS 94
    settings = Settings(max_connections=2, first_frame_timeout=60.0, **PATIENT)
    patience = Reconnect(first_delay=0.01, longest_delay=0.05)
    async with (
        weirpool.serve(service(), url, settings=fitting(settings, url, serving=True)) as server,
        Relay(server.urls[0]) as relay,
    ):
        async with weirpool.connect(relay.url, settings=fitting(CLIENT, relay.url), reconnect=patience) as peer:
            assert await echo(peer) == b'"x"'
            sessions = set(server._drivers)
            async with AsyncExitStack() as stack:
                await open_idle(stack, server, 2)
                relay.cut()
                waiting = asyncio.ensure_future(echo(peer))
                await until(lambda: "refused: max_connections (2) links" in caplog.text)
            assert await waiting == b'"x"'
            assert set(server._drivers) == sessions


@pytest.mark.usefixtures("silence_spared")
async def test_explained_refusals_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "MAX_REFUSED_LINKS", 1)
    settings = Settings(max_connections=1, first_frame_timeout=60.0, **PATIENT)
    async with (
        weirpool.serve(service(), TCP[0], settings=fitting(settings, TCP[0], serving=True)) as server,
        AsyncExitStack() as stack,
    ):
        await open_idle(stack, server, 2)
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        assert await reader.read() == b""
        writer.transport.abort()


# Principals.


def named(setup: Setup) -> Admitted:
    return Admitted(principal=bytes(setup.payload.data).decode())


async def named_later(setup: Setup) -> Admitted:
    await asyncio.sleep(0)
    return named(setup)


@pytest.mark.parametrize("acceptor", [named, named_later])
@pytest.mark.parametrize("url", ["rsocket+tcp://127.0.0.1:0", "reactivesocket-0.2+tcp://127.0.0.1:0"])
async def test_limits_count_principals_instead_of_addresses(url: str, acceptor: Any) -> None:
    # THREATS 95
    settings = Settings(max_connections_per_address=1)
    seen: list[Connection] = []
    made = Service()

    @made.call("who")
    def who(request: weirpool.Payload) -> str:
        seen.append(weirpool.current_connection())
        return weirpool.current_connection().counted_as

    async with (
        weirpool.serve(made, url, settings=fitting(settings, url, serving=True), acceptor=acceptor) as server,
        AsyncExitStack() as stack,
    ):

        async def connected(name: str) -> weirpool.Peer:
            return await stack.enter_async_context(
                weirpool.connect(server.urls[0], setup=name, settings=fitting(ALONE, server.urls[0]), reconnect=False)
            )

        first = await connected("ann")
        assert bytes((await first.call("who")).data) == b"principal ann"
        assert bytes((await (await connected("bob")).call("who")).data) == b"principal bob"
        with pytest.raises(WeirpoolError, match=r"max_connections_per_address \(1\) are open, for principal ann"):
            await (await connected("ann")).call("who")
        await first.close()
        await until(lambda: server.connections == 1)
        assert bytes((await (await connected("ann")).call("who")).data) == b"principal ann"
        assert [(each.principal, each.address) for each in seen] == [
            ("ann", "127.0.0.1"), ("bob", "127.0.0.1"), ("ann", "127.0.0.1")
        ]  # fmt: skip


async def test_session_that_resumes_keeps_its_principal() -> None:
    # THREATS 95
    settings = Settings(max_connections_per_address=1, **PATIENT)
    async with weirpool.serve(
        service(), TCP[0], settings=fitting(settings, TCP[0], serving=True), acceptor=named
    ) as server:
        async with Relay(server.urls[0]) as relay:
            async with weirpool.connect(relay.url, setup="ann", settings=fitting(CLIENT, relay.url)) as first:
                await echo(first)
                relay.cut()
                await echo(first)
                # Neither counts for the address.
                async with weirpool.connect(
                    server.urls[0], setup="bob", settings=fitting(ALONE, server.urls[0])
                ) as second:
                    assert await echo(second) == b'"x"'
                    assert set(server._limits._linked) == {"principal ann", "principal bob"}
        await until(lambda: not server._drivers)


@pytest.mark.usefixtures("silence_spared")
async def test_refused_links_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    settings = Settings(max_connections=1, max_refusals_per_address=3, first_frame_timeout=60.0, **PATIENT)
    notes = Notes()
    async with (
        weirpool.serve(service(), TCP[0], settings=fitting(settings, TCP[0], serving=True), taps=[notes]) as server,
        AsyncExitStack() as stack,
    ):
        await open_idle(stack, server, 1)
        for _ in range(8):
            await send_junk(server)
        await until(lambda: len(notes.of("refused")) == 8)
        assert sum("max_connections (1)" in message for message in caplog.messages) == 3
