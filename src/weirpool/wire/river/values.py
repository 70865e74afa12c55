"""River's bodies and values, received and sent.

A body is an encoded value. A body that was checked here can be decoded, and sent again unchanged. Both codecs support
bytes and integers of any size. JSON has wrappers for them, ``{"$t": base64}`` and ``{"$b": decimal}``; MessagePack
has bytes, and extension type 0 for integers beyond 2^53-1. Values are shown as JSON with these wrappers.

JavaScript's numbers beyond 2^53-1 are no integers there, and are not wrapped. They are floats here, so that each comes
back as it was: a number as a number, and a big integer as a big integer.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec
from msgspec import Raw
from msgspec.msgpack import Ext

from ...depth import MAX_DEPTH, json_too_deep, msgpack_too_deep
from ...errors import FrameError, LocalError
from ...values.json import ESCAPE, without_lone_surrogates
from .grammar import BODY_DEPTH, CODEC_NAMES, MAX_DIGITS, MAX_NUMBER

__all__ = [
    "JsonForm",
    "check_codec",
    "check_wrappers",
    "decode_value",
    "encode_value",
    "from_json",
    "json_body",
    "json_form",
    "json_integer",
    "json_leaf",
    "json_to_send",
    "known_extension",
    "msgpack_body",
    "msgpack_leaf",
    "shown_value",
    "to_json",
    "too_deep",
    "unwrapped",
]

BYTES_KEY: Final = "$t"
"""JSON: an object with this key represents bytes in base64."""
INTEGER_KEY: Final = "$b"
"""JSON: an object with this key represents an integer in decimal digits."""
BIG_INTEGER: Final = 0
"""MessagePack: the extension type of big integers."""
MOST_DIGITS: Final = 21
"""ECMAScript, Number::toString: longer numbers are written with an exponent."""
_DECIMAL: Final = re.compile(r"-?[0-9]+")
WRAPPERS: Final = frozenset({BYTES_KEY, INTEGER_KEY})


def too_deep(offset: int, limit: int = MAX_DEPTH, what: str = "the message is ") -> FrameError:
    """Return the error of data that is nested more than `limit` levels deep at `offset` (THREATS 64)."""
    return FrameError(f"{what}nested more than {limit} levels deep", offset)


def check_codec(name: str) -> None:
    """Check the name of a codec.

    Raises:
        LocalError: River has no codec with that name.

    """
    if name not in CODEC_NAMES:
        raise LocalError(f"unknown codec {name!r}; known are: {', '.join(CODEC_NAMES)}")


def json_body(body: bytes, levels: int = BODY_DEPTH) -> bytes:
    """Check a received JSON body and return it. Lone surrogates, which JavaScript may write, become U+FFFD.

    Raises:
        FrameError: It is malformed, or nested more than `levels` deep.

    """
    if (offset := json_too_deep(body, levels)) >= 0:
        raise too_deep(offset, levels, "")
    try:
        body.decode()
        if body.find(ESCAPE) >= 0:
            body = without_lone_surrogates(body, b"\\ufffd")
        msgspec.json.decode(body, type=Raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameError(f"not valid JSON: {error}") from error
    return body


def json_to_send(body: bytes) -> bytes:
    """Check a JSON body from a user and return it without white space.

    Raises:
        FrameError: A peer could not decode it.

    """
    if json_body(body) != body:
        raise FrameError("not valid Unicode: it contains a lone surrogate")
    check_wrappers(body)
    return msgspec.json.format(body, indent=-1)


def msgpack_body(body: bytes, levels: int = BODY_DEPTH) -> bytes:
    """Check a received MessagePack body and return it.

    Raises:
        FrameError: It is malformed, or nested more than `levels` deep.

    """
    if (offset := msgpack_too_deep(body, levels)) >= 0:
        raise too_deep(offset, levels, "")
    try:
        msgspec.msgpack.decode(body, ext_hook=_extension)
    except (msgspec.MsgspecError, ValueError, OverflowError, TypeError, RecursionError) as error:
        raise FrameError(f"not valid MessagePack: {error}") from error
    return body


def _extension(code: int, data: memoryview) -> Any:
    return _integer(data) if code == BIG_INTEGER else Ext(code, bytes(data))


def _integer(data: memoryview) -> int:
    """Decode the data of extension type 0. Raises ValueError if it is not an integer."""
    number = msgspec.msgpack.decode(data)
    if isinstance(number, int):
        return number
    if isinstance(number, str) and len(number) <= MAX_DIGITS and _DECIMAL.fullmatch(number):
        return int(number)
    raise ValueError("extension type 0 must contain an integer or a decimal string")


def unwrapped(fields: dict[str, Any]) -> Any:
    """Return the bytes or integer that a JSON object represents, or the object if it is not a wrapper."""
    if len(fields) == 1:
        ((name, text),) = fields.items()
        if name == BYTES_KEY and isinstance(text, str):
            try:
                return base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                return fields
        if name == INTEGER_KEY and isinstance(text, str) and len(text) <= MAX_DIGITS and _DECIMAL.fullmatch(text):
            return int(text)
    return fields


def check_wrappers(body: bytes) -> None:
    """Check that JSON has no invalid ``$t`` or ``$b``, for which some peers end the session.

    Raises:
        FrameError: There is an invalid wrapper.

    """
    if b"$" in body or b"\\u0024" in body:
        json.loads(body.decode(), object_hook=_no_false_wrapper, parse_int=len, parse_float=len)


def _no_false_wrapper(fields: dict[str, Any]) -> Any:
    for key, what in ((BYTES_KEY, "bytes, in base64"), (INTEGER_KEY, "an integer, in decimal digits")):
        if key in fields and isinstance(unwrapped(fields), dict):
            raise FrameError(f"in River's JSON an object with the key {key!r} must contain only {what}")
    return None


def decode_value(body: bytes, codec: str) -> Any:
    """Decode `body` to dicts, lists, strings, numbers, bytes and None.

    Raises:
        FrameError: It is malformed.

    """
    try:
        if (offset := json_too_deep(body) if codec == "json" else msgpack_too_deep(body)) >= 0:
            raise too_deep(offset)
        if codec == "json":
            return json.loads(body, object_hook=unwrapped, parse_int=json_integer, parse_constant=_no_constant)
        return msgspec.msgpack.decode(body, ext_hook=known_extension)
    except FrameError:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FrameError(f"not a {codec} value: {error}") from error


def encode_value(value: Any, codec: str) -> bytes:
    """Encode `value`.

    Raises:
        LocalError: It cannot be encoded. This includes dicts that look like JSON wrappers.

    """
    check_codec(codec)
    try:
        if codec == "json":
            return _json(_converted(value, json_leaf, WRAPPERS))
        return msgspec.msgpack.encode(_converted(value, msgpack_leaf))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalError(f"this value cannot be sent with River: {error}") from error


def from_json(data: bytes, codec: str) -> bytes:
    """Return the body for a value in JSON.

    Raises:
        LocalError: It is not valid JSON, or cannot be encoded.

    """
    try:
        return encode_value(decode_value(data, "json"), codec)
    except FrameError as error:
        raise LocalError(f"River carries JSON values; {error.message}") from error


def to_json(body: bytes, codec: str) -> bytes:
    """Return a body as JSON.

    Raises:
        FrameError: It is malformed, or JSON cannot represent it.

    """
    return body if codec == "json" else shown_value(decode_value(body, codec))


def shown_value(value: Any) -> bytes:
    """Return `value` as JSON for display. Dicts that look like wrappers are allowed.

    Raises:
        FrameError: JSON cannot represent it.

    """
    try:
        return _json(_converted(value, json_leaf))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FrameError(f"this value cannot be shown as JSON: {error}") from error


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _converted(value: Any, leaf: Callable[[Any], Any], keys: frozenset[str] = frozenset(), depth: int = 0) -> Any:
    """Return `value` with `leaf` applied to its leaves. Raises ValueError for a dict with one of `keys`."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        for name in value:
            if not isinstance(name, str):
                raise TypeError(f"the key {name!r} is not a string")
            if name in keys:
                raise ValueError(
                    f"a dict with the key {name!r} would be decoded as another type; rename it, or use msgpack"
                )
        return {name: _converted(inner, leaf, keys, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_converted(inner, leaf, keys, depth + 1) for inner in value]
    return leaf(value)


def json_leaf(value: Any) -> Any:
    """Return bytes and big integers in wrappers, large floats with JavaScript's digits, and other values unchanged."""
    if isinstance(value, bytes | bytearray | memoryview):
        return {BYTES_KEY: base64.b64encode(value).decode()}
    if isinstance(value, float) and MAX_NUMBER < abs(value) < 10**MOST_DIGITS:
        return _digits(value)
    return {INTEGER_KEY: str(value)} if _is_big(value) else value


def json_integer(text: str) -> int | float:
    """Return the value of an integer in JSON: a float if it has the digits of one of JavaScript's large numbers."""
    number = int(text)
    if not _is_big(number) or abs(number) >= 10**MOST_DIGITS or _digits(float(number)) != number:
        return number
    return float(number)


def _digits(number: float) -> int:
    """Return the digits with which JavaScript writes a large number: as few as identify it, and zeros."""
    return int(Decimal(repr(number)))


def msgpack_leaf(value: Any) -> Any:
    """Return big integers as extensions, and other values unchanged."""
    return Ext(BIG_INTEGER, msgspec.msgpack.encode(str(value))) if _is_big(value) else value


def _is_big(value: Any) -> bool:
    return isinstance(value, int) and not -MAX_NUMBER <= value <= MAX_NUMBER


def known_extension(code: int, data: memoryview) -> int:
    """Return the integer in an extension. Raises ValueError for other extensions."""
    if code != BIG_INTEGER:
        raise ValueError(f"extension type {code} is unknown")
    return _integer(data)


class JsonForm:
    """Converts MessagePack data to JSON and back. See :class:`weirpool.protocols.TextForm`."""

    def from_json(self, data: bytes) -> bytes:
        """Return the body for JSON. Raises LocalError if it is malformed."""
        return from_json(data, "msgpack")

    def to_json(self, body: bytes) -> bytes:
        """Return a body as JSON. Raises FrameError if it is malformed."""
        return to_json(body, "msgpack")


def json_form(options: Mapping[str, str]) -> JsonForm | None:
    """Return the text form for the options of a URL; None if the data is JSON already."""
    return JsonForm() if options.get("codec") == "msgpack" else None
