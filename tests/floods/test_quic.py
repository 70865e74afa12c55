"""Floods over QUIC stay within the limits of the ledger: half frames, gaps, requests, and output that is not read."""

from __future__ import annotations

import pytest

import weirpool
from tests.floods.attackers import SETUP, call, channel, needs_second_address, request, resumable, stream
from tests.floods.flooding import BESIDES, MIB, Victim, quiet, victim
from tests.floods.quic_attackers import quic_attacker
from tests.floods.victim import to_client
from tests.transports.certificates import Certificates

pytestmark = needs_second_address

LIMITS = {
    "max_stream_bytes": MIB,
    "max_connection_bytes": 4 * MIB,
    "max_identity_bytes": 6 * MIB,
    "max_process_bytes": 8 * MIB,
}
"""Smaller than those of other floods, because QUIC is slower."""
LINKS = 30
READ_BYTES = 128 << 10
"""What a link may receive before it waits: one read."""
OUTPUT_BYTES = 256 << 10
"""Output that may wait in a link before its senders do."""
LIMIT = LIMITS["max_identity_bytes"] + LINKS * READ_BYTES
HALF = request(MIB)[: -MIB // 2]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def url(certificates: Certificates) -> str:
    return f"rsocket+quic://127.0.0.1:0?{certificates.server_options}"


async def check(flooded: Victim, besides: int = 0) -> dict[str, int]:
    """Check that an honest client is served, and what the process held: the limit, and `besides`."""
    address = to_client(flooded.url)
    async with weirpool.connect(address, settings=quiet(address)) as innocent:
        large = bytes(3 * MIB)
        assert (await innocent.call("flood.echo", large)).data == large
    said = await flooded.report()
    assert said["booked"] <= LIMIT + len(large) + besides
    assert said["grown"] <= LIMIT + len(large) + besides + BESIDES
    return said


async def test_half_a_frame_on_many_streams(build: str, certificates: Certificates) -> None:
    # THREATS 86
    async with victim(build, "server", url(certificates), frame_timeout=0.5, **LIMITS) as flooded:
        async with quic_attacker(flooded, certificates) as attacker:
            for _ in range(LINKS):
                attacker.open(SETUP + HALF)
            await attacker.until_ended(LINKS)
            said = await check(flooded)
    assert said["payments"] > 0 and said["held"] < MIB


async def test_gaps_in_many_streams(build: str, certificates: Certificates) -> None:
    # THREATS 86: a hundred datagrams of 30 bytes would take 100 MiB.
    async with victim(build, "server", url(certificates), **LIMITS) as flooded:
        async with quic_attacker(flooded, certificates) as attacker:
            for _ in range(100):
                attacker.skip()
            await attacker.until_ended(100)
            assert attacker.over
            said = await check(flooded)
    assert said["payments"] > 0 and said["held"] < MIB


async def test_requests_of_handlers_that_wait(build: str, certificates: Certificates) -> None:
    # THREATS 85
    async with victim(build, "server", url(certificates), unread_timeout=0.2, **LIMITS) as flooded:
        async with quic_attacker(flooded, certificates) as attacker:
            for _ in range(LINKS):
                attacker.open(SETUP + call("flood.waits", MIB // 2, 1))
            # Each answer is an error, because what it asks for never ends.
            await attacker.until_received(LINKS // 2, 1)
            said = await check(flooded)
    assert said["payments"] > 0


async def test_unread_items_of_many_streams(build: str, certificates: Certificates) -> None:
    # THREATS 84
    async with victim(build, "server", url(certificates), unread_timeout=0.2, **LIMITS) as flooded:
        async with quic_attacker(flooded, certificates) as attacker:
            begun = channel("flood.channel", *[MIB // 4] * 4)
            for _ in range(LINKS):
                attacker.open(SETUP + begun)
            await attacker.until_received(LINKS // 2, 1)
            said = await check(flooded)
    assert said["payments"] > 0


async def test_output_that_is_not_read(build: str, certificates: Certificates) -> None:
    # THREATS 40, 88
    async with victim(build, "server", url(certificates), **LIMITS) as flooded:
        async with quic_attacker(flooded, certificates) as attacker:
            attacker.read_no_more()
            for number in range(LINKS):
                attacker.open(resumable(b"token %04d" % number) + stream("flood.items"))
            await attacker.until_received(1, 1)
            while (await flooded.report())["payments"] == 0:
                pass
            # The output of one batch may be kept, and wait in the link, before the ledger sees it.
            await check(flooded, LINKS * 2 * OUTPUT_BYTES)
