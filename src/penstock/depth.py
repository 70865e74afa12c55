"""How deeply JSON and MessagePack are nested, and where a value ends, found without decoding and without recursion.

Decoders recurse, and crash where stacks are small (THREATS 64). `depth.pyx` does the same in the compiled build: a
message of 16 MiB may have as many values, and each costs a microsecond here.

Malformed data counts as its most deeply nested reading: the scan goes on after a first value that is whole, after
bytes that are never used, and after a bracket that closes nothing.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MAX_DEPTH", "json_too_deep", "msgpack_too_deep", "skip_json", "skip_msgpack"]

MAX_DEPTH: Final = 128
"""Containers within containers: deeper than any data that people write, shallow enough for any thread's stack."""

# A string is taken whole, and one without an end to the end, so that no byte is looked at twice.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
# The same, and what is neither: numbers and such.
_OUTLINE: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[{]|[\]}]|,|[^"\[\]{},]++', re.DOTALL)
# All bytes that may begin a map or an array: fixmap, fixarray, array 16 and 32, map 16 and 32.
_OPENERS: Final = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])
# MessagePack, Formats: bytes after the first one, where that alone tells; and the width of a length that follows.
_FIXED: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8} | {
    0xD4 + power: 1 + (1 << power) for power in range(5)
}
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_COUNTED: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}


def json_too_deep(data: bytes, limit: int = MAX_DEPTH) -> int:
    """Return the offset at which JSON is nested more than `limit` levels deep; -1: nowhere."""
    # Data with so few brackets cannot be too deep: two counts are all that most data costs.
    if data.count(b"{") + data.count(b"[") <= limit:
        return -1
    depth = 0
    for token in _TOKENS.finditer(data):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
            if depth > limit:
                return token.start()
        elif first != 0x22 and depth:
            depth -= 1
    return -1


def msgpack_too_deep(data: bytes, limit: int = MAX_DEPTH) -> int:
    """Return the offset at which MessagePack is nested more than `limit` levels deep; -1: nowhere."""
    if len(data) - len(data.translate(None, _OPENERS)) <= limit:
        return -1
    at = 0
    size = len(data)
    # How many values are still to come at each level. There is no end of them outside of all containers.
    left = [-1]
    while at < size:
        if left[-1] == 0:
            left.pop()
            continue
        left[-1] -= 1
        at, inner = _skip(data, at)
        if inner >= 0:
            left.append(inner)
            if len(left) > limit + 1:
                return at
    return -1


def skip_json(data: bytes, at: int) -> int:
    """Return where the value at `at` ends, as far as quotes and brackets tell; -1: the data ends before that."""
    depth = 0
    for token in _OUTLINE.finditer(data, at):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
        elif first == 0x22:
            # One without an end goes on to the end.
            if not token.group(1):
                return -1
        elif first in b"]}":
            depth -= 1
        if depth < 0 or (depth == 0 and first == 0x2C):
            return -1
        if depth == 0:
            return token.end()
    return -1


def skip_msgpack(data: bytes, at: int, count: int = 1) -> int:
    """Return where `count` values end, the first of which is at `at`; -1: the data ends before that."""
    size = len(data)
    while count:
        if at >= size:
            return -1
        at, inner = _skip(data, at)
        count += max(inner, 0) - 1
    return at if at <= size else -1


def _skip(data: bytes, at: int) -> tuple[int, int]:
    """Return where the value at `at` ends, or its first inner one begins, and how many it has; -1: none ever."""
    first = data[at]
    at += 1
    if first < 0x80 or first >= 0xE0:
        return at, -1
    if first < 0x90:
        return at, 2 * (first & 0x0F)
    if first < 0xA0:
        return at, first & 0x0F
    if first < 0xC0:
        return at + (first & 0x1F), -1
    if first in _FIXED:
        return at + _FIXED[first], -1
    if first in _COUNTED:
        width = _COUNTED[first]
        count = int.from_bytes(data[at : at + width], "big")
        return at + width, 2 * count if first >= 0xDE else count
    if first in _SIZED or first in _EXTENSIONS:
        width = _SIZED.get(first) or _EXTENSIONS[first]
        return at + width + int.from_bytes(data[at : at + width], "big") + (first in _EXTENSIONS), -1
    # nil, false, true, and the byte that is never used.
    return at, -1
