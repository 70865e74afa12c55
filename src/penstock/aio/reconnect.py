"""What becomes of a peer whose connection breaks: policies, delays, and River's retry budget.

River says that clients reconnect, and the reference says how: each try takes one from a budget, the delays double from
try to try, and what was taken comes back bit by bit while a connection holds. A server that lets everybody in and drops
everybody at once is so not asked for ever.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from ..errors import LocalError, SetupRejected

if TYPE_CHECKING:
    from .peer import Peer

__all__ = ["Backoff", "BudgetedReconnect", "Reconnect", "RetryBudget", "resuming"]

FIRST: Final = 0.1
"""Seconds: a server that restarts is hardly faster."""
LONGEST: Final = 10.0
"""Seconds: a person who watches waits no longer."""
RESUME_LONGEST: Final = 0.1
"""Seconds, while a session waits for a link: it must go on soon after the network is back."""
FACTOR: Final = 2.0
"""Seven tries from the first time to the longest."""
JITTER: Final = 0.5
"""Enough that clients which lost one server do not come back as one, and no time is cut to nothing."""

TRIES: Final = 5
"""Tries in a row."""
RESTORED: Final = 0.2
"""Seconds after a handshake after which a try is given back, and then another one, as long as the link holds."""
BASE: Final = 0.15
"""Seconds before the second try; it doubles from try to try."""
SPREAD: Final = 0.2
"""Seconds of which a random part is added."""
BUDGET_LONGEST: Final = 32.0
"""Seconds, without the random part."""


class Backoff:
    """Waiting times that grow, each cut by a random part, so that many clients do not come back at once.

    Args:
        first: The first time at most, in seconds.
        longest: Any time at most, in seconds.
        factor: How many times longer each time is than the one before, at least 1.
        jitter: The part of each time, from 0 to 1, of which a random share is cut off.

    """

    __slots__ = ("_factor", "_first", "_jitter", "_longest", "_whole")

    def __init__(
        self, first: float = FIRST, longest: float = LONGEST, factor: float = FACTOR, jitter: float = JITTER
    ) -> None:
        self._first = first
        self._longest = longest
        self._factor = factor
        self._jitter = jitter
        self._whole = min(first, longest)

    def next(self) -> float:
        """Return how long to wait now, in seconds: what is due, less its random part."""
        whole = self._whole
        self._whole = min(self._longest, whole * self._factor)
        return whole * random.uniform(1.0 - self._jitter, 1.0)

    @property
    def spent(self) -> bool:
        """Whether nothing is tried any more before :meth:`refill`."""
        return False

    @property
    def exhausted(self) -> bool:
        """Whether somebody waits for :meth:`refill`: the last try has failed."""
        return False

    def linked(self, since: float | None) -> None:
        """Learn when the newest link was found good, by the loop's clock; None: that is not known."""

    def excuse(self) -> None:
        """Let the next try cost nothing: what ended the last link does not come again."""
        self.reset()

    async def wait(self) -> None:
        """Wait until it is time for the next try."""
        await asyncio.sleep(self.next())

    def refill(self) -> None:
        """Let it be tried again as if nothing had failed."""
        self.reset()

    def reset(self) -> None:
        """Begin anew, after a success."""
        self._whole = min(self._first, self._longest)


def resuming() -> Backoff:
    """Return the delays between tries to get a link for a session that may still be alive."""
    return Backoff(longest=RESUME_LONGEST)


