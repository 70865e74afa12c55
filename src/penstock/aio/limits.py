"""Counts a server's links, sessions and refused links, in total and by client: by principal, or else by address."""

from __future__ import annotations

import logging
from collections import Counter
from typing import Final

from ..connection import Connection
from ..errors import SetupRejected
from ..session import Session
from ..settings import Settings
from ..tap import Refusal, RefusalCause
from .setup import REJECTED, Admitted, Verdict

__all__ = ["Limits", "RefusalCounter"]

logger = logging.getLogger("penstock.aio")

WINDOW: Final = 30.0
"""Seconds in which refused links are forgotten, at a constant rate."""


class Limits:
    """Counts the links and sessions of one server.

    A link counts from when it is accepted. Until its first message has been read, it may still resume a session. Such
    links are therefore counted separately, with the same limits: an address at its limit can still reconnect. Sessions
    without a link do not count as connections; `Settings.max_sessions` limits their number.

    A session counts for the address of its link until the acceptor has named a principal, and then for that.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pending: Counter[str] = Counter()
        self._linked: Counter[str] = Counter()
        self._clients: dict[Session, str] = {}
        # Sessions without a link, the oldest first.
        self._unlinked: dict[Session, None] = {}
        self._junk = RefusalCounter(settings.max_refusals_per_address)
        self._guesses = RefusalCounter(settings.max_refusals_per_address)
        self._refused = RefusalCounter(settings.max_refusals_per_address)

    def __bool__(self) -> bool:
        """Return True if there is any link or session."""
        return bool(self._pending or self._linked or self._unlinked)

    # Links whose first message has not been read.

    def refuses(self, address: str) -> Refusal | None:
        """Return why a link from `address` is refused; None if it is accepted."""
        return self._reached(self._pending, address, "links have not sent their first message")

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
        return f"max_refusals_per_address ({self._settings.max_refusals_per_address}) unknown tokens came from there"

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
            limit = f"max_refusals_per_address ({self._settings.max_refusals_per_address})"
            logger.warning("%s has reached %s: for a while, its links cannot %s", address, limit, what)
        return True

    def arrived(self, address: str) -> None:
        """Count an accepted link."""
        self._pending[address] += 1

    def identified(self, address: str) -> None:
        """Uncount an accepted link, whose session is known, or which is gone."""
        _decrement(self._pending, address)

    # Sessions and their links.

    def full(self, address: str) -> Refusal | None:
        """Return why a new session from `address` is refused; None if it is accepted."""
        return self._reached(self._linked, address, "are open")

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
        if self._linked[client] >= self._settings.max_connections_per_address:
            connection.principal = before
            raise SetupRejected.full(f"{self._of_one_client} are open for {client}", REJECTED)
        self.linked(session, client)

    def unlinked(self, session: Session) -> Session | None:
        """Count `session` as one without a link; return the one to end if there are too many."""
        self.ended(session)
        self._unlinked[session] = None
        if len(self._unlinked) <= self._settings.max_sessions:
            return None
        oldest = next(iter(self._unlinked))
        # Its end is reported later. Many links may be lost before that, and each must end a different session.
        del self._unlinked[oldest]
        return oldest

    def ended(self, session: Session) -> None:
        """Uncount a session."""
        self._unlinked.pop(session, None)
        client = self._clients.pop(session, None)
        if client is not None:
            _decrement(self._linked, client)

    @property
    def _of_one_client(self) -> str:
        return f"max_connections_per_address ({self._settings.max_connections_per_address})"

    def _reached(self, links: Counter[str], address: str, what: str) -> Refusal | None:
        """Return which limit `links` have reached, followed by `what`; None if they have reached none."""
        settings = self._settings
        if links.total() >= settings.max_connections:
            return Refusal(RefusalCause.LIMIT, f"max_connections ({settings.max_connections}) {what}")
        if links[address] >= settings.max_connections_per_address:
            return Refusal(RefusalCause.CLIENT_LIMIT, f"{self._of_one_client} {what}")
        return None


def _decrement(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if counts[address] <= 0:
        del counts[address]


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
