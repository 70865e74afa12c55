"""Taps: passive observers of connections, for captures, metrics and dashboards."""

from __future__ import annotations

from enum import StrEnum

from .connection import Connection
from .kinds import Kind

__all__ = ["Outcome", "Tap"]


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


class Tap:
    """Observe connections. Derive from this class and define the methods for the events that you need.

    Pass taps to :func:`penstock.connect` and :func:`penstock.serve`. One tap may observe any number of connections of
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
            error: The reason, or None if this side closed it. A :exc:`~penstock.LimitExceeded` means that the peer
                exceeded a limit.

        """

    def resumed(self, connection: Connection) -> None:
        """The connection continues over another link.

        If the server has forgotten it, a client learns this later, by `closed`.
        """

    def refused(self, address: str, reason: str) -> None:
        """A server has closed a link before a connection was established.

        Args:
            address: The client's address.
            reason: The reason, as logged.

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

    def request_queued(self, connection: Connection) -> None:
        """A request of this side has to wait: for other calls to end, for a lease, or for the link."""

    def request_repeated(self, connection: Connection) -> None:
        """The peer had no place for a call of this side, which will be sent again."""

    def items_received(self, connection: Connection, count: int) -> None:
        """`count` items were received on the connection since the last call, including responses but not requests."""

    def items_sent(self, connection: Connection, count: int) -> None:
        """`count` items were passed to the connection's session since the last call."""
