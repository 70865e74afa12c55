"""A setting is refused on a side that does not use it. Here each side is watched while it works."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import fields

import pytest

import penstock
from penstock import Items, Payload, Peer, Service, Settings, Setup, UnsupportedKind, urls
from penstock.protocols import PROTOCOLS
from penstock.urls import fitting

NAMES = frozenset(field.name for field in fields(Settings))
ASIDE = ("dataclasses.py", "settings.py", "urls.py", "protocols.py")
"""Files that read all settings, or copy them."""
LARGE = b'"' + bytes([120]) * 2_000_000 + b'"'
SELDOM = {
    "data_mime": "a strict set-up with an unknown MIME type",
    "idle_timeout": "older clients of a server",
    "lease_timeout": "requests without a lease",
    "max_credit_bytes": "a consumer whose window grows",
    "max_keepalive_bytes": "KEEPALIVE frames",
    "max_output_bytes": "a peer that does not read",
    "max_sessions": "sessions without a link",
    "resume": "never by River, whose sessions always outlive their links",
    "resume_bytes": "sessions that may be resumed",
    "resume_timeout": "sessions without a link",
    "session_grace": "sessions without a link",
    "served_0_2": "older clients of a server",
    "unread_timeout": "a consumer that does not read",
}
"""Settings that are not read before something goes wrong, and what."""
SENDERS = {"max_empty_fragments", "max_fragments", "max_open_elements", "max_payload_bytes", "max_reassembly_bytes"}
"""Settings that a side reads when it receives large items, which servers of some protocols do not in this test."""


class Watched(Settings):
    """Settings that record which of them are read."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> object:
        if name in NAMES and not sys._getframe(1).f_code.co_filename.endswith(ASIDE):
            READ[object.__getattribute__(self, "close_grace")].add(name)
        return object.__getattribute__(self, name)


pytestmark = pytest.mark.skipif(penstock.ACCELERATED, reason="a compiled caller has no frame")

CLIENT, SERVER = 1.25, 1.75
"""Values of `close_grace` that tell whose settings they are."""
READ: dict[object, set[str]] = {}


def service() -> Service:
    service = Service()

    @service.call("read.echo")
    async def echo(request: Payload) -> Payload:
        await asyncio.sleep(0)
        return request

    @service.fire("read.fire")
    async def fire(request: Payload) -> None: ...

    @service.stream("read.items")
    def items(request: Payload) -> list[bytes]:
        return [b'"x"'] * 600 + [LARGE]

    @service.channel("read.channel")
    async def channel(request: Payload, items: Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    @service.upload("read.upload")
    async def upload(request: Payload, items: Items) -> bytes:
        return b"%d" % sum([batch.num_rows async for batch in items.batches()])

    return service


async def source() -> AsyncIterator[bytes]:
    for item in (b'"x"', LARGE):
        yield item


async def use(peer: Peer) -> None:
    """Send requests of every kind that the protocol has."""
    await peer.call("read.echo", b'"x"')
    async with peer.stream("read.items", b'"x"') as items:
        assert len([item async for item in items]) == 601
    async with peer.stream("read.items", b'"x"') as items:
        assert sum([batch.num_rows async for batch in items.batches()]) == 601
    with suppress(UnsupportedKind):
        await peer.fire("read.fire", b'"x"')
    with suppress(UnsupportedKind):
        await peer.upload("read.upload", b'"x"', source())
        async with peer.channel("read.channel", b'"x"', source()) as both:
            assert len([item async for item in both]) == 2


async def accept(setup: Setup) -> None:
    await asyncio.sleep(0)


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_each_side_reads_the_settings_that_it_accepts(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"{protocol}+tcp://127.0.0.1:0"
    READ.update({CLIENT: set(), SERVER: set()})
    monkeypatch.setattr(urls, "check_settings", lambda *arguments, **keywords: None)
    server_settings, client_settings = Watched(close_grace=SERVER), Watched(close_grace=CLIENT)
    async with penstock.serve(service(), url, settings=server_settings, acceptor=accept) as server:
        async with penstock.connect(server.urls[0], settings=client_settings) as peer:
            await use(peer)
            if protocol != "river":
                for other in server.peers:
                    with suppress(UnsupportedKind):
                        await other.push(b"x")
                    with suppress(penstock.ApplicationError):
                        async with other.stream("read.nothing") as items:
                            assert [batch async for batch in items.batches()] == []
                    with suppress(penstock.ApplicationError):
                        await other.call("read.nothing")
    for side, serving in ((CLIENT, False), (SERVER, True)):
        accepted = {name for name in NAMES if is_accepted(name, url, serving)}
        unread = accepted - READ[side] - SELDOM.keys() - (SENDERS | {"reassembly_timeout"} if serving else set())
        assert unread == set(), f"{'server' if serving else 'client'}: nobody has read these"


def is_accepted(name: str, url: str, serving: bool) -> bool:
    """Return whether a changed value is accepted."""
    from tests.test_urls_settings import changed

    settings = changed(name)
    return getattr(fitting(settings, url, serving=serving), name) == getattr(settings, name)
