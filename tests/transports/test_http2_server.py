"""HTTP/2 as a server sees it: requests to decline, pages of others, connections to give up, TLS."""

from __future__ import annotations

import logging
import ssl

import pytest
from h2 import events
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hyperframe.frame import ContinuationFrame, HeadersFrame

import weirpool
from tests.transports import interactions
from tests.transports.certificates import Certificates
from tests.transports.interactions import serving
from tests.transports.raw_http2 import H2, H2C, TYPE, open_link, raw_client
from tests.transports.recording import SHORT_TIMEOUT, connected, listening
from tests.waiting import until
from weirpool import ConnectError, Kind, Payload, Service, Settings, UrlError
from weirpool.protocols import PROTOCOLS
from weirpool.rsocket.dialect import DIALECTS
from weirpool.rsocket.session import RSocketSession
from weirpool.transports import http2
from weirpool.urls import parse_url


async def test_each_stream_of_a_connection_is_a_link() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        servers = []
        for number in range(3):
            stream_id = raw.request()
            servers.append(await place.linked())
            raw.h2.send_data(stream_id, b"%d" % number)
        raw.flush()
        for number, server in enumerate(servers):
            await server.has(b"%d" % number)
            server.link.write(b"answer %d" % number)
        await raw.until(lambda: raw.data == {1: b"answer 0", 3: b"answer 1", 5: b"answer 2"})
        servers[1].link.abort()
        await raw.next(events.StreamReset)
        assert [server.told for server in servers] == [["made"], ["made", "lost"], ["made"]]
        assert place.addresses == ["127.0.0.1"] * 3


@pytest.mark.parametrize(
    ("path", "method", "status"), [("/wrong", "POST", 404), ("/right", "GET", 405), ("/right?a=b", "POST", 200)]
)
async def test_wrong_requests_are_declined_with_a_status(path: str, method: str, status: int) -> None:
    async with listening(f"{H2C}/right") as place, raw_client(place.port) as raw:
        raw.request(path, method)
        assert await raw.status() == status
        if status != 200:
            reset = await raw.next(events.StreamReset)
            assert reset.error_code == ErrorCodes.NO_ERROR
            # The connection is as good as before.
            raw.told.clear()
            raw.request("/right")
            assert await raw.status() == 200


EVIL = ("origin", "https://evil.example")
APP = ("origin", "https://app.example")
LISTED = ("https://app.example",)


def fire() -> bytes:
    """Return what a client says that fires at once."""
    session = RSocketSession.client(Settings(), Payload(), DIALECTS["rsocket-1.0"])
    session.link_up(0.0)
    session.open(Kind.FIRE, "log", Payload(b"fired"))
    return b"".join(session.take_output())


@pytest.mark.parametrize("transport", ["h2c", "h2"])
@pytest.mark.parametrize(
    ("origins", "authority", "headers", "status"),
    [
        # THREATS 83: a page's fetch with a binary body, which needs no leave of the server's.
        ((), "localhost", [EVIL, ("content-type", "text/plain")], 403),
        ((), "localhost", [EVIL, TYPE], 403),
        ((), "localhost", [APP, TYPE], 403),
        (LISTED, "localhost", [EVIL, TYPE], 403),
        (LISTED, "localhost", [APP, TYPE], 200),
        (LISTED, "localhost", [TYPE], 200),
        (("*",), "localhost", [EVIL, TYPE], 200),
        # Pages in sandboxes, files, and pages that send no referrer.
        (LISTED, "localhost", [("origin", "null"), TYPE], 403),
        (("null",), "localhost", [("origin", "null"), TYPE], 200),
        # One good origin hides no other, in whatever order.
        (LISTED, "localhost", [APP, EVIL, TYPE], 403),
        (LISTED, "localhost", [EVIL, APP, TYPE], 403),
        (LISTED, "localhost", [("origin", "https://app.example https://evil.example"), TYPE], 403),
        # The server's own address, and DNS rebinding.
        ((), "127.0.0.1:7878", [("origin", "http://127.0.0.1:7878"), TYPE], 200),
        ((), "127.0.0.1:7878", [("origin", "http://127.0.0.1:80"), TYPE], 403),
        ((), "evil.example:7878", [("origin", "http://evil.example:7878"), TYPE], 403),
        # THREATS 83: pages may send these types to anybody, others only where the server allows it.
        ((), "localhost", [], 415),
        ((), "localhost", [("content-type", "")], 415),
        ((), "localhost", [("content-type", "text/plain")], 415),
        (("*",), "localhost", [EVIL, ("content-type", "text/plain;application/rsocket")], 415),
        ((), "localhost", [("content-type", "text/plain"), TYPE], 415),
        ((), "localhost", [("content-type", "text/plain, application/rsocket")], 415),
        ((), "localhost", [("content-type", "application/rsocket+x")], 415),
        ((), "localhost", [("content-type", "\x1fapplication/rsocket")], 415),
        ((), "localhost", [("content-type", "Application/RSocket ; v=1")], 200),
    ],
)
async def test_pages_of_others_open_no_stream(
    certificates: Certificates,
    transport: str,
    origins: tuple[str, ...],
    authority: str,
    headers: list[tuple[str, str]],
    status: int,
) -> None:
    url, context = H2C, None
    if transport == "h2":
        url, context = f"{H2}?{certificates.server_options}", certificates.client
        context.set_alpn_protocols(["h2"])
    async with listening(url, Settings(origins=origins)) as place, raw_client(place.port, context) as raw:
        server = await place.next()
        raw.request(authority=authority, headers=headers)
        assert await raw.status() == status
        assert server.told == (["made"] if status == 200 else [])


