"""Finds the nesting depth of JSON, MessagePack and CBOR, and the ends of values, without decoding or recursion.

Decoders recurse, and crash if the stack is small (THREATS 64). `depth.pyx` does the same in the compiled build, because
a message of 16 MiB may contain 16 million values, and each takes a microsecond here.

Malformed data is measured by its most deeply nested interpretation: the scan continues after a complete first value,
after unused bytes, and after unmatched closing brackets.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "MAX_DEPTH",
    "after_cbor",
    "after_msgpack",
    "cbor_too_deep",
    "count_cbor",
    "count_msgpack",
    "json_too_deep",
    "msgpack_too_deep",
    "skip_cbor",
    "skip_json",
    "skip_msgpack",
]

MAX_DEPTH: Final = 128
"""Levels of nested containers: more than real data needs, and few enough for the stack of any thread."""
_LEVELS: Final = 256
"""Those at which `skip_cbor` gives up: more than twice as many."""

# A string is one token, and an unterminated string extends to the end, so that no byte is scanned twice.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
# Also matches commas and scalars, such as numbers.
_OUTLINE: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+("?)|[\[{]|[\]}]|,|[^"\[\]{},]++', re.DOTALL)
# All bytes that may start a map or an array: fixmap, fixarray, array 16 and 32, map 16 and 32.
_OPENERS: Final = bytes([*range(0x80, 0xA0), *range(0xDC, 0xE0)])
# MessagePack, Formats: bytes after the first byte if it determines them; otherwise the width of the length field.
_FIXED: Final = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8} | {
    0xD4 + power: 1 + (1 << power) for power in range(5)
}
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
_EXTENSIONS: Final = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_COUNTED: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
# RFC 8949, Specification of the CBOR Encoding: the first three bits of a value.
_BYTES, _TEXT, _ARRAY, _MAP, _TAG = 2, 3, 4, 5, 6
_BREAK: Final = 0xFF
_MAX_COUNT: Final = 1 << 48
# RFC 8746, Typed Arrays: the tags of those that become lists of numbers.
_FIRST_ARRAY, _LAST_ARRAY = 65, 87
_ARRAY_BYTES: Final = 4
"""Bytes of a typed array that count as a value. A number of two bytes takes 32 in memory."""


def json_too_deep(data: bytes, limit: int = MAX_DEPTH) -> int:
    """Return the first offset at which JSON is nested more than `limit` levels deep, or -1."""
    # Fewer brackets cannot be too deep; most data needs only this count.
    if len(data) - len(data.translate(None, b"[{")) <= limit:
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
    """Return the first offset at which MessagePack is nested more than `limit` levels deep, or -1."""
    if len(data) - len(data.translate(None, _OPENERS)) <= limit:
        return -1
    at = 0
    size = len(data)
    # Values that remain at each level; the top level is unlimited.
    remaining = [-1]
    while at < size:
        if remaining[-1] == 0:
            remaining.pop()
            continue
        remaining[-1] -= 1
        at, inner = after_msgpack(data, at)
        if inner >= 0:
            remaining.append(inner)
            if len(remaining) > limit + 1:
                return at
    return -1


def skip_json(data: bytes, at: int) -> int:
    """Return the end of the value at offset `at`, judged by quotes and brackets only; -1 if the data ends earlier."""
    depth = 0
    for token in _OUTLINE.finditer(data, at):
        first = data[token.start()]
        if first in b"[{":
            depth += 1
        elif first == 0x22:
            # An unterminated string extends to the end of the data.
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
    """Return the end of `count` values that start at offset `at`; -1 if the data ends earlier."""
    size = len(data)
    while count:
        if at >= size:
            return -1
        at, inner = after_msgpack(data, at)
        count += max(inner, 0) - 1
    return at if at <= size else -1


def count_msgpack(data: bytes) -> int:
    """Return the number of values, of which each container counts twice: it and its table."""
    at = count = 0
    size = len(data)
    while at < size:
        at, inner = after_msgpack(data, at)
        count += 2 if inner >= 0 else 1
    return count


def cbor_too_deep(data: bytes, limit: int = MAX_DEPTH, nested_keys: bool = False) -> int:
    """Return the first offset at which CBOR is nested more than `limit` levels deep, or -1.

    A tag is a level as well. A map's key must be a number, a text or bytes: other keys may be chosen so that their
    hashes collide, which makes a map take quadratic time. The offset of such a key is returned, too, unless
    `nested_keys` allows them.
    """
    at = 0
    size = len(data)
    # Values that remain at each level, negative in those without a length, which a break ends; and whether it is a map.
    remaining, maps = [-1], [False]
    while at < size:
        left = remaining[-1]
        if left == 0:
            remaining.pop()
            maps.pop()
            continue
        if data[at] == _BREAK:
            if len(remaining) > 1:
                remaining.pop()
                maps.pop()
            at += 1
            continue
        # The number of values that remain in a map is even before each key.
        key = not nested_keys and maps[-1] and left % 2 == 0
        remaining[-1] = left - 1
        start = at
        at, inner = after_cbor(data, at)
        if inner is not None:
            major = data[start] >> 5
            if (key and major > _TEXT) or len(remaining) > limit:
                return start
            remaining.append(inner)
            maps.append(major == _MAP)
    return -1


def skip_cbor(data: bytes, at: int) -> int:
    """Return the end of the value at offset `at`; -1 if it is not well-formed.

    RFC 8949, Well-Formedness Errors and Examples. The values may be nested about as deep as in data that
    `cbor_too_deep` allows. Texts need not be UTF-8, and tags may have any content.
    """
    if at < 0:
        raise IndexError(f"no value begins at byte {at}")
    size = len(data)
    remaining, maps = [1], [False]
    while True:
        while remaining and remaining[-1] == 0:
            remaining.pop()
            maps.pop()
        if not remaining:
            return at
        if at >= size:
            return -1
        left = remaining[-1]
        if data[at] == _BREAK:
            # A break ends a container without a length, and no pair of a map in its middle.
            if left > 0 or (maps[-1] and left % 2):
                return -1
            remaining.pop()
            maps.pop()
            at += 1
            continue
        if not _has_head(data, at):
            return -1
        remaining[-1] = left - 1
        major = data[at] >> 5
        at, inner = after_cbor(data, at)
        if at > size or (inner is not None and len(remaining) >= _LEVELS):
            return -1
        if inner is not None:
            remaining.append(inner)
            maps.append(major == _MAP)


def _has_head(data: bytes, at: int) -> bool:
    """Return False for a first byte that is reserved, and for a simple value that has a shorter form."""
    major, info = data[at] >> 5, data[at] & 31
    if info >= 28 and (info < 31 or not _BYTES <= major <= _MAP):
        return False
    return data[at] != 0xF8 or data[at + 1 : at + 2] >= b" " or at + 1 == len(data)


def count_cbor(data: bytes) -> int:
    """Return the number of values, of which each container and tag counts twice.

    The bytes of a typed array count as the numbers that they become.
    """
    at = count = 0
    typed = False
    size = len(data)
    while at < size:
        start = at
        at, inner = after_cbor(data, at)
        count += 1 if inner is None else 2
        if data[start] >> 5 == _BYTES:
            count += (min(at, size) - start) // _ARRAY_BYTES if typed else 0
        else:
            typed = data[start] >> 5 == _TAG and _FIRST_ARRAY <= _argument(data, start) <= _LAST_ARRAY
    return count


def _argument(data: bytes, at: int) -> int:
    """Return the number in the head of the value at `at`."""
    info = data[at] & 31
    return int.from_bytes(data[at + 1 : at + 1 + (1 << (info - 24))], "big") if 24 <= info <= 27 else info


def after_cbor(data: bytes, at: int) -> tuple[int, int | None]:
    """Return the end of the scalar at `at` and None; or the start of a container's content and the number of values.

    A negative number means that a break ends them; it is even. The offset is behind the data if that ends earlier.
    """
    major, info = data[at] >> 5, data[at] & 31
    number = _argument(data, at)
    at += 1 + (1 << (info - 24) if 24 <= info <= 27 else 0)
    if major == _TAG:
        return at, 1
    if info == 31 and _BYTES <= major <= _MAP:
        return at, -2
    if major in (_BYTES, _TEXT):
        return at + number, None
    if major in (_ARRAY, _MAP):
        count = min(number, _MAX_COUNT)
        return at, 2 * count if major == _MAP else count
    return at, None


def after_msgpack(data: bytes, at: int) -> tuple[int, int]:
    """Return the end of the scalar at `at` and -1; or the start of a container's content and the number of values."""
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
    # nil, false, true, and the unused byte 0xC1.
    return at, -1
