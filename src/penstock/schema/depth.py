"""How deep data nests, found before a decoder sees it: on a small stack, decoders crash (THREATS 64)."""

from __future__ import annotations

import re
from typing import Final

from ..errors import Mismatch

__all__ = ["MAX_DEPTH", "check_json_depth", "check_msgpack_depth"]

MAX_DEPTH: Final = 128
"""Containers within containers: deeper than any data that people write, shallow enough for any thread's stack."""

# Quantifiers are possessive: a string that never ends is passed in one go, not tried again at each of its quotes.
_JSON_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)

# msgpack, Formats: fixmap, fixarray, array 16 and 32, map 16 and 32.
_CONTAINERS: Final = frozenset([*range(0x80, 0xA0), 0xDC, 0xDD, 0xDE, 0xDF])
_OTHERS: Final = bytes(sorted(set(range(256)) - _CONTAINERS))

_FIXED: Final = {
    0xC0: 0, 0xC2: 0, 0xC3: 0, 0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4,
    0xD3: 8, 0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17,
}  # fmt: skip
"""Bytes behind a first byte that says it all: nil, booleans, numbers, and extensions of fixed sizes."""
_SIZED: Final = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1),
                 0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # fmt: skip
"""Bytes of the length that follows, and of what stands between it and the content: bin, ext and str."""
_COUNTED: Final = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Bytes of the count that follows, and values an entry: arrays and maps."""


def check_json_depth(data: bytes, limit: int = MAX_DEPTH) -> None:
    """Refuse JSON that nests deeper than `limit`. What is no JSON at all is left to the decoder.

    Raises:
        Mismatch: It does.

    """
    # Data with so few brackets cannot nest too deep: two counts are all that most requests pay.
    if data.count(b"[") + data.count(b"{") <= limit:
        return
    depth = 0
    for match in _JSON_TOKEN.finditer(data):
        first = data[match.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                raise _too_deep(limit)
        elif first in b"]}":
            depth -= 1


def check_msgpack_depth(data: bytes, limit: int = MAX_DEPTH) -> None:
    """Refuse msgpack that nests deeper than `limit`. What is no msgpack at all is left to the decoder.

    Raises:
        Mismatch: It does.

    """
    if len(data.translate(None, _OTHERS)) <= limit:
        return
    # How many values each open container still waits for; one that waits for none is closed.
    open_: list[int] = []
    at, end = 0, len(data)
    while at < end:
        first = data[at]
        count, at = _entered(data, at)
        if open_:
            open_[-1] -= 1
        if count:
            open_.append(count)
            if len(open_) > limit:
                raise _too_deep(limit)
        elif first == 0xC1:
            return
        while open_ and not open_[-1]:
            open_.pop()


def _entered(data: bytes, at: int) -> tuple[int, int]:
    """Return how many values the container at offset `at` holds, 0 for other values, and the offset behind its head."""
    first = data[at]
    at += 1
    if 0x80 <= first < 0x90:
        return 2 * (first & 0x0F), at
    if first < 0x80 or first >= 0xE0:
        return 0, at
    if first < 0xA0:
        return first & 0x0F, at
    if first < 0xC0:
        return 0, at + (first & 0x1F)
    if first in _COUNTED:
        size, times = _COUNTED[first]
        return times * int.from_bytes(data[at : at + size], "big"), at + size
    if first in _SIZED:
        size, between = _SIZED[first]
        return 0, at + size + between + int.from_bytes(data[at : at + size], "big")
    return 0, at + _FIXED.get(first, 0)


def _too_deep(limit: int) -> Mismatch:
    return Mismatch(f"nests deeper than {limit} levels")
