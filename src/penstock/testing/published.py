"""The streams of a server that is checked, and how long they must be silent until they count as stopped."""

from __future__ import annotations

import ssl as tls
from dataclasses import dataclass
from typing import Final

from .ends import PATIENCE
from .requester import RawRequester, RawStream
from .results import Skipped

__all__ = ["Published", "opened", "silence_of"]

SETTLE: Final = 0.25
"""Seconds: far more than a round trip, and than most pauses between two items."""
GAPS: Final = 3
"""The silence of a stopped stream, in multiples of the longest gap between its items before."""
WATCHED: Final = 0.5
"""The part of the patience for which a stream is watched."""
WATCHED_GAPS: Final = 8
"""A stream that was watched for that many of its longest gaps has shown its rhythm."""
WATCHED_ITEMS: Final = 10_000
"""So has one that has sent that many items."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """The streams of a server, by which its rules are checked. Each is a route and a request.

    Attributes:
        url: The server; it must answer an unknown route with an error.
        finite: A stream of exactly `count` items, the same each time, which then completes.
        count: The number of these items, at least 4.
        failing: A stream that fails after fewer than `count` items; None: rules that need it are skipped.
        endless: A stream that yields items as long as they are requested; None: rules that need it are skipped.
        empty: A stream that completes without an item; None: rule 1.5 is checked with `finite` only.
        streams: The maximum number of open streams per connection, according to the server's settings.
        patience: Seconds to wait for an expected event.
        settle: Seconds of silence after which a canceled or ended stream counts as stopped. If its items arrive more
            slowly, the check waits three times the longest gap between two of them.
        ssl: For TLS.

    """

    url: str
    finite: tuple[str, bytes]
    count: int
    failing: tuple[str, bytes] | None = None
    endless: tuple[str, bytes] | None = None
    empty: tuple[str, bytes] | None = None
    streams: int = 1_000
    patience: float = PATIENCE
    settle: float = SETTLE
    ssl: tls.SSLContext | None = None

    def connect(self, strays: int = 0) -> RawRequester:
        """Return a requester for the server, which connects when it is entered."""
        return RawRequester(self.url, self.patience, strays, self.ssl)


def opened(raw: RawRequester, what: tuple[str, bytes] | None, credit: int) -> RawStream:
    """Open one of the published streams. Raises Skipped if it is None."""
    if what is None:
        raise Skipped("Published names no stream for this rule")
    return raw.opened(*what, credit)


async def silence_of(published: Published, what: tuple[str, bytes] | None) -> float:
    """Watch a stream over a connection of its own; return for how long it must be silent to count as stopped.

    Raises Skipped if its items arrive so slowly that this would exceed the patience, or if `what` is None.
    """
    async with published.connect() as raw:
        stream = opened(raw, what, WATCHED_ITEMS)
        began = stream.last_at

        def over() -> bool:
            return stream.over or len(stream.items) >= WATCHED_ITEMS

        def shown() -> bool:
            return over() or raw.loop.time() - began >= max(published.settle, WATCHED_GAPS * stream.gap)

        await raw.until(lambda: stream.over or bool(stream.items), "the publisher has not sent an item")
        await raw.passes(published.patience * WATCHED, shown)
        gap = stream.gap if over() else max(stream.gap, raw.loop.time() - stream.last_at)
    silence = max(published.settle, GAPS * gap)
    if silence > published.patience:
        raise Skipped(
            f"{gap:.3g} s passed between two items, so a stop shows after {silence:.3g} s; "
            f"set a patience of more than that (it is {published.patience:g} s)"
        )
    return silence
