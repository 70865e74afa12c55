"""Converts data between the JSON that users read and write and the encoding of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import TypeAlias

import msgspec

from ..errors import ApplicationError, FrameError, LocalError, Mismatch
from ..payload import Payload
from ..protocols import TextForm, text_form
from ..strict_json import strict_json
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


class CborText:
    """The text form of CBOR: a :class:`~weirpool.dumps.TextForm`."""

    def from_json(self, data: bytes) -> bytes:
        """Return JSON as CBOR. Raises LocalError if `data` is not JSON."""
        from ..schema.formats import CBOR

        try:
            return CBOR.encode(strict_json(data))
        except ValueError as error:
            raise LocalError(f"the data is written as CBOR, so it must be JSON: {error}") from None

    def to_json(self, body: bytes) -> bytes:
        """Return CBOR as JSON, with bytes in base64; other data as it is, as Spring sends a String in CBOR."""
        from ..schema.formats import CBOR

        try:
            CBOR.check_depth(body)
            return msgspec.json.encode(CBOR.decoder().decode(body))
        except (Mismatch, ValueError, TypeError):
            # JSON has no simple values without a meaning, which CBOR may contain.
            return body


def bodies_of(url: str, mime: str | None = None) -> Bodies:
    """Return the conversion for connections to `url`.

    Args:
        url: The URL.
        mime: The MIME type of the connection's data, if the user gives it. CBOR is written and read as JSON.

    Raises:
        UrlError: `url` is not valid, or names an unknown protocol or transport.

    """
    parsed = parse_url(url)
    form = text_form(parsed.protocol, parsed.options)
    if form is None and mime is not None:
        from ..schema.formats import CBOR, format_of

        form = CborText() if format_of(mime) is CBOR else None
    return Bodies(form)
