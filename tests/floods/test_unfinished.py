"""Floods of what is never complete stay within the limits of the ledger. THREATS 86, 87"""

from __future__ import annotations

import asyncio

import weirpool
from tests.floods.attackers import SETUP, flood, links, needs_second_address, request, upgrade
from tests.floods.flooding import BESIDES, LIMITS, MIB, Victim, quiet, victim

LINKS = 40
READ_BYTES = 128 << 10


async def check(flooded: Victim) -> None:
    """Check that an honest client was served, and what the process held."""
    async with weirpool.connect(flooded.url, settings=quiet(flooded.url)) as innocent:
        large = bytes(3 * MIB)
        assert (await innocent.call("flood.echo", large)).data == large
    said = await flooded.report()
    # All links may be read once before they wait.
    limit = LIMITS["max_identity_bytes"] + LINKS * READ_BYTES + len(large)
    assert said["booked"] <= limit
    assert said["grown"] <= said["booked"] + BESIDES
    # What is not counted any more is not kept for links that have not closed yet, either.
    assert said["resident"] <= said["held"] + BESIDES


@needs_second_address
async def test_half_a_frame_from_many_links(build: str) -> None:
    half = request(2 * MIB)[: -MIB // 2]
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0", frame_timeout=1.0) as flooded:
        async with links(flooded, *[SETUP] * LINKS) as opened:
            await asyncio.gather(*(flood(sock, half) for sock in opened))
            await check(flooded)


@needs_second_address
async def test_half_a_message_from_many_web_sockets(build: str) -> None:
    # RFC 6455: the handshake, SETUP in a message of its own, and the beginning of a long message.
    setup = SETUP[3:]
    opening = upgrade("/feed") + bytes([0x82, 0x80 | 126]) + len(setup).to_bytes(2, "big") + bytes(4) + setup
    half = bytes([0x82, 0x80 | 127]) + (2 * MIB).to_bytes(8, "big") + bytes(4) + bytes(2 * MIB - MIB // 2)
    async with victim(build, "server", "rsocket+ws://127.0.0.1:0/feed", frame_timeout=1.0) as flooded:
        async with links(flooded, *[opening] * LINKS) as opened:
            await asyncio.gather(*(flood(sock, half) for sock in opened))
            await check(flooded)


@needs_second_address
async def test_fragments_from_many_links(build: str) -> None:
    part = request(MIB, follows=True)
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0", unread_timeout=1.0) as flooded:
        async with links(flooded, *[SETUP] * LINKS) as opened:
            loop = asyncio.get_running_loop()
            # Some wait until others have been dropped.
            await asyncio.gather(*(loop.sock_sendall(sock, part) for sock in opened))
            await check(flooded)
