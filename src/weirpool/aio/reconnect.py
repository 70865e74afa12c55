"""Policies and delays for reconnecting, and River's retry budget.

River requires clients to reconnect, and its reference implementation defines how: each attempt uses one of a budget,
delays double with each attempt, and a live connection restores the budget over time. A client therefore stops trying a
server that accepts connections and drops them immediately.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ..errors import LocalError, SetupRejected
from ..functions import check_plain

if TYPE_CHECKING:
    from .peer import Peer

__all__ = ["Backoff", "BudgetedReconnect", "Reconnect", "RetryBudget", "resuming"]

FIRST_DELAY: Final = 0.1
"""The first delay in seconds; a server rarely restarts faster."""
MAX_DELAY: Final = 10.0
"""Upper bound in seconds; longer looks like a hang."""
MAX_RESUME_DELAY: Final = 0.1
"""Upper bound in seconds while a session waits for a link: it must continue soon after the network is back."""
FACTOR: Final = 2.0
"""The delay grows from FIRST_DELAY to MAX_DELAY in seven attempts."""
JITTER: Final = 0.5
"""Enough to spread the clients of a failed server, while no delay becomes zero."""

MAX_ATTEMPTS: Final = 5
"""Consecutive attempts of the budget."""
RESTORE_SECONDS: Final = 0.2
"""Seconds of a live connection, counted from its handshake, that restore one attempt."""
BASE_DELAY: Final = 0.15
"""Seconds before the second attempt; the delay doubles with each attempt."""
MAX_SPREAD: Final = 0.2
"""The maximum random part that is added to a delay, in seconds."""
MAX_BUDGET_DELAY: Final = 32.0
"""Upper bound in seconds, without the random part."""


class Backoff:
    """Exponential delays with random jitter, so that many clients do not reconnect at the same time.

    Args:
        first: The first delay in seconds, before jitter.
        longest: The maximum delay in seconds, before jitter.
        factor: The ratio of each delay to the one before, at least 1.
        jitter: The fraction of each delay, from 0 to 1, of which a random part is subtracted.

    """

    __slots__ = ("_factor", "_first", "_jitter", "_longest", "_whole")

    def __init__(
        self, first: float = FIRST_DELAY, longest: float = MAX_DELAY, factor: float = FACTOR, jitter: float = JITTER
    ) -> None:
        self._first = first
        self._longest = longest
        self._factor = factor
        self._jitter = jitter
        self._whole = min(first, longest)

    def next(self) -> float:
        """Return the next delay in seconds, after jitter."""
        whole = self._whole
        self._whole = min(self._longest, whole * self._factor)
        return whole * random.uniform(1.0 - self._jitter, 1.0)

    @property
    def used_up(self) -> bool:
        """True if no attempt is left until :meth:`refill`."""
        return False

    @property
    def exhausted(self) -> bool:
        """True if the last attempt has failed, and a task waits for :meth:`refill`."""
        return False

    def linked(self, since: float | None) -> None:
        """Set when the newest link was confirmed as working, in the loop's time; None if unknown."""

    def excuse(self) -> None:
        """Do not count the next attempt, because the cause of the last failure will not recur."""
        self.reset()

    async def wait(self) -> None:
        """Wait until the next attempt is due."""
        await asyncio.sleep(self.next())

    def refill(self) -> None:
        """Allow attempts as if none had failed."""
        self.reset()

    def reset(self) -> None:
        """Restart with the first delay, after a success."""
        self._whole = min(self._first, self._longest)


def resuming() -> Backoff:
    """Return the default delays between attempts to restore the link of a session."""
    return Backoff(longest=MAX_RESUME_DELAY)


