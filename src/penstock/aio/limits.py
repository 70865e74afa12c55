"""Counts a server's links, sessions and refused links, in total and by address."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ..session import Session
from ..settings import Settings

__all__ = ["Limits", "RefusalCounter"]

WINDOW: Final = 30.0
"""The length of a window in which refusals are counted, in seconds."""


class Limits:
    """Counts the links and sessions of one server.

    A link counts from when it is accepted. Until its first message has been read, it may still resume a session. Such
    links are therefore counted separately, with the same limits: an address at its limit can still reconnect. Sessions
    without a link do not count as connections; `Settings.max_sessions` limits their number.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pending: Counter[str] = Counter()
        self._linked: Counter[str] = Counter()
        self._addresses: dict[Session, str] = {}
        # Sessions without a link, the oldest first.
        self._unlinked: dict[Session, None] = {}
        self._refusals = RefusalCounter(settings.max_refusals_per_address)

    def __bool__(self) -> bool:
        """Return True if there is any link or session."""
        return bool(self._pending or self._linked or self._unlinked)

    # Links whose first message has not been read.

    def refuses(self, address: str, now: float) -> str:
        """Return why a link from `address` is refused; empty if it is accepted."""
        settings = self._settings
        if self._refusals.too_many(address, now):
            return f"max_refusals_per_address ({settings.max_refusals_per_address}) links were refused recently"
        limit = self._reached(self._pending, address)
        return f"{limit} links have not sent their first message" if limit else ""

    def unrecognized(self, address: str, now: float) -> None:
        """Count a link that began with an unknown protocol or an unknown token."""
        self._refusals.note(address, now)

    def arrived(self, address: str) -> None:
        """Count an accepted link."""
        self._pending[address] += 1

    def identified(self, address: str) -> None:
        """Uncount an accepted link, whose session is known, or which is gone."""
        _decrement(self._pending, address)

    # Sessions and their links.

    def full(self, address: str) -> str:
        """Return why a new session from `address` is refused; empty if it is accepted."""
        limit = self._reached(self._linked, address)
        return f"{limit} are open" if limit else ""

    def linked(self, session: Session, address: str) -> None:
        """Count the link of `session`, instead of its earlier one."""
        self.ended(session)
        self._addresses[session] = address
        self._linked[address] += 1

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
        address = self._addresses.pop(session, None)
        if address is not None:
            _decrement(self._linked, address)

    def _reached(self, links: Counter[str], address: str) -> str:
        """Return the limit that `links` have reached; empty if none."""
        settings = self._settings
        if links.total() >= settings.max_connections:
            return f"max_connections ({settings.max_connections})"
        if links[address] >= settings.max_connections_per_address:
            return f"max_connections_per_address ({settings.max_connections_per_address})"
        return ""


def _decrement(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if counts[address] <= 0:
        del counts[address]


class RefusalCounter:
    """Counts refused links by their addresses (THREATS 28).

    All addresses share one window, so memory is bounded by the number of links in one window. `limit` refusals are
    allowed in a window; 0 allows any number.
    """

    __slots__ = ("_counts", "_limit", "_started")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._started = float("-inf")

    def note(self, address: str, now: float) -> None:
        """Count a refused link from `address`. Links without an address are from this machine, and are not counted."""
        self._roll_window(now)
        if address:
            self._counts[address] += 1

    def too_many(self, address: str, now: float) -> bool:
        """Return True if links from `address` must be refused in this window."""
        self._roll_window(now)
        return 0 < self._limit <= self._counts.get(address, 0)

    def _roll_window(self, now: float) -> None:
        if now - self._started >= WINDOW:
            self._started = now
            self._counts.clear()
