"""Binds a service to one connection, with its interceptors and the types of its handlers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable
from functools import partial
from inspect import isawaitable
from typing import Any

from ..connection import Connection
from ..errors import LocalError, Rejected
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..settings import DEFAULT_SETTINGS, Settings
from .handlers import Handler, Request, chain
from .routes import RoutedHandler
from .service import Service

__all__ = ["Answer", "bound"]

ROUTE_CHARACTERS = 100
"""Characters of an unknown route that an error repeats."""


def bound(service: Service, connection: Connection, settings: Settings = DEFAULT_SETTINGS) -> Service:
    """Return `service` for the requests of one connection, with its interceptors and the types of its handlers.

    A service without interceptors and typed handlers is returned unchanged, unless it describes itself.
    """
    if settings.reflection:
        from ..reflection.served import Reflecting

        service = Reflecting(service, connection, settings.software)
    return _Bound(service, connection) if service.typed or service.interceptors else service


class _Bound(Service):
    """A service whose handlers are bound to a connection, and called through the interceptors."""

    def __init__(self, service: Service, connection: Connection) -> None:
        super().__init__()
        self.interceptors = service.interceptors
        self.by_demand = service.by_demand
        self._service = service
        self._connection = connection

    def find(self, kind: int, route: str, calls_by_streams: bool = False) -> Handler | None:
        """Return the handler of a request. Each handler is bound to the connection once.

        With interceptors, the result is never None, because they also see requests that have no handler.
        """
        handler = self._handlers[kind].get(route)
        if handler is None:
            handler = self._service.find(kind, route, calls_by_streams)
            if handler is not None:
                handler = handler.bound(self._connection)
                if handler.lasting:
                    self._handlers[kind][route] = handler
        return self._around(handler, kind, route) if self.interceptors else handler

    def handles(self, kind: int, route: str) -> bool:
        """Return whether the service has a handler, besides interceptors."""
        return self._service.handles(kind, route)

    def kind_of(self, route: str) -> int | None:
        """Return the kind of a route's handler other than FIRE."""
        return self._service.kind_of(route)

    def pushed(self, metadata: bytes) -> Any:
        """Pass pushed metadata to the push handler, and return its result."""
        return self._service.pushed(metadata)

    def routes(self) -> list[tuple[Kind, str]]:
        """Return the kind and route of each handler, sorted."""
        return self._service.routes()

    def _around(self, handler: Handler | None, kind: int, route: str) -> Handler:
        if handler is None:
            handler = Handler(_missing, Kind(kind), route[:ROUTE_CHARACTERS])
        begin = self._respond_many if handler.kind in (Kind.STREAM, Kind.CHANNEL) else self._respond_once
        around = Handler(partial(begin, handler, route), handler.kind, "")
        around.name, around.measure = handler.name, handler.measure
        return around

    def _request(self, handler: Handler, route: str, payload: Payload, items: Any) -> Request:
        request = Request(handler.kind, route, payload, self._connection, items)
        request.handled = handler.function is not _missing
        if isinstance(handler, RoutedHandler):
            request.pattern = handler.pattern
        return request

    def _respond_once(self, handler: Handler, route: str, payload: Payload, items: Any = None) -> Awaitable[Any]:
        """Begin a response of one item or none."""
        request = self._request(handler, route, payload, items)
        return chain(self.interceptors, partial(_answer, handler))(request)

    async def _respond_many(self, handler: Handler, route: str, payload: Payload, items: Any = None) -> Any:
        """Return the source of the items of a response."""
        request = self._request(handler, route, payload, items)
        opened: list[Answer] = []
        result = await chain(self.interceptors, partial(_source, handler, opened))(request)
        if isinstance(result, Answer):
            # No interceptor wraps the items, so they use the fastest path.
            return result.source
        return _closing(result, opened, handler)


async def _answer(handler: Handler, request: Request) -> Payload | None:
    """Call a handler that responds with one item or none."""
    result = _called(handler, request)
    if isawaitable(result):
        result = await result
    if handler.kind == Kind.FIRE:
        return None
    if isinstance(result, Payload):
        return result
    return Payload() if result is None else Payload(result)


async def _source(handler: Handler, opened: list[Answer], request: Request) -> Answer:
    """Call a handler that responds with many items."""
    result = _called(handler, request)
    if isawaitable(result) and not isinstance(result, AsyncIterable):
        result = await result
    answer = Answer(result)
    opened.append(answer)
    return answer


def _called(handler: Handler, request: Request) -> Any:
    if handler.function is _missing:
        kind = request.kind.name.lower()
        raise Rejected(message=f"no {kind} handler is named {request.route[:ROUTE_CHARACTERS]!r}")
    if handler.kind.sends_items:
        return handler.function(request.payload, request.items)
    return handler.function(request.payload)


def _missing() -> None:
    """Stand for a handler that does not exist."""


class Answer(AsyncIterable[Any]):
    """The items that a handler yields, as an async iterable for interceptors.

    Attributes:
        source: The handler's result.

    """

    def __init__(self, source: Any) -> None:
        self.source = source
        self._items = _iterate(source)

    def __aiter__(self) -> AsyncGenerator[Any, None]:
        return self._items

    def __anext__(self) -> Awaitable[Any]:
        return self._items.__anext__()

    async def aclose(self) -> None:
        """Stop the iteration, and close the source."""
        await self._items.aclose()
        await _close(self.source)


async def _iterate(source: Any) -> AsyncGenerator[Any, None]:
    if isinstance(source, AsyncIterable):
        async for item in source:
            yield item
    elif isinstance(source, Iterable) and not isinstance(source, bytes | str | Payload | PayloadRun):
        for item in source:
            yield item
    else:
        raise LocalError(f"a source of items is an iterable or an async iterable, not {type(source).__name__}")


async def _closing(items: Any, opened: list[Answer], handler: Handler) -> AsyncGenerator[Any, None]:
    """Yield the items that an interceptor returned. At the end, close all sources, from the outside in."""
    try:
        if not isinstance(items, AsyncIterable):
            what = f"around {handler.name} returned {type(items).__name__}"
            raise LocalError(f"an interceptor {what}; it must return an async iterable of items")
        async for item in items:
            yield item
    finally:
        await _close(items)
        for answer in opened:
            await answer.aclose()


async def _close(items: Any) -> None:
    close = getattr(items, "aclose", None) or getattr(items, "close", None)
    if close is not None:
        closing = close()
        if isawaitable(closing):
            await closing
