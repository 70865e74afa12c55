"""The laboratory of proxies: clients that forge headers and send junk, behind chains of proxies and without any.

Every link counts for the client that opened it, as far as listed proxies can know, and a client pays for its own links
only.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, cast

from tests.transports.recording import Place, connected, listening, raw_connection
from tests.transports.test_proxy_header import inet
from weirpool import Admitted, ConnectError, Connection, Settings, SetupRejected
from weirpool.aio.limits import Limits
from weirpool.session import Session
from weirpool.tap import Refusal

__all__ = ["neighbors", "proxies"]

CHAIN: Final = ("10.0.0.1", "10.9.9.9", "::ffff:10.0.0.2")
"""Addresses of listed proxies behind the first one."""
CLIENTS: Final = ("192.0.2.1", "198.51.100.7", "2001:db8::1")
FORGED: Final = ("203.0.113.6", "10.0.0.7", "2001:db8::6", "unknown")
DATA: Final = b"\0\0\x04data"


def proxies(folder: Path) -> Iterator[str]:
    """Open links through sockets, as a listed proxy and as somebody else (THREATS 95)."""
    for seed in range(24):
        source = random.Random(seed)
        for transport in ("tcp", "ws", "h2c"):
            listed = source.random() < 0.6
            wrong = asyncio.run(_link(transport, listed, source))
            if wrong:
                yield f"{transport}, seed {seed}: {wrong}"


async def _link(transport: str, listed: bool, source: random.Random) -> str:
    """Open one link, and return what is wrong with it."""
    trusted = ("127.0.0.1" if listed else "127.0.0.2", "10.0.0.0/8")
    settings = Settings(trusted_proxies=trusted, proxy_protocol=transport == "tcp", connect_timeout=2.0)
    client = source.choice(CLIENTS)
    async with listening(f"rsocket+{transport}://127.0.0.1:0", settings) as place:
        try:
            async with asyncio.timeout(5):
                if transport == "tcp":
                    wrong = await _introduced(place, listed, client, source)
                else:
                    wrong = await _forwarded(place, listed, client, source)
        except TimeoutError:
            return "the link is not opened, or its bytes do not arrive"
        expected = client if listed else "127.0.0.1"
        if set(place.addresses) - {expected}:
            wrong = f"it counts for {place.addresses}, not for {expected}"
        return wrong


async def _introduced(place: Place, listed: bool, client: str, source: random.Random) -> str:
    line = f"PROXY TCP{ip_address(client).version} {client} {client} 1 2\r\n".encode()
    header = source.choice((line, inet(client), inet(client, bytes(source.randrange(300)))))
    async with raw_connection(place.port) as (_, writer):
        writer.write(header + DATA)
        receiver = await place.linked()
        # The header of another peer is its own data.
        expected = DATA if listed else header + DATA
        await receiver.until(lambda: len(receiver.data) >= len(expected))
        return "" if receiver.data == expected else f"{receiver.data[:40]!r} arrives, not {expected[:40]!r}"


async def _forwarded(place: Place, listed: bool, client: str, source: random.Random) -> str:
    forged = [source.choice(FORGED) for _ in range(source.randrange(3))]
    nodes = [*forged, client, *source.sample(CHAIN, source.randrange(3))]
    values = {
        "X-Forwarded-For": ", ".join(nodes),
        "Forwarded": ", ".join(f'for="[{each}]"' if ":" in each else f"for={each}" for each in nodes),
    }
    name = source.choice(list(values))
    other = ({*values} - {name}).pop()
    headers = [(name, values[name])]
    if source.random() < 0.3:
        # The proxy passes the client's own other header on.
        headers.insert(source.randrange(2), (other, "203.0.113.6" if other.startswith("X") else "for=203.0.113.6"))
    try:
        link = await connected(place.url, Settings(headers=tuple(headers), connect_timeout=2.0))
    except ConnectError as error:
        return "" if listed and len(headers) == 2 else str(error)
    link.link.abort()
    await link.lost()
    return "" if not listed or len(headers) == 1 else "headers that disagree are accepted"


class Silent:
    """A link whose first message has not been read."""

    address = "x"

    def evict(self, reason: Refusal) -> None:
        """Do nothing: there is room for all."""


def neighbors(folder: Path) -> Iterator[str]:
    """Let clients share addresses, one of them hostile, and count what the others are refused (THREATS 95)."""
    for seed in range(50):
        yield from (f"seed {seed}: {wrong}" for wrong in _shared(random.Random(seed)))


def _shared(source: random.Random) -> Iterator[str]:
    """One address: junk and guesses from a hostile client, and principals that come and go."""
    limits = Limits(Settings(max_connections_per_address=3, max_refusals_per_address=5))
    open_sessions: dict[Any, str] = {}
    now, guesses = 0.0, list[float]()
    for number in range(400):
        now += source.expovariate(5)
        if source.random() < 0.6:
            link = Silent()
            limits.arrived(link, now)
            guessed = source.random() < 0.5
            if not guessed:
                limits.unrecognized("x", False, now)
            elif not limits.locked_out("x", now):
                limits.unrecognized("x", True, now)
                guesses.append(now)
            limits.identified(link)
            continue
        if open_sessions and source.random() < 0.4:
            gone = source.choice(list(open_sessions))
            del open_sessions[gone]
            limits.ended(cast(Session, gone))
            continue
        name = source.choice("abcdef")
        refused = limits.make_room("x", now) or limits.full("x")
        if refused:
            yield f"a new client is refused because of others: {refused}"
            return
        limits.linked(cast(Session, number), "x")
        open_sessions[number] = name
        wanted = list(open_sessions.values()).count(name) > 3
        try:
            limits.admitted(cast(Session, number), Connection("rsocket", "x", False), Admitted(principal=name))
            if wanted:
                yield f"principal {name} has more than its 3 connections"
                return
        except SetupRejected:
            if not wanted:
                yield f"principal {name} is refused below its limit"
                return
            del open_sessions[number]
            limits.ended(cast(Session, number))
    if any(sum(start <= guess < start + 30 for guess in guesses) > 10 for start in guesses):
        yield "an address may guess more than twice its limit in 30 s"
    if limits.locked_out("x", now + 30):
        yield "an address is locked out although nothing came from it for 30 s"
