"""Data as people write and read it, where a connection carries it in a form that they do not write."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TypeAlias

from ..errors import ApplicationError, FrameError
from ..payload import Payload
from ..protocols import TextForm, text_form
from ..urls import parse_url

__all__ = ["Bodies", "bodies_of"]

Source: TypeAlias = Iterable[bytes | Payload] | AsyncIterable[bytes | Payload]


class Bodies:
    """Turns what was written into what travels, and back; without a form of its own both are the same.

    Args:
        form: Turns JSON into what travels, and back; None: what was written travels.

    """

    def __init__(self, form: TextForm | None) -> None:
        self._form = form

    def outgoing(self, payload: Payload) -> Payload:
        """Return what travels for what was written; no data at all stays none.

        Raises:
            LocalError: It is no JSON, and should be.

        """
        if self._form is None or not payload.data:
            return payload
        return Payload(self._form.from_json(payload.data), payload.metadata)

    def incoming(self, payload: Payload) -> Payload:
        """Return what is shown for what came.

        Raises:
            FrameError: It is nothing that the peer may send.

        """
        if self._form is None:
            return payload
        return Payload(self._form.to_json(payload.data), payload.metadata)

    def error_data(self, error: ApplicationError) -> bytes:
        """Return what is shown of the data that came with an error."""
        if self._form is None or error.data == error.message.encode():
            return error.data
        try:
            return self.incoming(Payload(error.data)).data
        except FrameError:
            return error.data

    def items(self, items: Source) -> Source:
        """Return what travels for items that were written: those items themselves, unless data has a form."""
        return items if self._form is None else self._each(items)

    async def _each(self, items: Source) -> AsyncIterator[Payload]:
        if isinstance(items, AsyncIterable):
            async for item in items:
                yield self.outgoing(_payload(item))
        else:
            for item in items:
                yield self.outgoing(_payload(item))


def _payload(item: bytes | Payload) -> Payload:
    return item if isinstance(item, Payload) else Payload(item)


def bodies_of(url: str) -> Bodies:
    """Return what turns JSON into what the connection of `url` carries.

    Raises:
        UrlError: It names nothing that we know.

    """
    parsed = parse_url(url)
    return Bodies(text_form(parsed.protocol, parsed.options))
