"""Forwards each request of one side to the other side."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from ..aio.handlers import Next, Request, close_items
from ..aio.intercept import Answer
from ..aio.peer import Peer
from ..aio.streams import Stream, StreamRequest
from ..errors import ApplicationError, Rejected
from ..kinds import Kind
from ..payload import Payload
from ..settings import Settings
from .counters import Counters
from .demand import DemandedItems, RequestItems, Response
from .kinds import RouteKinds
from .translation import Translation
from .watching import StreamWatcher, Unwatched, Watch

__all__ = ["Forwarder", "Target"]

NO_HANDLER: Final = ("no stream handler is named", "no call handler is named")
"""How the messages begin with which a Penstock server refuses a stream, and a call."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go.

    Attributes:
        peer: The peer that answers them.
        settings: The settings of its connection.
        source_settings: The settings of the connection that requests come from.
        translation: Translates between the two sides.
        guess_calls: What is requested as a stream may be a call: only the target's protocol distinguishes the two.

    """

    peer: Peer
    settings: Settings
    source_settings: Settings
    translation: Translation
    guess_calls: bool


class Forwarder:
    """An interceptor that answers each request of a connection with the other side's response.

    Args:
        target: Returns the target, or raises `Rejected`.
        kinds: The kinds of routes.
        counters: Counts requests and items.
        watch: Returns what observes a request.

    """

    def __init__(
        self,
        target: Callable[[], Awaitable[Target]],
        kinds: RouteKinds,
        counters: Counters,
        watch: Watch = Unwatched,
    ) -> None:
        self._watch = watch
        self._target = target
        self._kinds = kinds
        self._counters = counters

    async def __call__(self, request: Request, next: Next) -> Any:
        """Forward a request; see :data:`penstock.aio.handlers.Interceptor`."""
        self._counters.requests[request.kind.name.lower()] += 1
        watcher = self._watch(request)
        try:
            target = await self._target()
        except Exception as error:
            self._counters.failed(error)
            watcher.ended(error)
            raise
        forwarded = _Forwarded(target, request, self._kinds, self._counters, watcher)
        if request.kind.answers_items:
            # The source itself, so that it is told the client's demand.
            return Answer(forwarded.items())
        return await forwarded.answer()


class _Forwarded:
    """One request that is forwarded."""

    def __init__(
        self, target: Target, request: Request, kinds: RouteKinds, counters: Counters, watcher: StreamWatcher
    ) -> None:
        self.watcher = watcher
        self._peer = target.peer
        self._target = target
        self._translation = target.translation
        self._request = request
        self._kinds = kinds
        self._counters = counters

    async def answer(self) -> Payload | None:
        """Return the response of a call; None for a FIRE."""
        try:
            route, payload = self._translation.request(self._request)
            if self._request.kind is Kind.FIRE:
                await self._peer.fire(route, payload)
                self.watcher.ended(None)
                return None
            response = self._translation.received(await self._peer.call(route, payload))
        except CancelledError:
            self.watcher.canceled()
            raise
        except Exception as error:
            raise self.failed(error) from error
        self._counters.items_down += 1
        self.watcher.received(response)
        self.watcher.ended(None)
        return response

    def items(self) -> AsyncIterator[Payload]:
        """Return the items of a stream or channel."""
        if self._target.guess_calls and self._kinds.is_call(self._request.route):
            return _Items(self, self._single(), None)
        demanded = DemandedItems(Response(self._open), self._target.settings)
        return _Items(self, demanded, demanded.demanded)

    async def _single(self) -> AsyncIterator[Payload]:
        """Yield the response of a call that was requested as a stream."""
        route, payload = self._translation.request(self._request)
        yield await self._peer.call(route, payload)

    def _open(self, credit: int) -> Stream:
        request = self._request
        route, payload = self._translation.request(request)
        outgoing = None if request.items is None else _Sent(self)
        return self._peer._stream(StreamRequest(request.kind, route, payload, False, credit, True, outgoing))

    def following(self) -> DemandedItems:
        """Return the items that follow the request."""
        return DemandedItems(RequestItems(self._request.items), self._target.source_settings)

    def sent(self, item: Payload) -> Payload:
        """Count and translate an item that follows the request."""
        self._counters.items_up += 1
        self.watcher.sent(item)
        return self._translation.sent(item)

    def received(self, item: Payload) -> Payload:
        """Count and translate an item."""
        self._counters.items_down += 1
        translated = self._translation.received(item)
        self.watcher.received(translated)
        return translated

    def instead(self, error: Exception, begun: bool) -> AsyncIterator[Payload] | None:
        """Return the response of a call, if the target has refused a stream because the route is a call's."""
        request = self._request
        refused = not begun and _is_unknown_route(error)
        known = not self._kinds.may_be_call(request.route)
        if not refused or known or not self._target.guess_calls or request.kind is not Kind.STREAM:
            return None
        return self._learned(error)

    async def _learned(self, refused: Exception) -> AsyncIterator[Payload]:
        """Yield the response of a call, and remember that the route is one. If it is unknown, too, raise `refused`."""
        route, payload = self._translation.request(self._request)
        try:
            response = await self._peer.call(route, payload)
        except ApplicationError as error:
            if _is_unknown_route(error):
                raise refused from None
            self._kinds.learn_call(self._request.route)
            raise
        self._kinds.learn_call(self._request.route)
        yield response

    def failed(self, error: Exception) -> Exception:
        """Count a failure, and return the error to report."""
        self._counters.failed(error)
        reported = self._translation.error(error)
        self.watcher.ended(reported)
        return reported


