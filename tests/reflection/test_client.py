"""Asking a peer for its description: over every protocol, and what a peer that has none is told."""

from __future__ import annotations

import asyncio

import pytest

import weirpool
from weirpool import Description, NotDescribed, Payload, Rejected, Request, Service, Settings
from weirpool.aio.handlers import Next
from weirpool.protocols import PROTOCOLS
from weirpool.reflection.description import ROUTE, Why

from .quotes import KINDS, service

ON = Settings(reflection=True, software="quotes 1.4")
NOT_REQUESTED = {
    "reactivesocket-0.0": {"orders.load", "orders.echo"},
    "reactive-streams": {"orders.load", "orders.echo", "log"},
    "river": {"log", "tree", "numbers"},
}
"""Routes of kinds that a protocol does not have, or whose names it cannot write."""
URLS = [*(f"{protocol}+memory://described" for protocol in PROTOCOLS), "river+memory://described?codec=msgpack"]


async def refusal(served: Service, url: str = "rsocket+memory://refused", timeout: float = 10) -> NotDescribed:
    """Return the error of a client that asks a server without reflection."""
    async with weirpool.serve(served, url), weirpool.connect(url) as peer:
        with pytest.raises(NotDescribed) as caught:
            await weirpool.describe(peer, timeout=timeout)
    return caught.value


@pytest.mark.parametrize("url", URLS)
async def test_describes_itself_over_every_protocol(url: str) -> None:
    async with weirpool.serve(service, url, settings=ON), weirpool.connect(url) as peer:
        description = await weirpool.describe(peer)
        missing = NOT_REQUESTED.get(url.partition("+")[0], set())
        expected = {route: kind for route, kind in KINDS.items() if route not in missing}
        assert {each.route: each.kind for each in description.routes} == expected
        assert description.software == "quotes 1.4" and description.complete


@pytest.mark.parametrize("url", URLS)
async def test_tells_nothing_unless_it_is_asked_to(url: str) -> None:
    error = await refusal(service, url)
    assert error.why is Why.UNKNOWN and "weirpool serve --reflection" in str(error)


@pytest.mark.parametrize("mime", ["application/json", "application/msgpack", "text/plain"])
async def test_reads_the_format_of_the_connection(mime: str) -> None:
    url = "rsocket+memory://formats"
    async with (
        weirpool.serve(service, url, settings=ON),
        weirpool.connect(url, settings=Settings(data_mime=mime)) as peer,
    ):
        assert len((await weirpool.describe(peer)).routes) == len(KINDS)


async def test_a_balancer_and_a_peer_that_reconnects_ask_one_server() -> None:
    urls = ["rsocket+memory://one", "rsocket+memory://two"]
    async with weirpool.serve(service, *urls, settings=ON):
        async with weirpool.balance(urls) as balancer:
            assert isinstance(await weirpool.describe(balancer), Description)
        async with weirpool.connect(urls[0], reconnect=weirpool.Reconnect()) as peer:
            assert isinstance(await weirpool.describe(peer), Description)


async def test_a_server_asks_its_client() -> None:
    url = "rsocket+memory://back"
    async with weirpool.serve(Service(), url) as server, weirpool.connect(url, service=service, settings=ON) as peer:
        with pytest.raises(Rejected):
            await peer.call("nothing")
        [client] = server.peers
        assert len((await weirpool.describe(client)).routes) == len(KINDS)


async def test_interceptors_decide_who_may_ask() -> None:
    seen = []

    async def guard(request: Request, next: Next) -> Payload:
        seen.append((request.route, request.handled))
        raise Rejected(message="only for administrators")

    url = "rsocket+memory://guarded"
    guarded = Service(interceptors=[guard])
    async with weirpool.serve(guarded, url, settings=ON), weirpool.connect(url) as peer:
        with pytest.raises(NotDescribed, match="only for administrators") as caught:
            await weirpool.describe(peer)
    assert caught.value.why is Why.REFUSED and seen == [(ROUTE, True)]


async def test_the_service_that_an_acceptor_chooses_is_described() -> None:
    other = Service()
    other.call("mine")(lambda request: request)

    async def choose(setup: weirpool.Setup) -> Service:
        return other

    url = "rsocket+memory://chosen"
    async with weirpool.serve(service, url, settings=ON, acceptor=choose), weirpool.connect(url) as peer:
        assert [each.route for each in (await weirpool.describe(peer)).routes] == ["mine"]


@pytest.mark.parametrize("answer", [b"", b"echo", b'{"version": "x"}', b"[" * 1_000, b'{"routes": []}'])
async def test_another_answer_is_no_description(answer: bytes) -> None:
    other = Service()
    other.call(ROUTE)(lambda request: answer)
    assert (await refusal(other)).why is Why.FOREIGN


async def test_a_later_version_is_refused() -> None:
    other = Service()
    other.call(ROUTE)(lambda request: b'{"version": 2, "routes": []}')
    assert "has version 2" in str(await refusal(other))


async def test_silence_ends() -> None:
    other = Service()

    @other.call(ROUTE)
    async def never(request: Payload) -> Payload:
        await asyncio.Event().wait()
        return request

    assert (await refusal(other, timeout=0.05)).why is Why.SILENT
