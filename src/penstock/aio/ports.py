"""Interfaces between the parts of a connection: halves of streams, and what takes a session's events."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol

from ..events import Event
from ..payload import Payload, PayloadRun
from ..transports import Link

__all__ = ["Gatekeeper", "ReceivingHalf", "SendingHalf", "Sink"]


class SendingHalf(Protocol):
    """Sends the items of one stream."""

    @abstractmethod
    def granted(self) -> None:
        """Continue: the peer requested more items."""

    @abstractmethod
    def resumed(self) -> None:
        """Continue: the link takes output again."""

    @abstractmethod
    def canceled(self, metadata: bytes | None = None) -> None:
        """Stop: the peer canceled, or the stream failed. The half is no longer in the table.

        Args:
            metadata: What the peer sent with it; only ReactiveSocket 0.0 and 0.2 carry it.

        """


class ReceivingHalf(Protocol):
    """Receives the items of one stream."""

    @abstractmethod
    def item(self, payload: Payload) -> None:
        """Take an item."""

    @abstractmethod
    def run(self, run: PayloadRun) -> None:
        """Take a run of items."""

    @abstractmethod
    def push(self, metadata: bytes) -> None:
        """Take metadata that was pushed, in order with the items."""

    @abstractmethod
    def ended(self, error: Exception | None) -> None:
        """Mark the stream as finished; `error` is what failed it."""


class Sink(Protocol):
    """Takes the events of a session."""

    @abstractmethod
    def take(self, happened: list[Event]) -> None:
        """Handle the events of one batch, in order."""


class Gatekeeper(Sink, Protocol):
    """A sink that may hold events back, and lives as long as its connection."""

    @property
    @abstractmethod
    def withholds(self) -> bool:
        """Whether events may be held back."""

    @abstractmethod
    def attached(self, link: Link) -> None:
        """Prepare for `link`, which is about to carry the session."""

    @abstractmethod
    def abandon(self) -> None:
        """Stop waiting, because this side ends the connection; discard the requests that were held."""

    @abstractmethod
    def closed(self) -> None:
        """Release what was acquired: the session is over."""

    @abstractmethod
    async def entered(self) -> None:
        """Wait until the connection may be used."""

    @abstractmethod
    async def left(self) -> None:
        """Wait until what was acquired is released."""
