"""Forwards each request of one side to the other side."""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from ..aio.handlers import Next, Request, close_items
from ..aio.intercept import Answer
from ..aio.peer import Peer
from ..aio.streams import StreamRequest
from ..errors import ApplicationError, Rejected
from ..kinds import Kind
from ..payload import Payload
from .counters import Counters
from .demand import Demand
from .kinds import RouteKinds
from .translation import Translation
from .watching import StreamWatcher, Unwatched, Watch

__all__ = ["Forwarder", "Target"]

NO_HANDLER: Final = ("no stream handler is named", "no call handler is named")
"""How the messages begin with which a Weirpool server refuses a stream, and a call."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go.

    Attributes:
        peer: The peer that answers them.
        translation: Translates between the two sides.
        guess_calls: What is requested as a stream may be a call: only the target's protocol distinguishes the two.

    """

    peer: Peer
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
        """Forward a request; see :data:`weirpool.aio.handlers.Interceptor`."""
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
            return Answer(_Response(forwarded))
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
        self.request = request
        self._kinds = kinds
        self._counters = counters

    async def answer(self) -> Payload | None:
        """Return the response of a call; None for a FIRE."""
        try:
            route, payload = self._translation.request(self.request)
            if self.request.kind is Kind.FIRE:
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

    async def streamed(self, demand: Demand) -> AsyncIterator[Payload]:
        """Yield the items of the target as they are."""
        request = self.request
        route, payload = self._translation.request(request)
        if self._target.guess_calls and self._kinds.is_call(request.route):
            # It was requested as a stream.
            yield await self._peer.call(route, payload)
            return
        accepted = await demand.first()
        outgoing = None if request.items is None else _Following(self)
        wanted = StreamRequest(request.kind, route, payload, outgoing=outgoing, allowed=accepted)
        async with self._peer._stream(wanted) as stream:
            demand.begin(stream)
            async for item in stream:
                yield item

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
        request = self.request
        refused = not begun and _is_unknown_route(error)
        known = not self._kinds.may_be_call(request.route)
        if not refused or known or not self._target.guess_calls or request.kind is not Kind.STREAM:
            return None
        return self._learned(error)

    async def _learned(self, refused: Exception) -> AsyncIterator[Payload]:
        """Yield the response of a call, and remember that the route is one. If it is unknown, too, raise `refused`."""
        route, payload = self._translation.request(self.request)
        try:
            response = await self._peer.call(route, payload)
        except ApplicationError as error:
            if _is_unknown_route(error):
                raise refused from None
            self._kinds.learn_call(self.request.route)
            raise
        self._kinds.learn_call(self.request.route)
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


class _Response(AsyncIterable[Payload]):
    """The translated items of a response, with its errors. They are requested as the client requests them."""

    def __init__(self, forwarded: _Forwarded) -> None:
        self._forwarded = forwarded
        self._demand = Demand()
        # The most items that the client has requested, counted from the first.
        self._requested = 0

    def demanded(self, credit: int) -> None:
        """Note that the client accepts `credit` more items; see :class:`weirpool.aio.pump.TaskPump`."""
        self._demand.told(credit)
        if self._demand.accepted > self._requested:
            self._requested = self._demand.accepted
            self._forwarded.watcher.demanded(credit)

    async def __aiter__(self) -> AsyncIterator[Payload]:
        forwarded, begun = self._forwarded, False
        items = forwarded.streamed(self._demand)
        try:
            while True:
                try:
                    async for item in items:
                        begun = True
                        self._demand.passed += 1
                        yield forwarded.received(item)
                    break
                except Exception as error:
                    instead = forwarded.instead(error, begun)
                    if instead is None:
                        raise forwarded.failed(error) from error
                    # Its own refusal is final.
                    items, begun = instead, True
        except (CancelledError, GeneratorExit):
            forwarded.watcher.canceled()
            raise
        finally:
            await close_items(items)
        forwarded.watcher.ended(None)


class _Following(AsyncIterable[Payload]):
    """The translated items that follow a request. They are requested as the target requests them."""

    def __init__(self, forwarded: _Forwarded) -> None:
        self._forwarded = forwarded
        self._demand = Demand()

    def demanded(self, credit: int) -> None:
        """Note that the target accepts `credit` more items; see :class:`weirpool.aio.pump.TaskPump`."""
        self._demand.told(credit)

    async def __aiter__(self) -> AsyncIterator[Payload]:
        forwarded, demand = self._forwarded, self._demand
        demand.begin(forwarded.request.items)
        async for item in forwarded.request.items:
            demand.passed += 1
            yield forwarded.sent(item)
        forwarded.watcher.sent_end()
