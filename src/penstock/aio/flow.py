"""How much moves over a connection: when senders wait, and when nothing is read."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ..connection import Connection
from ..errors import LimitExceeded
from ..session import Session
from ..settings import Settings
from ..transports import Discard, Link
from .ports import SendingHalf
from .setup import CURRENT

__all__ = ["ADMISSION", "FULL", "HOOK", "READ_STOP", "Flow"]

logger = logging.getLogger("penstock.aio")

FLUSH_AFTER: Final = 32
"""A batch that says so much is written before its end: or two peers with many calls would take turns, and one of two
processors would always wait."""

READ_STOP: Final = 4
"""At how many times `output_high_bytes` nothing more is read. Well above the mark at which producers pause: two
peers that are both full must go on reading, or neither would ever get rid of anything."""

BACKLOG_BYTES: Final = 4_096
"""With more than this waiting, no sign of life can be expected from the peer before it has left. A heartbeat has some
150 bytes."""

# Why nothing is read from the link.
BACKLOG: Final = 1
FIRES: Final = 2
ADMISSION: Final = 4
HOOK: Final = 8
FULL: Final = 16


class Flow:
    """The link of one session, with bounds on what waits on either side.

    Attributes:
        flush: Ends a batch: hands out the session's events and writes its output.
        name: How logs name the peer.
        link: The link, while there is one.
        paused: The link has no room, or storage is behind: senders wait.
        withheld: Output stays in the session until the set-up is accepted.
        batching: A batch is open; its end writes the output.
        holds: All the reasons why nothing is read.
        senders: The sending half of each stream.
        unsent: How often output was made since the last write.

    """

    __slots__ = (
        "_fires", "_link_full", "_storage_full", "_taken", "_waited", "_waiters",
        "batching", "connection", "flush", "holds", "link", "loop", "name", "paused", "senders", "session", "settings",
        "unsent", "withheld"
    )  # fmt: skip

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        session: Session,
        settings: Settings,
        connection: Connection,
        flush: Callable[[], None],
    ) -> None:
        self.loop = loop
        self.session = session
        self.settings = settings
        self.connection = connection
        self.name = connection.address
        self.flush = flush
        self.link: Link | None = None
        self.paused = True
        self.withheld = False
        self.batching = False
        self.senders: dict[int, SendingHalf] = {}
        self._link_full = False
        self._storage_full = False
        self._waiters: list[asyncio.Future[None]] = []
        self.unsent = 0
        self.holds = 0
        self._fires = 0
        # Whether much waited in the link at the last look, and the number that told how much had left it.
        self._waited = False
        self._taken = 0

    # The link.

    def attach(self, link: Link) -> None:
        """Continue over `link`. A link that was there before is dropped."""
        self.drop_link()
        self.link = link
        self._waited = False
        # The other reasons were those of the old link.
        self.holds &= ADMISSION | HOOK
        if self.holds:
            link.pause_reading()
        self.writing_resumed()

    def drop_link(self) -> None:
        """Abort the link, if there is one; nothing that it still brings is read."""
        link = self.link
        if link is not None:
            self.link = None
            link.receiver = Discard()
            link.abort()

    def look(self) -> None:
        """Tell the session if output that had waited has left the link since the last look.

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

    # Writing.

    def wake(self) -> None:
        """Schedule the output that was just made: for the end of the batch, or of this turn of the loop."""
        self.unsent += 1
        if self.unsent >= FLUSH_AFTER:
            self.write()
        if not self.batching:
            self.batching = True
            self.loop.call_soon(self.flush)

    def write(self) -> None:
        """Write the session's output. Without a link, or before the set-up is accepted, it stays where it is."""
        self.unsent = 0
        link = self.link
        if link is not None and not self.withheld:
            if self.paused and not self._check_backlog(link):
                return
            for chunk in self.session.take_output():
                link.write(chunk)

    def writing_paused(self) -> None:
        """Make senders wait for the link."""
        self._link_full = self.paused = True
        self.look()

    def writing_resumed(self) -> None:
        """Let senders continue, unless they wait for storage as well."""
        self._link_full = False
        if not self._storage_full:
            self._resume_senders()

    def storage_backlogged(self, backlogged: bool) -> None:
        """Make senders wait for storage, or write what has become durable; see `Durable.watch`."""
        self._storage_full = backlogged
        if backlogged:
            self.paused = True
        else:
            if self.paused and self.link is not None and not self._link_full:
                self._resume_senders()
            self.flush()

    def _resume_senders(self) -> None:
        self.paused = False
        self.resume_reading(BACKLOG)
        if self.senders:
            token = CURRENT.set(self.connection)
            try:
                for half in list(self.senders.values()):
                    half.resumed()
            finally:
                CURRENT.reset(token)
        self.wake_writers()

    def _check_backlog(self, link: Link) -> bool:
        """Read no more from a peer that does not read, and finally end its session (THREATS 40, 41).

        Returns:
            True if the link can still be written to.

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
            self.stop_reading(BACKLOG)
        return True

    def room(self) -> asyncio.Future[None]:
        """Return a future that is done when there is room in the link, or when there will be none any more."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self._waiters.append(waiter)
        return waiter

    def wake_writers(self) -> None:
        """Let all who wait for room look again."""
        waiters = self._waiters
        self._waiters = []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # Reading.

    def fire_started(self) -> None:
        """Count a handler of a fired item. No stream bounds how many there are, so reading stops at a limit."""
        self._fires += 1
        if self._fires >= self.settings.max_streams:
            self.stop_reading(FIRES)

    def fire_ended(self) -> None:
        """Count a handler that has ended."""
        self._fires -= 1
        self.resume_reading(FIRES)

    def stop_reading(self, why: int) -> None:
        """Read nothing until `why`, and every other reason, is gone."""
        if not self.holds and self.link is not None:
            self.link.pause_reading()
        self.holds |= why

    def resume_reading(self, why: int) -> None:
        """Read again unless there is another reason than `why` not to."""
        if self.holds:
            self.holds &= ~why
            if not self.holds and self.link is not None:
                self.link.resume_reading()
