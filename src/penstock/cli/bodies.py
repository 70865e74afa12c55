"""Converts data between the JSON that users read and write and the encoding of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TypeAlias

from ..errors import ApplicationError, FrameError
from ..payload import Payload
from ..protocols import TextForm, text_form
from ..urls import parse_url
from .lines import paced

__all__ = ["Bodies", "bodies_of"]

Source: TypeAlias = Iterable[bytes | Payload] | AsyncIterable[bytes | Payload]


class Bodies:
    """Converts payloads between the user's form and the connection's encoding.

    Args:
        form: Converts between JSON and the connection's encoding. With None, data is not converted.

    """

    def __init__(self, form: TextForm | None) -> None:
        self._form = form

    def outgoing(self, payload: Payload) -> Payload:
        """Return the payload to send for a user's input. Empty data stays empty."""
        if self._form is None or not payload.data:
            return payload
        return Payload(self._form.from_json(payload.data), payload.metadata)

    def incoming(self, payload: Payload) -> Payload:
        """Return the payload to print for a received one.

        Raises:
            FrameError: The peer sent data that is not valid in this encoding.

        """
        if self._form is None:
            return payload
        return Payload(self._form.to_json(payload.data), payload.metadata)

    def error_data(self, error: ApplicationError) -> bytes:
        """Return the data of a received error in the form to print."""
        if self._form is None or error.data == error.message.encode():
            return error.data
        try:
            return self.incoming(Payload(error.data)).data
        except FrameError:
            return error.data

    def items(self, items: Source) -> Source:
        """Return the items to send for a user's input; the same object if there is nothing to convert."""
        return items if self._form is None else self._each(items)

    async def _each(self, items: Source) -> AsyncIterator[Payload]:
        async for item in paced(items, 0):
            yield self.outgoing(item if isinstance(item, Payload) else Payload(item))


def bodies_of(url: str) -> Bodies:
    """Return the conversion for connections to `url`.

    Raises:
        UrlError: `url` is not valid, or names an unknown protocol or transport.

    """
    parsed = parse_url(url)
    return Bodies(text_form(parsed.protocol, parsed.options))
