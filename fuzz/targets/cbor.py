"""The depth of CBOR and the number of its values, and what the decoder of typed data builds of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import cbor2
from tests.builds import Build

from fuzz.outcomes import attempt
from fuzz.targets import Difference
from weirpool.depth import MAX_DEPTH
from weirpool.values.cbor import CborReader
from weirpool.values.decoder import ERRORS, Decoder

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
    depth = build.module("weirpool.depth")
    return [
        *(attempt(build, depth.cbor_too_deep, data, limit) for limit in LIMITS),
        *(attempt(build, depth.cbor_too_deep, data, limit, True) for limit in LIMITS),
        *(attempt(build, depth.skip_cbor, data, at) for at in (0, 1, len(data) // 2)),
        depth.count_cbor(data),
    ]


def judge(build: Build, data: bytes, found: Any) -> None:
    """Check that nothing deeper is decoded than the scan has found, and that what fails does so as it should."""
    try:
        value = Decoder(CborReader()).decode(data)
    except ERRORS:
        return
    if found[8] != len(data):
        raise Difference(f"data was decoded that ends at {found[8]}")
    if found[7] >= 0:
        raise Difference(f"data was decoded that has more than {MAX_DEPTH} levels")
    if found[3] >= 0 and not _has_text_keys(value):
        raise Difference("data was decoded that has a key with a tag, and a key that is not a text")
    depth = _depth(value)
    # Tags are levels as well, and a decoder replaces them.
    if any(offset < 0 and depth > limit for offset, limit in zip(found, LIMITS, strict=False)):
        raise Difference(f"the data has {depth} levels, but found was {found}")


def _has_text_keys(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str | bytes) and _has_text_keys(each) for key, each in value.items())
    return not isinstance(value, list) or all(map(_has_text_keys, value))


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0
