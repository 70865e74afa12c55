"""Messages of reactive-streams-io. The first byte of an input is the size of pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build

from fuzz.outcomes import VECTORS, attempt, pieces
from fuzz.targets import Difference

LIMITS: Final = {"max_string_bytes": 300, "max_element_bytes": 1_000, "max_metadata_bytes": 100, "max_extensions": 9}
ON_NEXT: Final = 7
FIXED: Final = b"\1\0\0\6\1\2\7\1ab\7\1cd\x0a\1\3abcdef"
"""A subscription with elements of two bytes, packed and one by one."""


def seeds() -> Iterator[bytes]:
    """Yield the vectors one by one, and all of them in one conversation."""
    raw = [bytes.fromhex(entry["hex"]) for entry in json.loads((VECTORS / "reactive-streams-0.json").read_text())]
    yield from (b"\0" + message for message in raw)
    yield b"\0" + b"".join(raw)
    yield b"\1" + FIXED
    yield b"\0" + FIXED


def _read(build: Build, data: bytes, size: int) -> list[object]:
    module = build.module("weirpool.wire.reactivestreams.decoder")
    codec = build.module("weirpool.wire.reactivestreams.codec")
    decoder = module.Decoder(**LIMITS)
    decoder.extensions.update(codec.EXTENDED)
    found: list[object] = []
    for piece in pieces(data, size):
        decoder.feed(piece)
        message = attempt(build, decoder.next)
        while message is not None:
            if isinstance(message, tuple):
                return [*found, message]
            found += _shown(message)
            message = attempt(build, decoder.next)
    return found


def _shown(message: Any) -> list[object]:
    """Return a message, or each of the elements that arrived together."""
    if hasattr(message, "run"):
        return [(message.subscriber, item.data) for item in message.run.payloads()]
    if message.type == ON_NEXT:
        return [(message.subscriber, message.data)]
    return [repr(message)]


def outcome(build: Build, data: bytes) -> list[object]:
    """Return all messages, with runs as single elements."""
    return _read(build, data[1:], data[0] if data else 0)


def judge(build: Build, data: bytes, found: Any) -> None:
    """Compare with the same bytes in pieces of another size."""
    other = _read(build, data[1:], 3)
    if other != found and not _is_earlier(other, found) and not _is_earlier(found, other):
        raise Difference(f"in other pieces: {other}\nfound: {found}")


def _is_earlier(less: list[object], more: list[object]) -> bool:
    """Return whether `more` has only an error in addition: incomplete messages are not read to their end."""
    return less == more[:-1] and str(more[-1]).startswith(("('FrameError'", "('LimitExceeded'"))
