"""Who talks to whom, and how: what both sides of River are configured with, because nothing of it is negotiated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from ..core.timers import TimerTable
from ..errors import UrlError
from ..events import Event
from ..settings import Settings
from ..wire.river.codec import CODECS, MAX_ID, RiverCodec, codec_of
from .streams import RiverStreams

__all__ = ["SERVER", "Identity", "Side", "base36", "data_mime", "tag_of"]

SERVER: Final = "SERVER"
"""What servers are called that have no name of their own."""
TAG_BYTES: Final = 6
"""The length of what ids begin with: enough that those of two sessions differ."""
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


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a session: all that its parts share.

    Attributes:
        settings: Limits and timeouts.
        codec: Of its messages.
        is_client: Whether it opened the session.
        us: Its id.
        peer: The id of the other side.
        session_id: The session's id. Whoever knows it can resume the session.
        streams: The open streams.
        timers: The deadlines.
        events: What has happened, for the session's user.
        finish: Ends the session, with an error or in order.

    """

    settings: Settings
    codec: RiverCodec
    is_client: bool
    us: str
    peer: str
    session_id: str
    streams: RiverStreams
    timers: TimerTable
    events: list[Event]
    finish: Callable[[Exception | None], None]


def base36(number: int) -> str:
    """Return `number`, which is not negative, in few characters."""
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


def tag_of(secret: str) -> str:
    """Return the first characters of a session's ids. Many read them, so they do not show the session's own id."""
    return blake2b(secret.encode(errors="replace"), digest_size=TAG_BYTES).hexdigest()


def data_mime(options: Mapping[str, str]) -> str:
    """Return the type of all data of a connection, by the options of its URL.

    Raises:
        UrlError: They name no such codec, or an id that is too long.

    """
    return codec_of(Identity.of(options).codec).data_mime
