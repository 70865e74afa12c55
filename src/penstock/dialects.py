"""The registry of protocols: the one place that knows the families. It imports them when they are used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from .errors import UrlError
from .payload import Payload
from .session import Acceptor, Session
from .settings import Settings

__all__ = ["PROTOCOLS", "acceptor", "acceptors", "client_session"]

PROTOCOLS: Final = ("rsocket",)
"""The protocols that URLs may name."""


def client_session(
    protocol: str,
    settings: Settings,
    *,
    setup: Payload | None = None,
    random: bytes = b"",
    checkpoint: bytes | None = None,
) -> Session:
    """Return the client's side of a new session, or of one that an earlier process left.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        setup: What to say to the server at set-up, where the protocol can.
        random: At least 16 bytes that nobody can guess, for sessions that need an id.
        checkpoint: What :meth:`penstock.session.Session.checkpoint` returned in an earlier process: the
            session resumes from there, as soon as a link is up.

    Raises:
        UrlError: The protocol is unknown.
        LocalError: `checkpoint` is none of this protocol.

    """
    _known(protocol)
    from .rsocket.session import RSocketSession

    if checkpoint is not None:
        return RSocketSession.restore(settings, checkpoint)
    return RSocketSession.client(settings, setup or Payload(), token=random if settings.resume else None)


def acceptors(protocol: str, settings: Settings) -> Callable[[], Acceptor]:
    """Return what makes an acceptor for each new link of one server; they share the sessions to resume.

    Raises:
        UrlError: The protocol is unknown.

    """
    _known(protocol)
    from .rsocket.accept import RSocketAcceptor
    from .rsocket.connection import Connection
    from .rsocket.resume import SessionStore

    store: SessionStore[Connection] | None = None
    if settings.resume_timeout > 0:
        store = SessionStore(settings.max_sessions)
    return lambda: RSocketAcceptor(settings, store)


def acceptor(protocol: str, settings: Settings) -> Acceptor:
    """Return what reads the first bytes of a new link on a server."""
    return acceptors(protocol, settings)()


def _known(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise UrlError(f"unknown protocol {protocol!r}; known are: {', '.join(PROTOCOLS)}")
