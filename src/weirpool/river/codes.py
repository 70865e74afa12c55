"""Results: the responses of handlers, and the errors of both sides.

River, Clients, servers, and RPCs: ``{ok: true, payload}`` or ``{ok: false, payload: {code, message, extras}}``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import UNSET, MsgspecError, Raw, Struct, UnsetType

from ..errors import ApplicationError, Canceled, FrameError, Invalid, LocalError, Rejected
from ..settings import Settings
from ..texts import shown, shown_line
from ..wire.river.codec import CANCEL, CLOSE, RiverCodec
from ..wire.river.values import encode_value, from_json

__all__ = [
    "CANCELED", "INVALID", "ITEM_ERROR", "UNCAUGHT", "UNEXPECTED_DISCONNECT", "Result", "TooLarge", "disconnected",
    "error_of", "failure_of", "refusal", "rejection", "size_limit", "too_large",
]  # fmt: skip

UNCAUGHT: Final = "UNCAUGHT_ERROR"
INVALID: Final = "INVALID_REQUEST"
CANCELED: Final = "CANCEL"
UNEXPECTED_DISCONNECT: Final = "UNEXPECTED_DISCONNECT"
RESERVED: Final = frozenset({UNCAUGHT, INVALID, CANCELED})
"""River, ProtocolError: codes that end both halves of a stream."""
ITEM_ERROR: Final = b"weirpool: an error between items"
"""The metadata, above the session, of an item that is an error. River's responses have no metadata."""
SAFE: Final = "the handler failed"
"""The text that is sent for an error whose own text may contain secrets."""


class TooLarge(LocalError):
    """A message is larger than this side may send, or than the peer accepts. Its text contains no secrets."""


