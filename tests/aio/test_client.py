from __future__ import annotations

import asyncio
import ssl

import pytest
import trustme

import weirpool
from tests.aio.serving import make_service
from weirpool import ConnectError, Settings, UrlError


class Proxy:
    """Forwards bytes to a server, and can cut all connections."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: list[asyncio.StreamWriter] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"rsocket+tcp://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *args: object) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers += [writer, back]
        for source, sink in ((reader, back), (there, writer)):
            task = asyncio.create_task(self._pass(source, sink))
            self._tasks.add(task)

    async def _pass(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
        except OSError:
            return
        finally:
            sink.close()


async def test_connect_raises_connect_error_without_server() -> None:
    with pytest.raises(ConnectError, match="refused"):
        async with weirpool.connect("rsocket+tcp://127.0.0.1:1"):
            pass


def test_a_typo_in_the_url_is_named() -> None:
    with pytest.raises(UrlError, match="did you mean 'rsocket'"):
        weirpool.connect("rsockt+tcp://127.0.0.1:1")


async def test_connecting_can_be_awaited() -> None:
    async with weirpool.serve(make_service([], asyncio.Event()), "rsocket+memory://awaited"):
        peer = await weirpool.connect("rsocket+memory://awaited")
        assert (await peer.call("echo", b"x")).data == b"x"
        await peer.close()


async def test_tls_trusts_only_the_given_certificates() -> None:
    # THREATS 75
    ca = trustme.CA()
    server_context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    ca.issue_cert("localhost").configure_cert(server_context)
    client_context = ssl.create_default_context()
    ca.configure_trust(client_context)
    service = make_service([], asyncio.Event())
    async with weirpool.serve(service, "rsocket+tls://localhost:0", ssl=server_context) as server:
        async with weirpool.connect(server.urls[0], ssl=client_context) as peer:
            assert (await peer.call("echo", b"x")).data == b"x"
        with pytest.raises(ConnectError, match="not trusted"):
            async with weirpool.connect(server.urls[0]):
                pass


async def test_resumable_session_survives_broken_links() -> None:
    service = make_service([], asyncio.Event())
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with Proxy(int(server.urls[0].rpartition(":")[2])) as proxy:
            async with weirpool.connect(proxy.url, settings=Settings(resume=True)) as peer:
                found = []
                async with peer.stream("count", b"2000", credit=50) as items:
                    async for item in items:
                        found.append(int(item.data))
                        if len(found) in (100, 700, 1500):
                            proxy.cut()
                assert found == list(range(2000))


async def test_broken_connection_fails_open_streams_without_resume() -> None:
    service = make_service([], asyncio.Event())
    async with weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server:
        async with Proxy(int(server.urls[0].rpartition(":")[2])) as proxy, weirpool.connect(proxy.url) as peer:
            await peer.call("echo")
            call = asyncio.create_task(peer.call("never"))
            await asyncio.sleep(0)
            proxy.cut()
            with pytest.raises(weirpool.LinkLost):
                await call
