"""Links that a server has accepted, and whose session is not known yet."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from ..errors import ProtocolError
from ..ledger import Unclaimed
from ..session import Detector, Session
from ..tap import Refusal, RefusalCause
from ..transports import Discard, HangUp, Link
from ..transports.turns import Reader, turns_of
from .limits import Limits
from .setup import certificate_of

__all__ = ["Arrival"]

logger = logging.getLogger("weirpool.aio")


class Place(Protocol):
    """What an arrival knows of its server."""

    @property
    def tapped(self) -> bool:
        """True if taps see the data of links."""

    def arrived(self, arrival: Arrival, session: Session, link: Link) -> None:
        """Attach the link of `arrival` to its session."""

    def evicted(self, arrival: Arrival, reason: Refusal) -> None:
        """Refuse a link that has given its place to another one."""

    def lost(self, arrival: Arrival, reason: Refusal) -> None:
        """Remove a link that was lost before its session was known."""


class Arrival:
    """The receiver of a link whose session is not known yet.

    Attributes:
        address: The client's address.
        protocol: The protocol of its listener.
        refusal: Why a new session is rejected; empty if it is not.
        read: The data that the detector has read, for taps. The detector limits its size.

    """

    def __init__(
        self,
        place: Place,
        limits: Limits,
        detector: Detector,
        address: str,
        protocol: str,
        hang_up: HangUp | None = None,
        refusal: str = "",
    ) -> None:
        self.address = address
        self.protocol = protocol
        self.refusal = refusal
        self.read: list[bytes] = []
        self._place = place
        self._limits = limits
        self._hang_up = hang_up
        self._detector = detector
        self._link: Link | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._unclaimed = Unclaimed(address, limits.settings, self._must_release)
        self._turns = turns_of(self._loop)
        self._reader = Reader(self._turns, address, self._go_on)
        # What was read before its turn.
        self._kept: list[bytes] = []
        self._refused = False

    def link_made(self, link: Link) -> None:
        """Start the timer for the peer's first message, or close the link if it was refused before it was made."""
        if self._refused:
            self._close(link)
            return
        self._link = link
        self._detector.identity = certificate_of(link) or b""
        self._detector.link_up(self._loop.time())
        due = self._detector.next_timer()
        if due is not None:
            late = Refusal(RefusalCause.TIMEOUT, "no complete first message arrived in time")
            self._timer = self._loop.call_at(due, self.refuse, late)

    def received(self, data: bytes) -> None:
        """Pass data to the detector until the session is known, or keep it while others go first."""
        link = self._link
        if link is None:
            return
        if self._kept or not self._turns.enter(self._reader, len(data)):
            self._kept.append(data)
            self._unclaimed.count(sum(map(len, self._kept)) + link.unfinished)
            link.pause_reading()
            self._turns.wait(self._reader)
            return
        self._detect(link, data)
        self._turns.leave(self._reader)

    def _go_on(self) -> bool:
        """Pass on what was kept, in its turn; return False, because nothing is left."""
        link, kept = self._link, b"".join(self._kept)
        self._kept.clear()
        if link is not None:
            # Its session may stop reading again.
            with suppress(RuntimeError):
                link.resume_reading()
            self._detect(link, kept)
        return False

    def _detect(self, link: Link, data: bytes) -> None:
        if self._place.tapped:
            self.read.append(data)
        # A refused link must not take a session from another one.
        now = self._loop.time()
        self._detector.locked_out = self.refusal or self._limits.locked_out(self.address, now)
        try:
            session = self._detector.receive(data, now)
        except ProtocolError as error:
            logged = self._limits.unrecognized(self.address, self._detector.guessed, now)
            self.refuse(Refusal(self._cause(), str(error)), logging.WARNING if logged else logging.DEBUG)
            return
        if session is not None:
            self._stop()
            self._place.arrived(self, session, link)
        else:
            self._unclaimed.count(self._detector.held + link.unfinished)

    def writing_paused(self) -> None:
        """Nothing is written yet."""

    def writing_resumed(self) -> None:
        """Nothing is written yet."""

    def link_lost(self, error: Exception | None) -> None:
        """Remove the link."""
        if self._refused:
            return
        self._stop()
        cause = RefusalCause.INVALID if isinstance(error, ProtocolError) else RefusalCause.LOST
        reason = str(error or "the link was closed before its first message was complete")
        self._place.lost(self, Refusal(cause, reason))

    @property
    def more(self) -> bool:
        """True if its session has more to decode."""
        return self._detector.more

    @property
    def linked(self) -> bool:
        """True if its link is made, so that the first message can be answered."""
        return self._link is not None

    def evict(self, reason: Refusal) -> None:
        """Give the place to another link."""
        self._place.evicted(self, reason)

    def refuse(self, reason: Refusal, level: int = logging.WARNING) -> None:
        """Close the link, and log `reason`."""
        logger.log(level, "%s refused: %s", self.address or "a peer", reason)
        self._stop()
        self._refused = True
        self._place.lost(self, reason)
        if self._link is not None:
            self._close(self._link)
            self._link = None
        elif self._hang_up is not None:
            self._hang_up(reason)

    def _cause(self) -> RefusalCause:
        """Return why the detector has raised."""
        if self._detector.was_locked_out:
            return RefusalCause.LOCKED_OUT
        return RefusalCause.UNKNOWN_SESSION if self._detector.guessed else RefusalCause.INVALID

    def _must_release(self) -> None:
        """Give up a link whose first message takes too much memory. From the ledger, in any thread."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        link = self._link
        if link is not None and self._unclaimed.size:
            reason = f"its first message has {self._unclaimed.size} bytes so far, and a limit of bytes is reached"
            self.refuse(Refusal(RefusalCause.MEMORY, reason))
            link.abort()

    def _close(self, link: Link) -> None:
        link.receiver = Discard()
        if self._detector.farewell:
            link.write(self._detector.farewell)
        link.close()

    def _stop(self) -> None:
        self._unclaimed.count(0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
