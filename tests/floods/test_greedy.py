"""Who holds most pays first: a client that holds little is never refused because a stranger is greedy. THREATS 87"""

from __future__ import annotations

import asyncio

import weirpool
from tests.floods.attackers import SETUP, links, needs_second_address, request
from tests.floods.flooding import MIB, quiet, victim

LIMIT = 16 * MIB
HOARDERS = 8
ROOMY = {
    "max_stream_bytes": 64 * MIB,
    "max_connection_bytes": 64 * MIB,
    "max_identity_bytes": 256 * MIB,
    "max_process_bytes": 512 * MIB,
}
"""So that only the limit of incomplete items is reached."""


@needs_second_address
async def test_fragments_of_strangers_cost_an_honest_client_nothing(build: str) -> None:
    settings = {**ROOMY, "max_process_reassembly_bytes": LIMIT}
    async with victim(build, "server", "rsocket+tcp://127.0.0.1:0", **settings) as flooded:
        async with links(flooded, *[SETUP] * (HOARDERS + 1)) as (*hoarders, topping):
            loop = asyncio.get_running_loop()
            for sock in hoarders:
                for stream_id in (1, 3):
                    await loop.sock_sendall(sock, request(LIMIT // HOARDERS // 2 - 4096, stream_id, follows=True))
            for number in range(20):
                await loop.sock_sendall(topping, request(100_000, 2 * number + 1, follows=True))
            honest = quiet(flooded.url, fragment_bytes=256 << 10)
            async with weirpool.connect(flooded.url, settings=honest) as innocent:
                large = bytes(3 * MIB)
                for _ in range(3):
                    assert (await innocent.call("flood.echo", large)).data == large
            said = await flooded.report()
            assert said["payments"] > 0
            # Each link may be read once before the largest has paid.
            assert said["incomplete"] <= LIMIT + MIB
