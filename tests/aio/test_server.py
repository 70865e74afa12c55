from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

import weirpool
from tests.aio.serving import make_service, world
from tests.aio.taps import Notes
from tests.waiting import turns, until
from weirpool import LocalError, Service, SessionError, SessionStoreError, Settings


async def test_one_service_listens_in_several_places(tmp_path) -> None:
    service = make_service([], asyncio.Event())
    urls = ("rsocket+tcp://127.0.0.1:0", f"rsocket+unix://{tmp_path}/s", "rsocket+memory://place")
    async with weirpool.serve(service, *urls) as server:
        for url in server.urls:
            async with weirpool.connect(url) as peer:
                assert (await peer.call("echo", b"x")).data == b"x"
    assert server.connections == 0


async def test_serve_without_url_raises() -> None:
    with pytest.raises(LocalError):
        weirpool.serve(Service())


async def test_closing_lets_calls_in_flight_end() -> None:
    release = asyncio.Event()
    begun = asyncio.Event()
    service = Service()

    @service.call("slow")
    async def slow(request: weirpool.Payload) -> bytes:
        begun.set()
        await release.wait()
        return b"done"

    server = await weirpool.serve(service, "rsocket+memory://grace")
    async with weirpool.connect("rsocket+memory://grace") as peer:
        call = asyncio.create_task(peer.call("slow"))
        await begun.wait()
        closing = asyncio.create_task(server.close())
        release.set()
        assert (await call).data == b"done"
        await closing


async def test_close_fails_streams_after_the_grace() -> None:
    async with world(server=Settings(close_grace=0.05)) as w:
        call = asyncio.create_task(w.peer.call("never"))
        await w.reached.wait()
        await w.server.close()
        with pytest.raises(SessionError):
            await call
        assert w.seen == ["never ended"]


async def test_too_many_connections_from_one_address_are_refused() -> None:
    settings = Settings(max_connections_per_address=1)
    async with weirpool.serve(
        make_service([], asyncio.Event()), "rsocket+tcp://127.0.0.1:0", settings=settings
    ) as server:
        async with weirpool.connect(server.urls[0]) as peer:
            assert (await peer.call("echo", b"x")).data == b"x"
            with pytest.raises(SessionError):
                async with weirpool.connect(server.urls[0]) as other:
                    await other.call("echo", b"x")


