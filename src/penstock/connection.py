"""What is known of a connection: interceptors, connection hooks and taps are told of it by this."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from .payload import Payload

__all__ = ["Carried", "Connection"]


@dataclass(slots=True, eq=False, repr=False)
class Connection:
    """One connection, which with `Settings.resume` goes on over several links.

    Attributes:
        protocol: The protocol that its URL names: ``rsocket``.
        address: Where the peer is: for a client the place that its URL names, such as ``tcp://host:7878``, for
            a server the address from which the peer came first; empty where the transport has none.
        is_client: Whether we opened it.
        setup: What the client said at set-up.
        metadata_mime: What its metadata is; empty on a client that leaves it to the protocol.
        data_mime: What its data is.
        identity: On a server, what its acceptor made of `setup`, as handlers see it; None: it made nothing of it.
        certificate: The certificate that the peer showed on the present link, and that was verified, as
            :meth:`ssl.SSLSocket.getpeercert` has it; None: there is none.
        error: Why it was closed, once it is, unless this side closed it.
        renew: Asks the client anew who it is; see :func:`~penstock.rehandshake`, which calls it.
        peer: The other side, a :class:`~penstock.Peer`: a server asks its clients for things by it, where the protocol
            lets it. It is there for connection hooks and interceptors of a service.

    """

    protocol: str
    address: str
    is_client: bool
    setup: Payload = field(default_factory=Payload)
    metadata_mime: str = ""
    data_mime: str = ""
    identity: Any = field(default=None, init=False)
    certificate: Mapping[str, Any] | None = field(default=None, init=False)
    error: Exception | None = field(default=None, init=False)
    renew: Callable[[], Awaitable[None]] | None = field(default=None, init=False)
    peer: Any = field(default=None, init=False)

    def __repr__(self) -> str:
        return f"<Connection {'to' if self.is_client else 'from'} {self.address or 'a peer'} by {self.protocol}>"


class Carried(Protocol):
    """What a carrier of traces reads and changes of a :class:`~penstock.Request`."""

    connection: Connection
    route: str
    payload: Payload
    routed: bool
