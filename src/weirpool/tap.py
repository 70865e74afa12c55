"""Taps: passive observers of connections, for captures, metrics and dashboards."""

from __future__ import annotations

from enum import StrEnum
from typing import Self

from .connection import Connection
from .kinds import Kind

__all__ = ["Outcome", "Refusal", "RefusalCause", "Tap"]


class Outcome(StrEnum):
    """How a stream ended."""

    COMPLETED = "completed"
    """The responder sent its last item; for FIRE: the request was sent, or has arrived."""
    CANCELED = "canceled"
    """The requester canceled, or the handler was canceled."""
    REJECTED = "rejected"
    """The responder rejected the request without processing it."""
    FAILED = "failed"
    """Any other error, including a broken connection."""


class RefusalCause(StrEnum):
    """Why a server has refused a client, in few words, so that refusals can be counted."""

    LIMIT = "limit"
    """`Settings.max_connections` was reached. The link was the newest, or the one that was silent for longest."""
    CLIENT_LIMIT = "client_limit"
    """The client's address or principal was at its limit, `Settings.max_connections_per_address`. The link was the
    newest, or the one that was silent for longest."""
    LOCKED_OUT = "locked_out"
    """Too many unknown sessions were named from the address, so it may resume none for a while."""
    UNKNOWN_SESSION = "unknown_session"
    """The client named a session that the server does not have."""
    INVALID = "invalid"
    """The first message was not one of the protocol, or was not allowed."""
    REJECTED = "rejected"
    """The server's acceptor, or the protocol, rejected the set-up."""
    TIMEOUT = "timeout"
    """The first message was not complete in time, or the acceptor did not decide in time."""
    MEMORY = "memory"
    """The first message was not complete, and a limit of bytes was reached."""
    CLOSING = "closing"
    """The server is closing."""
    LOST = "lost"
    """The link was lost before its first message was complete, or its TLS handshake failed."""


class Refusal(str):
    """Why a server has refused a client: a text for people, with a cause to count by.

    Attributes:
        cause: The cause.

    """

    __slots__ = ("cause",)

    cause: RefusalCause

    def __new__(cls, cause: RefusalCause, text: str) -> Self:
        """Return a text with its cause."""
        self = super().__new__(cls, text)
        self.cause = cause
        return self


class Tap:
    """Observe connections. Derive from this class and define the methods for the events that you need.

    Pass taps to :func:`weirpool.connect` and :func:`weirpool.serve`. One tap may observe any number of connections of
    one event loop; its methods are called in that loop's thread. They are not called per frame or item: bytes are
    reported as they are read and written, and items by their number in each such batch. A tap changes nothing. If it
    raises, the error is logged and the tap is disabled for that connection.
    """

    def opened(self, connection: Connection) -> None:
        """A connection is established: a client has a link, or a server has accepted a set-up."""

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """The connection is closed.

        Args:
            connection: The connection.
            error: The reason, or None if this side closed it. A :exc:`~weirpool.LimitExceeded` means that the peer
                exceeded a limit.

        """

    def resumed(self, connection: Connection) -> None:
        """The connection continues over another link.

        If the server has forgotten it, a client learns this later, by `closed`.
        """

    def refused(self, address: str, reason: Refusal) -> None:
        """A server has closed a link before a connection was established.

        Args:
            address: The client's address.
            reason: The reason, as logged, and its cause.

        """

    def received(self, connection: Connection, data: bytes) -> None:
        """`data` was read from the connection's link. Its boundaries have no meaning."""

    def sent(self, connection: Connection, data: bytes) -> None:
        """`data` was passed to the link. The last output of a connection may follow `closed`."""

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """A request was sent or received. An UPLOAD from the peer is reported as a CHANNEL.

        Args:
            connection: The connection.
            kind: The kind of interaction.
            ours: True if this side is the requester.

        """

    def stream_ended(self, connection: Connection, kind: Kind, ours: bool, outcome: Outcome) -> None:
        """Both halves of a stream are closed.

        Args:
            connection: The connection.
            kind: As in `stream_opened`.
            ours: True if this side was the requester.
            outcome: How the stream ended.

        """

    def request_ended(
        self, connection: Connection, kind: Kind, ours: bool, route: str | None, seconds: float, outcome: Outcome
    ) -> None:
        """A request has ended, as in `stream_ended`. A FIRE is not reported, because it has no response to wait for.

        Args:
            connection: The connection.
            kind: As in `stream_opened`.
            ours: True if this side was the requester.
            route: The route, if a handler of this side is registered for it. None for all other requests: strangers
                choose their routes, so do not count by them.
            seconds: The time since the request was sent or received, until both halves of its stream were closed.
            outcome: How it ended.

        """

    def request_queued(self, connection: Connection) -> None:
        """A request of this side has to wait: for other calls to end, for a lease, or for the link."""

    def request_repeated(self, connection: Connection) -> None:
        """The peer had no place for a call of this side, which will be sent again."""

    def requests_refused(self, connection: Connection, count: int) -> None:
        """This side has refused `count` requests of the peer since the last call: because of a limit, or no lease."""

    def items_received(self, connection: Connection, count: int) -> None:
        """`count` items were received on the connection since the last call, including responses but not requests."""

    def items_sent(self, connection: Connection, count: int) -> None:
        """`count` items were passed to the connection's session since the last call."""
