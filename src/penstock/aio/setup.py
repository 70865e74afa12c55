"""What a server's acceptor sees and returns, and the connection for which a handler runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from ..connection import Connection
from ..errors import LocalError, SetupRejected
from ..payload import Payload
from ..transports import Link
from .service import Service

__all__ = [
    "CURRENT", "REJECTED", "Acceptor", "Admitted", "ConnectionHook", "Setup", "Verdict", "accept", "certificate_of",
    "current_connection", "rejection",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setup:
    """What a client sends when it connects, and what is known of its link.

    Attributes:
        payload: Data and metadata of the set-up.
        metadata_mime: MIME type of the connection's metadata.
        data_mime: MIME type of the connection's data.
        strict: The client must be rejected if any of this is not understood (ReactiveSocket 0.2, S flag).
        understood: Both MIME types are known.
        address: The client's address.
        certificate: The client's TLS certificate in DER form; None without one.
        protocol: The client's protocol, as URLs name it: ``rsocket``.
        previous: The identity that the acceptor returned for this client before, where the protocol has it asked again
            (River: at every handshake of a session); None the first time.

    """

    payload: Payload
    metadata_mime: str
    data_mime: str
    strict: bool
    understood: bool
    address: str
    certificate: bytes | None
    protocol: str = ""
    previous: Any = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """What an acceptor may return for a client that it admits.

    Attributes:
        identity: Who the client is: handlers find it as `identity` of their :class:`~penstock.Connection`.
        service: What serves the client; None: the server's service.

    """

    identity: Any = None
    service: Service | None = None


Verdict: TypeAlias = "Service | Admitted | None"
Acceptor = Callable[[Setup], "Verdict | Awaitable[Verdict]"]
"""Inspects a set-up: a function or a coroutine function. It raises to reject the client: the text of a SetupRejected
reaches the client, any other error only tells it that it was rejected. It may return the service for this connection,
or an :class:`Admitted`, which tells handlers who the client is; None means the server's service. A coroutine that takes
longer than `Settings.acceptor_timeout` is canceled, and its connection closed."""


ConnectionHook: TypeAlias = Callable[[Connection], AbstractAsyncContextManager[Any]]
"""Returns what is entered when a connection is established, and exited when it is closed."""

# RSocket 1.0, Error Codes.
UNSUPPORTED: Final = 0x002
REJECTED: Final = 0x003


def accept(setup: Setup) -> None:
    """Accept everybody, unless a strict client uses an unknown MIME type: the acceptor of servers without one."""
    if setup.strict and not setup.understood:
        what = f"metadata is {setup.metadata_mime!r} and data is {setup.data_mime!r}"
        raise SetupRejected(f"not understood, and the set-up is strict: {what}", UNSUPPORTED)


def rejection(error: Exception) -> SetupRejected:
    """Return what a client is told when its acceptor raises `error`: nothing, unless that is a SetupRejected."""
    if isinstance(error, SetupRejected):
        return error if error.code is not None else SetupRejected(error.message, REJECTED)
    return SetupRejected("the server refused the set-up", REJECTED)


def certificate_of(link: Link) -> bytes | None:
    """Return the peer's TLS certificate in DER form, if it has presented one."""
    tls_object = link.get_extra_info("ssl_object")
    certificate: bytes | None = None if tls_object is None else tls_object.getpeercert(True)
    return certificate


CURRENT: Final[ContextVar[Connection]] = ContextVar("penstock.current_connection")
"""Set while events of a connection are handed out; tasks that begin then inherit it."""


def current_connection() -> Connection:
    """Return the connection for which the calling handler runs.

    Raises:
        LocalError: The caller is not a handler.

    """
    connection = CURRENT.get(None)
    if connection is None:
        raise LocalError("no connection is known here: call this in a handler")
    return connection