@pytest.mark.parametrize("origins", [(), LISTED])
@pytest.mark.parametrize(
    ("headers", "status"), [([EVIL, TYPE], 403), ([("content-type", "text/plain")], 415), ([TYPE], 200)]
)
async def test_no_handler_runs_for_pages_of_others(
    origins: tuple[str, ...], headers: list[tuple[str, str]], status: int
) -> None:
    # THREATS 83
    settings = Settings(origins=origins)
    async with serving(H2C, settings=settings) as world, raw_client(parse_url(world.server.urls[0]).port) as raw:
        stream_id = raw.request(headers=headers)
        raw.h2.send_data(stream_id, fire())
        raw.flush()
        assert await raw.status() == status
        if status == 200:
            await until(lambda: b"fired" in world.seen)
        else:
            await raw.next(events.StreamReset)
            # This server's clients are served all the while.
            assert (await world.peer.call("echo", b"hello")).data == b"hello"
            assert world.seen == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_pages_of_others_open_no_stream_of_any_protocol(protocol: str) -> None:
    # THREATS 83
    async with listening(f"{protocol}+h2c://127.0.0.1:0") as place, raw_client(place.port) as raw:
        server = await place.next()
        raw.request(headers=[EVIL, TYPE])
        assert await raw.status() == 403
        await raw.next(events.StreamReset)
        assert server.told == []


async def test_refusal_for_origin_or_type_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "weirpool")
    async with listening(H2C) as place, raw_client(place.port) as raw:
        for _ in range(3):
            raw.request(headers=[EVIL, TYPE])
        await raw.until(lambda: sum(isinstance(event, events.StreamReset) for event in raw.told) == 3)
    # One line, however many streams.
    assert caplog.text.count("refused a peer: its request was answered with 403") == 1


async def test_the_path_of_a_client_must_be_that_of_the_server() -> None:
    async with listening(f"{H2C}/right") as place:
        with pytest.raises(ConnectError, match=rf"h2c://127.0.0.1:{place.port}/wrong: .*nothing at that path \(404\)"):
            await connected(f"rsocket+h2c://127.0.0.1:{place.port}/wrong")


async def test_refused_stream_is_answered_with_503() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        await open_link(raw, place)
        place.refusing = True
        raw.told.clear()
        raw.request()
        assert await raw.status() == 503


async def test_refused_connection_receives_the_limit() -> None:
    # THREATS 94
    async with listening(H2C, SHORT_TIMEOUT) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server is full"):
            await connected(place.url)


async def test_a_connection_without_streams_is_given_up() -> None:
    async with listening(H2C, SHORT_TIMEOUT) as place, raw_client(place.port) as raw:
        server = await place.next()
        await raw.closed()
        assert raw.find(events.ConnectionTerminated) is not None
        raw.abort()
        await server.lost()
        assert server.told == ["lost"]


async def test_connection_is_closed_after_its_last_stream() -> None:
    async with listening(H2C, SHORT_TIMEOUT) as place, raw_client(place.port) as raw:
        server = await open_link(raw, place)
        server.link.abort()
        await raw.closed()
        raw.abort()
        assert len(place.accepted) == 2
        assert (await server.lost(), await place.accepted[1].lost()) == (None, None)


