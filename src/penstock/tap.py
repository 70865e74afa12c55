"""Taps: passive observers of connections. Capture, metrics and dashboards are taps."""

from __future__ import annotations

from enum import StrEnum

from .connection import Connection
from .kinds import Kind

__all__ = ["Outcome", "Tap"]


class Outcome(StrEnum):
    """How a stream ended."""

    COMPLETED = "completed"
    """The responder said all that it had to say; for FIRE: the request was sent, or has arrived."""
    CANCELED = "canceled"
    """The requester wanted no more, or the handler was canceled."""
    REJECTED = "rejected"
    """The responder refused it before it did anything."""
    FAILED = "failed"
    """With any other error, that of a connection which broke included."""


class Tap:
    """Is told what happens on connections. Derive from it, and define what you want to know.

    Give taps to :func:`penstock.connect` and :func:`penstock.serve`; one tap may observe any number of
    connections of one event loop, in whose thread all of this is called. Nothing is called for a single frame
    or item: bytes are told as they are read and written, items by their number in such a batch. A tap changes
    nothing; one that raises is logged, and learns no more of that connection.
    """

    def opened(self, connection: Connection) -> None:
        """A connection is there: a client has a link, a server has accepted a set-up."""

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """The connection is over, for good.

        Args:
            connection: The connection.
            error: Why, unless this side closed it. A :exc:`~penstock.LimitExceeded` is a limit that the peer ran into.

        """

    def resumed(self, connection: Connection) -> None:
        """The connection goes on over another link.

        A client learns later, by `closed`, if the server has forgotten it.
        """

    def refused(self, address: str, reason: str) -> None:
        """A server has closed a link before any connection came of it.

        Args:
            address: The client's.
            reason: Why, as the log has it.

        """

    def received(self, connection: Connection, data: bytes) -> None:
        """A read of the connection's link brought `data`; where it is cut means nothing."""

    def sent(self, connection: Connection, data: bytes) -> None:
        """`data` was handed to the link. The last words of a connection come after `closed`."""

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """A request was sent, or has come. An UPLOAD of the peer's is a CHANNEL.

        Args:
            connection: The connection.
            kind: What travels each way.
            ours: Whether we are the requester.

        """

    def stream_ended(self, connection: Connection, kind: Kind, ours: bool, outcome: Outcome) -> None:
        """Both halves of a stream are over.

        Args:
            connection: The connection.
            kind: As `stream_opened` had it.
            ours: Whether we were the requester.
            outcome: How it ended.

        """

    def items_received(self, connection: Connection, count: int) -> None:
        """`count` items came on the streams of the connection since the last time. Requests are none; answers are."""

    def items_sent(self, connection: Connection, count: int) -> None:
        """`count` items were given to the connection's session since the last time."""
