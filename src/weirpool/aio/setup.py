"""The arguments and results of a server's acceptor, and the current connection of handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from ..connection import Connection
from ..errors import ApplicationError, LocalError, SetupRejected
from ..payload import Payload
from ..transports import Link
from .service import Service

__all__ = [
    "CURRENT", "REJECTED", "Acceptor", "Admitted", "ConnectionHook", "Setup", "Verdict", "accept", "certificate_of",
    "checked", "current_connection", "rejection",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Setup:
    """The set-up of a client, as its server's acceptor sees it.

    Attributes:
        payload: The data and metadata of the set-up.
        metadata_mime: The MIME type of the connection's metadata.
        data_mime: The MIME type of the connection's data.
        strict: The client must be rejected if a MIME type is not supported (ReactiveSocket 0.2, S flag).
        understood: Both MIME types are supported.
        address: The client's address.
        certificate: The client's TLS certificate in DER form; None without one.
        protocol: The name of the protocol in URLs: ``rsocket``.
        previous: The identity that the acceptor returned for this client before, if the protocol repeats the set-up
            (River: with each handshake of a session); None the first time.
        scope: The ASGI scope of the client's request, with what the application's middleware has added, such as
            ``user``; empty for clients that do not come through :func:`weirpool.asgi`.

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
    scope: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Admitted:
    """The result of an acceptor that admits a client.

    Attributes:
        identity: The client's identity: handlers read it as `identity` of their :class:`~weirpool.Connection`.
        service: The service for the client; None for the server's service.
        principal: The name of the authenticated client, such as its account. `Settings.max_connections_per_address`
            then counts its connections, instead of those from its address. Empty: they count for the address.

    """

    identity: Any = None
    service: Service | None = None
    principal: str = ""


Verdict: TypeAlias = "Service | Admitted | None"


def checked(verdict: Verdict) -> Verdict:
    """Return what an acceptor has returned. Raises TypeError if it is nothing that an acceptor may return."""
    if verdict is None or isinstance(verdict, Service | Admitted):
        return verdict
    raise TypeError(f"the acceptor returned {verdict!r}; return a Service, an Admitted, or None for the server's own")


Acceptor = Callable[[Setup], "Verdict | Awaitable[Verdict]"]
"""Checks a set-up: a function or coroutine function, which raises to reject the client. The text of a SetupRejected or
an ApplicationError is sent to the client; after any other error the client is told only that it was rejected. It may
return the service for this connection, or an :class:`Admitted` with the identity of the client; None selects the
server's service. A coroutine that takes longer than `Settings.acceptor_timeout` is canceled, and its client is
rejected; it may try again."""


ConnectionHook: TypeAlias = Callable[[Connection], AbstractAsyncContextManager[Any]]
"""Returns an async context manager that is entered when a connection is established, and exited when it is closed."""

# RSocket 1.0, Error Codes.
UNSUPPORTED: Final = 0x002
REJECTED: Final = 0x003


def accept(setup: Setup) -> None:
    """Accept all clients but strict ones with an unsupported MIME type. The default acceptor."""
    if setup.strict and not setup.understood:
        what = f"metadata is {setup.metadata_mime!r} and data is {setup.data_mime!r}"
        raise SetupRejected(f"a strict set-up has an unsupported MIME type: {what}", UNSUPPORTED)


def rejection(error: BaseException) -> SetupRejected:
    """Return the rejection to send when an acceptor raises `error`, with the text of errors that peers may read."""
    if isinstance(error, SetupRejected) and error.code is not None:
        return error
    if isinstance(error, SetupRejected | ApplicationError) and error.message:
        return SetupRejected(error.message, REJECTED)
    return SetupRejected("the server rejected the set-up", REJECTED)


def certificate_of(link: Link) -> bytes | None:
    """Return the peer's TLS certificate in DER form, if it has presented one."""
    tls_object = link.get_extra_info("ssl_object")
    certificate: bytes | None = None if tls_object is None else tls_object.getpeercert(True)
    return certificate


CURRENT: Final[ContextVar[Connection]] = ContextVar("weirpool.current_connection")
"""Set in the context of a connection, of which each of its handlers gets a copy."""


def current_connection() -> Connection:
    """Return the connection of the request that the calling handler serves.

    Raises:
        LocalError: The caller is not a handler, interceptor or connection hook.

    """
    connection = CURRENT.get(None)
    if connection is None:
        raise LocalError("there is no current connection; call current_connection() in a handler")
    return connection
