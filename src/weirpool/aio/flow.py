"""Flow control of one session's link: when senders wait, and when reading pauses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ..connection import Connection
from ..errors import LimitExceeded, LinkLost
from ..session import Session
from ..settings import Settings
from ..transports import Discard, Link, Receiver
from ..transports.turns import Reader, turns_of
from .holds import ADMISSION, BACKLOG, HOOK, SLOTS, TURN, UNREAD
from .ports import SendingHalf
from .scheduler import Lane

__all__ = ["READ_STOP", "Flow"]

logger = logging.getLogger("weirpool.aio")

FLUSH_AFTER: Final = 32
"""Calls to `schedule_write` after which a batch is written before its end. Otherwise two peers with many calls would
take turns, and one of two processors would always wait."""

HEADERS_RATIO: Final = 8
"""The part of an item's size that the headers of its fragments may add."""

READ_STOP: Final = 4
"""The multiple of `output_high_bytes` at which reading stops. It is well above the mark at which producers pause: two
peers that are both full must continue reading, or both would wait for ever."""

LOOK_AFTER: Final = 32_768
"""Written bytes after which output that waits in the link is counted, soon. Below `output_high_bytes`, no link reports
it."""
LOOK_SECONDS: Final = 0.25
"""Seconds until that, and until it is counted again; doubled up to `MAX_LOOK_SECONDS` while it does not change."""
MAX_LOOK_SECONDS: Final = 8.0

BACKLOG_BYTES: Final = 4_096
"""With more unsent output than this, progress of the link proves that the peer is alive. A heartbeat has about 150
bytes."""


