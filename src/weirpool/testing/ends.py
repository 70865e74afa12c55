"""Ends of a link that do not enforce the rules: they can send anything, repeatedly, and accept everything.

Each end has two sessions of its protocol, which receive the same bytes. The *sender* encodes the output. The *observer*
writes nothing and does not know of cancels, completion or missing demand. It expects everything, and therefore reports
events that a regular session would ignore. Output that was sent once can be written again unchanged.

Timers do not run: a check ends long before the first one is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ..events import Closed, Event
from ..session import Session
from ..transports import Link
from .results import Broken

__all__ = ["PATIENCE", "RawEnd"]

PATIENCE: Final = 5.0
"""Seconds to wait for an expected event."""


class RawEnd:
    """The common part of both ends. It is the receiver of its link.

    Attributes:
        events: The stream events of the observer.
        sender_events: The stream events of the sender.
        error: The reason why the observer's session is closed, once it is.
        lost: The link is closed.

    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.sender: Session | None = None
        self.observer: Session | None = None
        self.events: list[Event] = []
        self.sender_events: list[Event] = []
        self.error: Exception | None = None
        self.lost = False
        self._link: Link | None = None
        self.loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()

    @property
    def open(self) -> bool:
        """True while the connection is usable."""
        return self.error is None and not self.lost

    # Calls of the link; see weirpool.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Start both sessions."""
        self._link = link
        for session in self._sessions():
            session.link_up(self.loop.time())
        self._after()

    def received(self, data: bytes) -> None:
        """Pass the data to both sessions."""
        for session in self._sessions():
            session.receive(data, self.loop.time())
        self._after()

    def writing_paused(self) -> None:
        """Do nothing: there is little output."""

    def writing_resumed(self) -> None:
        """Do nothing."""

    def link_lost(self, error: Exception | None) -> None:
        """Record the loss."""
        self.lost = True
        self._changed.set()

    def _sessions(self) -> list[Session]:
        return [session for session in (self.sender, self.observer) if session is not None]

    def _after(self) -> None:
        """Take the output and events of both sessions; only the sender's output is written."""
        if self.sender is None or self.observer is None:
            return
        self.write(self.sender.take_output())
        self.sender_events += self.sender.take_events()
        self.observer.take_output()
        for event in self.observer.take_events():
            if isinstance(event, Closed):
                self.error = event.error
            self.events.append(event)
            self.on_event(event)
        self._changed.set()

    def on_event(self, event: Event) -> None:
        """Handle an event of the observer."""

    # Sending.

    def output(self) -> list[bytes]:
        """Return the sender's output without writing it."""
        assert self.sender is not None
        return self.sender.take_output()

    def write(self, frames: list[bytes]) -> None:
        """Write frames, possibly again."""
        if self._link is not None and not self.lost:
            for frame in frames:
                self._link.write(frame)

    # Waiting.

    async def until(self, condition: Callable[[], bool], why: str | Callable[[], str]) -> None:
        """Wait until `condition` is true.

        Raises Broken after `patience`, or if the connection ends first; `why` describes what is missing, or returns it.
        """
        try:
            async with asyncio.timeout(self.patience):
                while not condition():
                    if not self.open:
                        end = self.error or "without an error"
                        raise Broken(f"{_text(why)}: the connection ended ({end})")
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise Broken(f"{_text(why)} within {self.patience:g} s") from None

    async def passes(self, seconds: float, condition: Callable[[], bool] = lambda: False) -> None:
        """Wait until `seconds` have passed, `condition` is true or the connection has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.open and not condition():
                    self._changed.clear()
                    await self._changed.wait()

    def abort(self) -> None:
        """Close the link."""
        if self._link is not None and not self.lost:
            self._link.abort()


def _text(why: str | Callable[[], str]) -> str:
    return why if isinstance(why, str) else why()
