"""One client of several servers that offer the same: each request goes to one of them."""

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
from .pump import Source
from .reconnect import Reconnect
from .service import Service
from .strategies import PeakEwma, Strategy, strategy_named

__all__ = ["Balancer", "balance"]

# Members of an enumeration cost a look-up each time.
_CALL = Kind.CALL

HALF_LIFE: Final = 5.0
"""Seconds: long enough for many answers of a quiet service, short enough to see that a node is well again."""
REJECTIONS: Final = 5
"""Refusals in a row: one or two may be the requests' own fault."""


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
    """Connect to several servers that offer the same: ``async with balance([url, url]) as balancer``.

    Args:
        urls: The servers, as :func:`penstock.connect` takes them; each of them is a node.
        strategy: "round-robin": each node in turn. "least-loaded": the node with the least latency times
            requests under way. Or an object with a method `pick`.
        reconnect: How each node is connected to anew, and what is done with what is asked while all of them are
            gone. With `Reconnect.initial`, entering waits until one can be reached; else it raises when the first
            try has failed at all of them.
        retry_rejected: Ask another node when one rejects a call, as long as there is one that has not.
        rejections: How many calls in a row a node rejects before it is spared for a while.
        half_life: Seconds after which the latency of an answer counts half.
        service: What the servers may ask of us.
        settings: Limits and timeouts of each connection.
        setup: What to tell the servers about us; or a function that returns it.
        ssl: For TLS.
        clock: Tells the seconds, for latencies alone.

    Returns:
        What connects when it is entered or awaited. Leaving the block closes all connections.

    Raises:
        LocalError: There is no URL, or one twice, or no such strategy, or a number makes no sense.
        ConnectError: Entered or awaited: none of the nodes can be reached; the error says why of each.

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
    """Asks one of several servers for things; :func:`penstock.balance` makes one.

    It is asked as a :class:`~penstock.Peer` is: a node is chosen for each request, for a stream when that is opened. A
    request whose node fails is not sent to another one, because nobody knows how far it has come; only a call that
    was rejected is, with `retry_rejected`. While no node can be reached, requests wait or fail as the policy has it.
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
        """How each node fares."""
        now = self._balanced.clock()
        return [node.status(now) for node in self._balanced.nodes.values()]

    def add(self, url: str) -> None:
        """Add a node, which gets requests as soon as it can be reached.

        Args:
            url: Where it is, as for :func:`balance`.

        Raises:
            LocalError: It is there already, or the balancer is not open.
            SessionClosed: The balancer is closed.
            UrlError: The URL names nothing that we know.

        """
        self._balanced.add(parse_url(url))

    async def remove(self, url: str, grace: float | None = None) -> None:
        """Remove a node: it gets no more requests, and returns when its connection is closed.

        Args:
            url: Which one.
            grace: Seconds within which what is open may end; else `Settings.close_grace`.

        Raises:
            LocalError: There is no such node.

        """
        await self._balanced.remove(str(parse_url(url)), grace)

    async def _ask(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        if kind is not _CALL:
            return await super()._ask(kind, route, payload, routed, outgoing)
        refused: list[Node] = []
        while True:
            node = await self._balanced.pick(refused)
            answer = node.connector.peer._ask(kind, route, payload, routed, outgoing)
            try:
                return await self._timed(node, answer)
            except Rejected:
                refused.append(node)
                if not self._retry_rejected or not self._balanced.fit(refused):
                    raise

    async def _timed(self, node: Node, answer: Awaitable[Payload]) -> Payload:
        """Await a node's answer to a call, and record how the node fares."""
        clock = self._balanced.clock
        began = clock()
        try:
            payload = await answer
        except Rejected:
            # That it rejects fast does not make it a fast node.
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
    """The connector of several servers that offer the same.

    `make` makes a node of a URL, and `policy` says what is done while no node can be reached.
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
        self._wanted = [parse_url(url) for url in urls]
        super().__init__(connection_settings(self._wanted[0].protocol, settings, self._wanted[0].options))
        self.clock = clock
        self.nodes: dict[str, Node] = {}
        self._make = make
        self._strategy = strategy
        self._policy = policy
        self._opened = self._closed = False
        # Set when a node has changed.
        self._news = asyncio.Event()
        # The nodes that get requests, until one changes.
        self._known: list[Node] | None = None
        twice = {str(url) for url in self._wanted if self._wanted.count(url) > 1}
        if twice:
            raise LocalError(f"balance() is given {', '.join(sorted(twice))} more than once; name each node once")

    @property
    def closed(self) -> bool:
        """Whether this side has closed it."""
        return self._closed

    @property
    def outstanding(self) -> int:
        """How many requests all nodes work on."""
        return sum(node.outstanding for node in self.nodes.values())

    async def driver(self) -> Driver:
        """Return the driver of the node for the next request."""
        node = await self.pick()
        return await node.connector.driver()

    async def push(self, metadata: bytes) -> None:
        """Send metadata to every node that can be reached: it belongs to connections, not to requests.

        A node that comes later does not get it; `Reconnect.on_connect` reaches each one that comes.
        """
        await self.pick()
        for node in [node for node in self.nodes.values() if node.connector.connected]:
            # It may go while another one is told.
            with suppress(ConnectError):
                await node.connector.push(metadata)

    async def close(self, grace: float | None = None) -> None:
        """Close all connections."""
        self._closed = True
        await asyncio.gather(*(node.close(grace) for node in self.nodes.values()))

    def detach(self) -> None:
        """Raise a LocalError: the nodes' sessions are not one."""
        raise LocalError("a balancer has no session of its own, which could be detached; connect() to one node")

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
            for url in self._wanted:
                self._start(url)
            while not self.fit():
                peers = [node.connector for node in self.nodes.values()]
                if all(peer.closed or (peer.trouble is not None and not self._policy.initial) for peer in peers):
                    raise self._unreachable()
                await self._change()
        except BaseException:
            await self.close(0)
            raise

    # Nodes.

    def add(self, url: Url) -> None:
        """Add a node. See :meth:`Balancer.add`."""
        self._check_open()
        if str(url) in self.nodes:
            raise LocalError(f"{url} is a node already; remove it first")
        self._start(url)

    async def remove(self, name: str, grace: float | None) -> None:
        """Remove a node. See :meth:`Balancer.remove`."""
        node = self.nodes.get(name)
        if node is None:
            raise LocalError(f"{name} is no node; there are {', '.join(self.nodes) or 'none'}")
        try:
            await node.close(grace)
        finally:
            self.nodes.pop(name, None)
            self._changed()

    async def pick(self, refused: Collection[Node] = ()) -> Node:
        """Return the node for the next request, which may be sent at once.

        Args:
            refused: Nodes that shall not have it.

        Raises:
            ConnectError: No node can be reached.

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
            # Its link is full, or gone while its session is being resumed, which is not announced.
            self._known = None
            if node.connector.connected:
                # Nothing was sent yet: should it go meanwhile, another one takes its place.
                with suppress(PenstockError):
                    await node.connector.driver()
                    return node

    def fit(self, refused: Collection[Node] = ()) -> list[Node]:
        """Return the nodes that may get a request. Those that rest are better than none."""
        if self._known is not None and not refused:
            return self._known
        ready = [node for node in self.nodes.values() if node.connector.connected and node not in refused]
        fit = [node for node in ready if not node.resting] or ready
        if not refused:
            self._known = fit
        return fit

    def _changed(self) -> None:
        """Look at the nodes again: one of them has changed."""
        self._known = None
        self._news.set()

    async def _wait_for_node(self, refused: Collection[Node] = ()) -> None:
        """Wait until a node can be reached, where the policy says so."""
        try:
            async with asyncio.timeout(self._policy.wait_timeout):
                while not self.fit(refused):
                    self._check_open()
                    if self._policy.new_calls == "fail" or all(node.connector.closed for node in self.nodes.values()):
                        raise self._unreachable()
                    await self._change()
        except TimeoutError:
            raise self._unreachable() from None

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _unreachable(self) -> ConnectError:
        """Return the error of a request for which there is no node."""
        if not self.nodes:
            return ConnectError("there is no node; add() one")
        why = "; ".join(f"{node.url}: {node.connector.trouble or 'not reached yet'}" for node in self.nodes.values())
        return ConnectError(f"none of {len(self.nodes)} nodes can be reached: {why}")

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed("this side closed the balancer")
        if not self._opened:
            raise LocalError("the balancer is not open; use it as `async with balance(...) as balancer`")

    def _start(self, url: Url) -> None:
        node = self.nodes[str(url)] = self._make(url, self._changed)
        node.connector.begin()
