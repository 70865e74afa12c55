"""Counts a server's links, sessions and refused links, in total and by client: by principal, or else by address."""

from __future__ import annotations

import logging
from collections import Counter
from functools import partial
from typing import Final, Protocol

from ..connection import Connection
from ..errors import SetupRejected
from ..session import Session
from ..settings import Settings
from ..tap import Refusal, RefusalCause
from ..transports.places import Places
from . import descriptors
from .setup import REJECTED, Admitted, Verdict

__all__ = ["Limits", "RefusalCounter"]

logger = logging.getLogger("weirpool.aio")

WINDOW: Final = 30.0
"""Seconds in which refused links are forgotten, at a constant rate."""
SILENT: Final = "links have not sent their first message"


class Newcomer(Protocol):
    """A link whose first message has not been read."""

    @property
    def address(self) -> str:
        """The client's address."""

    def evict(self, reason: Refusal) -> None:
        """Give the place to another link."""


class Limits:
    """Counts the links and sessions of one server.

    A link counts from when it is accepted. Until its first message has been read, it may still resume a session. Such
    links are therefore counted separately, with the same limits: an address at its limit can still reconnect. A new one
    gets the place of the one that has been silent for longest, of its own address if that is at its limit. Sessions
    without a link do not count as connections; `Settings.max_sessions` limits their number, and beyond it, the client
    that has most of them loses its oldest one.

    The process may have fewer descriptors than `Settings.max_connections`. Then no client gets more than are left for
    others, and when none are left, the address with most silent links loses its oldest one.

    A session counts for the address of its link until the acceptor has named a principal, and then for that.

    Attributes:
        settings: The limits.

    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._pending = self._places(settings.max_connections, RefusalCause.LIMIT, self._of_all)
        self._pending_of: dict[str, Places[Newcomer]] = {}
        self._linked: Counter[str] = Counter()
        self._clients: dict[Session, str] = {}
        # Sessions without a link, by client, the oldest first.
        self._unlinked: dict[str, dict[Session, None]] = {}
        self._junk = RefusalCounter(settings.max_refusals_per_address)
        self._guesses = RefusalCounter(settings.max_refusals_per_address)
        self._refused = RefusalCounter(settings.max_refusals_per_address)

    def __bool__(self) -> bool:
        """Return True if there is any link or session."""
        return bool(self._pending or self._linked or self._unlinked)

    # Links whose first message has not been read.

    def make_room(self, address: str, now: float) -> Refusal | None:
        """Make room for a link from `address`, maybe by evicting another one; return why there is none."""
        if not self._pending_from(address).make_room(now):
            return Refusal(RefusalCause.CLIENT_LIMIT, f"{self._of_one_client} {SILENT}")
        if not self._pending.make_room(now):
            return Refusal(RefusalCause.LIMIT, f"{self._of_all} {SILENT}")
        return None if self._spare_descriptor(now) else Refusal(RefusalCause.LIMIT, _of_descriptors())

    def _spare_descriptor(self, now: float) -> bool:
        """Return True if there is a descriptor for the link that was accepted last, maybe after evicting another."""
        spare = descriptors.spare()
        if spare >= 0:
            return True
        # What is evicted is closed in the next turn of the loop. Until then, it must fit into a part of the reserve.
        crowded = max(self._pending_of.values(), key=len, default=None)
        return crowded is not None and -spare <= descriptors.reserve(descriptors.limit()) // 2 and crowded.evict(now)

    def refused(self, address: str, now: float) -> bool:
        """Count a link that a limit refuses; return True if it is to be logged."""
        logged = not self._refused.too_many(address, now)
        if logged:
            self._refused.note(address, now)
        return logged

    def locked_out(self, address: str, now: float) -> str:
        """Return why no session is resumed from `address`; empty if it may resume."""
        if not self._guesses.too_many(address, now):
            return ""
        return f"max_refusals_per_address ({self.settings.max_refusals_per_address}) unknown tokens came from there"

    def unrecognized(self, address: str, guessed: bool, now: float) -> bool:
        """Count a link that began with junk, or with an unknown token (`guessed`); return True if it is to be logged.

        Other links from the address may be those of other clients, and are served.
        """
        refusals = self._guesses if guessed else self._junk
        if refusals.too_many(address, now):
            return False
        refusals.note(address, now)
        if refusals.too_many(address, now):
            what = "resume a session" if guessed else "be logged when they are refused"
            limit = f"max_refusals_per_address ({self.settings.max_refusals_per_address})"
            logger.warning("%s has reached %s: for a while, its links cannot %s", address, limit, what)
        return True

    def arrived(self, newcomer: Newcomer, now: float) -> None:
        """Count an accepted link."""
        self._pending.take(newcomer, now)
        own = self._pending_of[newcomer.address] = self._pending_from(newcomer.address)
        own.take(newcomer, now)

    def identified(self, newcomer: Newcomer) -> None:
        """Uncount an accepted link, whose session is known, or which is gone."""
        self._pending.leave(newcomer)
        own = self._pending_of.get(newcomer.address)
        if own is not None:
            own.leave(newcomer)
            if not own:
                del self._pending_of[newcomer.address]

    def _pending_from(self, address: str) -> Places[Newcomer]:
        limit = self.settings.max_connections_per_address
        known = self._pending_of.get(address)
        return known or self._places(limit, RefusalCause.CLIENT_LIMIT, self._of_one_client)

    def _places(self, limit: int, cause: RefusalCause, name: str) -> Places[Newcomer]:
        """Return places for `limit` links; the one that is evicted is told the name of the limit."""
        return Places(limit, partial(self._evict, Refusal(cause, f"{name} {SILENT}, this one for the longest time")))

    def _evict(self, reason: Refusal, newcomer: Newcomer) -> None:
        self.identified(newcomer)
        newcomer.evict(reason)

    # Sessions and their links.

    def full(self, address: str) -> Refusal | None:
        """Return why a new session from `address` is refused; None if it is accepted."""
        if self._linked.total() >= self.settings.max_connections:
            return Refusal(RefusalCause.LIMIT, f"{self._of_all} are open")
        reason = self._full_for(address)
        return Refusal(RefusalCause.CLIENT_LIMIT, reason) if reason else None

    def _full_for(self, client: str) -> str:
        """Return which limit a client has reached; empty if it may have another session, whose link is there."""
        if self._linked[client] >= self.settings.max_connections_per_address:
            return f"{self._of_one_client} are open"
        return _of_descriptors() if self._linked[client] > max(descriptors.spare(), 0) else ""

    def linked(self, session: Session, client: str) -> None:
        """Count the link of `session`, instead of its earlier one, for an address or `Connection.counted_as`."""
        self.ended(session)
        self._clients[session] = client
        self._linked[client] += 1

    def admitted(self, session: Session, connection: Connection, verdict: Verdict) -> None:
        """Count the link of `session` for the principal in a verdict of the acceptor, and note it in `connection`.

        Raises SetupRejected if the principal is at its limit.
        """
        before = connection.principal
        connection.principal = verdict.principal if isinstance(verdict, Admitted) else ""
        client = connection.counted_as
        if connection.principal == before or self._clients.get(session, client) == client:
            return
        reason = self._full_for(client)
        if reason:
            connection.principal = before
            raise SetupRejected.full(f"{reason}, for {client}", REJECTED)
        self.linked(session, client)

    def unlinked(self, session: Session) -> Session | None:
        """Count `session` as one without a link; return the one to end if there are too many."""
        client = self._clients.get(session, "")
        self.ended(session)
        self._clients[session] = client
        self._unlinked.setdefault(client, {})[session] = None
        if sum(map(len, self._unlinked.values())) <= self.settings.max_sessions:
            return None
        # Of clients with equally many, the one that has had some for longest.
        most = max(self._unlinked.values(), key=len)
        oldest = next(iter(most))
        # Its end is reported later. Many links may be lost before that, and each must end a different session.
        self.ended(oldest)
        return oldest

    def ended(self, session: Session) -> None:
        """Uncount a session."""
        client = self._clients.pop(session, None)
        if client is None:
            return
        unlinked = self._unlinked.get(client, {})
        if session in unlinked:
            del unlinked[session]
            if not unlinked:
                del self._unlinked[client]
            return
        self._linked[client] -= 1
        if not self._linked[client]:
            del self._linked[client]

    @property
    def _of_one_client(self) -> str:
        return f"max_connections_per_address ({self.settings.max_connections_per_address})"

    @property
    def _of_all(self) -> str:
        return f"max_connections ({self.settings.max_connections})"


def _of_descriptors() -> str:
    return f"descriptors ({descriptors.limit()} of this process) are in use"


class RefusalCounter:
    """Counts refused links by their addresses (THREATS 28).

    `limit` refusals are allowed at once; 0 allows any number. They are forgotten at a constant rate, `limit` of them in
    `WINDOW`, so an address is never refused for longer than its next link takes to be allowed. Memory is bounded by the
    number of links in two windows.
    """

    __slots__ = ("_counts", "_limit", "_swept_at")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # The count of each address, and when it was taken.
        self._counts: dict[str, tuple[float, float]] = {}
        self._swept_at = float("-inf")

    def note(self, address: str, now: float) -> None:
        """Count a refused link from `address`. Links without an address are from this machine, and are not counted."""
        if now - self._swept_at >= WINDOW:
            self._swept_at = now
            self._counts = {each: taken for each, taken in self._counts.items() if self._count(each, now)}
        if address:
            self._counts[address] = (self._count(address, now) + 1, now)

    def too_many(self, address: str, now: float) -> bool:
        """Return True if another refused link from `address` would exceed the limit."""
        return 0 < self._limit < self._count(address, now) + 1

    def _count(self, address: str, now: float) -> float:
        """Return how many refusals of `address` are not forgotten."""
        count, taken_at = self._counts.get(address, (0.0, now))
        return max(0.0, count - (now - taken_at) * self._limit / WINDOW)