class Flow:
    """Flow control of one session's link.

    Attributes:
        account: The bytes that were received and not consumed.
        flush: Ends a batch: passes on the session's events, and writes its output.
        name: The peer's name in logs.
        link: The link, while there is one.
        paused: Senders wait, because the link is full or missing, or storage is backlogged.
        withheld: Output stays in the session until the set-up is accepted.
        batching: A batch is open; its end writes the output.
        holds: A bit set of the reasons not to read, and not to decode what was read. TURN is one while there is more to
            decode, or requests wait to be begun.
        turns: Divides the time for input among all readers of the event loop.
        reader: The reader of the link.
        late: Requests wait to be begun.
        kept: What was read from the link and not passed to the session, because it was not the reader's turn.
        senders: The sending half of each stream.
        lane: The senders that have items and credit.
        unsent: Calls to `schedule_write` since the last write; a large one counts as several.
        part_bytes: Bytes of output that count as one call more: what fills the link is written before the next request.
        max_backlog: Bytes of output that may wait in the link: the largest item with its headers, and what is before.
        written: Bytes written since waiting output was counted; more than `look_after` makes `wrote` check the link.
        failed: A link that was closed when much was written to it.

    """

    __slots__ = (
        "_backlogged", "_link_full", "_look", "_pause", "_storage_full", "_taken_bytes", "_waiters",
        "account", "batching", "connection", "failed", "flush", "holds", "kept", "lane", "late", "link", "look_after",
        "loop", "max_backlog", "name", "part_bytes", "paused", "reader", "senders", "session", "settings", "turns",
        "unsent", "withheld", "written"
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
        self.account = connection.account = session.account
        self.settings = settings
        self.connection = connection
        self.name = connection.address
        self.flush = flush
        self.link: Link | None = None
        self.paused = True
        self.withheld = False
        self.batching = False
        self.senders: dict[int, SendingHalf] = {}
        self.lane = Lane(self)
        self.turns = turns_of(loop)
        self.reader = Reader(self.turns, connection.counted_as, lambda: False)
        self.late = False
        self.kept: list[bytes] = []
        self._link_full = False
        self._storage_full = False
        self._waiters: list[asyncio.Future[None]] = []
        self.unsent = 0
        self.part_bytes = settings.output_high_bytes // FLUSH_AFTER + 1
        limit = settings.max_output_bytes
        self.max_backlog = limit + limit // HEADERS_RATIO + settings.output_high_bytes
        self.holds = 0
        # At the last call of `check_progress`: whether the link had a backlog, and the bytes that it had passed on.
        self._backlogged = False
        self._taken_bytes = 0
        self.failed: Link | None = None
        self.written = 0
        self.look_after = LOOK_AFTER
        # The timer that counts waiting output, and its interval.
        self._look: asyncio.TimerHandle | None = None
        self._pause = LOOK_SECONDS

    # The link.

    def attach(self, link: Link) -> None:
        """Continue over `link`. An earlier link is dropped."""
        self.drop_link()
        self.failed = None
        self.link = link
        self._backlogged = False
        # The other reasons concerned the old link.
        self.holds &= ADMISSION | HOOK | SLOTS | TURN
        if self.holds:
            self._try(link.pause_reading)
        self.writing_resumed()

    def drop_link(self) -> None:
        """Abort the link, if there is one, and discard further data from it."""
        link = self.link
        self.account.lose_link()
        if link is not None:
            self.link = None
            link.receiver = Discard()
            link.abort()

    def close_link(self) -> None:
        """Close the link, if there is one, after its output is written. Until then, the output is counted."""
        if self.link is not None:
            self._try(self.link.close)
            self._try(self.count_output)

    def link_failed(self, error: RuntimeError) -> None:
        """Drop the link because its transport is closed, and report the loss in the next turn of the loop.

        uvloop's transports then raise RuntimeError where those of asyncio do nothing. They may never report it.
        """
        lost = LinkLost(f"the connection broke: {error}")
        lost.__cause__ = error
        self.link_broken(lost)

    def link_broken(self, lost: LinkLost) -> None:
        """Drop the link, and report the loss in the next turn of the loop."""
        link = self.link
        if link is not None:
            receiver = link.receiver
            self.drop_link()
            self.paused = True
            self.loop.call_soon(self._report_lost, receiver, lost)

    def _report_lost(self, receiver: Receiver, error: LinkLost) -> None:
        # The session may already have another link.
        if self.link is None:
            receiver.link_lost(error)

    def _try(self, operation: Callable[[], None]) -> None:
        """Perform an operation of the link."""
        try:
            operation()
        except RuntimeError as error:
            self.link_failed(error)

    def check_progress(self) -> None:
        """Report progress to the session if the link had a backlog, and has passed on some of it since the last call.

        A small backlog is not evidence: the system of a peer that hangs still accepts a heartbeat or two.
        """
        link = self.link
        if link is None:
            return
        try:
            waiting, taken = link.progress()
        except RuntimeError as error:
            self.link_failed(error)
            return
        if self._backlogged and taken > self._taken_bytes:
            self.session.progressed(self.loop.time())
        self._backlogged = waiting > BACKLOG_BYTES
        self._taken_bytes = taken

    # Writing.

    def schedule_write(self, size: int = 0) -> None:
        """Schedule a write of new output: at the end of the batch, or of this turn of the loop.

        Output of a large `size` is written at once, so that more of it waits for the link.
        """
        self.unsent += 1 + size // self.part_bytes
        if self.unsent >= FLUSH_AFTER:
            self.write()
        if not self.batching:
            self.batching = True
            self.loop.call_soon(self.flush)

    def write(self) -> None:
        """Write the session's output. Without a link, or before the set-up is accepted, it stays in the session."""
        self.unsent = 0
        link = self.link
        if link is not None and not self.withheld:
            if self.paused and not self._check_backlog(link):
                return
            output = self.session.take_output()
            try:
                for chunk in output:
                    if link is self.failed:
                        break
                    link.write(chunk)
                    self.written += len(chunk)
                    if self.written > self.look_after:
                        self.wrote(link)
            except RuntimeError as error:
                self.link_failed(error)

    def wrote(self, link: Link) -> None:
        """Check the link after much output: it may have failed, which asyncio reports later, and output may wait."""
        if link.is_closing():
            self.failed = link
        elif self._look is None:
            self._look = self.loop.call_later(self._pause, self._look_again)

    def count_output(self) -> None:
        """Count the output that waits in the link (THREATS 40), and look again while there is some."""
        link = self.link
        if link is None:
            return
        account = self.account
        before = account.waiting
        waiting = link.get_write_buffer_size()
        if waiting != before or not waiting:
            self._pause = LOOK_SECONDS
            account.book_waiting(waiting)
            if waiting < before:
                account.released()
        if waiting and self._look is None:
            self._look = self.loop.call_later(self._pause, self._look_again)

    def _look_again(self) -> None:
        self._look = None
        self.written = 0
        self._pause = min(2 * self._pause, MAX_LOOK_SECONDS)
        self._try(self.count_output)
        if self.account.held != self.account.settled:
            self.flush()

    def writing_paused(self) -> None:
        """Make senders wait for the link."""
        self._link_full = self.paused = True
        self.check_progress()

    def writing_resumed(self) -> None:
        """Let senders continue, unless they also wait for storage."""
        self._link_full = False
        self._try(self.count_output)
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
        self.lane.resume()
        self.wake_writers()

    def _check_backlog(self, link: Link) -> bool:
        """Stop reading from a peer that does not read, and eventually end its session (THREATS 40, 41).

        Returns:
            True if the link can still be written to.

        """
        settings = self.settings
        backlog = link.get_write_buffer_size()
        if backlog > self.max_backlog:
            limit = settings.max_output_bytes
            error = LimitExceeded(f"{self.name} does not read: more than max_output_bytes ({limit}) wait for it")
            logger.warning("%s", error)
            self.session.close(self.loop.time(), error)
            link.abort()
            # The peer will not read it, nor the error that ends the session.
            self.session.take_output()
            return False
        self.account.book_waiting(backlog)
        if backlog > READ_STOP * settings.output_high_bytes:
            self.stop_reading(BACKLOG)
        return True

    def writable(self) -> asyncio.Future[None]:
        """Return a future that is done when the link accepts output, or when the session has ended."""
        waiter: asyncio.Future[None] = self.loop.create_future()
        self._waiters.append(waiter)
        return waiter

    def wake_writers(self) -> None:
        """Complete the futures that `writable` returned."""
        waiters = self._waiters
        self._waiters = []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    # Reading.

    def stop_reading(self, why: int) -> None:
        """Stop reading until `resume_reading` has removed `why` and all other reasons."""
        if not self.holds and self.link is not None:
            self._try(self.link.pause_reading)
        self.holds |= why

    def resume_reading(self, why: int) -> None:
        """Remove `why`, and resume reading if no other reason is left."""
        if self.holds:
            self.holds &= ~why
            if self.may_go_on():
                self.turns.wait(self.reader)
            elif not self.holds and self.link is not None:
                # What the peer has sent meanwhile is not read before the next iteration, and a timer may be due now.
                self.session.progressed(self.loop.time())
                self._try(self.link.resume_reading)

    def wait_turn(self) -> None:
        """Stop reading, and let the reader go on in its turn; if there are other reasons, when they are removed."""
        self.stop_reading(TURN)
        if self.may_go_on():
            self.turns.wait(self.reader)

    def may_go_on(self) -> bool:
        """Return True if the reader waits for nothing but its turn.

        Requests that wait have been decoded, so they need only slots.
        """
        return (self.holds & (TURN | SLOTS) if self.late else self.holds & ~UNREAD) == TURN
