"""What is kept for clients that never confirm it stays within the limits of the ledger. THREATS 30, 88"""

from __future__ import annotations

import weirpool
from tests.floods.attackers import links, needs_second_address, read, resumable, stream
from tests.floods.flooding import BESIDES, LIMITS, MIB, quiet, victim

SESSIONS = 12
READ_BYTES = 4 * MIB
"""What each client reads: together, four times what one identity may hold."""
REPLIES = 512 << 10
"""Output that may be kept for each session before the ledger sees it: that of one batch."""


async def flood(flooded, leaves: bool) -> None:
    hellos = [resumable(b"token %04d" % number) + stream("flood.items") for number in range(SESSIONS)]
    async with links(flooded, *hellos) as opened:
        for sock in opened:
            await read(sock, READ_BYTES)
            if leaves:
                sock.close()


@needs_second_address
async def test_clients_that_confirm_nothing_and_stay(build: str) -> None:
    await check(build, leaves=False)


@needs_second_address
async def test_clients_that_confirm_nothing_and_leave(build: str) -> None:
    await check(build, leaves=True)


async def check(build: str, leaves: bool) -> None:
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0") as flooded:
        honest = quiet(flooded.url, resume=True, fragment_bytes=256 << 10)
        async with weirpool.connect(flooded.url, settings=honest) as innocent:
            before = await innocent.call("flood.echo", b"1")
            await flood(flooded, leaves)
            assert (await innocent.call("flood.echo", b"1")).data == before.data == b"1"
        said = await flooded.report()
        assert said["payments"] > 0
        assert said["booked"] <= LIMITS["max_identity_bytes"] + SESSIONS * REPLIES
        assert said["grown"] <= LIMITS["max_identity_bytes"] + SESSIONS * REPLIES + BESIDES
