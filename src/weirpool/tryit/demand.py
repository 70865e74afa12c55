"""How many items of a stream the page has asked for."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Demand"]


class Demand:
    """Counts items that were requested and received.

    Args:
        first: How many items the stream has been asked for at its start.
        window: How many items automatic demand keeps requested.
        auto: True to request more as items arrive.
        grant: Requests more items of the stream.

    Attributes:
        received: The number of items so far.
        outstanding: The number of items that are requested and have not arrived.
        auto: As above.

    """

    def __init__(self, first: int, window: int, auto: bool, grant: Callable[[int], None]) -> None:
        self.received = 0
        self.outstanding = first
        self.auto = auto
        self._window = window
        self._grant = grant

    def arrived(self) -> None:
        """Count an item."""
        self.received += 1
        self.outstanding -= 1
        self._refill()

    def request(self, count: int) -> None:
        """Request more items."""
        self.outstanding += count
        self._grant(count)

    def automatic(self, on: bool) -> None:
        """Begin to request items as they arrive, or stop it."""
        self.auto = on
        self._refill()

    def _refill(self) -> None:
        # Half a window at a time, as Weirpool's own consumers do it.
        if self.auto and self.outstanding <= self._window // 2:
            self.request(self._window - self.outstanding)
