"""Balances requests among several servers that offer the same service."""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from types import TracebackType
from typing import Any, Final

from ..errors import ApplicationError, ConnectError, LocalError, PenstockError, Rejected, SessionClosed
from ..kinds import Kind
from ..payload import Payload
from ..protocols import EXAMPLE_URL, connection_settings
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import Url, parse_url
from .connectors import Connector
from .dialer import Dialer, SetupData
from .driver import Driver
from .nodes import Node, NodeStatus
from .peer import Peer
from .reconnect import Reconnect
from .service import Service
from .sources import Source
from .strategies import PeakEwma, Strategy, strategy_named

__all__ = ["Balancer", "balance"]

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
        urls: The URLs of the servers, as for :func:`penstock.connect`. Each server is a node.
        strategy: "round-robin" selects each node in turn. "least-loaded" selects the node with the smallest product
            of latency and outstanding requests. An object with a method `pick` is used directly.
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
        LocalError: `urls` is empty or has duplicates, the strategy is unknown, or a number is out of range.
        ConnectError: When entered or awaited: no node is reachable; the message gives the reason for each.

    """
    if not urls:
        raise LocalError(f"balance() needs at least one URL, such as {EXAMPLE_URL}")
    if half_life <= 0:
        raise LocalError(f"half_life is {half_life}; it must be more than 0 seconds")
    if rejections < 1:
        raise LocalError(f"rejections is {rejections}; it must be at least 1")
    policy = reconnect or Reconnect()
    dial = partial(
        Dialer,
        service=service or Service(),
        settings=settings or DEFAULT_SETTINGS,
        setup=setup,
        ssl=ssl,
        backoff=policy.resuming,
    )

    def make(url: Url, changed: Callable[[], None]) -> Node:
        return Node(url, dial(url), policy, PeakEwma(half_life), rejections, changed)

    chosen = strategy_named(strategy) if isinstance(strategy, str) else strategy
    return Balancer(Balanced(urls, make, chosen, policy, settings or DEFAULT_SETTINGS, clock), retry_rejected)


class Balancer(Peer):
    """A :class:`~penstock.Peer` that sends each request to one of several servers; see :func:`penstock.balance`.

    A node is selected for each request, and for a stream when it is opened. If a node fails, its requests are not
    retried on another one, because it may have processed them. Only rejected calls are retried, with `retry_rejected`.
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
            url: The URL of the server, as for :func:`penstock.balance`.

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
        while True:
            node = await self._balanced.pick(refused)
            answer = node.connector.peer._send(kind, route, payload, routed, outgoing)
            try:
                return await self._timed(node, answer)
            except Rejected:
                refused.append(node)
                if not self._retry_rejected or not self._balanced.fit(refused):
                    raise

    async def _timed(self, node: Node, answer: Awaitable[Payload]) -> Payload:
        """Await a node's response to a call, and record its outcome and latency."""
        clock = self._balanced.clock
        began = clock()
        try:
            payload = await answer
        except Rejected:
            # The latency of a rejection is not recorded: fast rejections would attract more requests.
            node.rejected()
            raise
        except ApplicationError:
            node.answered(began, clock())
            raise
        except asyncio.CancelledError:
            now = clock()
            node.latency.exceed(now - began, now)
            raise
        node.answered(began, clock())
        return payload


