"""The nodes of a balancer: the connection to each server, and its status."""

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
from .strategies import Failures, PeakEwma

__all__ = ["Node", "NodeStatus"]

logger = logging.getLogger("weirpool.aio")

State: TypeAlias = Literal["up", "resting", "away", "leaving", "gone"]


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """The status of one node of a :class:`~weirpool.Balancer`.

    Attributes:
        url: The URL of the node.
        state: "up": it gets requests. "resting": it rejected too many, and gets requests only if no other node is up.
            "away": it is not connected, and connecting is retried. "leaving": it was removed, and open streams may
            end. "gone": connecting is not retried any more.
        latency: The average latency of its responses to calls, in seconds; 0 if unknown.
        outstanding: The number of requests in progress.
        error: Why it is away or gone; None otherwise.

    """

    url: str
    state: State
    latency: float
    outstanding: int
    error: Exception | None


class Node:
    """A server of a balancer. After `rejections` consecutive rejections it rests, for the delays of the policy.

    `changed` is called when it connects, disconnects or fails to connect, and when a rest begins or ends.
    """

    __slots__ = (
        "_changed", "_delays", "_limit", "_rejections", "_timer", "connector", "failures", "latency", "leaving", "url"
    )  # fmt: skip

    def __init__(
        self,
        url: Url,
        dialer: Dialer,
        policy: Reconnect,
        latency: PeakEwma,
        failures: Failures,
        rejections: int,
        changed: Callable[[], None],
    ) -> None:
        self.url = str(url)
        # A request waits for any node, not for this one.
        self.connector = Reconnecting(dialer, replace(policy, new_calls="fail"), changed)
        self.latency = latency
        self.failures = failures
        self.leaving = False
        self._changed = changed
        self._limit = rejections
        self._rejections = 0
        self._delays = policy.backoff()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def outstanding(self) -> int:
        """The number of requests in progress."""
        return self.connector.outstanding

    @property
    def lease(self) -> int | None:
        """How many requests its lease still allows; None if requests need no lease, or it is not connected."""
        driver = self.connector.current
        return None if driver is None else driver.session.requests_left

    @property
    def leased(self) -> bool:
        """True unless it is known that a request would find no lease."""
        driver = self.connector.current
        return driver is None or not driver.exchanges.queue.unleased

    @property
    def resting(self) -> bool:
        """True while it gets requests only if there is no other node."""
        return self._timer is not None

    def status(self, now: float) -> NodeStatus:
        """Return its status at time `now`."""
        state: State = "up"
        if self.leaving:
            state = "leaving"
        elif self.connector.closed:
            state = "gone"
        elif not self.connector.connected:
            state = "away"
        elif self.resting:
            state = "resting"
        return NodeStatus(self.url, state, self.latency.seconds(now), self.outstanding, self.connector.last_error)

    def answered(self, began: float, now: float) -> None:
        """Record a response to a call that began at `began`."""
        self.latency.observe(now - began, now)
        self.failures.succeeded(now)
        self._processed()

    def failed(self, began: float, now: float) -> None:
        """Record the error of a call that began at `began`. A fast error neither lowers nor begins the latency."""
        if self.latency.seconds(now):
            self.latency.exceed(now - began, now)
        self.failures.failed(began, now)
        self._processed()

    def canceled(self, began: float, now: float) -> None:
        """Record that a call which began at `began` was canceled: a failure if it had waited unusually long."""
        if now - began > self.latency.seconds(now):
            self.latency.exceed(now - began, now)
            self.failures.failed(began, now)

    def _processed(self) -> None:
        """End a row of rejections."""
        if self._rejections:
            self._rejections = 0
            self._delays.reset()

    def rejected(self, began: float, now: float) -> None:
        """Record the rejection of a call that began at `began`, and begin a rest after too many in a row."""
        self.failures.failed(began, now)
        self._rejections += 1
        if self._rejections >= self._limit and self._timer is None:
            delay = self._delays.next()
            logger.warning("%s rejected %d requests in a row; it rests for %.3g s", self.url, self._limit, delay)
            self._timer = asyncio.get_running_loop().call_later(delay, self._rested)
            self._changed()

    def _rested(self) -> None:
        """Use the node again; one more rejection begins a longer rest."""
        self._timer = None
        self.failures.forget()
        self._changed()

    async def close(self, grace: float | None) -> None:
        """Close the connection after open streams have ended, or after `grace` seconds."""
        self._leave()
        await self.connector.close(grace)

    def abandon(self) -> None:
        """End the connection at once. See :meth:`Driver.abandon`."""
        self._leave()
        self.connector.abandon()

    def _leave(self) -> None:
        self.leaving = True
        self._changed()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
