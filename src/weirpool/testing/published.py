"""The streams of a server that is checked, and how long they must be silent until they count as stopped."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..errors import ApplicationError, ConnectError
from ..urls import parse_url
from .ends import PATIENCE
from .requester import GAPS, UNKNOWN_ROUTE, RawRequester, RawStream
from .results import Skipped

__all__ = ["SPARE", "Published", "misdescribed", "opened", "silence_of"]

SETTLE: Final = 0.25
"""Seconds: far more than a round trip, and than most pauses between two items."""
SPARE: Final = 10
"""Demand beyond the length of a finite stream, and items after which a stream counts as not stalled."""
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
        failing: A stream that fails after fewer than `count` items; None: rule 1.4 is skipped.
        endless: A stream that yields items as long as they are requested; None: rules 1.8, 3.12 and 3.16 are skipped.
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

    def named(self, name: str) -> tuple[str, bytes]:
        """Return the `failing` or the `endless` stream. Raises Skipped if it is None."""
        what: tuple[str, bytes] | None = getattr(self, name)
        if what is None:
            raise Skipped(f"it needs {'an' if name[0] in 'aeiou' else 'a'} {name} stream, and none is named")
        return what

    def connect(self, strays: int = 0) -> RawRequester:
        """Return a requester for the server, which connects when it is entered."""
        return RawRequester(self.url, self.patience, strays, self.ssl)


def opened(raw: RawRequester, what: tuple[str, bytes], credit: int) -> RawStream:
    """Open one of the published streams."""
    return raw.opened(*what, credit)


async def misdescribed(published: Published) -> str:
    """Return what is wrong with the description of a server, such as a route that it does not have; empty if nothing.

    Faults of the publisher are not reported, as far as they can be told apart.

    Raises:
        ConnectError: The server cannot be reached, or answers no request.

    """
    unknown = await _first(published, (UNKNOWN_ROUTE, b""), lambda stream: True)
    if not unknown.over and not unknown.items:
        place = parse_url(published.url)
        raise ConnectError(f"{place.place} answers no request; does it speak {place.protocol} there?")
    for name in ("finite", "failing", "endless", "empty"):
        what: tuple[str, bytes] | None = getattr(published, name)
        if what is not None:
            stream = await _first(published, what, lambda stream, name=name: name == "endless")  # type: ignore[misc]
            fault = _fault(published, name, stream, _names(unknown, UNKNOWN_ROUTE) == _names(stream, what[0]) != "")
            if fault:
                return f"the {name} stream {what[0]!r} {fault}"
    return ""


async def _first(published: Published, what: tuple[str, bytes], soon: Callable[[RawStream], bool]) -> RawStream:
    """Open a stream on a connection of its own; wait until it has ended, or for an item if `soon` returns true."""
    async with published.connect() as raw:
        stream = opened(raw, what, published.count + SPARE)
        await raw.passes(published.patience, lambda: stream.over or bool(stream.items and soon(stream)))
        return stream


def _names(stream: RawStream, route: str) -> str:
    """Return the text of a stream's error without its route, if it names it; otherwise an empty string."""
    text = str(stream.error)
    return text.replace(route, "") if route in text else ""


def _fault(published: Published, name: str, stream: RawStream, is_unknown: bool) -> str:
    """Return what contradicts the description of a stream; empty if nothing."""
    if not stream.over:
        return ""
    if stream.error is not None:
        # A violation of the protocol is a fault of the publisher.
        refused = isinstance(stream.error, ApplicationError) and not stream.items
        failed = refused and (is_unknown or name != "failing")
        return f"failed before its first item: {stream.error}" if failed else ""
    items = f"{len(stream.items)} item{'' if len(stream.items) == 1 else 's'}"
    if name == "endless":
        return f"ended after {items}"
    expected = {"finite": published.count, "empty": 0}.get(name)
    return "" if expected in (None, len(stream.items)) else f"has {items}, not {expected}"


async def silence_of(published: Published, what: tuple[str, bytes]) -> float:
    """Watch a stream over a connection of its own; return for how long it must be silent to count as stopped.

    Raises Skipped if its items arrive so slowly that this would exceed the patience.
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
