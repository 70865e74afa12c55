"""Converts errors between the texts of onError and exceptions."""

from __future__ import annotations

import re
from typing import Final

from ..errors import ApplicationError, Canceled, Invalid, Rejected
from ..texts import cut, shown

__all__ = ["error_of", "fitting", "text_of"]

APPLICATION_ERROR: Final = 0x201
"""The code of errors that have only a text."""
HANDLER_FAILED: Final = "the handler failed"
"""The text that is sent for any exception other than ApplicationError."""
CODE_BYTES: Final = len("[0xFFFFFFFF] ")

# docs/reference/rs-0.md, Publisher and errors.
_CODED: Final = re.compile(r"\[0x([0-9A-Fa-f]{1,8})\](?: (.*))?", re.DOTALL)
_CLASSES: Final[dict[int, type[ApplicationError]]] = {0x202: Rejected, 0x203: Canceled, 0x204: Invalid}


def text_of(error: Exception, max_bytes: int) -> bytes:
    """Return the text of onError for `error`, cut to `max_bytes`.

    Only an ApplicationError is sent: its data if that is text, such as the JSON of a TypedError, otherwise its message.
    A code other than 0x201 precedes it in brackets.
    """
    if not isinstance(error, ApplicationError):
        return HANDLER_FAILED.encode()
    code, text = _general_code(error), _sent_text(error, max_bytes)
    if code != APPLICATION_ERROR or not text or _CODED.fullmatch(text):
        text = f"[0x{code:03X}] {text}" if text else f"[0x{code:03X}]"
    return fitting(text, max_bytes)


def _general_code(error: ApplicationError) -> int:
    """Return the code of an error; that of its class if its own code is a string."""
    if isinstance(error.code, int):
        return error.code
    return next((number for number, cls in _CLASSES.items() if isinstance(error, cls)), APPLICATION_ERROR)


def _sent_text(error: ApplicationError, max_bytes: int) -> str:
    message = error.message if isinstance(error.code, int) else str(error)
    if error.data == error.message.encode(errors="replace") or len(error.data) + CODE_BYTES > max_bytes:
        # Cut data would have another meaning.
        return message
    try:
        return error.data.decode()
    except UnicodeDecodeError:
        return message


def fitting(text: str, max_bytes: int) -> bytes:
    """Return `text` as UTF-8, cut between two characters to at most `max_bytes`."""
    return cut(text.encode(errors="replace"), max_bytes)


def error_of(text: bytes) -> ApplicationError:
    """Return the exception for the text of onError, with the code in the text or 0x201."""
    coded = _CODED.fullmatch(text.decode())
    if coded is None:
        return ApplicationError(APPLICATION_ERROR, shown(text.decode()), text)
    code = int(coded[1], 16)
    message = (coded[2] or "").encode()
    return _CLASSES.get(code, ApplicationError)(code, shown(message.decode()), message)
