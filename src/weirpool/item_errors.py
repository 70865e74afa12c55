"""The part of the waist for errors between items, which do not end their stream. Only River has them."""

from __future__ import annotations

from typing import Protocol

from .errors import ApplicationError
from .payload import Payload

__all__ = ["ItemErrors"]


class ItemErrors(Protocol):
    """Errors between items. They are items with a content of their own."""

    def payload_of(self, error: ApplicationError) -> Payload:
        """Return the item that sends `error`. Raises it if this side, or its code, can only end a stream."""

    def report(self, stream_id: int) -> None:
        """Report the errors between the items of a stream that this side opened. Without it, an error ends it."""

    def error_of(self, payload: Payload) -> ApplicationError | None:
        """Return the error that an item of such a stream is; None if it is a value."""
