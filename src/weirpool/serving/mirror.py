"""What collectors tell about the ends of their logs, so that a driver need not ask eighty times a second."""

from __future__ import annotations

import threading
import time
from asyncio import sleep
from typing import Final

from ..aio.peer import Peer
from ..errors import JournalError, JournalMissing, LocalError
from .collectors import Collectors, called
from .links import Links, links
from .messages import PREFIX, LogState, answered, error_of

__all__ = ["Mirror"]

CREDIT: Final = 2
"""Changes that a collector sends ahead: later ones are told together."""
IDLE_SECONDS: Final = 60.0
"""A collector that is gone is not looked for any longer if nobody has asked for so long."""
REFUSED_SECONDS: Final = 1.0
"""The pause after a refusal."""
PATIENCE: Final = 1.0
"""Seconds after which a driver is told that a collector does not answer: it waits by itself."""


class Mirror:
    """The states of all logs: asked for the first time, followed from then on."""

    def __init__(self, collectors: Collectors) -> None:
        self._collectors = collectors
        self._lock = threading.Lock()
        self._links: Links | None = None
        # By collector, those that are followed at the moment.
        self._followed: dict[str, dict[str, LogState]] = {}
        self._following: set[str] = set()
        self._asked = 0.0

    def states(self) -> dict[str, LogState]:
        """Return the state of each log; `JournalError` if a collector does not answer."""
        found: dict[str, LogState] = {}
        for url in self._collectors.urls:
            known = self._known(url)
            if known is None:
                asked = links().run(links().ask(url, lambda peer: called(peer, "list", None, list[LogState]), PATIENCE))
                known = {state.source: state for state in asked}
            self._collectors.found(url, list(known.values()))
            found.update(known)
        self._follow()
        return found

    def state(self, source: str) -> LogState:
        """Return the state of a log; raise the error that makes it unreadable."""
        state = self.states().get(source)
        if state is None:
            raise JournalMissing(f"{', '.join(self._collectors.urls)}: there is no log {source!r} any more")
        if state.trouble:
            raise error_of(state.trouble, ", ".join(self._collectors.urls))
        return state

    def _known(self, url: str) -> dict[str, LogState] | None:
        with self._lock:
            known = self._followed.get(url) if self._links is links() else None
            return None if known is None else dict(known)

    def _follow(self) -> None:
        """Follow the collectors that this process does not follow yet."""
        with self._lock:
            self._asked = time.monotonic()
            if self._links is not links():
                self._links = links()
                self._followed.clear()
                self._following.clear()
            new = [url for url in self._collectors.urls if url not in self._following]
            self._following.update(new)
        for url in new:
            links().submit(self._follow_one(url))

    async def _follow_one(self, url: str) -> None:
        while time.monotonic() - self._asked < IDLE_SECONDS:
            try:
                await links().ask(url, lambda peer: self._followed_by(peer, url))
            except (JournalError, LocalError):
                # The collector refuses, and it may go on to do so: it must not be asked without a pause.
                await sleep(REFUSED_SECONDS)
        with self._lock:
            self._following.discard(url)

    async def _followed_by(self, peer: Peer, url: str) -> None:
        states: dict[str, LogState] = {}
        try:
            async with peer.stream(f"{PREFIX}follow", credit=CREDIT) as changes:
                async for item in changes:
                    for state in answered(item.data, list[LogState]):
                        states[state.source] = state
                    with self._lock:
                        self._followed[url] = states = dict(states)
        finally:
            with self._lock:
                self._followed.pop(url, None)