class RetryBudget(Backoff):
    """The budget of one peer, for links and sessions alike. The first try is taken from it already."""

    __slots__ = ("_refilled", "_since", "_taken", "_told", "_waiting")

    def __init__(self) -> None:
        super().__init__()
        self._taken = 1
        # Since when what was taken is given back; None: it is not.
        self._since: float | None = None
        self._told: float | None = None
        self._refilled = asyncio.Event()
        self._waiting = 0

    @property
    def spent(self) -> bool:
        """Whether there is no try left."""
        return self.left(asyncio.get_running_loop().time()) == 0

    @property
    def exhausted(self) -> bool:
        """Whether somebody waits for :meth:`refill`: the last try has failed."""
        return self._waiting > 0 and not self._refilled.is_set()

    def left(self, now: float) -> int:
        """Return how many tries there are."""
        return TRIES - self._taken_by(now)

    def linked(self, since: float | None) -> None:
        """Learn when the newest handshake was answered; None: none was."""
        if since != self._told:
            self._since = self._told = since

    def take(self, now: float) -> float | None:
        """Take a try; return the seconds before it, or None if there is none left."""
        taken = self._taken = self._taken_by(now)
        self._since = None
        if taken >= TRIES:
            return None
        self._taken += 1
        if taken == 0:
            return 0.0
        return min(BASE * 2.0 ** (taken - 1), BUDGET_LONGEST) + random.uniform(0.0, SPREAD)

    def excuse(self) -> None:
        """Let the next try cost nothing: what ended the last link does not come again."""
        self._taken = max(0, self._taken - 1)

    async def wait(self) -> None:
        """Wait until it is time for the next try; with no try left, until somebody refills the budget."""
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
        """Nothing: time alone gives back what was taken."""

    def refill(self) -> None:
        """Give all tries back; whoever waits for one goes on at once."""
        self._taken = 0
        self._refilled.set()

    def _taken_by(self, now: float) -> int:
        # The reference counts whole intervals.
        restored = 0 if self._since is None else int((now - self._since) / RESTORED + 1e-9)
        return max(0, self._taken - restored)


def _unless_refused(error: Exception) -> bool:
    """Say that another try may help, unless the server has refused our set-up, and not for want of room."""
    return not isinstance(error, SetupRejected) or error.temporary


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconnect:
    """How to go on with a new session when a connection breaks, and cannot be resumed.

    What is open then fails, because nobody knows how far the server has come with it. What is asked for
    later goes over the new session::

        async with penstock.connect(url, reconnect=Reconnect(attempts=20)) as peer: ...

    Times are in seconds.
    """

    attempts: int | None = None
    """Tries in a row that may fail before the peer is closed; None: any number. A connection that breaks within a
    second counts as one that failed."""
    first_delay: float = FIRST
    """Before the first try."""
    longest_delay: float = LONGEST
    """Before any try."""
    factor: float = FACTOR
    """How many times longer each delay is than the one before."""
    jitter: float = JITTER
    """The part of each delay, from 0 to 1, of which a random share is cut off: clients do not come back as one."""
    new_calls: Literal["wait", "fail"] = "wait"
    """What is asked for while there is no connection waits for one, or fails at once with a `ConnectError`."""
    wait_timeout: float | None = 30.0
    """How long it waits, before it fails with a `ConnectError`: it was not sent. None: as long as it takes."""
    initial: bool = False
    """Whether `connect` goes on trying, too, when its first try fails; else it raises."""
    retry: Callable[[Exception], bool] = _unless_refused
    """Called with what broke the connection, or failed a try: whether to try again. By default everything is worth
    another try but a `SetupRejected`."""
    on_connect: Callable[[Peer], Awaitable[None]] | None = None
    """Run in a task of its own for each connection that is made, the first one too, to subscribe anew, say. What it
    raises is logged; it is canceled when the connection breaks."""

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
        if self.new_calls not in ("wait", "fail"):
            raise LocalError(f"Reconnect.new_calls is {self.new_calls!r}; it must be 'wait' or 'fail'")

    def backoff(self) -> Backoff:
        """Return the delays between tries."""
        return Backoff(self.first_delay, self.longest_delay, self.factor, self.jitter)

    def resuming(self) -> Backoff:
        """Return the delays between tries to get a link for a session that may still be alive: none is long."""
        first, longest = min(self.first_delay, RESUME_LONGEST), min(self.longest_delay, RESUME_LONGEST)
        return Backoff(first, longest, self.factor, self.jitter)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetedReconnect(Reconnect):
    """The policy of protocols that have a budget."""

    budget: RetryBudget = field(default_factory=RetryBudget)
    """Shared by all that connects anew."""

    def backoff(self) -> Backoff:
        """Return the budget."""
        return self.budget

    def resuming(self) -> Backoff:
        """Return the budget: links of a session take tries from it, too."""
        return self.budget