class RetryBudget(Backoff):
    """The budget of one peer, for both links and sessions. It begins with the first attempt already counted."""

    __slots__ = ("_last_linked", "_refilled", "_since", "_taken", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        self._taken = 1
        # The time since which attempts are being restored; None if they are not.
        self._since: float | None = None
        self._last_linked: float | None = None
        self._refilled = asyncio.Event()
        self._waiting = 0

    @property
    def used_up(self) -> bool:
        """True if no attempt is left."""
        return self.remaining(asyncio.get_running_loop().time()) == 0

    @property
    def exhausted(self) -> bool:
        """True if the last attempt has failed, and a task waits for :meth:`refill`."""
        return self._waiting > 0 and not self._refilled.is_set()

    def remaining(self, now: float) -> int:
        """Return how many attempts are left at time `now`."""
        return MAX_ATTEMPTS - self._taken_by(now)

    def linked(self, since: float | None) -> None:
        """Set when the newest handshake was answered; None if none was."""
        if since != self._last_linked:
            self._since = self._last_linked = since

    def take(self, now: float) -> float | None:
        """Use an attempt; return the delay before it in seconds, or None if there is none left."""
        taken = self._taken = self._taken_by(now)
        self._since = None
        if taken >= MAX_ATTEMPTS:
            return None
        self._taken += 1
        if taken == 0:
            return 0.0
        return min(BASE_DELAY * 2.0 ** (taken - 1), MAX_BUDGET_DELAY) + random.uniform(0.0, MAX_SPREAD)

    def excuse(self) -> None:
        """Restore one attempt, because the cause of the last failure will not recur."""
        self._taken = max(0, self._taken - 1)

    async def wait(self) -> None:
        """Wait until the next attempt is due; without one left, until the budget is refilled."""
        loop = asyncio.get_running_loop()
        while (delay := self.take(loop.time())) is None:
            self._refilled.clear()
            self._waiting += 1
            try:
                await self._refilled.wait()
            finally:
                self._waiting -= 1
        await asyncio.sleep(delay)

    def reset(self) -> None:
        """Do nothing: only time restores attempts."""

    def refill(self) -> None:
        """Restore all attempts, and wake the tasks that wait for one."""
        self._taken = 0
        self._refilled.set()

    def _taken_by(self, now: float) -> int:
        # River's reference implementation counts whole intervals.
        restored = 0 if self._since is None else int((now - self._since) / RESTORE_SECONDS + 1e-9)
        return max(0, self._taken - restored)


def _unless_refused(error: Exception) -> bool:
    """Return True unless the server rejected the set-up for a reason that is not temporary."""
    return not isinstance(error, SetupRejected) or error.temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnect:
    """How to reconnect with a new session when a connection breaks and cannot be resumed.

    Open streams fail, because the server may have processed part of their requests. Later requests use the new
    session::

        async with weirpool.connect(url, reconnect=Reconnect(attempts=20)) as peer: ...

    Times are in seconds.
    """

    attempts: int | None = None
    """Consecutive failed attempts after which the peer is closed; None for no limit. A connection that breaks within
    a second counts as a failed attempt."""
    first_delay: float = FIRST_DELAY
    """The delay before the first attempt."""
    longest_delay: float = MAX_DELAY
    """The maximum delay before an attempt."""
    factor: float = FACTOR
    """The ratio of each delay to the one before."""
    jitter: float = JITTER
    """The fraction of each delay, from 0 to 1, of which a random part is subtracted: it spreads many clients."""
    new_calls: Literal["wait", "fail"] = "wait"
    """Whether requests wait while there is no connection, or fail at once with a `ConnectError`."""
    wait_timeout: float | None = 30.0
    """How long a request waits before it fails with a `ConnectError` without being sent. None waits indefinitely."""
    initial: bool = False
    """Whether `connect` retries if its first attempt fails; otherwise it raises."""
    retry: Callable[[Exception], bool] = _unless_refused
    """Called with the error that broke the connection or failed an attempt; returns whether to retry. The default
    retries after all errors but a `SetupRejected` that is not temporary."""
    on_connect: Callable[[Peer], Awaitable[None]] | None = None
    """Run in a task for each new connection, including the first, for example to resubscribe. Its errors are logged.
    The task is canceled when the connection breaks."""

    def __post_init__(self) -> None:
        if self.attempts is not None and self.attempts < 1:
            raise LocalError(f"Reconnect.attempts is {self.attempts}; it must be at least 1, or None")
        if not 0 <= self.first_delay <= self.longest_delay:
            raise LocalError(
                f"Reconnect.first_delay is {self.first_delay}; it must lie between 0 and longest_delay"
                f" ({self.longest_delay})"
            )
        if self.factor < 1:
            raise LocalError(f"Reconnect.factor is {self.factor}; it must be at least 1")
        if not 0 <= self.jitter <= 1:
            raise LocalError(f"Reconnect.jitter is {self.jitter}; it must lie between 0 and 1")
        check_plain(self.retry, "Reconnect.retry")
        if self.new_calls not in ("wait", "fail"):
            raise LocalError(f"Reconnect.new_calls is {self.new_calls!r}; it must be 'wait' or 'fail'")

    def backoff(self) -> Backoff:
        """Return the delays between attempts to connect."""
        return Backoff(self.first_delay, self.longest_delay, self.factor, self.jitter)

    def resuming(self) -> Backoff:
        """Return the delays between attempts to restore the link of a session, which are short."""
        first, longest = min(self.first_delay, MAX_RESUME_DELAY), min(self.longest_delay, MAX_RESUME_DELAY)
        return Backoff(first, longest, self.factor, self.jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedReconnect(Reconnect):
    """The policy of protocols that have a retry budget."""

    budget: RetryBudget = field(default_factory=RetryBudget)
    """The budget that new sessions and new links share."""

    def backoff(self) -> Backoff:
        """Return the budget."""
        return self.budget

    def resuming(self) -> Backoff:
        """Return the budget, which new links of a session use, too."""
        return self.budget
