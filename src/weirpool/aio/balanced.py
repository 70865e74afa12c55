"""The connector of several servers that offer the same service."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress

from ..errors import ConnectError, LeaseMissing, LocalError, SessionClosed, WeirpoolError
from ..protocols import connection_settings
from ..settings import Settings
from ..urls import Url
from .connectors import Connector
from .driver import Driver
from .exchanges import Exchanges
from .nodes import Node
from .reconnect import Reconnect
from .strategies import Strategy

__all__ = ["Balanced"]


class Balanced(Connector):
    """The connector of several servers that offer the same service.

    `make` creates a node from a URL. `policy` decides what requests do while no node is connected.
    """

    def __init__(
        self,
        urls: list[Url],
        make: Callable[[Url, Callable[[], None]], Node],
        strategy: Strategy,
        policy: Reconnect,
        settings: Settings,
        clock: Callable[[], float],
    ) -> None:
        self._urls = urls
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

    async def another(self, driver: Driver, error: LeaseMissing | SessionClosed, waited: bool = False) -> Driver:
        """Select another node. See :meth:`Connector.another`."""
        if isinstance(error, LeaseMissing):
            driver.exchanges.queue.unleased = True
            await self.lease()
        return await self.driver()

    def replaced(self, exchanges: Exchanges) -> bool:
        """Return True if further requests use another connection, or wait for one."""
        current = (node.connector.current for node in self.nodes.values())
        return not self._closed and all(driver is None or driver.exchanges is not exchanges for driver in current)

    async def lease(self) -> None:
        """Wait until a node may have a lease, after one had none.

        Raises:
            LeaseMissing: None of the nodes granted a lease within `Settings.lease_timeout`.

        """
        timeout = self.settings.lease_timeout
        # A lease that is used up is not reported.
        self._usable = None
        try:
            async with asyncio.timeout(timeout):
                while (fit := self.fit()) and not any(node.leased for node in fit):
                    await self._wait_for_change()
        except TimeoutError:
            text = f"none of {len(self.nodes)} nodes granted a lease for another request within {timeout:g} s"
            raise LeaseMissing(text) from None

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
        try:
            await asyncio.gather(*(node.close(grace) for node in self.nodes.values()))
        except asyncio.CancelledError:
            # What is canceled before its first step has not begun to close.
            for node in self.nodes.values():
                node.abandon()
            raise

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
                with suppress(WeirpoolError):
                    await node.connector.driver()
                    return node

    def fit(self, refused: Collection[Node] = ()) -> list[Node]:
        """Return the nodes that may get a request: those with a lease that do not rest, as far as there are any."""
        if self._usable is not None and not refused:
            return self._usable
        ready = [node for node in self.nodes.values() if node.connector.connected and node not in refused]
        ready = [node for node in ready if node.leased] or ready
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
