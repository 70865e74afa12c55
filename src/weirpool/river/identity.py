"""The codec and the ids of both sides. River does not negotiate them, so both are configured."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from ..account import Account
from ..core.timers import TimerTable
from ..errors import UrlError
from ..events import Event
from ..settings import Settings
from ..wire.river.codec import CODECS, MAX_ID, RiverCodec, codec_of
from .streams import RiverStreams

__all__ = ["SERVER", "Identity", "Side", "base36", "data_mime", "tag_of"]

SERVER: Final = "SERVER"
"""The id of servers without a configured one."""
TAG_BYTES: Final = 6
"""The length of the prefix of ids: enough to distinguish sessions."""
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Identity:
    """The options of a River URL: ``?codec=msgpack&server=SERVER&client=web-1``.

    Attributes:
        codec: ``json`` or ``msgpack``.
        client: The client's id; empty: a generated one.
        server: The server's id; empty: a server accepts the id that its client uses.

    """

    codec: str = "json"
    client: str = ""
    server: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Identity:
        """Return the identity for the options of a URL.

        Raises:
            UrlError: The codec is unknown, or an id is too long.

        """
        identity = cls(options.get("codec", "json"), options.get("client", ""), options.get("server", ""))
        if identity.codec not in CODECS:
            raise UrlError(f"unknown codec {identity.codec!r}; known are: {', '.join(CODECS)}")
        for name in (identity.client, identity.server):
            if len(name) > MAX_ID:
                raise UrlError(f"the id {name[:20]!r}… has {len(name)} characters; at most {MAX_ID} are allowed")
        return identity


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a session: the state that its parts share.

    Attributes:
        settings: Limits and timeouts.
        account: The bytes that were received and not consumed.
        codec: Encodes and decodes messages.
        is_client: Whether it opened the session.
        us: This side's id.
        peer: The peer's id.
        session_id: The session's id, which is also the key to resume it.
        streams: The open streams.
        timers: The deadlines.
        events: Events for the session's user.
        finish: Ends the session, with an error or None.

    """

    settings: Settings
    account: Account
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
    """Return `number`, which is not negative, in base 36."""
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits


def tag_of(secret: str) -> str:
    """Return the prefix of a session's ids. It is a hash, because ids are not secret and the session's id is."""
    return blake2b(secret.encode(errors="replace"), digest_size=TAG_BYTES).hexdigest()


def data_mime(options: Mapping[str, str]) -> str:
    """Return the MIME type of a connection's data, for the options of its URL.

    Raises:
        UrlError: The codec is unknown, or an id is too long.

    """
    return codec_of(Identity.of(options).codec).data_mime
