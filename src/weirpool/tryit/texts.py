"""Data of requests and items as text for the page, and back."""

from __future__ import annotations

from typing import Any, Final

from ..errors import FrameError
from ..payload import Payload
from ..protocols import text_form
from ..urls import parse_url

__all__ = ["Texts"]

MAX_BYTES: Final = 64 * 1024
"""How much of an item is shown."""


class Texts:
    """Converts between text and the data of a connection: JSON over River, the text itself elsewhere.

    Args:
        url: The server.

    """

    def __init__(self, url: str) -> None:
        parsed = parse_url(url)
        self._form = text_form(parsed.protocol, parsed.options)

    def outgoing(self, text: str) -> bytes:
        """Return the data to send; LocalError if it cannot be converted."""
        data = text.encode(errors="surrogatepass")
        return data if self._form is None or not data else self._form.from_json(data)

    def incoming(self, payload: Payload) -> dict[str, Any]:
        """Return an item for the page: its size, and its text, or hex if it is not UTF-8, up to a limit."""
        data = payload.data
        if self._form is not None:
            try:
                data = self._form.to_json(data)
            except FrameError:
                return _shown(payload.data)
        return _shown(data)


def _shown(data: bytes) -> dict[str, Any]:
    part = bytes(data[:MAX_BYTES])
    fields: dict[str, Any] = {"size": len(data)}
    if len(data) > MAX_BYTES:
        fields["cut"] = True
    try:
        # A character may be divided at the limit.
        fields["text"] = part.decode(errors="strict" if len(data) <= MAX_BYTES else "ignore")
    except UnicodeDecodeError:
        fields["hex"] = part[:1024].hex(" ")
        fields["cut"] = len(data) > 1024
    return fields
