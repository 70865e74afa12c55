"""Who talks to whom, and how: what both sides of River are configured with, because nothing of it is negotiated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ..errors import UrlError
from ..wire.river.codec import CODECS, MAX_ID, codec_of

__all__ = ["SERVER", "Identity", "base36", "data_mime"]

SERVER: Final = "SERVER"
"""What servers are called that have no name of their own."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Identity:
    """The options of a River URL: ``?codec=msgpack&server=SERVER&client=web-1``.

    Attributes:
        codec: ``json`` or ``msgpack``.
        client: The client's id; empty: one is made up.
        server: The server's id. A server that has none takes the one that its client calls it by.

    """

    codec: str = "json"
    client: str = ""
    server: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Identity:
        """Return what the options of a URL say.

        Raises:
            UrlError: There is no such codec, or an id is longer than messages may have it.

        """
        identity = cls(options.get("codec", "json"), options.get("client", ""), options.get("server", ""))
        if identity.codec not in CODECS:
            raise UrlError(f"unknown codec {identity.codec!r}; known are: {', '.join(CODECS)}")
        for name in (identity.client, identity.server):
            if len(name) > MAX_ID:
                raise UrlError(f"the id {name[:20]!r}… has {len(name)} characters; it may have {MAX_ID}")
        return identity

    @property
    def data_mime(self) -> str:
        """What data is."""
        return codec_of(self.codec).data_mime


def base36(number: int) -> str:
    """Return `number`, which is not negative, in few characters."""
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


def data_mime(options: Mapping[str, str]) -> str:
    """Return the type of all data of a connection, by the options of its URL.

    Raises:
        UrlError: They name no such codec, or an id that is too long.

    """
    return Identity.of(options).data_mime
