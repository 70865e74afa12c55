from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
import uvloop
from aioquic.asyncio import serve as quic_serve
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection as QuicState

from tests.transports.certificates import Certificates
from tests.transports.raw_quic import Raw
from tests.transports.recording import connected, listening
from tests.waiting import turns
from weirpool import ConnectError, Settings
from weirpool.transports import quic


@pytest.fixture
def url(certificates: Certificates) -> str:
    return f"rsocket+quic://127.0.0.1:0?{certificates.server_options}"


async def test_connect_without_server_raises_connect_error(certificates: Certificates) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(
        ConnectError, match=rf"quic://127.0.0.1:{port}: connection refused; check that the server is running"
    ):
        await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")


async def test_a_server_that_never_answers_is_given_up(certificates: Certificates) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectError, match=r"no answer within 0\.2 s"):
            url = f"rsocket+quic://127.0.0.1:{silent.getsockname()[1]}?{certificates.client_options}"
            await connected(url, Settings(connect_timeout=0.2))


async def test_client_works_with_another_http2_server(certificates: Certificates) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["rsocket"])
    configuration.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    came: list[Raw] = []

    def accept(*args: Any, **kwargs: Any) -> Raw:
        came.append(Raw(*args, **kwargs))
        return came[-1]

    server: Any = await quic_serve("127.0.0.1", 0, configuration=configuration, create_protocol=accept)
    port = server._transport.get_extra_info("sockname")[1]
    client = await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")
    client.link.write(b"there")
    await came[0].next(events.StreamDataReceived)
    came[0].say(0, b"back", end=True)
    await client.has(b"back")
    assert await client.lost() is None
    assert came[0].data[0] == b"there"
    server.close()


async def test_a_server_of_something_else_is_one_clear_error(certificates: Certificates) -> None:
    configuration = QuicConfiguration(is_client=False, alpn_protocols=["h3"])
    configuration.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    server: Any = await quic_serve("127.0.0.1", 0, configuration=configuration)
    port = server._transport.get_extra_info("sockname")[1]
    with pytest.raises(ConnectError, match="does not offer 'rsocket'"):
        await connected(f"rsocket+quic://127.0.0.1:{port}?{certificates.client_options}")
    server.close()


async def test_a_certificate_that_is_not_trusted_is_refused(url: str, certificates: Certificates) -> None:
    # THREATS 75
    async with listening(url) as place:
        with pytest.raises(ConnectError, match=r"not trusted .*; pass its CA with \?ca=FILE"):
            await connected(place.url.partition("?")[0])


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_canceled_connect_leaves_no_socket_open(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    url: str,
    certificates: Certificates,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make, made, tasks = QuicState, list[quic.ClientConnection](), list[asyncio.Task[Any]]()

    def cancel(**options: Any) -> Any:
        # The task is canceled in the turn in which its socket is opened.
        asyncio.get_running_loop().call_soon(tasks[0].cancel)
        return make(**options)

    class Noted(quic.ClientConnection):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    async def run() -> None:
        async with listening(url) as place:
            monkeypatch.setattr(quic, "QuicState", cancel)
            monkeypatch.setattr(quic, "ClientConnection", Noted)
            tasks.append(asyncio.ensure_future(connected(certificates.to_client(place.url))))
            await asyncio.wait(tasks)
            await turns(3)
        assert tasks[0].cancelled()
        assert all(each._transport is None or each._transport.is_closing() for each in made) and made

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run())
