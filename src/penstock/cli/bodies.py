"""What people write and read, where the connection speaks something that they do not: River's MessagePack."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Final, TypeAlias

from ..errors import ApplicationError, FrameError
from ..payload import Payload
from ..urls import parse_url

__all__ = ["Bodies", "bodies_of"]

Source: TypeAlias = Iterable[bytes | Payload] | AsyncIterable[bytes | Payload]
NATIVE: Final = "msgpack"
"""The one codec that is not written by hand."""


class Bodies:
    """Turns what was written into what travels, and back; without a codec both are the same.

    Args:
        codec: What travels; None for whatever was written.

    """

    def __init__(self, codec: str | None) -> None:
        self._codec = codec

    def outgoing(self, payload: Payload) -> Payload:
        """Return what travels for what was written; no data at all stays none.

        Raises:
            LocalError: It is no JSON, and should be.

        """
        if self._codec is None or not payload.data:
            return payload
        from ..wire.river.values import from_json

        return Payload(from_json(payload.data, self._codec), payload.metadata)

    def incoming(self, payload: Payload) -> Payload:
        """Return what is shown for what came.

        Raises:
            FrameError: It is nothing that the peer may send.

        """
        if self._codec is None:
            return payload
        from ..wire.river.values import to_json

        return Payload(to_json(payload.data, self._codec), payload.metadata)

    def error_data(self, error: ApplicationError) -> bytes:
        """Return what is shown of the data that came with an error."""
        if self._codec is None or error.data == error.message.encode():
            return error.data
        try:
            return self.incoming(Payload(error.data)).data
        except FrameError:
            return error.data

    def items(self, items: Source) -> Source:
        """Return what travels for items that were written; without a codec they are those items themselves."""
        return items if self._codec is None else self._each(items)

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
    return Bodies(NATIVE if parsed.protocol == "river" and parsed.options.get("codec") == NATIVE else None)
