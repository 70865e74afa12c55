"""One of the servers among which requests are shared: its connection, and how it fares."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ..urls import Url
from .dialer import Dialer
from .reconnect import Reconnect
from .reconnecting import Reconnecting
from .strategies import PeakEwma

__all__ = ["Node", "NodeStatus"]

logger = logging.getLogger("penstock.aio")

State: TypeAlias = Literal["up", "resting", "away", "leaving", "gone"]


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """How a node fares.

    Attributes:
        url: Which one.
        state: "up": it gets requests. "resting": it has rejected too many, and gets some when there is no other.
            "away": it cannot be reached, and is tried. "leaving": it was removed, and what is open may end.
            "gone": it is tried no more.
        latency: How long it takes to answer a call, in seconds; 0 when nothing is known.
        outstanding: How many requests it works on.
        error: Why it is away or gone.

    """

    url: str
    state: State
    latency: float
    outstanding: int
    error: Exception | None


class Node:
    """A server of a balancer, which rests after so many `rejections` in a row, for as long as the policy says.

    `changed` is called when it comes or goes, or fails to come, and when it rests or has rested.
    """

    __slots__ = ("_changed", "_delays", "_most", "_rejections", "_rest", "connector", "latency", "leaving", "url")

    def __init__(
        self,
        url: Url,
        dialer: Dialer,
        policy: Reconnect,
        latency: PeakEwma,
        rejections: int,
        changed: Callable[[], None],
    ) -> None:
        self.url = str(url)
        # Requests wait for any node, and not for this one.
        self.connector = Reconnecting(dialer, replace(policy, new_calls="fail"), changed)
        self.latency = latency
        self.leaving = False
        self._changed = changed
        self._most = rejections
        self._rejections = 0
        self._delays = policy.backoff()
        self._rest: asyncio.TimerHandle | None = None

    @property
    def outstanding(self) -> int:
        """How many requests it works on."""
        return self.connector.outstanding

    @property
    def resting(self) -> bool:
        """Whether it is spared, if possible."""
        return self._rest is not None

    def status(self, now: float) -> NodeStatus:
        """Return how it fares."""
        state: State = "up"
        if self.leaving:
            state = "leaving"
        elif self.connector.closed:
            state = "gone"
        elif not self.connector.connected:
            state = "away"
        elif self.resting:
            state = "resting"
        return NodeStatus(self.url, state, self.latency.seconds(now), self.outstanding, self.connector.trouble)

    def answered(self, began: float, now: float) -> None:
        """Record that it has answered a call that began at `began`."""
        self.latency.observe(now - began, now)
        if self._rejections:
            self._rejections = 0
            self._delays.reset()

    def rejected(self) -> None:
        """Take note that it has refused a request; too many in a row, and it rests."""
        self._rejections += 1
        if self._rejections >= self._most and self._rest is None:
            delay = self._delays.next()
            logger.warning("%s rejected %d requests in a row; it is spared for %.3g s", self.url, self._most, delay)
            self._rest = asyncio.get_running_loop().call_later(delay, self._rested)
            self._changed()

    def _rested(self) -> None:
        """Give it one chance: if that is rejected, too, it rests again, and longer."""
        self._rest = None
        self._rejections = self._most - 1
        self._changed()

    async def close(self, grace: float | None) -> None:
        """Let what is open end within `grace` seconds, and close the connection."""
        self.leaving = True
        self._changed()
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None
        await self.connector.close(grace)
