"""The depth of CBOR and the number of its values, and what the decoder of typed data builds of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import cbor2
import msgspec
from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference
from penstock.depth import MAX_DEPTH
from penstock.schema.cbor import Decoder

LIMITS: Final = (0, 1, 5, 128)
WORDS: Final = (
    b"\x81",
    b"\x9f",
    b"\xa1",
    b"\xbf",
    b"\xff",
    b"\xc2\x41",
    b"\xc4\x82",
    b"\xd9\xd9\xf7",
    b"\x5f",
    b"\x9a\xff\xff\xff\xff",
    b"\xd8\x1c",
    b"\xd8\x1d",
)


def seeds() -> Iterator[bytes]:
    """Yield nested values, with and without lengths."""
    value = {"a": [1, {"b": "c"}, b"d", 1.5, None, 1 << 70], "e": {}}
    yield cbor2.dumps(value)
    yield cbor2.dumps(value, indefinite_containers=True)
    yield b"\x81" * 200
    yield b"\xc4\x82\x21\x19\x28\xab"
    yield b"\xbf\x01\x02\xff"


def outcome(build: Build, data: bytes) -> object:
    """Return what both functions find."""
    depth = build.module("penstock.depth")
    return [*(attempt(build, depth.cbor_too_deep, data, limit) for limit in LIMITS), depth.count_cbor(data)]


def judge(build: Build, data: bytes, found: Any) -> None:
    """Check that nothing deeper is decoded than the scan has found, and that what fails does so as it should."""
    try:
        value = Decoder(Any).decode(data)
    except msgspec.DecodeError:
        return
    if found[3] >= 0:
        raise Difference(f"data was decoded that has more than {MAX_DEPTH} levels")
    depth = _depth(value)
    # Tags are levels as well, and a decoder replaces them.
    if any(offset < 0 and depth > limit for offset, limit in zip(found, LIMITS, strict=False)):
        raise Difference(f"the data has {depth} levels, but found was {found}")


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
