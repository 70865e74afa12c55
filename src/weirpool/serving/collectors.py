"""The collectors that serve a journal, and which of them has which log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

from ..aio.peer import Peer
from ..errors import JournalError, JournalMissing, LocalError
from ..protocols import EXAMPLE_URL
from .access import alternatives, require_bytes
from .links import PATIENCE, links
from .messages import PREFIX, LogState, answered

__all__ = ["Collectors", "called"]

T = TypeVar("T")


class Collectors:
    """One or more collectors, by their URLs separated by commas. Their logs have different names.

    Collectors that stand in for each other count as one, with "|" between their URLs.
    """

    def __init__(self, text: str) -> None:
        self.urls = [part.strip() for part in text.split(",") if part.strip()]
        for place in (place for url in self.urls for place in alternatives(url)):
            require_bytes(place)
        if not self.urls:
            raise LocalError(f"{text!r} names no collector; write a URL such as {EXAMPLE_URL}")
        self._places: dict[str, str] = {}

    def call(self, source: str, name: str, question: Any, kind: Any, patience: float = PATIENCE) -> Any:
        """Return the answer of the collector that has a log."""
        return links().run(self.ask(source, lambda peer: called(peer, name, question, kind), patience))

    def fetch(self, source: str, work: Callable[[Peer], Awaitable[T]]) -> T:
        """Return the result of `work` with the collector that has a log; see `ask`."""
        return links().run(self.ask(source, work))

    def call_each(self, name: str, question: Any, kind: Any) -> list[Any]:
        """Return the answer of each collector, in order."""
        return [links().run(links().ask(url, lambda peer: called(peer, name, question, kind))) for url in self.urls]

    async def ask(self, source: str, work: Callable[[Peer], Awaitable[T]], patience: float = PATIENCE) -> T:
        """Return the result of `work` with the collector that has a log; errors as for `Links.ask`."""
        url = await self._place(source)
        try:
            return await links().ask(url, work, patience)
        except JournalError:
            # Another collector may have taken the log over.
            self._places.pop(source, None)
            raise

    async def _place(self, source: str) -> str:
        if len(self.urls) == 1:
            return self.urls[0]
        if source not in self._places:
            await self._find()
        if source not in self._places:
            raise JournalMissing(f"none of the collectors {', '.join(self.urls)} has a log {source!r}")
        return self._places[source]

    async def _find(self) -> None:
        """Ask all collectors for their logs."""
        for url in self.urls:
            states = await links().ask(url, lambda peer: called(peer, "list", None, list[LogState]))
            self.found(url, states)

    def found(self, url: str, states: list[LogState]) -> None:
        """Take note of the logs of a collector."""
        self._places.update((state.source, url) for state in states if state.uuid or state.awaited)


async def called(peer: Peer, name: str, question: Any, kind: Any) -> Any:
    """Return a collector's answer to a call."""
    answer = await peer.call(f"{PREFIX}{name}", msgspec.json.encode(question))
    return answered(answer.data, kind)
