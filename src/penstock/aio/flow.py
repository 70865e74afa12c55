"""How much moves over a connection: when those who send must wait, and when nothing is read."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from ..errors import LimitExceeded
from ..session import Durable, Session
from ..settings import Settings
from ..transports import Link
from .admission import Gate
from .exchanges import Exchanges
from .service import Service

__all__ = ["FULL", "READ_STOP", "Flow"]

logger = logging.getLogger("penstock.aio")

READ_STOP: Final = 4
"""At how many times `output_high_bytes` nothing more is read. Well above the mark at which producers pause: two
peers that are both full must go on reading, or neither would ever get rid of anything."""

BACKLOG_BYTES: Final = 4_096
"""More than this waits: no sign of the peer's can be expected before it has left. A heartbeat has some 150 bytes."""

# Why nothing is read from the link.
BACKLOG: Final = 1
FIRES: Final = 2
GATE: Final = 4
FULL: Final = 16


class Flow(Exchanges):
    """The streams of one session, and the link that carries them, with bounds on what waits on either side.

    Args:
        session: The session.
        settings: Limits and timeouts.
        service: What answers the peer's requests.
        name: What logs call the peer.

    Attributes:
        link: The link, while there is one.
        closed: The session is over.
        gate: Holds what happens until the set-up is accepted; None: nothing does.
        kept: The session, where it holds what happens until that is durable; None: it does not.

    """

    __slots__ = (
        "_choked",
        "_crowded",
        "_fires",
        "_holds",
        "_taken",
        "_unsent",
        "_waited",
        "_waiters",
        "closed",
        "gate",
        "kept",
        "link",
        "name",
    )

    def __init__(self, session: Session, settings: Settings, service: Service, name: str) -> None:
        super().__init__(session, settings, service)
        self.name = name
        self.link: Link | None = None
        self.closed = False
        self.gate: Gate | None = None
        self.kept: Durable | None = None
        # Why nobody should send: the link has no room, or the disk is behind.
        self._choked = False
        self._crowded = False
        self._waiters: list[asyncio.Future[None]] = []
        self._unsent = 0
        self._holds = 0
        self._fires = 0
        # Whether much waited in the link when we looked, and the number that told how much had left it.
        self._waited = False
        self._taken = 0

    def flush(self) -> None:
        """Hand out the session's events, write its output, and see to its timer and link."""
        raise NotImplementedError

    # Writing.

    def look(self) -> None:
        """Tell the session where output that had waited has left the link since the last look.

        Where little waits it is a heartbeat or two, which the system of a peer that hangs takes as well.
        """
        link = self.link
        if link is None:
            return
        waiting, taken = link.progress()
        if self._waited and taken > self._taken:
            self.session.progressed(self.loop.time())
        self._waited = waiting > BACKLOG_BYTES
        self._taken = taken

    def writing_paused(self) -> None:
        """Let whoever sends wait."""
        self._choked = self.paused = True
        self.look()

    def writing_resumed(self) -> None:
        """Let whoever sends go on, unless they wait for the disk as well."""
        self._choked = False
        if not self._crowded:
            self._go_on()

    def disk_waits(self, crowded: bool) -> None:
        """Let whoever sends wait for the disk, or go on with what is durable; see `Durable.watch`."""
        self._crowded = crowded
        if crowded:
            self.paused = True
        else:
            if self.paused and self.link is not None and not self._choked:
                self._go_on()
            self.flush()

    def _go_on(self) -> None:
        self.paused = False
        self._resume_reading(BACKLOG)
        for half in list(self.outbound.values()):
            half.resumed()
        self._let_go()

    def write(self) -> None:
        """Write the session's output. Without a link, or before the set-up is accepted, it stays where it is."""
        self._unsent = 0
        link = self.link
        if link is not None and self.gate is None:
            if self.paused and not self._bears(link):
                return
            for chunk in self.session.take_output():
                link.write(chunk)

    async def writable(self) -> None:
        """Wait until the link takes more output; the other tasks get a turn."""
        self.write()
        await asyncio.sleep(0)
        while self.paused and not self.closed:
            waiter = self.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _bears(self, link: Link) -> bool:
        """Read no more from a peer that does not read, and in the end give it up (THREATS 40, 41).

        Returns:
            Whether there is use in writing to it.

        """
        settings = self.settings
        backlog = link.get_write_buffer_size()
        if backlog > settings.max_output_bytes:
            limit = settings.max_output_bytes
            error = LimitExceeded(f"{self.name} does not read: more than max_output_bytes ({limit}) wait for it")
            logger.warning("%s", error)
            self.session.close(self.loop.time(), error)
            link.abort()
            # Nobody will read it, the last words included.
            self.session.take_output()
            return False
        if backlog > READ_STOP * settings.output_high_bytes:
            self._stop_reading(BACKLOG)
        return True

    def _let_go(self) -> None:
        waiters = self._waiters
        self._waiters = []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # Reading.

    def hold(self, wanted: bool) -> None:
        """Read nothing, or go on reading, while the set-up is looked at."""
        if wanted:
            self._stop_reading(GATE)
        else:
            self._resume_reading(GATE)

    def fire_started(self) -> None:
        """Count a handler of what was fired. No stream bounds how many there are, so reading stops at a limit."""
        self._fires += 1
        if self._fires >= self.settings.max_streams:
            self._stop_reading(FIRES)

    def fire_ended(self) -> None:
        """Count a handler that has ended."""
        self._fires -= 1
        self._resume_reading(FIRES)

    def _stop_reading(self, why: int) -> None:
        if not self._holds and self.link is not None:
            self.link.pause_reading()
        self._holds |= why

    def _resume_reading(self, why: int) -> None:
        if self._holds:
            self._holds &= ~why
            if not self._holds and self.link is not None:
                self.link.resume_reading()
