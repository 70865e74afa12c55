"""The envelope of a River message without its payload, when that is broken, or too long to be held.

Peers put the payload anywhere among the fields. The fields before it are read from the message's beginning, and those
after it from its end. In both only what any encoder writes is known: what is unusual has no envelope here.
"""

from __future__ import annotations

import re
from typing import Final

from ...depth import skip_msgpack
from .grammar import FIELDS, Type

__all__ = ["span_of_payload", "start_of_payload"]

MAX_FIELDS: Final = 32
"""Of an envelope: a peer may have added some to those of the grammar."""

# A string is taken whole, and one without an end to the end, so that no byte is looked at twice.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_WS: Final = rb"[ \t\r\n]*+"
_COLON: Final = re.compile(_WS + rb":" + _WS)
# JSON's fields from the last one back to the payload, all of it read backwards. Inside of the payload, a quote that
# ends a string never stands behind a backslash, and a field never follows another value than these.
_TEXT: Final = rb'"[^"\\]*+"'
_SCALAR: Final = rb"(?:" + _TEXT + rb"|[-+.0-9A-Za-z]++)(?=" + _WS + rb":" + _WS + rb'"(?!daolyap")[A-Za-z]++")'
_TRACING: Final = (
    rb"\}(?:" + _WS + _TEXT + _WS + rb":" + _WS + _TEXT + _WS + rb",?+)*+" + _WS
    + rb"\{(?=" + _WS + rb":" + _WS + rb'"gnicart")'
)  # fmt: skip
_FIELD: Final = rb"(?:" + _SCALAR + rb"|" + _TRACING + rb")" + _WS + rb":" + _WS + _TEXT + _WS + rb","
_BEHIND: Final = re.compile(_WS + rb"\}(?:" + _WS + _FIELD + rb")*+")

_NAMES: Final = [field.name for field in FIELDS if field.type is not Type.BODY]
# MessagePack's fields: each name with the byte that says how long it is.
_KEYS: Final = re.compile(b"|".join(re.escape(bytes([0xA0 | len(name)]) + name.encode()) for name in _NAMES))


def span_of_payload(head: bytes, tail: bytes, is_json: bool) -> tuple[int, int] | None:
    """Return where the payload begins in `head`, and how many bytes at the end of `tail` come after it.

    Args:
        head: How the message begins.
        tail: How it ends; it may overlap with `head`.
        is_json: It is JSON, else MessagePack.

    Returns:
        None when it cannot be told. What stands outside of the payload may still be anything.

    """
    if is_json:
        start = _json_start(head)
        found = _BEHIND.match(tail[::-1])
        return None if start < 0 or found is None else (start, found.end())
    start, left = _msgpack_start(head)
    behind = _msgpack_behind(tail, left) if start >= 0 else -1
    return None if behind < 0 else (start, behind)


def start_of_payload(head: bytes, is_json: bool) -> int:
    """Return where the payload begins of a message that begins with `head`; -1: nowhere in it."""
    return _json_start(head) if is_json else _msgpack_start(head)[0]


def _json_start(head: bytes) -> int:
    """Return where the value of the field `payload` begins; -1: nowhere."""
    depth = 0
    for token in _TOKENS.finditer(head):
        first = head[token.start()]
        if first in b"[{":
            depth += 1
        elif first != 0x22:
            depth -= 1
        elif depth == 1 and token.group() == b'"payload"':
            colon = _COLON.match(head, token.end())
            if colon is not None:
                return colon.end()
    return -1


def _msgpack_start(head: bytes) -> tuple[int, int]:
    """Return where the value of the field `payload` begins, and how many fields follow it; -1: nowhere."""
    if not head:
        return -1, 0
    left, at = head[0] & 0x0F, 1
    if head[0] == 0xDE:
        left, at = int.from_bytes(head[1:3], "big"), 3
    elif head[0] & 0xF0 != 0x80:
        return -1, 0
    if left > MAX_FIELDS:
        return -1, 0
    while left and 0 <= at < len(head):
        left -= 1
        if head.startswith(b"\xa7payload", at):
            return at + 8, left
        at = skip_msgpack(head, at, 2)
    return -1, 0


def _msgpack_behind(tail: bytes, left: int) -> int:
    """Return how many bytes the last `left` fields have; -1: that cannot be told."""
    if left == 0:
        return 0
    # From the end: what is in the payload may look like fields, and what is behind it is the sender's own.
    for found in reversed(list(_KEYS.finditer(tail))):
        if skip_msgpack(tail, found.start(), 2 * left) == len(tail):
            return len(tail) - found.start()
    return -1
