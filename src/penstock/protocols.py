"""The registry of protocols: the one place that knows the families. It imports them when they are used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from .connection import Connection
from .errors import LocalError, UrlError
from .payload import Payload
from .session import Acceptor, Session, SessionLogs
from .settings import Settings

__all__ = [
    "OPTIONS",
    "PROTOCOLS",
    "acceptor",
    "acceptors",
    "can_resume",
    "client_session",
    "connects_anew",
    "data_mime",
    "fitting",
]

PROTOCOLS: Final = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river")
"""The protocols that URLs may name. A listener on "rsocket" tells its two ancestors apart by itself."""

OPTIONS: Final[dict[str, frozenset[str]]] = {"river": frozenset({"codec", "server", "client"})}
"""The options of URLs that belong to a protocol, and not to a transport."""
REACTIVE_STREAMS: Final = "reactive-streams"
RESUMING: Final = frozenset({"rsocket", "reactivesocket-0.2"})
"""Those whose sessions may outlive their links, and their clients."""


def can_resume(protocol: str) -> bool:
    """Whether sessions of the protocol can be resumed, if the server agrees."""
    return protocol in RESUMING


def connects_anew(protocol: str) -> bool:
    """Whether a client of the protocol begins another session by itself when one is over: by a retry budget."""
    # River, On disconnect: a hard reconnect.
    return protocol == "river"


def client_session(
    protocol: str,
    settings: Settings,
    *,
    setup: Payload | None = None,
    random: bytes = b"",
    checkpoint: bytes | None = None,
    secret: bytes = b"",
    messages: bool = False,
    options: Mapping[str, str] | None = None,
    renew: Callable[[], Payload] | None = None,
) -> Session:
    """Return the client's side of a new session, or of one that an earlier process left.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        setup: What to say to the server at set-up, where the protocol can.
        random: At least 16 bytes that nobody can guess, for sessions that need an id.
        checkpoint: What :meth:`penstock.session.Session.checkpoint` returned in an earlier process: the
            session resumes from there, as soon as a link is up.
        secret: What :attr:`penstock.session.Session.secret` was there.
        messages: The transport carries messages, each of which gets and loses a length of its own.
        options: Those of the URL.
        renew: Returns what to say from the second handshake of the session on, where the protocol has more than one;
            None: the same.

    Raises:
        UrlError: The protocol is unknown, or an option of its has no such value.
        LocalError: `checkpoint` is none of this protocol, or comes without its secret; or the protocol cannot do what
            the settings ask for.
        ResumeRejected: It cannot be told whether the server still has the session of `checkpoint`.

    """
    _known(protocol)
    if protocol == REACTIVE_STREAMS:
        from .reactivestreams.session import ReactiveStreamsSession

        if checkpoint is not None:
            raise LocalError("this is no checkpoint: reactive-streams has none")
        return ReactiveStreamsSession.client(settings, setup or Payload())
    if checkpoint is not None and not secret:
        raise LocalError("a checkpoint without the secret of its session; pass what Peer.secret was, too")
    if protocol == "river":
        return _river_client(settings, setup or Payload(), random, checkpoint, secret, options or {}, renew)
    from .rsocket.dialect import DIALECTS, RSOCKET_1_0
    from .rsocket.session import RSocketSession

    dialect = DIALECTS.get(protocol, RSOCKET_1_0)
    if messages:
        dialect = dialect.over_messages()
    elif settings.length_counts_itself:
        dialect = dialect.counting_itself()
    if checkpoint is not None:
        return RSocketSession.restore(settings, checkpoint, secret, dialect)
    if settings.resume and not dialect.keepalive:
        raise LocalError(f"{protocol} cannot resume sessions; leave Settings.resume out")
    return RSocketSession.client(settings, setup or Payload(), dialect, random if settings.resume else None)


def acceptors(
    protocol: str,
    settings: Settings,
    logs: SessionLogs | None = None,
    *,
    messages: bool = False,
    options: Mapping[str, str] | None = None,
) -> Callable[[], Acceptor]:
    """Return what makes an acceptor for each new link of one server; they share the sessions to resume.

    Args:
        protocol: One of `PROTOCOLS`.
        settings: Limits and timeouts.
        logs: Where the sessions are kept for another process; None: they die with this one.
        messages: The transport carries messages, each of which gets and loses a length of its own.
        options: Those of the URL.

    Raises:
        UrlError: The protocol is unknown, or an option of its has no such value.

    """
    _known(protocol)
    if protocol == REACTIVE_STREAMS:
        from .reactivestreams.accept import ReactiveStreamsAcceptor

        return lambda: ReactiveStreamsAcceptor(settings)
    if protocol == "river":
        return _river_acceptors(settings, logs, options or {})
    from .rsocket.accept import RSocketAcceptor
    from .rsocket.connection import Connection as RSocketConnection
    from .rsocket.dialect import DIALECTS
    from .rsocket.resume import SessionStore
    from .rsocket.session import RSocketSession

    if messages:
        settings = replace(settings, length_counts_itself=False)
    served = frozenset(DIALECTS if protocol == "rsocket" else {protocol})
    store: SessionStore[RSocketConnection] | None = None
    begin: Callable[..., RSocketSession] = RSocketSession.server
    if settings.resume_timeout > 0 and not settings.length_counts_itself:
        if logs is None:
            store = SessionStore(settings.all_sessions)
        else:
            from .rsocket.stored import StoredSession
            from .rsocket.stored_sessions import StoredSessions

            store = StoredSessions(settings, logs)
            begin = StoredSession.server
    return lambda: RSocketAcceptor(settings, store, served, begin)


def acceptor(protocol: str, settings: Settings) -> Acceptor:
    """Return what reads the first bytes of a new link on a server."""
    return acceptors(protocol, settings)()


def fitting(protocol: str, settings: Settings, options: Mapping[str, str]) -> Settings:
    """Return the settings of a connection: River's data is what the URL's codec says, and never anything else.

    Raises:
        UrlError: There is no such codec.

    """
    if protocol != "river":
        return settings
    from .river.identity import Identity

    return replace(settings, data_mime=Identity.of(options).data_mime)


def data_mime(connection: Connection, metadata: bytes | None) -> str:
    """Return the MIME type of a request's data: what its own metadata says, else the connection's.

    Raises:
        FrameError: The metadata is not what the connection says it is.

    """
    if metadata is None or not connection.protocol.startswith("rsocket"):
        return connection.data_mime
    from .rsocket.extensions.composite import mime_of
    from .rsocket.extensions.mimes import COMPOSITE

    # A client that leaves its metadata to the protocol has composite metadata.
    if connection.metadata_mime not in ("", COMPOSITE):
        return connection.data_mime
    return mime_of(metadata) or connection.data_mime


def _river_client(
    settings: Settings,
    setup: Payload,
    random: bytes,
    checkpoint: bytes | None,
    secret: bytes,
    options: Mapping[str, str],
    renew: Callable[[], Payload] | None,
) -> Session:
    from .river.connect import new_client, restored_client
    from .river.identity import Identity

    again = None if renew is None else lambda: renew().data
    if checkpoint is not None:
        return restored_client(settings, Identity.of(options), setup.data, random, checkpoint, secret, again)
    return new_client(settings, Identity.of(options), setup.data, random, again)


def _river_acceptors(
    settings: Settings, logs: SessionLogs | None, options: Mapping[str, str]
) -> Callable[[], Acceptor]:
    from .river.accept import RiverAcceptor
    from .river.identity import Identity
    from .river.session import RiverSession
    from .river.sessions import Sessions

    identity = Identity.of(options)
    if logs is None:
        sessions: Sessions[RiverSession] = Sessions(settings.all_sessions)
        return lambda: RiverAcceptor(settings, identity, sessions)
    from .river.stored import StoredRiverSession
    from .river.stored_sessions import StoredSessions

    stored = StoredSessions(settings, logs, identity.codec)
    return lambda: RiverAcceptor(settings, identity, stored, StoredRiverSession)


def _known(protocol: str) -> None:
    if protocol not in PROTOCOLS:
        raise UrlError(f"unknown protocol {protocol!r}; known are: {', '.join(PROTOCOLS)}")
