"""Waiting for new rows inside Spark's question for them.

Spark asks again 10 milliseconds after it was told that there is nothing, and a question costs a millisecond of CPU in
Python and the JVM together. The source therefore answers late when nothing happens. It looks at the journal itself
meanwhile, which is much cheaper, so that new rows are found as soon as before.

A query may have other sources, which Spark does not ask meanwhile. The first answer after a micro-batch of this query,
whichever source has filled it, is therefore given at once, and each later one after twice the time of the one before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

__all__ = ["Poll"]

FIRST_WAIT = 0.01
"""Seconds: as long as Spark itself waits between two questions."""
LONGEST_WAIT = 0.5
"""Seconds: after it, Spark asks another source of the same query."""
BUSY_SECONDS = 1.0
"""Seconds after a micro-batch in which more rows are expected soon."""
BUSY_PAUSE = 0.005
"""Seconds between two looks at the journal meanwhile."""
IDLE_PAUSE = 0.02
"""The same later."""
BUSY_SHARE = 0.2
"""The part of a core that looking may take, meanwhile."""
IDLE_SHARE = 0.005
"""The same later."""
LONGEST_PAUSE = 2.0
"""Seconds between two looks at a journal with very many logs."""


class Poll:
    """Decides how long an answer waits for new rows, and how often to look.

    Args:
        looks: Returns True if there may be new rows.
        clock: Returns the time in seconds.
        sleep: Waits for some seconds.

    """

    def __init__(
        self,
        looks: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._looks = looks
        self._clock = clock
        self._sleep = sleep
        self._wait = 0.0
        self._pause = BUSY_PAUSE
        self._busy_until = clock() + BUSY_SECONDS

    def progress(self) -> None:
        """Note that the query has a micro-batch: answer at once again."""
        self._wait = 0.0
        self._pause = BUSY_PAUSE
        self._busy_until = self._clock() + BUSY_SECONDS

    def changes(self) -> Iterator[None]:
        """Yield whenever there may be new rows, until the time for this answer is over."""
        deadline = self._clock() + self._wait
        while (left := deadline - self._clock()) > 0:
            self._sleep(min(self._pause, left))
            begun = self._clock()
            changed = self._looks()
            self._pause = self._pause_after(self._clock() - begun)
            if changed:
                yield
        # With very many logs, a question costs as much as a look, so it has to be as rare.
        self._wait = max(min(max(2 * self._wait, FIRST_WAIT), LONGEST_WAIT), self._pause)

    def _pause_after(self, cost: float) -> float:
        if self._clock() < self._busy_until:
            return min(max(BUSY_PAUSE, cost / BUSY_SHARE), LONGEST_PAUSE)
        return min(max(IDLE_PAUSE, cost / IDLE_SHARE), LONGEST_PAUSE)
