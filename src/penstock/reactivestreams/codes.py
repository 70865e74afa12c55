"""Converts errors between the texts of onError and exceptions."""

from __future__ import annotations

import re
from typing import Final

from ..errors import ApplicationError, Canceled, Rejected
from ..texts import shown

__all__ = ["error_of", "fitting", "text_of"]

APPLICATION_ERROR: Final = 0x201
"""The code of errors that have only a text."""
HANDLER_FAILED: Final = "the handler failed"
"""The text that is sent for any exception other than ApplicationError."""

# docs/reference/rs-0.md, Publisher and errors.
_CODED: Final = re.compile(r"\[0x([0-9A-Fa-f]{1,8})\](?: (.*))?", re.DOTALL)
_CLASSES: Final[dict[int, type[ApplicationError]]] = {0x202: Rejected, 0x203: Canceled}


def text_of(error: Exception, max_bytes: int) -> bytes:
    """Return the text of onError for `error`, cut to `max_bytes`.

    Only the text of an ApplicationError is sent. A code other than 0x201 precedes it in brackets.
    """
    if not isinstance(error, ApplicationError):
        text = HANDLER_FAILED
    elif error.code == APPLICATION_ERROR and error.message and not _CODED.fullmatch(error.message):
        text = error.message
    else:
        text = str(error)
    return fitting(text, max_bytes)


def fitting(text: str, max_bytes: int) -> bytes:
    """Return `text` as UTF-8, cut between two characters to at most `max_bytes`."""
    data = text.encode(errors="replace")
    return data if len(data) <= max_bytes else data[:max_bytes].decode(errors="ignore").encode()


def error_of(text: bytes) -> ApplicationError:
    """Return the exception for the text of onError, with the code in the text or 0x201."""
    coded = _CODED.fullmatch(text.decode())
    if coded is None:
        return ApplicationError(APPLICATION_ERROR, shown(text.decode()), text)
    code = int(coded[1], 16)
    message = (coded[2] or "").encode()
    return _CLASSES.get(code, ApplicationError)(code, shown(message.decode()), message)
