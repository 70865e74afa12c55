"""Requests of proxies over WebSocket and HTTP/2: whose client is accepted, and when."""

from __future__ import annotations

import pytest
from h2 import events

from tests.hostile.cutting import Relay
from tests.transports.raw_http2 import H2C, TYPE, raw_client
from tests.transports.recording import connected, listening, raw_connection
from tests.transports.test_proxy_header import V1
from tests.transports.their_websockets import WS
from weirpool import ConnectError, LinkLost, Settings

LOOPBACK = ("127.0.0.0/8",)
FORWARDED = [
    (("X-Forwarded-For", "6.6.6.6, 192.0.2.1"), "192.0.2.1"),
    (("Forwarded", 'for="[2001:db8::1]:5";proto=https'), "2001:db8::1"),
    (("x-forwarded-for", "192.0.2.1, 127.0.0.9"), "192.0.2.1"),
    (("X-Other", "192.0.2.1"), "127.0.0.1"),
]


@pytest.mark.parametrize("url", [WS, H2C])
@pytest.mark.parametrize(("header", "client"), FORWARDED)
async def test_trusted_proxy_names_the_client(url: str, header: tuple[str, str], client: str) -> None:
    # THREATS 95
    async with listening(url, Settings(trusted_proxies=LOOPBACK)) as place:
        link = await connected(place.url, Settings(headers=(header,)))
        server = await place.linked()
        assert place.addresses == [client]
        link.link.write(b"\0\0\x04data")
        await server.has(b"\0\0\x04data")
        link.link.abort()
        await server.lost()


@pytest.mark.parametrize("url", [WS, H2C])
@pytest.mark.parametrize("trusted", [(), ("192.0.2.0/24",)])
async def test_headers_from_elsewhere_are_ignored(url: str, trusted: tuple[str, ...]) -> None:
    # THREATS 95
    settings = Settings(headers=(("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "x")))
    async with listening(url, Settings(trusted_proxies=trusted)) as place:
        link = await connected(place.url, settings)
        await place.linked()
        assert place.addresses == ["127.0.0.1"]
        link.link.abort()


@pytest.mark.parametrize("url", [WS, H2C])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ((("X-Forwarded-For", "localhost"),), "400"),
        ((("X-Forwarded-For", "192.0.2.1"), ("Forwarded", "for=6.6.6.6")), "400"),
        ((("Forwarded", 'for="192.0.2.1'),), "400"),
    ],
)
async def test_invalid_headers_are_answered_with_400(
    url: str, headers: tuple[tuple[str, str], ...], status: str
) -> None:
    # THREATS 95
    async with listening(url, Settings(trusted_proxies=LOOPBACK)) as place:
        with pytest.raises(ConnectError, match=status):
            await connected(place.url, Settings(headers=headers))


@pytest.mark.parametrize("url", [WS, H2C])
async def test_refused_client_of_a_proxy_receives_the_limit(url: str) -> None:
    # THREATS 95
    async with listening(url, Settings(trusted_proxies=LOOPBACK)) as place:
        place.refusing = True
        with pytest.raises(ConnectError, match="the server is full"):
            await connected(place.url, Settings(headers=(("X-Forwarded-For", "192.0.2.1"),)))
        assert place.addresses == ["192.0.2.1"]


async def test_streams_of_one_connection_may_have_many_clients() -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=LOOPBACK, max_connections_per_address=2)
    async with listening(H2C, settings) as place, raw_client(place.port) as raw:
        await raw.next(events.RemoteSettingsChanged)
        for number in range(5):
            raw.request(headers=(TYPE, ("x-forwarded-for", f"192.0.2.{number}")))
        await raw.until(lambda: len(place.accepted) == 5 and all(each.link for each in place.accepted))
        assert place.addresses == [f"192.0.2.{number}" for number in range(5)]
        # A refused client does not end the links of the others.
        place.refusing = True
        raw.told.clear()
        raw.request(headers=(TYPE, ("x-forwarded-for", "192.0.2.9")))
        assert await raw.status() == 503
        assert all("lost" not in each.told for each in place.accepted)


@pytest.mark.parametrize("url", [WS, H2C])
async def test_a_proxy_that_sends_no_request_is_given_up(url: str) -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=LOOPBACK, connect_timeout=0.05)
    async with listening(url, settings) as place, raw_connection(place.port) as (reader, _):
        await reader.read()
        if url == WS:
            assert isinstance(await (await place.next()).lost(), LinkLost)
        assert place.addresses in ([], ["127.0.0.1"])


@pytest.mark.usefixtures("silence_spared")
@pytest.mark.parametrize("url", [WS, H2C])
async def test_incomplete_requests_of_proxies_have_a_limit(url: str) -> None:
    settings = Settings(trusted_proxies=LOOPBACK, max_connections=2)
    async with listening(url, settings) as place, raw_connection(place.port), raw_connection(place.port):
        async with raw_connection(place.port) as (reader, _):
            assert await reader.read() == b""
        assert not place.addresses


@pytest.mark.usefixtures("silence_punished")
async def test_oldest_incomplete_request_of_a_proxy_gives_its_place_up() -> None:
    # THREATS 95
    settings = Settings(trusted_proxies=LOOPBACK, max_connections=1)
    async with listening(WS, settings) as place, raw_connection(place.port) as (silent, _):
        link = await connected(place.url, Settings(headers=(("X-Forwarded-For", "192.0.2.1"),)))
        assert b"too many clients wait for an answer" in await silent.read()
        assert "192.0.2.1" in place.addresses
        link.link.abort()


@pytest.mark.parametrize("url", [WS, H2C])
@pytest.mark.parametrize(
    ("trusted", "client"), [(LOOPBACK, "192.0.2.1"), ((*LOOPBACK, "192.0.2.0/24"), "198.51.100.7")], ids=str
)
async def test_headers_are_believed_from_the_address_in_a_proxy_header(
    url: str, trusted: tuple[str, ...], client: str
) -> None:
    # THREATS 95: the connection came from a trusted address, but the request did not.
    settings = Settings(trusted_proxies=trusted, proxy_protocol=True)
    async with listening(url, settings) as place:
        async with Relay(place.url, V1) as relay:
            link = await connected(relay.url, Settings(headers=(("X-Forwarded-For", "198.51.100.7"),)))
            await place.linked()
            assert place.addresses == [client]
            link.link.abort()


async def test_a_request_that_is_reset_at_once_leaves_no_receiver_to_another_client() -> None:
    # THREATS 95
    async with listening(H2C, Settings(trusted_proxies=LOOPBACK)) as place, raw_client(place.port) as raw:
        await raw.next(events.RemoteSettingsChanged)
        sent: list[bytes] = []
        send = raw.send
        raw.send = sent.append  # type: ignore[method-assign]
        raw.h2.reset_stream(raw.request(headers=(TYPE, ("x-forwarded-for", "192.0.2.66"))))
        raw.flush()
        raw.send = send  # type: ignore[method-assign]
        raw.send(b"".join(sent))
        raw.request(headers=(TYPE, ("x-forwarded-for", "192.0.2.1")))
        assert await raw.status() == 200
        await place.accepted[-1].until(lambda: place.accepted[-1].link is not None)
        assert place.addresses == ["192.0.2.66", "192.0.2.1"]
        assert await place.accepted[0].lost() is None
