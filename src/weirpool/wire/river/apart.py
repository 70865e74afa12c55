"""Finds the envelope of a River message whose payload is malformed, or too long to be kept.

The payload may be anywhere among the fields. The fields before it are read from the beginning of the message, and
those after it from the end. Only the output of usual encoders is recognized; unusual messages have no envelope here.
"""

from __future__ import annotations

import re
from typing import Final

from ...depth import skip_msgpack
from .grammar import FIELDS, Type

__all__ = ["span_of_payload", "start_of_payload"]

MAX_FIELDS: Final = 32
"""Maximum number of fields in an envelope: peers may add some to those of the grammar."""

# A string without an end extends to the end of the data, so that no byte is matched twice.
_TOKENS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)
_WS: Final = rb"[ \t\r\n]*+"
_COLON: Final = re.compile(_WS + rb":" + _WS)
# JSON's fields from the last one to the payload, in reverse order of bytes. In a payload, a quote that ends a string
# is never preceded by a backslash, and a field never follows a value other than these.
_TEXT: Final = rb'"[^"\\]*+"'
_SCALAR: Final = rb"(?:" + _TEXT + rb"|[-+.0-9A-Za-z]++)(?=" + _WS + rb":" + _WS + rb'"(?!daolyap")[A-Za-z]++")'
_TRACING: Final = (
    rb"\}(?:" + _WS + _TEXT + _WS + rb":" + _WS + _TEXT + _WS + rb",?+)*+" + _WS
    + rb"\{(?=" + _WS + rb":" + _WS + rb'"gnicart")'
)  # fmt: skip
_FIELD: Final = rb"(?:" + _SCALAR + rb"|" + _TRACING + rb")" + _WS + rb":" + _WS + _TEXT + _WS + rb","
_AFTER_PAYLOAD: Final = re.compile(_WS + rb"\}(?:" + _WS + _FIELD + rb")*+")

_NAMES: Final = [field.name for field in FIELDS if field.type is not Type.BODY]
# MessagePack's fields: each name, preceded by the byte with its length.
_KEYS: Final = re.compile(b"|".join(re.escape(bytes([0xA0 | len(name)]) + name.encode()) for name in _NAMES))


def span_of_payload(head: bytes, tail: bytes, is_json: bool) -> tuple[int, int] | None:
    """Return the start of the payload in `head`, and the number of bytes after the payload at the end of `tail`.

    Args:
        head: The beginning of the message.
        tail: The end of the message; it may overlap with `head`.
        is_json: Whether the message is JSON, not MessagePack.

    Returns:
        None if it is not found. The bytes outside of the payload are not checked.

    """
    if is_json:
        start = _json_start(head)
        found = _AFTER_PAYLOAD.match(tail[::-1])
        return None if start < 0 or found is None else (start, found.end())
    start, left = _msgpack_start(head)
    size = _msgpack_after_payload(tail, left) if start >= 0 else -1
    return None if size < 0 else (start, size)


def start_of_payload(head: bytes, is_json: bool) -> int:
    """Return the start of the payload in `head`, the beginning of a message; -1 if it is not in `head`."""
    return _json_start(head) if is_json else _msgpack_start(head)[0]


def _json_start(head: bytes) -> int:
    """Return the start of the value of the field `payload`; -1 if it is not in `head`."""
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
    """Return the start of the value of the field `payload` (-1 if not found), and the number of fields after it."""
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


def _msgpack_after_payload(tail: bytes, left: int) -> int:
    """Return the size of the last `left` fields in bytes; -1 if it is not found."""
    if left == 0:
        return 0
    # Search from the end, because the content of the payload may look like fields.
    for found in reversed(list(_KEYS.finditer(tail))):
        if skip_msgpack(tail, found.start(), 2 * left) == len(tail):
            return len(tail) - found.start()
    return -1
