"""Interfaces between the parts of a connection: halves of streams, and sinks of a session's events."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple, Protocol

from ..account import Account
from ..events import Event
from ..payload import Payload, PayloadRun
from ..transports import Link

__all__ = ["Gatekeeper", "Holding", "ReceivingHalf", "SendingHalf", "Sink"]


class SendingHalf(Protocol):
    """Sends the items of one stream.

    Attributes:
        stream_id: The stream.
        held: The bytes of the request that it answers; 0 on the side that made the request.

    """

    stream_id: int
    held: int

    @abstractmethod
    def granted(self) -> None:
        """Continue, because the peer requested more items."""

    @abstractmethod
    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop, because the peer canceled, or the stream failed. The half is no longer in the table.

        Args:
            metadata: Metadata of the cancellation, which only ReactiveSocket 0.0 and 0.2 support.

        """


class Holding(NamedTuple):
    """Bytes of one stream that were received and not consumed.

    Attributes:
        held: Their number.
        stream_id: The stream.
        discard: Drops them, and ends the receiving half with an error; None if they belong to a sending half.

    """

    held: int
    stream_id: int
    discard: Callable[[Exception], None] | None


class ReceivingHalf(Protocol):
    """Receives the items of one stream.

    Attributes:
        stream_id: The stream.
        account: The bytes of items that were not consumed.
        refused: The peer has refused the stream for the time being: it may be opened again.

    """

    stream_id: int
    account: Account
    refused: bool

    @abstractmethod
    def discard(self, error: Exception) -> None:
        """Drop all items, and end with `error`."""

    @abstractmethod
    def item(self, payload: Payload) -> None:
        """Receive an item."""

    @abstractmethod
    def run(self, run: PayloadRun) -> None:
        """Receive a run of items."""

    @abstractmethod
    def push(self, metadata: bytes) -> None:
        """Receive pushed metadata, in order with the items."""

    @abstractmethod
    def ended(self, error: Exception | None) -> None:
        """Mark the stream as finished; `error` is None if it completed."""


class Sink(Protocol):
    """Receives the events of a session."""

    @abstractmethod
    def take(self, happened: list[Event]) -> None:
        """Handle the events of one batch, in order."""


class Gatekeeper(Sink, Protocol):
    """A sink that may hold events until the connection is admitted."""

    @property
    @abstractmethod
    def withholds(self) -> bool:
        """True if events may be held back."""

    @abstractmethod
    def attached(self, link: Link) -> None:
        """Prepare for `link`, which is about to carry the session."""

    @abstractmethod
    def abandon(self) -> None:
        """Stop waiting, because this side ends the connection; discard the held requests."""

    @abstractmethod
    def closed(self) -> None:
        """Exit the connection hook, because the session has ended."""

    @abstractmethod
    async def entered(self) -> None:
        """Wait until the connection may be used."""

    @abstractmethod
    async def exited(self) -> None:
        """Wait until the connection hook has exited."""
