"""Values as River's codecs write them, and as people do.

Both codecs carry bytes and integers of any size. JSON has wrappers for them, ``{"$t": base64}`` and ``{"$b":
decimal}``; MessagePack has bytes, and extension type 0 for integers beyond 2^53-1. A value in people's hands is JSON
with these wrappers.
"""

from __future__ import annotations

import base64
import json
from typing import Any, Final

import msgspec
from msgspec.msgpack import Ext

from ...depth import MAX_DEPTH, json_too_deep, msgpack_too_deep
from ...errors import FrameError, LocalError
from .bodies import BIG_INTEGER, BYTES_KEY, INTEGER_KEY, big_integer, check_depth, unwrapped
from .codec import MAX_NUMBER, codec_of

__all__ = ["decode_value", "encode_value", "from_json", "shown_value", "to_json"]

WRAPPERS: Final = frozenset({BYTES_KEY, INTEGER_KEY})


def decode_value(body: bytes, codec: str) -> Any:
    """Return the value that `body` is: dicts, lists, strings, numbers, bytes and None.

    Raises:
        FrameError: It is none.

    """
    try:
        if codec == "json":
            check_depth(json_too_deep(body), MAX_DEPTH)
            return json.loads(body, object_hook=unwrapped, parse_constant=_no_constant)
        check_depth(msgpack_too_deep(body), MAX_DEPTH)
        return msgspec.msgpack.decode(body, ext_hook=_big_integer)
    except FrameError:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise FrameError(f"no {codec} value: {error}") from error


def encode_value(value: Any, codec: str) -> bytes:
    """Return `value` as `codec` has it.

    Raises:
        LocalError: It cannot: also a dict that JSON would take for bytes or a big integer.

    """
    codec_of(codec)
    try:
        if codec == "json":
            return _json(_wrapped(value))
        return msgspec.msgpack.encode(_extended(value))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise LocalError(f"this value cannot travel by River: {error}") from error


def from_json(data: bytes, codec: str) -> bytes:
    """Return the body for what somebody wrote as JSON.

    Raises:
        LocalError: It is no JSON.

    """
    try:
        return encode_value(decode_value(data, "json"), codec)
    except FrameError as error:
        raise LocalError(f"River carries JSON values, and this is none: {error.message}") from error


def to_json(body: bytes, codec: str) -> bytes:
    """Return a body as JSON.

    Raises:
        FrameError: It is no body.

    """
    return body if codec == "json" else shown_value(decode_value(body, codec))


def shown_value(value: Any) -> bytes:
    """Return `value` as JSON for people, who also see what JSON could not carry.

    Raises:
        FrameError: There is no JSON for it.

    """
    try:
        return _json(_wrapped(value, keys=frozenset()))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise FrameError(f"this value cannot be shown as JSON: {error}") from error


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _wrapped(value: Any, depth: int = 0, keys: frozenset[str] = WRAPPERS) -> Any:
    """Return `value` with wrappers for what JSON has not; a dict that has one of `keys` would look like one."""
    _check(depth)
    if isinstance(value, dict):
        for name in keys:
            if name in value:
                raise ValueError(
                    f"a dict with the key {name!r} would arrive as something else; rename it, or use msgpack"
                )
        return {_key(name): _wrapped(inner, depth + 1, keys) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_wrapped(inner, depth + 1, keys) for inner in value]
    if isinstance(value, bytes | bytearray | memoryview):
        return {BYTES_KEY: base64.b64encode(value).decode()}
    if isinstance(value, int) and not -MAX_NUMBER <= value <= MAX_NUMBER:
        return {INTEGER_KEY: str(value)}
    return value


def _extended(value: Any, depth: int = 0) -> Any:
    _check(depth)
    if isinstance(value, dict):
        return {_key(name): _extended(inner, depth + 1) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_extended(inner, depth + 1) for inner in value]
    if isinstance(value, int) and not -MAX_NUMBER <= value <= MAX_NUMBER:
        return Ext(BIG_INTEGER, msgspec.msgpack.encode(str(value)))
    return value


def _big_integer(code: int, data: memoryview) -> Any:
    if code != BIG_INTEGER:
        raise ValueError(f"extension type {code} is unknown")
    return big_integer(data)


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the key {name!r} is no string")
    return name


def _check(depth: int) -> None:
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
