"""Converts the error codes of RSocket 1.0 (ERROR Frame, Error Codes) to exceptions and back."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ..errors import ApplicationError, Canceled, Invalid, Rejected
from ..texts import shown, shown_line

__all__ = ["HANDLER_FAILED", "SETUP_CODES", "Code", "error_of", "name_of", "text_of", "wire_of"]

HANDLER_FAILED: Final = "the handler failed; see its log"
"""The text that a peer receives instead of the text of an internal error."""


class Code(IntEnum):
    """The codes that the specification defines."""

    INVALID_SETUP = 0x001
    UNSUPPORTED_SETUP = 0x002
    REJECTED_SETUP = 0x003
    REJECTED_RESUME = 0x004
    CONNECTION_ERROR = 0x101
    CONNECTION_CLOSE = 0x102
    APPLICATION_ERROR = 0x201
    REJECTED = 0x202
    CANCELED = 0x203
    INVALID = 0x204


SETUP_CODES: Final = frozenset({Code.INVALID_SETUP, Code.UNSUPPORTED_SETUP, Code.REJECTED_SETUP, Code.REJECTED_RESUME})
"""Codes that only a server sends, and only before the session is established."""

STREAM_CODES: Final = frozenset({Code.APPLICATION_ERROR, Code.REJECTED, Code.CANCELED, Code.INVALID})
RESERVED_CODE: Final = 0xFFFFFFFF

_CLASSES: Final[dict[int, type[ApplicationError]]] = {
    Code.REJECTED: Rejected,
    Code.CANCELED: Canceled,
    Code.INVALID: Invalid,
}


def name_of(code: int) -> str:
    """Return the specification's name of a code, or its number in hex."""
    try:
        return Code(code).name
    except ValueError:
        return f"0x{code:08X}"


def text_of(data: bytes) -> str:
    """Return a peer's text in a form that cannot control terminals or forge log lines."""
    return shown_line(data.decode("utf-8", "replace"))


def error_of(code: int, data: bytes, metadata: bytes | None = None) -> ApplicationError:
    """Return the exception for an ERROR on a stream. Unknown codes stay numbers."""
    if metadata == b"[0x%03X]" % code:
        # ReactiveSocket 0.0 has no other field for it; see `weirpool.wire.rsocket.v00_layouts`.
        metadata = None
    # RSocket 1.0, ERROR Frame: the data SHOULD be UTF-8. The text replaces invalid bytes; `data` keeps them.
    return _CLASSES.get(code, ApplicationError)(code, shown(data.decode("utf-8", "replace")), data, metadata)


def wire_of(error: Exception, first_application_code: int = 0x301) -> tuple[int, bytes, bytes | None]:
    """Return the code, data and metadata of the ERROR that represents `error` on a stream.

    Only the text of an ApplicationError is sent. Codes without a name must be at least `first_application_code`.
    """
    if not isinstance(error, ApplicationError):
        return Code.APPLICATION_ERROR, HANDLER_FAILED.encode(), None
    code = error.code
    text = error.message.encode(errors="replace")
    # RSocket 1.0, ERROR Frame: a text MUST NOT be null terminated. Other data has its own format.
    data = text.rstrip(b"\0") if error.data == text else error.data
    # Whatever its code, the peer should know whether it may retry.
    general = next((number for number, cls in _CLASSES.items() if isinstance(error, cls)), Code.APPLICATION_ERROR)
    if isinstance(code, int) and (code in STREAM_CODES or first_application_code <= code < RESERVED_CODE):
        return code, data, error.metadata
    if isinstance(code, str) and error.data != text:
        # River's codes are strings, and are part of the data; see TypedError.
        return general, data, error.metadata
    # The code is a string, or not allowed for applications; `str(error)` contains it.
    return general, str(error).encode().rstrip(b"\0"), error.metadata