class Balanced(Connector):
    """The connector of several servers that offer the same service.

    `make` creates a node from a URL. `policy` decides what requests do while no node is connected.
    """

    def __init__(
        self,
        urls: Sequence[str],
        make: Callable[[Url, Callable[[], None]], Node],
        strategy: Strategy,
        policy: Reconnect,
        settings: Settings,
        clock: Callable[[], float],
    ) -> None:
        self._urls = [parse_url(url) for url in urls]
        super().__init__(connection_settings(self._urls[0].protocol, settings, self._urls[0].options))
        self.clock = clock
        self.nodes: dict[str, Node] = {}
        self._make = make
        self._strategy = strategy
        self._policy = policy
        self._opened = self._closed = False
        # Set when a node has changed.
        self._node_changed = asyncio.Event()
        # The cached result of `fit`, until a node changes.
        self._usable: list[Node] | None = None
        twice = {str(url) for url in self._urls if self._urls.count(url) > 1}
        if twice:
            raise LocalError(f"balance() got {', '.join(sorted(twice))} more than once; list each node once")

    @property
    def closed(self) -> bool:
        """True if this side has closed it."""
        return self._closed

    @property
    def outstanding(self) -> int:
        """The number of requests in progress on all nodes."""
        return sum(node.outstanding for node in self.nodes.values())

    async def driver(self) -> Driver:
        """Select a node for the next request, and return its driver."""
        node = await self.pick()
        return await node.connector.driver()

    async def push(self, metadata: bytes) -> None:
        """Send metadata to every connected node, because it concerns the connection, not a request.

        Nodes that connect later do not get it; use `Reconnect.on_connect` for them.
        """
        await self.pick()
        for node in [node for node in self.nodes.values() if node.connector.connected]:
            # A node may disconnect while another one is sent to.
            with suppress(ConnectError):
                await node.connector.push(metadata)

    async def close(self, grace: float | None = None) -> None:
        """Close all connections."""
        self._closed = True
        await asyncio.gather(*(node.close(grace) for node in self.nodes.values()))

    def detach(self) -> None:
        """Raise a LocalError: a balancer has several sessions."""
        raise LocalError("a balancer has no session of its own to detach; use connect() for one node")

    def reset_budget(self) -> None:
        """Allow all nodes to be connected again."""
        for node in self.nodes.values():
            node.connector.reset_budget()

    async def open(self) -> None:
        """Connect to all nodes, and wait for the first connection."""
        if self._opened:
            return
        self._opened = True
        try:
            for url in self._urls:
                self._start(url)
            while not self.fit():
                peers = [node.connector for node in self.nodes.values()]
                if all(peer.closed or (peer.last_error is not None and not self._policy.initial) for peer in peers):
                    raise self._unreachable()
                await self._wait_for_change()
        except BaseException:
            await self.close(0)
            raise

    # Nodes.

    def add(self, url: Url) -> None:
        """Add a node. See :meth:`Balancer.add`."""
        self._check_open()
        if str(url) in self.nodes:
            raise LocalError(f"{url} is already a node; remove it first")
        self._start(url)

    async def remove(self, name: str, grace: float | None) -> None:
        """Remove a node. See :meth:`Balancer.remove`."""
        node = self.nodes.get(name)
        if node is None:
            raise LocalError(f"{name} is not a node; the nodes are: {', '.join(self.nodes) or 'none'}")
        try:
            await node.close(grace)
        finally:
            self.nodes.pop(name, None)
            self._changed()

    async def pick(self, refused: Collection[Node] = ()) -> Node:
        """Return the node for the next request, which may be sent at once.

        Args:
            refused: Nodes to exclude.

        Raises:
            ConnectError: No node is connected.

        """
        self._check_open()
        while True:
            fit = self.fit(refused)
            if not fit:
                await self._wait_for_node(refused)
                continue
            node = fit[self._strategy.pick(fit, self.clock())]
            if node.connector.free:
                return node
            # Its link is full, or lost while its session is being resumed, which is not reported.
            self._usable = None
            if node.connector.connected:
                # Nothing was sent yet. If the node disconnects meanwhile, another one is selected.
                with suppress(PenstockError):
                    await node.connector.driver()
                    return node

    def fit(self, refused: Collection[Node] = ()) -> list[Node]:
        """Return the nodes that may get a request: those that do not rest, if there are any."""
        if self._usable is not None and not refused:
            return self._usable
        ready = [node for node in self.nodes.values() if node.connector.connected and node not in refused]
        fit = [node for node in ready if not node.resting] or ready
        if not refused:
            self._usable = fit
        return fit

    def _changed(self) -> None:
        """Discard the cached nodes, and wake requests that wait for one."""
        self._usable = None
        self._node_changed.set()

    async def _wait_for_node(self, refused: Collection[Node] = ()) -> None:
        """Wait until a node is connected, or raise if the policy says so."""
        try:
            async with asyncio.timeout(self._policy.wait_timeout):
                while not self.fit(refused):
                    self._check_open()
                    if self._policy.new_calls == "fail" or all(node.connector.closed for node in self.nodes.values()):
                        raise self._unreachable()
                    await self._wait_for_change()
        except TimeoutError:
            raise self._unreachable() from None

    async def _wait_for_change(self) -> None:
        self._node_changed.clear()
        await self._node_changed.wait()

    def _unreachable(self) -> ConnectError:
        """Return the error for a request without a connected node."""
        if not self.nodes:
            return ConnectError("the balancer has no nodes; add one with add()")
        why = "; ".join(f"{node.url}: {node.connector.last_error or 'not connected'}" for node in self.nodes.values())
        return ConnectError(f"none of {len(self.nodes)} nodes can be reached: {why}")

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed("this side closed the balancer")
        if not self._opened:
            raise LocalError("the balancer is not open; use it as `async with balance(...) as balancer`")

    def _start(self, url: Url) -> None:
        node = self.nodes[str(url)] = self._make(url, self._changed)
        node.connector.begin()
