"""Watches the owner of a group. Clocks decide only when to try a take-over, never who is right."""

from __future__ import annotations

import time
from collections.abc import Callable

from .sequence import Sequence

__all__ = ["Watch"]


class Watch:
    """Finds out whether the owner of a group still writes.

    Args:
        sequence: The group's bundles.
        patience: Seconds without a new bundle after which the owner seems to be gone. Owners write at least four times
            as often.
        clock: Returns the time in seconds; it need not agree with that of others.

    """

    def __init__(self, sequence: Sequence, patience: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._sequence = sequence
        self._patience = patience
        self._clock = clock
        self._last = -1
        self._since: float | None = None
        self._ended = False

    def silent(self) -> bool:
        """Look at the sequence, and return True if there was no new bundle for as long as the patience.

        A group without any bundle has no owner, nor has one whose last bundle says so. Raises `StoreError` if the store
        does not answer, which says nothing about the owner.
        """
        now = self._clock()
        numbers = self._sequence.numbers(self._last)
        if numbers or self._since is None:
            self._last = numbers[-1] if numbers else self._last
            self._since = now
            # Of the new bundle it is not known yet: the store may not answer.
            self._ended = False
            found = self._sequence.header(self._last) if self._last >= 0 else None
            self._ended = found is not None and found[0].ended
        return self._last < 0 or self._ended or now - self._since >= self._patience
