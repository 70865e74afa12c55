"""Ends of a link that obey no rule: they say what they want, as often as they want, and hear whatever comes.

Each end has two sessions of its protocol, which get the same bytes. The *speaker* makes what is written. Its twin, the
*ear*, writes nothing and is told of no cancel, completion or lack of demand: it expects everything, and so reports what
a sound session would ignore. What was said once can be written again, as it was.

Timers do not run: a check is over long before the first one is due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from ..events import Closed, Event
from ..session import Session
from ..transports import Link
from .results import Broken

__all__ = ["PATIENCE", "RawEnd"]

PATIENCE: Final = 5.0
"""Seconds in which what is due must come."""


class RawEnd:
    """What both ends have in common. It is the receiver of its link.

    Attributes:
        patience: Seconds that it waits at most.
        events: What the ear has heard of streams.
        spoken: What the speaker was told of streams.
        error: Why the ear's session is closed, once it is.
        lost: The link is gone.
        loop: The event loop.

    """

    def __init__(self, patience: float) -> None:
        self.patience = patience
        self.speaker: Session | None = None
        self.ear: Session | None = None
        self.events: list[Event] = []
        self.spoken: list[Event] = []
        self.error: Exception | None = None
        self.lost = False
        self._link: Link | None = None
        self.loop = asyncio.get_running_loop()
        self._news = asyncio.Event()

    @property
    def open(self) -> bool:
        """Whether the connection is sound."""
        return self.error is None and not self.lost

    # What the link tells; see penstock.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Begin."""
        self._link = link
        for session in self._sessions():
            session.link_up(self.loop.time())
        self._after()

    def received(self, data: bytes) -> None:
        """Let both sessions hear it."""
        for session in self._sessions():
            session.receive(data, self.loop.time())
        self._after()

    def writing_paused(self) -> None:
        """Go on: little is said."""

    def writing_resumed(self) -> None:
        """Go on."""

    def link_lost(self, error: Exception | None) -> None:
        """Remember it."""
        self.lost = True
        self._news.set()

    def _sessions(self) -> list[Session]:
        return [session for session in (self.speaker, self.ear) if session is not None]

    def _after(self) -> None:
        """Take what both sessions have to say; only the speaker's output is written."""
        if self.speaker is None or self.ear is None:
            return
        self.write(self.speaker.take_output())
        self.spoken += self.speaker.take_events()
        self.ear.take_output()
        for event in self.ear.take_events():
            if isinstance(event, Closed):
                self.error = event.error
            self.events.append(event)
            self.heard(event)
        self._news.set()

    def heard(self, event: Event) -> None:
        """Take an event of the ear."""

    # Saying.

    def said(self) -> list[bytes]:
        """Return what the speaker was just made to say, without writing it."""
        assert self.speaker is not None
        return self.speaker.take_output()

    def write(self, frames: list[bytes]) -> None:
        """Write frames, also for the second time."""
        if self._link is not None and not self.lost:
            for frame in frames:
                self._link.write(frame)

    # Waiting.

    async def until(self, condition: Callable[[], bool], why: str) -> None:
        """Wait until `condition` holds.

        Raises:
            Broken: It does not within `patience`, or the connection ends before; `why` says what is missing.

        """
        try:
            async with asyncio.timeout(self.patience):
                while not condition():
                    if not self.open:
                        raise Broken(f"{why}: the connection ended ({self.error or 'without an error'})")
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            raise Broken(f"{why} within {self.patience:g} s") from None

    def abort(self) -> None:
        """Drop the link."""
        if self._link is not None and not self.lost:
            self._link.abort()