def _is_unknown_route(error: Exception) -> bool:
    """Return whether a peer has refused a request for good. The oldest protocols have no code for it."""
    if isinstance(error, Rejected):
        return not (error.temporary or error.closing)
    return isinstance(error, ApplicationError) and error.message.startswith(NO_HANDLER)


class _Sent(AsyncIterator[Payload]):
    """The translated items that follow a request, requested as the target requests them."""

    def __init__(self, forwarded: _Forwarded) -> None:
        self._forwarded = forwarded
        self._items = forwarded.following()
        self.demanded = self._items.demanded

    def __aiter__(self) -> _Sent:
        return self

    async def __anext__(self) -> Payload:
        try:
            return self._forwarded.sent(await anext(self._items))
        except StopAsyncIteration:
            self._forwarded.watcher.sent_end()
            raise

    async def aclose(self) -> None:
        """Ask for no more items."""
        await self._items.aclose()


class _Items(AsyncIterator[Payload]):
    """The translated items of a stream, with its errors."""

    def __init__(
        self, forwarded: _Forwarded, items: AsyncIterator[Payload], tell: Callable[[int], None] | None
    ) -> None:
        self._forwarded = forwarded
        self._items = items
        self._tell = tell
        self._begun = self._over = False
        # Counts of items since the start.
        self._passed = self._allowed = 0

    def demanded(self, credit: int) -> None:
        """Request items, because the client accepts `credit` more of them."""
        if self._passed + credit > self._allowed:
            self._allowed = self._passed + credit
            self._forwarded.watcher.demanded(credit)
        if self._tell is not None:
            self._tell(credit)

    def __aiter__(self) -> _Items:
        return self

    async def __anext__(self) -> Payload:
        while True:
            try:
                item = await anext(self._items)
                self._begun = True
                self._passed += 1
                return self._forwarded.received(item)
            except StopAsyncIteration:
                self._over = True
                self._forwarded.watcher.ended(None)
                raise
            except Exception as error:
                instead = self._forwarded.instead(error, self._begun)
                if instead is None:
                    self._over = True
                    raise self._forwarded.failed(error) from error
                # Its own refusal is final.
                self._begun = True
                self._items = instead

    async def aclose(self) -> None:
        """Cancel the stream."""
        if not self._over:
            self._over = True
            self._forwarded.watcher.canceled()
        await close_items(self._items)
