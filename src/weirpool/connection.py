"""The description of a connection that interceptors, connection hooks and taps receive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .account import Account
from .payload import Payload

__all__ = ["Carried", "Connection"]


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """One connection, which may continue over several links with `Settings.resume`.

    Attributes:
        protocol: The protocol of its URL, such as ``rsocket``.
        address: The peer's address. For a client, the part of its URL such as ``tcp://host:7878``. For a server, the
            address of the client on its first link, which may be named by a proxy in `Settings.trusted_proxies`; for a
            Unix socket the client's user, such as ``uid 1000``; empty if neither is known.
        is_client: True on the side that opened the connection.
        setup: The payload of the client's set-up.
        metadata_mime: The MIME type of its metadata; empty on a client that uses the protocol's default.
        data_mime: The MIME type of its data.
        identity: On a server, the acceptor's result for `setup`, as handlers see it; None if there is none.
        principal: On a server, the name of the authenticated client, as its acceptor chose it in
            :class:`~weirpool.Admitted`; empty if there is none.
        certificate: The peer's verified certificate on the current link, in the format of
            :meth:`ssl.SSLSocket.getpeercert`; None if there is none.
        error: The reason why it is closed; None while it is open, or if this side closed it.
        account: Counts the bytes that are held for it; None before it has a session.
        renew: On a server, asks the client for its metadata again; :func:`~weirpool.rehandshake` calls it.
        peer: A :class:`~weirpool.Peer` for requests to the other side, if the protocol allows them. It is set for
            connection hooks and for interceptors of a service.

    """

    protocol: str
    address: str
    is_client: bool
    setup: Payload = field(default_factory=Payload)
    metadata_mime: str = ""
    data_mime: str = ""
    identity: Any = field(default=None, init=False)
    principal: str = field(default="", init=False)
    certificate: Mapping[str, Any] | None = field(default=None, init=False)
    error: Exception | None = field(default=None, init=False)
    account: Account | None = field(default=None, init=False)
    renew: Callable[[], Awaitable[None]] | None = field(default=None, init=False)
    peer: Any = field(default=None, init=False)

    @property
    def counted_as(self) -> str:
        """The name for which limits count it: its principal, or else its address. No two of these are the same."""
        return f"principal {self.principal}" if self.principal else self.address

    def __repr__(self) -> str:
        return f"<Connection {'to' if self.is_client else 'from'} {self.address or 'a peer'} by {self.protocol}>"


class Carried(Protocol):
    """The attributes of a :class:`~weirpool.Request` that a carrier of traces reads and changes."""

    connection: Connection
    route: str
    payload: Payload
    routed: bool
