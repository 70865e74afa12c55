"""The blocking balancer."""

from __future__ import annotations

import ssl as tls
from collections.abc import Callable, Sequence
from time import monotonic

from ..aio import balance as aio
from ..aio.balance import HALF_LIFE, REJECTIONS
from ..aio.dialer import SetupData
from ..aio.nodes import NodeStatus
from ..aio.reconnect import Reconnect
from ..aio.service import Service
from ..aio.strategies import Strategy
from ..settings import Settings
from .loop import LoopThread, loop_thread
from .peer import Peer

__all__ = ["Balancer", "balance"]


def balance(
    urls: Sequence[str],
    *,
    strategy: str | Strategy = "round-robin",
    reconnect: Reconnect | None = None,
    retry_rejected: bool = False,
    rejections: int = REJECTIONS,
    half_life: float = HALF_LIFE,
    service: Service | None = None,
    settings: Settings | None = None,
    setup: SetupData | Callable[[], SetupData] = b"",
    ssl: tls.SSLContext | None = None,
    clock: Callable[[], float] = monotonic,
    timeout: float | None = None,
) -> Balancer:
    """Connect to several servers that offer the same service: ``with balance([url, url]) as balancer``.

    The arguments are those of :func:`weirpool.balance`.

    Args:
        urls: The URLs of the servers.
        strategy: How to select a node; see :func:`weirpool.balance`, as for all arguments that follow.
        reconnect: How to reconnect each node.
        retry_rejected: Whether to retry a rejected call on other nodes.
        rejections: Consecutive rejected calls after which a node gets no requests for a while.
        half_life: Seconds after which the weight of a measured latency has halved.
        service: Handlers for requests from the servers.
        settings: Limits and timeouts of each connection.
        setup: The set-up payload, or a function that returns it.
        ssl: The TLS context.
        clock: Returns the time in seconds.
        timeout: Seconds to wait at most for a node, and by default for each request; see :func:`weirpool.sync.connect`.

    Raises:
        TimeoutError: No node is connected after `timeout`.

    """

    async def opened() -> aio.Balancer:
        return await aio.balance(
            urls,
            strategy=strategy,
            reconnect=reconnect,
            retry_rejected=retry_rejected,
            rejections=rejections,
            half_life=half_life,
            service=service,
            settings=settings,
            setup=setup,
            ssl=ssl,
            clock=clock,
        )

    loop = loop_thread()
    return Balancer(loop.wait(opened(), timeout, "connecting to a node"), loop, timeout)


class Balancer(Peer):
    """A peer that sends each request to one of several servers; see :class:`weirpool.Balancer`."""

    def __init__(self, raw: aio.Balancer, loop: LoopThread, timeout: float | None = None) -> None:
        super().__init__(raw, loop, timeout)
        self._balancer = raw

    def __enter__(self) -> Balancer:
        return self

    @property
    def nodes(self) -> list[NodeStatus]:
        """The status of each node."""
        return self._loop.call(lambda: self._balancer.nodes)

    def add(self, url: str) -> None:
        """Add a node. It gets requests as soon as it is connected. See :meth:`weirpool.Balancer.add`."""
        self._loop.call(self._balancer.add, url)

    def remove(self, url: str, grace: float | None = None) -> None:
        """Remove a node, and wait until its connection is closed. See :meth:`weirpool.Balancer.remove`."""
        self._loop.wait(self._balancer.remove(url, grace))