async def test_junk_is_closed_without_an_answer(caplog) -> None:
    # THREATS 10
    async with weirpool.serve(Service(), "rsocket+tcp://127.0.0.1:0") as server:
        port = int(server.urls[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()
    assert [record.message for record in caplog.records if "HTTP" in record.message]


async def test_link_without_first_message_is_dropped() -> None:
    # THREATS 1
    settings = Settings(first_frame_timeout=0.05)
    async with weirpool.serve(Service(), "rsocket+tcp://127.0.0.1:0", settings=settings) as server:
        port = int(server.urls[0].rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\0")
        assert await reader.read() == b""
        writer.close()
        await writer.wait_closed()


async def test_close_does_not_wait_for_sessions_without_link() -> None:
    service = make_service([], asyncio.Event())
    settings = Settings(close_grace=3600)
    # A close that waits for the grace ends by this timeout.
    async with asyncio.timeout(60), weirpool.serve(service, "rsocket+memory://left", settings=settings) as server:
        async with weirpool.connect(server.urls[0], settings=Settings(resume=True)) as peer:
            await peer.call("echo", b"x")
            (driver,) = server._drivers.values()
            peer.detach()
        await until(lambda: driver.link is None)
        assert server.connections == 1


async def test_server_sends_requests_to_its_clients() -> None:
    ours = Service()

    @ours.call("who")
    def who(request: weirpool.Payload) -> bytes:
        return b"a client"

    hooked: list[bytes] = []

    @asynccontextmanager
    async def hook(connection: weirpool.Connection) -> AsyncIterator[None]:
        # Nothing is read before the hook is entered, so the response arrives later.
        asking = asyncio.ensure_future(connection.peer.call("who"))
        yield
        hooked.append((await asking).data)

    place = "rsocket+memory://asks"
    async with weirpool.serve(make_service([], asyncio.Event()), place, on_connection=hook) as server:
        async with weirpool.connect(place, service=ours) as peer:
            await peer.call("echo", b"x")
            (client,) = server.peers
            assert (await client.call("who")).data == b"a client"
    assert hooked == [b"a client"]
    assert server.peers == []


async def test_closing_server_keeps_stored_sessions_for_the_next(tmp_path) -> None:
    settings = Settings(resume_store=str(tmp_path / "sessions"), close_grace=0.5)
    url = "rsocket+memory://kept"
    release, reached = asyncio.Event(), asyncio.Event()
    seen: list[object] = []
    service = make_service(seen, reached)

    @service.call("slow")
    async def slow(request: weirpool.Payload) -> bytes:
        reached.set()
        await release.wait()
        return b"done"

    server = await weirpool.serve(service, url, settings=settings)
    async with weirpool.connect(url, settings=Settings(resume=True)) as peer:
        slowly = asyncio.create_task(peer.call("slow"))
        await reached.wait()
        closing = asyncio.create_task(server.close())
        release.set()
        await closing
        async with weirpool.serve(service, url, settings=settings) as after:
            # Open streams may end.
            assert (await slowly).data == b"done"
            assert (await peer.call("echo", b"x")).data == b"x"
            reached.clear()
            never = asyncio.create_task(peer.call("never"))
            await reached.wait()
            await after.close(0)
            assert seen == ["never ended"]
            async with weirpool.serve(service, url, settings=settings) as third:
                with pytest.raises(weirpool.Canceled, match="restarted"):
                    await never
                assert third.connections == 1
                await peer.close()
                await until(lambda: not third.connections)
    assert [path.name for path in (tmp_path / "sessions").iterdir()] == ["lock"]


async def test_acceptor_checks_clients_again_after_a_restart(tmp_path) -> None:
    settings = Settings(resume_store=str(tmp_path))
    url = "rsocket+memory://again"
    entered: list[bytes] = []
    accepted: list[bytes] = []
    notes = Notes()

    @asynccontextmanager
    async def hook(connection: weirpool.Connection) -> AsyncIterator[None]:
        entered.append(connection.setup.data)
        yield

    async def accept(setup: weirpool.Setup) -> Service:
        accepted.append(setup.payload.data)
        if len(accepted) == 3:
            raise weirpool.SetupRejected("no more of you")
        return make_service([], asyncio.Event())

    def serve() -> weirpool.Server:
        return weirpool.serve(Service(), url, settings=settings, acceptor=accept, on_connection=hook, taps=[notes])

    server = await serve()
    async with weirpool.connect(url, settings=Settings(resume=True), setup=b"ada") as peer:
        for _ in range(2):
            assert (await peer.call("echo", b"x")).data == b"x"
            await server.close(0)
            server = await serve()
        with pytest.raises(SessionError):
            await peer.call("echo", b"x")
        await server.close(0)
    assert (accepted, entered) == ([b"ada"] * 3, [b"ada"] * 2)
    assert len(notes.of("opened")) == len(notes.of("closed"))
    assert list(tmp_path.glob("*.session")) == []


async def test_only_stored_sessions_wait_for_the_disk(tmp_path, monkeypatch) -> None:
    begun, go_on = threading.Event(), threading.Event()
    sync = os.fsync

    def slowly(fd: int) -> None:
        begun.set()
        assert go_on.wait(30)
        sync(fd)

    monkeypatch.setattr(os, "fsync", slowly)
    url = "rsocket+memory://disk"
    async with weirpool.serve(
        make_service([], asyncio.Event()), url, settings=Settings(resume_store=str(tmp_path))
    ) as server:
        async with (
            weirpool.connect(url, settings=Settings(resume=True)) as kept,
            weirpool.connect(url) as other,
        ):
            waiting = asyncio.create_task(kept.call("echo", b"kept"))
            await until(begun.is_set)
            assert (await other.call("echo", b"other")).data == b"other"
            assert not waiting.done()
            go_on.set()
            assert (await waiting).data == b"kept"
        await until(lambda: not server.connections)


async def test_fast_sender_waits_for_backlogged_storage(tmp_path, monkeypatch) -> None:
    syncs: list[int] = []
    go_on = threading.Event()
    sync = os.fdatasync

    def slowly(fd: int) -> None:
        syncs.append(fd)
        # The first one is about the request.
        assert len(syncs) == 1 or go_on.wait(30)
        sync(fd)

    taken: list[int] = []
    service = make_service([], asyncio.Event())

    @service.stream("many")
    def many(request: weirpool.Payload) -> Iterator[bytes]:
        for number in range(1_000):
            taken.append(number)
            yield b"x" * 10_000

    url = "rsocket+memory://behind"
    settings = Settings(resume_store=str(tmp_path), output_high_bytes=50_000)
    async with weirpool.serve(service, url, settings=settings):
        async with weirpool.connect(url, settings=Settings(resume=True)) as peer:
            await peer.call("echo", b"begun")
            monkeypatch.setattr(os, "fdatasync", slowly)
            async with peer.stream("many", credit=1_000) as items:
                await until(lambda: len(syncs) > 1)
                await turns(100)
                assert 0 < len(taken) < 100
                go_on.set()
                assert len([item async for item in items]) == 1_000


async def test_two_servers_do_not_share_a_store(tmp_path) -> None:
    settings = Settings(resume_store=str(tmp_path))
    async with weirpool.serve(Service(), "rsocket+memory://first", settings=settings):
        with pytest.raises(SessionStoreError, match="another server"):
            await weirpool.serve(Service(), "rsocket+memory://second", settings=settings)
    async with weirpool.serve(Service(), "rsocket+memory://second", settings=settings):
        pass


async def test_stored_sessions_expire(tmp_path) -> None:
    left = tmp_path / ("0" * 64 + ".session")
    left.write_bytes(b"")
    settings = Settings(resume_store=str(tmp_path), resume_timeout=0.01)
    async with weirpool.serve(Service(), "rsocket+memory://expiry", settings=settings):
        await until(lambda: not left.exists())


@pytest.mark.parametrize("url", ["river+tcp://127.0.0.1:0", "river+ws://127.0.0.1:0/x", "river+memory://goodbye"])
async def test_calls_end_at_once_when_a_river_server_closes(url: str) -> None:
    reached = asyncio.Event()
    service = Service()

    @service.call("demo.never")
    async def never(request: weirpool.Payload) -> bytes:
        reached.set()
        await asyncio.get_running_loop().create_future()
        return b"1"

    @service.call("demo.echo")
    def echo(request: weirpool.Payload) -> bytes:
        return request.data

    # A close that waits for the client's grace ends by this timeout.
    client = Settings(session_grace=3600.0, heartbeat_interval=20.0, handshake_timeout=20.0)
    server = await weirpool.serve(service, url, settings=client)
    place = server.urls[0]
    patience = weirpool.Reconnect(first_delay=0.01, longest_delay=0.01)
    async with asyncio.timeout(60), weirpool.connect(place, settings=client, reconnect=patience) as peer:
        call = asyncio.create_task(peer.call("demo.never", b"1"))
        await reached.wait()
        await server.close(0)
        with pytest.raises(weirpool.ApplicationError, match=r"UNEXPECTED_DISCONNECT.*closed the session"):
            await call
        async with weirpool.serve(service, place, settings=client):
            assert (await peer.call("demo.echo", b"1")).data == b"1"
