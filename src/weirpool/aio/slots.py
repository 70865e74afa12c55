"""The slots of a peer's requests: each is taken until its stream is over and its handler has returned."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sized

from ..errors import LimitExceeded
from .flow import Flow
from .holds import SLOTS

__all__ = ["Slots"]

logger = logging.getLogger("weirpool.aio")


class Slots:
    """Counts the handlers that run for the peer of one connection (THREATS 36).

    Its session refuses requests while `Settings.max_streams` streams are open. A canceled stream is over at once, and
    so is that of a FIRE, but their handlers may run on. While such handlers and those of open streams together take all
    slots, a further request waits, and the peer is not read. An ordinary handler returns when it is canceled, in the
    next turn of the loop. If some were canceled, and none returns for `Settings.unread_timeout`, the session ends.

    Args:
        flow: The flow control of the connection.
        fires: The handlers of FIRE that run.

    Attributes:
        taken: Handlers that run in tasks.
        lingering: Those whose stream is over.

    """

    __slots__ = ("_fires", "_flow", "_limit", "_timer", "lingering", "taken")

    def __init__(self, flow: Flow, fires: Sized) -> None:
        self._flow = flow
        self._fires = fires
        self._limit = flow.settings.max_streams
        self._timer: asyncio.TimerHandle | None = None
        self.taken = 0
        self.lingering = 0

    def full(self) -> bool:
        """Return True if a request must wait until a handler has returned."""
        return self.lingering > 0 and self.taken >= self._limit

    def take(self, over: bool) -> None:
        """Count a handler that is about to run, and whether its stream is over already."""
        self.taken += 1
        self.lingering += over
        self._flow.turns.task_started()

    def linger(self) -> None:
        """Count a handler whose stream is over, but which runs on."""
        self.lingering += 1

    def free(self, over: bool) -> None:
        """Uncount a handler that has returned, and whether its stream was over before."""
        self.taken -= 1
        self.lingering -= over
        if self._timer is not None:
            self.stop_waiting()

    def wait(self) -> None:
        """Stop reading until a handler has returned."""
        if self._timer is None:
            self._flow.stop_reading(SLOTS)
            self._set_timer()

    def stop_waiting(self) -> None:
        """Read again, because a handler has returned, or the session has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._flow.resume_reading(SLOTS)

    def _set_timer(self) -> None:
        flow = self._flow
        self._timer = flow.loop.call_later(flow.settings.unread_timeout, self._expired)

    def _expired(self) -> None:
        """End the session, because none of its handlers has returned although some were canceled."""
        flow = self._flow
        if self.lingering <= len(self._fires):
            # The peer waits for work that it has asked for.
            self._set_timer()
            return
        limit, seconds = self._limit, flow.settings.unread_timeout
        why = f"max_streams ({limit}) handlers run, some of which the peer has canceled"
        error = LimitExceeded(f"{why}, and none has returned for unread_timeout ({seconds:g} s)")
        logger.warning("%s: %s", flow.name, error)
        self.stop_waiting()
        flow.session.close(flow.loop.time(), error)
        flow.flush()
