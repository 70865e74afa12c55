"""Errors on the wire, where they are texts, and as exceptions."""

from __future__ import annotations

from typing import Final

from ..errors import ApplicationError

__all__ = ["error_of", "fitting", "text_of"]

APPLICATION_ERROR: Final = 0x201
"""The code of errors of which nothing but a text is known."""
HANDLER_FAILED: Final = "the handler failed"
"""All that a peer learns of an error that was not meant for it."""


def text_of(error: Exception, max_bytes: int) -> bytes:
    """Return the text by which `error` travels in onError, cut to `max_bytes`.

    Only an ApplicationError tells the peer its text. A code of its own stands before it.
    """
    if not isinstance(error, ApplicationError):
        text = HANDLER_FAILED
    else:
        text = error.message if error.code == APPLICATION_ERROR else str(error)
    return fitting(text, max_bytes)


def fitting(text: str, max_bytes: int) -> bytes:
    """Return `text` as UTF-8, cut between two characters where it is longer than `max_bytes`."""
    octets = text.encode(errors="replace")
    return octets if len(octets) <= max_bytes else octets[:max_bytes].decode(errors="ignore").encode()


def error_of(text: bytes) -> ApplicationError:
    """Return the exception that onError stands for."""
    return ApplicationError(APPLICATION_ERROR, text.decode())
