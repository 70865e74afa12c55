"""Hostile CBOR, sent through a session to typed handlers: it is refused before it takes memory."""

from __future__ import annotations

import tracemalloc
from typing import Any

import cbor2
import msgspec
import pytest

import weirpool
from weirpool import ApplicationError, Settings

MIB = 1 << 20
PEAK_BYTES = 4 * MIB
"""More than a copy of the largest input on each side."""
CBOR = Settings(data_mime="application/cbor")


class Query(msgspec.Struct):
    name: str = ""
    numbers: list[int] = []
    rest: Any = None


GOOD = cbor2.dumps({"name": "x", "numbers": [1, 2], "rest": {"a": [b"b", None]}})
HEAD = b"\xa1\x64rest"
"""A map with the key `rest`, whose value follows."""
DEPTH = {
    "arrays": b"\x81" * MIB,
    "arrays without a length": b"\x9f" * MIB,
    "maps": b"\xa1\x61a" * 100_000,
    "maps without a length": b"\xbf\x61a" * 100_000,
    "tags": b"\xc1" * MIB,
    "tags of arrays": b"\xd9\xd9\xf7\x81" * 100_000,
    "one level too many": b"\x81" * 129 + b"\x01",
    "texts in texts without a length": b"\x7f" * 200,
}
LIES = {
    "array": b"\x9b" + b"\xff" * 8,
    "array of 2^31": b"\x9a\x80\x00\x00\x00\x01",
    "map": b"\xbb" + b"\xff" * 8,
    "map of 2^31": b"\xba\x80\x00\x00\x00\x01",
    "bytes": b"\x5b\x7f" + b"\xff" * 7,
    "bytes of 2^31": b"\x5a\x80\x00\x00\x00x",
    "text": b"\x7b" + b"\xff" * 8,
    "text of 2^31": b"\x7a\x80\x00\x00\x00x",
    "chunk": b"\x5f\x5a\xff\xff\xff\xff\xff",
    "arrays in an array": b"\x84" + b"\x9a\xff\xff\xff\xff" * 4,
    "one item too few": b"\x82\x01",
}
ENDLESS = {
    "array": b"\x9f\x01",
    "map": b"\xbf\x61a\x01",
    "map without a value": b"\xbf\x61a\xff",
    "bytes": b"\x5f\x41a",
    "text with bytes": b"\x7f\x41a\xff",
    "bytes in bytes": b"\x5f\x5f\x41a\xff\xff",
    "a break alone": b"\xff",
    "a tag of a break": b"\x9f\xc1\xff",
    "number": b"\x1f",
}
TAGS = {
    "cycle": b"\xd8\x1c\x81\xd8\x1d\x00",
    "reference to a text": b"\xd9\x01\x00\x82\x63abc\xd8\x19\x00",
    "regular expression": b"\xd8\x23\x67(a+)+$!",
    "number of 1 MB": b"\xc2\x5a\x00\x0f\x42\x40" + b"\xff" * 1_000_000,
    "decimal of a million digits": b"\xc4\x82\x1a\x00\x0f\x42\x40\x01",
    "decimal of decimals": b"\xc4\x82\xc4\x82\x01\x01\x01",
    "big float": b"\xc5\x82\x1a\x3b\x9a\xca\x00\x01",
    "fraction": b"\xd8\x1e\x82\x01\x00",
    "time of a time": b"\xc1\xc1\x21",
    "time in the year 10^300": b"\xc1\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c",
}
KEYS = {
    "equal": b"\xa2\x61a\x01\x61a\x02",
    "equal in two forms": b"\xa2\x61a\x01\x78\x01a\x02",
    "equal numbers": b"\xa2\x01\x01\xf9\x3c\x00\x02",
    "equal, one in parts": b"\xa2\x61a\x01\x7f\x61a\xff\x02",
    "array": b"\xa1\x80\x01",
    "map": b"\xa1\xa0\x01",
    "tag": b"\xa1\xc2\x41\x01\x01",
}
AFTER = {
    "value": b"\x01\x02",
    "break": b"\x01\xff",
    "tag": b"\x01\xd9\xd9\xf7",
    "mark": b"\x01\x1bWeirpool" * 2,
}
GROUPS = {"depth": DEPTH, "lies": LIES, "endless": ENDLESS, "tags": TAGS, "keys": KEYS, "after": AFTER}
service = weirpool.Service()


@service.call("typed")
async def typed(query: Query) -> int:
    return len(query.numbers)


@service.call("any")
async def untyped(value: Any) -> int:
    return 2


async def refusal(peer: weirpool.Peer, route: str, data: bytes) -> str:
    """Return how a call is refused, and "" if it is answered."""
    try:
        await peer.call(route, data)
    except ApplicationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("route", ["typed", "any"])
@pytest.mark.parametrize("group", GROUPS)
async def test_hostile_cbor_costs_its_call_and_no_memory(group: str, route: str) -> None:
    # THREATS 104
    head = HEAD if route == "typed" else b""
    async with (
        weirpool.serve(service, "rsocket+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0], settings=CBOR) as peer,
    ):
        assert (await peer.call(route, GOOD)).data == b"\x02"
        for name, data in GROUPS[group].items():
            tracemalloc.start()
            try:
                refused = await refusal(peer, route, head + data)
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert refused, name
            assert peak < PEAK_BYTES + 2 * len(data), (name, peak)
            assert (await peer.call(route, GOOD)).data == b"\x02", name