async def test_closed_listener_takes_no_links_and_keeps_old_ones() -> None:
    async with listening(H2C) as place:
        await interactions.check_closed_listener(place)


async def test_closed_listener_takes_no_streams_of_open_connections() -> None:
    async with listening(H2C) as place, raw_client(place.port) as raw:
        server = await open_link(raw, place)
        async with raw_client(place.port) as idle:
            await place.next()
            await place.listener.close()
            await idle.closed()
        raw.told.clear()
        places = len(place.addresses)
        raw.request()
        assert await raw.status() == 503
        # Nobody holds a place for it.
        assert len(place.addresses) == places
        server.link.close()
        raw.h2.end_stream(1)
        raw.flush()
        await raw.closed()
        raw.abort()
        assert await server.lost() is None


@pytest.mark.usefixtures("silence_punished")
async def test_oldest_refused_connection_is_no_longer_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    # THREATS 94
    monkeypatch.setattr(http2, "MAX_REFUSED_LINKS", 1)
    async with listening(H2C) as place:
        place.refusing = True
        async with raw_client(place.port) as first, raw_client(place.port) as second:
            ended = await first.next(events.ConnectionTerminated)
            assert ended.additional_data == b"too many clients wait for an answer"
            second.request()
            assert await second.status() == 503


async def test_open_streams_are_limited() -> None:
    async with listening(H2C, Settings(max_connections_per_address=2)) as place, raw_client(place.port) as raw:
        await raw.next(events.RemoteSettingsChanged)
        assert raw.h2.remote_settings.max_concurrent_streams == 2
        # This peer does not keep to it.
        raw.h2.remote_settings.update({SettingCodes.MAX_CONCURRENT_STREAMS: 100})
        raw.h2.remote_settings.acknowledge()
        for _ in range(3):
            raw.request()
        await raw.closed()
        raw.abort()
        assert [(await server.lost()) is not None for server in place.accepted] == [True] * len(place.accepted)


# TLS.


async def test_certificates_may_be_contexts_which_learn_of_http_2(certificates: Certificates) -> None:
    async with listening(H2, ssl=certificates.server) as place:
        client = await connected(place.url, ssl=certificates.client)
        server = await place.linked()
        client.link.write(b"hi")
        await server.has(b"hi")
        client.link.close()
        assert (await server.lost(), await client.lost()) == (None, None)


async def test_connect_raises_when_server_does_not_agree_on_http_2(certificates: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.folder / "cert.pem", certificates.folder / "key.pem")
    async with listening("rsocket+tls://localhost:0", ssl=context) as place:
        url = f"rsocket+h2://localhost:{place.port}?{certificates.client_options}"
        with pytest.raises(
            ConnectError, match=r"does not offer HTTP/2 on this port \(TLS did not negotiate ALPN 'h2'\)"
        ):
            await connected(url)
        await (await place.next()).lost()


async def test_a_client_that_does_not_agree_on_http_2_is_refused(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    context = ssl.create_default_context(cafile=str(certificates.folder / "ca.pem"))
    async with listening(f"{H2}?{certificates.server_options}") as place:
        async with raw_client(place.port, context) as raw:
            server = await place.next()
            await raw.closed()
            await server.lost()
            assert server.told == ["lost"]
    assert "refused 127.0.0.1: TLS did not negotiate ALPN 'h2'" in caplog.text


async def test_encryption_that_the_url_does_not_ask_for_is_wrong_use(certificates: Certificates) -> None:
    with pytest.raises(UrlError, match=r"is not encrypted; write rsocket\+h2://"):
        await connected("rsocket+h2c://localhost:1", ssl=certificates.client)
    with pytest.raises(UrlError, match="needs a certificate"):
        await weirpool.serve(Service(), H2)


async def test_header_block_without_end_ends_the_connection() -> None:
    # THREATS 86: h2 would keep 64 frames of it.
    async with listening(H2C) as place, raw_client(place.port) as raw:
        await raw.next(events.RemoteSettingsChanged)
        for kind in (HeadersFrame, *[ContinuationFrame] * 4):
            raw.send(kind(1, bytes(16_000)).serialize())
        terminated = await raw.next(events.ConnectionTerminated)
        assert terminated.error_code == ErrorCodes.ENHANCE_YOUR_CALM
        assert b"an incomplete header block of 80000 bytes" in (terminated.additional_data or b"")