def size_limit(settings: Settings) -> tuple[int, str]:
    """Return the maximum size of a message, and its name. A larger one would end the session.

    While there is room for an item, less than half of `resume_bytes` is unacknowledged.
    """
    return min(
        (settings.max_frame_bytes, "max_frame_bytes"),
        (settings.max_output_bytes, "max_output_bytes"),
        (settings.resume_bytes // 2, "half of resume_bytes"),
    )


def too_large(size: int, settings: Settings, is_client: bool, peer: str, refused_above: int) -> TooLarge:
    """Return the error for a message that exceeds our limit, or a size that the peer has rejected."""
    limit, name = size_limit(settings)
    if size > limit:
        side = "client" if is_client else "server"
        return TooLarge(f"a message of {size} bytes exceeds the {side}'s {name} ({limit}); send less at once")
    return TooLarge(
        f"a message of {size} bytes is not sent: {peer} rejected one of {refused_above + 1} bytes as"
        " too large; send less at once"
    )


class Result(Struct):
    """A server's response."""

    ok: bool
    payload: Raw


class Failure(Struct):
    """River, BaseError. The document calls its third field `extra`, the reference `extras`."""

    code: str
    message: str = ""
    extras: Raw | UnsetType = UNSET
    extra: Raw | UnsetType = UNSET


class _Retriable(Struct, rename="camel"):
    """Extras for a request that was rejected before anything was done."""

    retriable: bool = True
    total_errors: int = 0
    first_validation_errors: tuple[()] = ()


_RETRIABLE: Final = {"retriable": True, "totalErrors": 0, "firstValidationErrors": []}
# What failure_of() makes of a code that is a number.
_NUMBER: Final = re.compile(r"0x[0-9A-F]{3,8}")


class _Failed(Struct):
    """A failed result."""

    payload: Failure
    ok: bool = False


def error_of(codec: RiverCodec, body: Raw) -> ApplicationError:
    """Return the error in the payload of a failed result. An invalid payload also becomes an error."""
    try:
        failure = codec.value(body, Failure)
    except FrameError as error:
        return ApplicationError(
            UNCAUGHT, f"the request failed, and the server's error is not valid River: {error.message}"
        )
    extras = failure.extra if failure.extras is UNSET else failure.extras
    data = bytes(extras) if isinstance(extras, Raw) else None
    cls = {CANCELED: Canceled, INVALID: Invalid}.get(failure.code, ApplicationError)
    if isinstance(extras, Raw) and _is_retriable(codec, extras, cls is Invalid):
        cls = Rejected
    code = int(failure.code, 16) if _NUMBER.fullmatch(failure.code) else shown_line(failure.code)
    return cls(code, shown(failure.message), data)


def _is_retriable(codec: RiverCodec, extras: Raw, invalid: bool) -> bool:
    """Return True for the extras of a rejection. Those of other codes may be an application's, and must be the same."""
    try:
        fields = codec.value(extras, dict[str, Any])
    except FrameError:
        return False
    return fields.get("retriable") is True if invalid else fields == _RETRIABLE


def failure_of(codec: RiverCodec, error: Exception) -> tuple[int, bytes]:
    """Return the control flag and the body that report `error` to a client.

    An ApplicationError is a response and closes our half. Any other error cancels the stream, without details that may
    be secret.

    Raises:
        LocalError: The codec cannot encode the error's data.

    """
    if isinstance(error, Rejected) and (error.code == INVALID or not isinstance(error.code, str)):
        return CANCEL, rejection(codec, error.message)
    if isinstance(error, Invalid) and not isinstance(error.code, str):
        return CANCEL, refusal(codec, INVALID, error.message, _extras(codec, error))
    if isinstance(error, Canceled) and not isinstance(error.code, str):
        return CANCEL, refusal(codec, CANCELED, error.message)
    if isinstance(error, TooLarge):
        return CANCEL, refusal(codec, UNCAUGHT, str(error))
    if not isinstance(error, ApplicationError):
        return CANCEL, refusal(codec, UNCAUGHT, SAFE)
    code = error.code if isinstance(error.code, str) else f"0x{error.code:03X}"
    body = codec.encode_value(_Failed(Failure(code, error.message, _extras(codec, error))))
    return CANCEL if code in RESERVED else CLOSE, body


def _extras(codec: RiverCodec, error: ApplicationError) -> Raw | UnsetType:
    """Return the extras of an error: its own, which are a value, or its data."""
    if not hasattr(error, "extras_as_builtins"):
        if error.data != error.message.encode():
            return Raw(_body(codec, error.data))
        return Raw(codec.encode_value(_Retriable())) if isinstance(error, Rejected) else UNSET
    try:
        extras = error.extras_as_builtins()
        return UNSET if extras is None else Raw(encode_value(extras, codec.name))
    except (TypeError, ValueError, OverflowError, MsgspecError) as wrong:
        raise LocalError(f"the extras of {error.code} cannot be encoded: {wrong}") from wrong


def _body(codec: RiverCodec, data: bytes) -> bytes:
    """Return the data of an error as a body; JSON is converted to the codec."""
    try:
        return codec.body(data)
    except LocalError:
        return from_json(data, codec.name)


def rejection(codec: RiverCodec, message: str) -> bytes:
    """Return the body of a result for a request that was not started and may be retried.

    River has no code for this. It uses INVALID_REQUEST, with extras that fit the schema of the reference.
    """
    return refusal(codec, INVALID, message, Raw(codec.encode_value(_Retriable())))


def refusal(codec: RiverCodec, code: str, message: str, extras: Raw | UnsetType = UNSET) -> bytes:
    """Return the body of a failed result."""
    try:
        return codec.encode_value(_Failed(Failure(code, message, extras)))
    except UnicodeEncodeError as error:
        raise LocalError(f"the error's text cannot be encoded: {error}") from error


def disconnected(peer: str, error: Exception | None) -> ApplicationError | None:
    """Return the error for the streams of an established session that ends with `error`."""
    if error is None:
        return None
    reason = ApplicationError(UNEXPECTED_DISCONNECT, f"{peer} unexpectedly disconnected: {error}")
    reason.__cause__ = error
    return reason
