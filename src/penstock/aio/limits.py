"""How many links and sessions a server has, and how many links it refused: of each address, and together."""

from __future__ import annotations

from collections import Counter
from typing import Final

from ..session import Session
from ..settings import Settings

__all__ = ["Limits", "RefusalCounter"]

WINDOW: Final = 30.0
"""Seconds for which refusals are counted together."""


class Limits:
    """Counts the links and sessions of one server.

    A link counts from the moment it is accepted. Until its first message has been read nobody knows whether it resumes
    a session, so such links are counted apart, by the same limits: a full address can still reconnect. A session
    without a link counts as no connection, and there are at most `Settings.max_sessions` of them.
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
        """Return whether there is any link or session."""
        return bool(self._pending or self._linked or self._unlinked)

    # Links whose first message has not been read.

    def refuses(self, address: str, now: float) -> str:
        """Return why no link is taken from `address`; empty when it is."""
        settings = self._settings
        if self._refusals.too_many(address, now):
            return f"max_refusals_per_address ({settings.max_refusals_per_address}) were refused just now"
        limit = self._reached(self._pending, address)
        return f"{limit} links have not said yet who they are" if limit else ""

    def guessed(self, address: str, now: float) -> None:
        """Count a link that began with an unknown protocol, or with an unknown token."""
        self._refusals.note(address, now)

    def arrived(self, address: str) -> None:
        """Count a link that was accepted."""
        self._pending[address] += 1

    def known(self, address: str) -> None:
        """Count a link no more that was: it is known whose it is, or it is gone."""
        _less(self._pending, address)

    # Sessions and their links.

    def full(self, address: str) -> str:
        """Return why no new session is taken from `address`; empty when one is."""
        limit = self._reached(self._linked, address)
        return f"{limit} are open" if limit else ""

    def linked(self, session: Session, address: str) -> None:
        """Count the link of `session`, instead of the one that it had."""
        self.ended(session)
        self._addresses[session] = address
        self._linked[address] += 1

    def unlinked(self, session: Session) -> Session | None:
        """Count `session` as one without a link; return the one that has to end for it, if any."""
        self.ended(session)
        self._unlinked[session] = None
        if len(self._unlinked) <= self._settings.max_sessions:
            return None
        oldest = next(iter(self._unlinked))
        # Its end is told later, and many links may be lost before that: each of them ends another session.
        del self._unlinked[oldest]
        return oldest

    def ended(self, session: Session) -> None:
        """Count a session no more."""
        self._unlinked.pop(session, None)
        address = self._addresses.pop(session, None)
        if address is not None:
            _less(self._linked, address)

    def _reached(self, links: Counter[str], address: str) -> str:
        """Return the limit that `links` have reached; empty when none is."""
        settings = self._settings
        if links.total() >= settings.max_connections:
            return f"max_connections ({settings.max_connections})"
        if links[address] >= settings.max_connections_per_address:
            return f"max_connections_per_address ({settings.max_connections_per_address})"
        return ""


def _less(counts: Counter[str], address: str) -> None:
    counts[address] -= 1
    if counts[address] <= 0:
        del counts[address]


class RefusalCounter:
    """Counts refused links by the addresses that they came from (THREATS 28).

    Everybody's window is the same, so that what is held is bounded by the links that one window may bring. `limit` of
    them are fine in one window; 0 for any number.
    """

    __slots__ = ("_counts", "_limit", "_started")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[str] = Counter()
        self._started = float("-inf")

    def note(self, address: str, now: float) -> None:
        """Count a link from `address` that was refused. What has no address is of this machine, and is not counted."""
        self._turn(now)
        if address:
            self._counts[address] += 1

    def too_many(self, address: str, now: float) -> bool:
        """Whether no more links are to be taken from `address` for now."""
        self._turn(now)
        return 0 < self._limit <= self._counts.get(address, 0)

    def _turn(self, now: float) -> None:
        if now - self._started >= WINDOW:
            self._started = now
            self._counts.clear()
