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
from ..protocols import EXAMPLE_URL, fitting
from ..settings import DEFAULT_SETTINGS, Settings
from ..urls import Url, parse_url
from .asking import Asking
from .dialer import Dialer, Said
from .driver import Driver
from .nodes import Node, NodeStatus
from .pump import Source
from .reconnect import Reconnect
from .service import Service
from .strategies import PeakEwma, Strategy, strategy_named
from .streams import LateStream, Stream, Wanted

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
    setup: Said | Callable[[], Said] = b"",
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
    return Balancer(urls, make, chosen, policy, settings or DEFAULT_SETTINGS, retry_rejected, clock)


class Balancer(Asking):
    """Asks one of several servers for things; :func:`penstock.balance` makes one.

    It is asked as a :class:`~penstock.Peer` is: a node is chosen for each request, for a stream when that is opened. A
    request whose node fails is not sent to another one, because nobody knows how far it has come; only a call that
    was rejected is, with `retry_rejected`. While no node can be reached, requests wait or fail as the policy has it.
    """

    def __init__(
        self,
        urls: Sequence[str],
        make: Callable[[Url, Callable[[], None]], Node],
        strategy: Strategy,
        policy: Reconnect,
        settings: Settings,
        retry_rejected: bool,
        clock: Callable[[], float],
    ) -> None:
        self._wanted = [parse_url(url) for url in urls]
        self._make = make
        self._strategy = strategy
        self._policy = policy
        self._settings = fitting(self._wanted[0].protocol, settings, self._wanted[0].options)
        self._retry_rejected = retry_rejected
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._opened = self._closed = False
        # Set when a node has changed.
        self._news = asyncio.Event()
        # The nodes that get requests, until one changes.
        self._known: list[Node] | None = None
        twice = {str(url) for url in self._wanted if self._wanted.count(url) > 1}
        if twice:
            raise LocalError(f"balance() is given {', '.join(sorted(twice))} more than once; name each node once")

    def __await__(self) -> Generator[None, None, Balancer]:
        return self._open().__await__()

    async def __aenter__(self) -> Balancer:
        return await self._open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(None if error is None else 0)

    @property
    def closed(self) -> bool:
        """Whether this side has closed it."""
        return self._closed

    @property
    def nodes(self) -> list[NodeStatus]:
        """How each node fares."""
        now = self._clock()
        return [node.status(now) for node in self._nodes.values()]

    def add(self, url: str) -> None:
        """Add a node, which gets requests as soon as it can be reached.

        Args:
            url: Where it is, as for :func:`balance`.

        Raises:
            LocalError: It is there already, or the balancer is not open.
            SessionClosed: The balancer is closed.
            UrlError: The URL names nothing that we know.

        """
        self._check_open()
        parsed = parse_url(url)
        if str(parsed) in self._nodes:
            raise LocalError(f"{parsed} is a node already; remove it first")
        self._start(parsed)

    async def remove(self, url: str, grace: float | None = None) -> None:
        """Remove a node: it gets no more requests, and returns when its connection is closed.

        Args:
            url: Which one.
            grace: Seconds within which what is open may end; else `Settings.close_grace`.

        Raises:
            LocalError: There is no such node.

        """
        name = str(parse_url(url))
        node = self._nodes.get(name)
        if node is None:
            raise LocalError(f"{name} is no node; there are {', '.join(self._nodes) or 'none'}")
        try:
            await node.close(grace)
        finally:
            self._nodes.pop(name, None)
            self._changed()

    async def close(self, grace: float | None = None) -> None:
        """Close all connections, once what is open has ended, or `grace` seconds later. See :meth:`Asking.close`."""
        self._closed = True
        await asyncio.gather(*(node.close(grace) for node in self._nodes.values()))

    # Requests.

    @property
    def data_mime(self) -> str:
        """What the data of its connections is."""
        return self._settings.data_mime

    async def push(self, metadata: bytes) -> None:
        """Send metadata to every node that can be reached: it belongs to connections, not to requests.

        A node that comes later does not get it; `Reconnect.on_connect` reaches each one that comes.
        """
        await self._pick()
        for node in [node for node in self._nodes.values() if node.ready]:
            # It may go while another one is told.
            with suppress(ConnectError):
                await node.peer.push(metadata)

    async def _ask(self, kind: Kind, route: str, payload: Payload, routed: bool, outgoing: Source | None) -> Any:
        refused: list[Node] = []
        while True:
            node = await self._pick(refused)
            answer = node.peer._ask(kind, route, payload, routed, outgoing)
            if kind is not _CALL:
                return await answer
            try:
                return await self._timed(node, answer)
            except Rejected:
                refused.append(node)
                if not self._retry_rejected or not self._fit(refused):
                    raise

    def _stream(self, wanted: Wanted) -> Stream:
        return LateStream(self._driver, self._settings, wanted)

    async def _driver(self) -> Driver:
        """Return the driver over which a stream goes."""
        node = await self._pick()
        return await node.peer.ready()

    async def _timed(self, node: Node, answer: Awaitable[Payload]) -> Payload:
        """Await a node's answer to a call, and take note of how it fares."""
        began = self._clock()
        try:
            payload = await answer
        except Rejected:
            # That it refuses fast does not make it a fast node.
            node.rejected()
            raise
        except ApplicationError:
            self._answered(node, began)
            raise
        except asyncio.CancelledError:
            now = self._clock()
            node.latency.exceed(now - began, now)
            raise
        self._answered(node, began)
        return payload

    def _answered(self, node: Node, began: float) -> None:
        now = self._clock()
        node.latency.observe(now - began, now)
        node.answered()

    # Nodes.

    async def _pick(self, refused: Collection[Node] = ()) -> Node:
        """Return the node for the next request, which may be sent at once.

        Args:
            refused: Nodes that shall not have it.

        Raises:
            ConnectError: No node can be reached.

        """
        self._check_open()
        while True:
            fit = self._fit(refused)
            if not fit:
                await self._somebody(refused)
                continue
            node = fit[self._strategy.pick(fit, self._clock())]
            if node.peer.free:
                return node
            # Its link is full, or gone while its session is being resumed, which nobody is told of.
            self._known = None
            if node.ready:
                # Nothing was sent yet: should it go meanwhile, another one takes its place.
                with suppress(PenstockError):
                    await node.peer.ready()
                    return node

    def _fit(self, refused: Collection[Node] = ()) -> list[Node]:
        """Return the nodes that may get a request. Those that rest are better than none."""
        if self._known is not None and not refused:
            return self._known
        ready = [node for node in self._nodes.values() if node.ready and node not in refused]
        fit = [node for node in ready if not node.resting] or ready
        if not refused:
            self._known = fit
        return fit

    def _changed(self) -> None:
        """Take note that a node is not what it was."""
        self._known = None
        self._news.set()

    async def _somebody(self, refused: Collection[Node] = ()) -> None:
        """Wait until a node can be reached, where the policy says so."""
        try:
            async with asyncio.timeout(self._policy.wait_timeout):
                while not self._fit(refused):
                    self._check_open()
                    if self._policy.new_calls == "fail" or all(node.peer.closed for node in self._nodes.values()):
                        raise self._nobody()
                    await self._change()
        except TimeoutError:
            raise self._nobody() from None

    async def _change(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _nobody(self) -> ConnectError:
        """Return what to tell those for whom there is no node."""
        if not self._nodes:
            return ConnectError("there is no node; add() one")
        why = "; ".join(f"{node.url}: {node.peer.trouble or 'not reached yet'}" for node in self._nodes.values())
        return ConnectError(f"none of {len(self._nodes)} nodes can be reached: {why}")

    def _check_open(self) -> None:
        if self._closed:
            raise SessionClosed("this side closed the balancer")
        if not self._opened:
            raise LocalError("the balancer is not open; use it as `async with balance(...) as balancer`")

    def _start(self, url: Url) -> None:
        node = self._nodes[str(url)] = self._make(url, self._changed)
        node.peer.begin()

    async def _open(self) -> Balancer:
        if self._opened:
            return self
        self._opened = True
        try:
            for url in self._wanted:
                self._start(url)
            while not self._fit():
                peers = [node.peer for node in self._nodes.values()]
                if all(peer.closed or (peer.trouble is not None and not self._policy.initial) for peer in peers):
                    raise self._nobody()
                await self._change()
        except BaseException:
            await self.close(0)
            raise
        return self
