"""Balances requests among several servers that offer the same service."""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final

from ..errors import (
    ApplicationError,
    ConnectError,
    LeaseMissing,
    LocalError,
    Rejected,
    SessionError,
    SetupRejected,
)
from ..functions import check_plain
from ..kinds import Kind
from ..payload import Payload
from ..protocols import EXAMPLE_URL
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import Url, parse_url, parse_urls
from .balanced import Balanced
from .connectors import MAX_REFUSALS
from .dialer import Dialer, SetupData
from .nodes import Node, NodeStatus
from .peer import Peer
from .reconnect import Reconnect
from .service import Service
from .sources import Source
from .strategies import Failures, PeakEwma, Strategy, strategy_named

__all__ = ["HALF_LIFE", "REJECTIONS", "Balancer", "balance"]

# A global is faster to read than a member of an enumeration.
_CALL = Kind.CALL

HALF_LIFE: Final = 5.0
"""Seconds: long enough for many responses of a quiet service, short enough to notice that a node has recovered."""
REJECTIONS: Final = 5
"""Consecutive rejections: one or two may be caused by the requests."""


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
) -> Balancer:
    """Connect to several servers that offer the same service: ``async with balance([url, url]) as balancer``.

    Args:
        urls: The URLs of the servers, as for :func:`weirpool.connect`. Each server is a node.
        strategy: "round-robin" selects each node in turn. "least-loaded" selects the node with the smallest product
            of latency and outstanding requests. Both reduce the share of nodes that fail, or have less left in their
            lease than others. An object with a method `pick` is used directly.
        reconnect: How to reconnect each node, and whether requests wait while no node is connected. With
            `Reconnect.initial`, entering the block waits until a node is connected; otherwise it raises when the
            first attempt has failed for all nodes.
        retry_rejected: Whether to retry a rejected call on the nodes that have not rejected it.
        rejections: Consecutive rejected calls after which a node gets no requests for a while.
        half_life: Seconds after which the weight of a measured latency has halved.
        service: Handlers for requests from the servers.
        settings: Limits and timeouts of each connection.
        setup: The set-up payload, or a function that returns it for each session.
        ssl: The TLS context.
        clock: Returns the time in seconds; it is used for latencies only.

    Returns:
        A balancer that connects when it is entered or awaited. Exiting the block closes all connections.

    Raises:
        LocalError: `urls` is empty or has duplicates, the strategy is unknown, a number is out of range, or a setting
            has no effect with any of the URLs.
        ConnectError: When entered or awaited: no node is reachable; the message gives the reason for each.

    """
    if not urls:
        raise LocalError(f"balance() needs at least one URL, such as {EXAMPLE_URL}")
    if half_life <= 0:
        raise LocalError(f"half_life is {half_life}; it must be more than 0 seconds")
    if rejections < 1:
        raise LocalError(f"rejections is {rejections}; it must be at least 1")
    policy = reconnect or Reconnect()
    places = parse_urls(urls, settings, serving=False)
    settings = settings or DEFAULT_SETTINGS
    dial = partial(
        Dialer,
        service=service or Service(),
        # A request waits for a lease of any node, not of one.
        settings=replace(settings, lease_timeout=0.0),
        setup=setup,
        ssl=ssl,
        backoff=policy.resuming,
    )

    def make(url: Url, changed: Callable[[], None]) -> Node:
        return Node(url, dial(url), policy, PeakEwma(half_life), Failures(half_life), rejections, changed)

    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    check_plain(chosen.pick, "the method pick of a strategy")
    return Balancer(Balanced(places, make, chosen, policy, settings, clock), retry_rejected)


class Balancer(Peer):
    """A :class:`~weirpool.Peer` that sends each request to one of several servers; see :func:`weirpool.balance`.

    A node is selected for each request, and for a stream when it is opened. If a node fails, its requests are not
    retried on another one, because it may have processed them. What a closing server has refused is sent to another
    one; calls that are rejected for other reasons only with `retry_rejected`.
    While no node is connected, requests wait or fail, depending on `Reconnect.new_calls`.
    """

    def __init__(self, balanced: Balanced, retry_rejected: bool) -> None:
        super().__init__(balanced)
        self._balanced = balanced
        self._retry_rejected = retry_rejected

    def __repr__(self) -> str:
        return f"<Balancer of {len(self._balanced.nodes)} nodes>"

    def __await__(self) -> Generator[None, None, Balancer]:
        return self._open().__await__()

    async def __aenter__(self) -> Balancer:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(None if error is None else 0)

    async def _open(self) -> Balancer:
        await self._balanced.open()
        return self

    @property
    def nodes(self) -> list[NodeStatus]:
        """The status of each node."""
        now = self._balanced.clock()
        return [node.status(now) for node in self._balanced.nodes.values()]

    def add(self, url: str) -> None:
        """Add a node. It gets requests as soon as it is connected.

        Args:
            url: The URL of the server, as for :func:`weirpool.balance`.

        Raises:
            LocalError: The URL is already a node, or the balancer is not open.
            SessionClosed: The balancer is closed.
            UrlError: The URL has an unknown protocol, transport or address.

        """
        self._balanced.add(parse_url(url))

    async def remove(self, url: str, grace: float | None = None) -> None:
        """Remove a node: stop sending requests to it, and wait until its connection is closed.

        Args:
            url: The URL of the node.
            grace: Seconds that open streams have to end; `Settings.close_grace` by default.

        Raises:
            LocalError: There is no such node.

        """
        await self._balanced.remove(str(parse_url(url)), grace)

    async def _send(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        if kind is not _CALL:
            return await super()._send(kind, route, payload, routed, outgoing)
        refused: list[Node] = []
        refusals = 0
        while True:
            node = await self._balanced.pick(refused)
            answer = node.connector.peer._send(kind, route, payload, routed, outgoing)
            try:
                return await self._timed(node, answer)
            except LeaseMissing:
                await self._balanced.lease()
            except ConnectError:
                # It waited in the queue of a node that has disconnected.
                refusals += 1
                if refusals > MAX_REFUSALS:
                    raise
            except (Rejected, SetupRejected) as error:
                if error.closing and refusals < MAX_REFUSALS:
                    # The node is no longer connected.
                    refusals += 1
                    continue
                refused.append(node)
                if isinstance(error, SetupRejected) or not self._retry_rejected or not self._balanced.fit(refused):
                    raise

    async def _timed(self, node: Node, answer: Awaitable[Payload]) -> Payload:
        """Await a node's response to a call, and record its outcome and latency."""
        clock = self._balanced.clock
        began = clock()
        try:
            payload = await answer
        except ConnectError:
            # Nothing was sent.
            raise
        except Rejected as error:
            if not error.closing:
                node.rejected(began, clock())
            raise
        except (ApplicationError, SessionError):
            node.failed(began, clock())
            raise
        except asyncio.CancelledError:
            node.canceled(began, clock())
            raise
        node.answered(began, clock())
        return payload
