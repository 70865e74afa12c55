"""Observes the interactions that a bridge forwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..aio.handlers import Request
from ..payload import Payload

__all__ = ["StreamWatcher", "Unwatched", "Watch"]


class StreamWatcher(Protocol):
    """Observes one interaction. Items are as the client sends and receives them."""

    def sent(self, item: Payload) -> None:
        """The client has sent an item after its request."""

    def sent_end(self) -> None:
        """The client sends no more items."""

    def received(self, item: Payload) -> None:
        """A response, or an item of one, goes to the client."""

    def demanded(self, credit: int) -> None:
        """The client accepts `credit` more items from now on."""

    def ended(self, error: Exception | None) -> None:
        """The response has ended."""

    def canceled(self) -> None:
        """The client has canceled, or is gone."""


Watch = Callable[[Request], StreamWatcher]


class Unwatched:
    """Observes nothing."""

    def __init__(self, request: Request) -> None:
        pass

    def sent(self, item: Payload) -> None:
        """Do nothing."""

    def sent_end(self) -> None:
        """Do nothing."""

    def received(self, item: Payload) -> None:
        """Do nothing."""

    def demanded(self, credit: int) -> None:
        """Do nothing."""

    def ended(self, error: Exception | None) -> None:
        """Do nothing."""

    def canceled(self) -> None:
        """Do nothing."""
