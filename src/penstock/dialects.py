"""The registry of protocols: the one place that knows the families. It imports them when they are used."""

from __future__ import annotations

from typing import Final

from .errors import UrlError
from .payload import Payload
from .session import Acceptor, Session
from .settings import Settings

__all__ = ["PROTOCOLS", "acceptor", "client_session"]

PROTOCOLS: Final = ("rsocket",)
"""The protocols that URLs may name."""


def client_session(protocol: str, settings: Settings, *, setup: Payload | None = None, random: bytes = b"") -> Session:
    """Return the client's side of a new session.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        setup: What to say to the server at set-up, where the protocol can.
        random: At least 16 bytes that nobody can guess, for sessions that need an id.

    Raises:
        UrlError: The protocol is unknown.

    """
    _known(protocol)
    from .rsocket.session import RSocketSession

    return RSocketSession.client(settings, setup or Payload())


def acceptor(protocol: str, settings: Settings) -> Acceptor:
    """Return what reads the first bytes of a new link on a server.

    Raises:
        UrlError: The protocol is unknown.

    """
    _known(protocol)
    from .rsocket.accept import RSocketAcceptor

    return RSocketAcceptor(settings)


def _known(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise UrlError(f"unknown protocol {protocol!r}; known are: {', '.join(PROTOCOLS)}")
