"""What a body of River may be, the same for what comes in and what goes out.

A body that passes here can be decoded by whoever takes it, and be sent on as it is.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from ...depth import MAX_DEPTH, json_too_deep, msgpack_too_deep
from ...errors import FrameError

__all__ = [
    "BIG_INTEGER",
    "BODY_DEPTH",
    "BYTES_KEY",
    "INTEGER_KEY",
    "big_integer",
    "check_depth",
    "check_wrappers",
    "json_body",
    "json_to_send",
    "msgpack_body",
    "unwrapped",
]

BODY_DEPTH: Final = MAX_DEPTH - 3
"""Levels of a body: the envelope, a result and an error are three levels around it."""
BYTES_KEY: Final = "$t"
"""JSON: an object with this key stands for bytes, in base64."""
INTEGER_KEY: Final = "$b"
"""JSON: an object with this key stands for an integer, in decimal digits."""
BIG_INTEGER: Final = 0
"""MessagePack: the extension type of big integers."""
DIGITS: Final = 4_000
"""Of an integer: Python takes quadratic time for them, and refuses 4,301."""
_DECIMAL: Final = re.compile(r"-?[0-9]+")
# Each escape of a string; a surrogate whose other half does not follow stands by itself in the group.
_ESCAPES: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def check_depth(offset: int, limit: int, what: str = "the message is ") -> None:
    """Refuse data that is nested more than `limit` levels deep at `offset`; -1: nowhere (THREATS 64).

    Raises:
        FrameError: It is nested too deeply.

    """
    if offset >= 0:
        raise FrameError(f"{what}nested more than {limit} levels deep", offset)


def json_body(body: bytes, levels: int = BODY_DEPTH) -> bytes:
    """Return a body in JSON that was received. A lone surrogate becomes U+FFFD: JavaScript writes such strings.

    Raises:
        FrameError: It cannot be decoded, or is nested more deeply than `levels`.

    """
    check_depth(json_too_deep(body, levels), levels, "")
    try:
        body.decode()
        if b"\\u" in body:
            body = _ESCAPES.sub(_replaced, body)
        msgspec.json.decode(body, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"not valid JSON: {error}") from error
    return body


def json_to_send(body: bytes) -> bytes:
    """Return a body in JSON that a user wrote as it travels: without white space.

    Raises:
        FrameError: A peer could not decode it.

    """
    if json_body(body) != body:
        raise FrameError("not valid Unicode: a surrogate without its other half is no character")
    check_wrappers(body)
    return msgspec.json.format(body, indent=-1)


def _replaced(escape: re.Match[bytes]) -> bytes:
    return escape.group() if escape.group(1) is None else b"\\ufffd"


def msgpack_body(body: bytes, levels: int = BODY_DEPTH) -> bytes:
    """Return a body in MessagePack that was received.

    Raises:
        FrameError: It cannot be decoded, or is nested more deeply than `levels`.

    """
    check_depth(msgpack_too_deep(body, levels), levels, "")
    try:
        msgspec.msgpack.decode(body, ext_hook=_extension)
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError) as error:
        raise FrameError(f"not valid MessagePack: {error}") from error
    return body


def _extension(code: int, data: memoryview) -> Any:
    return big_integer(data) if code == BIG_INTEGER else Ext(code, bytes(data))


def big_integer(data: memoryview) -> int:
    """Return the integer that the data of extension type 0 is.

    Raises:
        ValueError: It is none.

    """
    number = msgspec.msgpack.decode(data)
    if isinstance(number, int):
        return number
    if isinstance(number, str) and len(number) <= DIGITS and _DECIMAL.fullmatch(number):
        return int(number)
    raise ValueError("an integer of extension type 0 is a number or a decimal string")


def unwrapped(fields: dict[str, Any]) -> Any:
    """Return the bytes or the integer that an object of JSON stands for; another object stays what it is."""
    if len(fields) == 1:
        ((name, text),) = fields.items()
        if name == BYTES_KEY and isinstance(text, str):
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return fields
        if name == INTEGER_KEY and isinstance(text, str) and len(text) <= DIGITS and _DECIMAL.fullmatch(text):
            return int(text)
    return fields


def check_wrappers(body: bytes) -> None:
    """Refuse JSON with a ``$t`` or ``$b`` that stands for nothing: some peers end the whole session for it.

    Raises:
        FrameError: There is one.

    """
    if b"$" in body or b"\\u0024" in body:
        json.loads(body.decode(), object_hook=_no_false_wrapper, parse_int=len, parse_float=len)


def _no_false_wrapper(fields: dict[str, Any]) -> Any:
    for key, what in ((BYTES_KEY, "bytes, in base64"), (INTEGER_KEY, "an integer, in decimal digits")):
        if key in fields and isinstance(unwrapped(fields), dict):
            raise FrameError(f"in River's JSON an object with the key {key!r} stands for {what}, and this one does not")
    return None
