"""What becomes of a peer whose connection breaks: the policy that its user chooses."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ..errors import LocalError, SetupRejected
from .backoff import FACTOR, FIRST, JITTER, LONGEST, RESUME_LONGEST, Backoff

if TYPE_CHECKING:
    from .peer import Peer

__all__ = ["Reconnect"]


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
