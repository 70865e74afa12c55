from __future__ import annotations

import pytest

import weirpool
from weirpool import Rejected, Service
from weirpool.bridging.counters import Counters
from weirpool.bridging.upstream import Destination, Upstream
from weirpool.connection import Connection
from weirpool.payload import Payload
from weirpool.settings import Settings


def client(protocol: str) -> Connection:
    return Connection(protocol, "there", False, Payload(b"ann", b"m"), "x/metadata", "x/data")


@pytest.mark.parametrize(
    ("source", "target", "setup", "data_mime"),
    [
        ("rsocket", "reactivesocket-0.2", Payload(b"ann", b"m"), "x/data"),
        ("river", "river", Payload(b"ann", b"m"), Settings().data_mime),
        ("rsocket", "river", b"", Settings().data_mime),
        ("river", "rsocket", b"", "x/data"),
        ("reactive-streams", "rsocket", b"", "x/data"),
    ],
)
def test_setup_passes_between_protocols_of_one_kind(source: str, target: str, setup: object, data_mime: str) -> None:
    made = Destination(f"{target}+memory://x").for_client(client(source), "x/data")
    assert made.settings is not None
    assert (made.setup, made.settings.data_mime) == (setup, data_mime)
    assert (made.settings.metadata_mime == "x/metadata") == (source == "rsocket" and target == "reactivesocket-0.2")


def test_own_setup_and_settings_win() -> None:
    given = Destination("rsocket+memory://x", Settings(data_mime="y/data"), None, b"bob")
    made = given.for_client(client("rsocket"), "x/data")
    assert made.settings is not None
    assert (made.setup, made.settings.data_mime) == (b"bob", "y/data")


async def test_failures_are_not_repeated_at_once() -> None:
    counters = Counters()
    upstream = Upstream(Destination("rsocket+memory://nobody"), Service(), counters, "")
    for _ in range(10):
        with pytest.raises(Rejected, match="cannot be reached"):
            await upstream.peer()
    assert counters.upstream_failures == 1
    await upstream.close()


async def test_one_connection_is_used_until_it_is_lost() -> None:
    counters = Counters()
    upstream = Upstream(Destination("rsocket+memory://up"), Service(), counters, "")
    async with weirpool.serve(Service(), "rsocket+memory://up"):
        first = await upstream.peer()
        assert await upstream.peer() is first
        await first.close()
        assert await upstream.peer() is not first
        assert counters.upstream_connects == 2
        await upstream.close()
        assert (await upstream.peer()).closed is False
        await upstream.close()
