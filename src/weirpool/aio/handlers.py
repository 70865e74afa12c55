"""Handlers, interceptors, and the requests that interceptors receive."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from ..connection import Connection
from ..errors import LocalError
from ..functions import yields
from ..kinds import Kind
from ..payload import Payload
from .annotations import UNTYPED, Types

__all__ = ["Handler", "Interceptor", "Next", "Request", "chain", "check_interceptor", "close_items", "items_of"]


class Handler:
    """A function that answers requests of one kind on one route. For UPLOAD and CHANNEL it also receives items.

    Attributes:
        lasting: False if it serves a single request, so that it must not be kept for others with the same route.
        measure: Returns the memory that a decoded request takes; None if it is not decoded.

    """

    lasting = True

    __slots__ = ("function", "kind", "measure", "name", "types")

    def __init__(self, function: Callable[..., Any], kind: Kind, route: str, types: Types = UNTYPED) -> None:
        self.function = function
        self.kind = kind
        self.types = types
        self.measure: Callable[[Payload], int] | None = None
        self.name = f"the {kind.name.lower()} handler {route!r}"

    def bound(self, connection: Connection) -> Handler:
        """Return the handler for the requests of one connection."""
        return self


class Request:
    """A request as interceptors see it, on a client or on a server.

    An interceptor may replace `payload` and `items` before it calls `next`; on a client also `route` and `routed`.

    Attributes:
        kind: The kind of interaction.
        route: The name of the handler.
        payload: The data and metadata of the request.
        routed: True if the metadata already contains the route, as always on a server. If false, which is possible on
            a client only, the route is added to the metadata when the request is sent.
        items: The items that follow the request of an UPLOAD or CHANNEL: on a server the :class:`~weirpool.Items`
            that the handler receives, on a client the source of the items to send. None for the other kinds.
        connection: The connection.
        handled: On a server, whether the service has a handler of this kind and route; True on a client. The routes of
            requests without a handler are chosen by strangers, so do not keep them or count by them.
        pattern: The route to count by: as the service has registered it, with its variables; otherwise `route`.

    """

    __slots__ = ("_pattern", "connection", "handled", "items", "kind", "payload", "route", "routed")

    def __init__(self, kind: Kind, route: str, payload: Payload, connection: Connection, items: Any = None) -> None:
        self.routed = not connection.is_client
        self.handled = True
        self._pattern: str | None = None
        self.kind = kind
        self.route = route
        self.payload = payload
        self.items = items
        self.connection = connection

    @property
    def pattern(self) -> str:
        """The route as it is registered."""
        return self.route if self._pattern is None else self._pattern

    @pattern.setter
    def pattern(self, pattern: str) -> None:
        self._pattern = pattern

    @property
    def route_beside(self) -> str:
        """The route to add to the metadata; empty if it already contains the route."""
        return "" if self.routed else self.route

    def __repr__(self) -> str:
        return f"<Request {self.kind.name} {self.route!r}>"


Next: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Calls the next interceptor. After the last one, it calls the handler, or sends the request to the peer."""

Interceptor: TypeAlias = Callable[[Request, Next], Awaitable[Any]]
"""``async def interceptor(request, next)``: returns the result of ``await next(request)``, or a replacement.

The result is a :class:`~weirpool.Payload` for CALL and UPLOAD, None for FIRE, and for STREAM and CHANNEL an async
iterable of items, which may be wrapped. An exception fails the request as if the handler had raised it.
"""


def chain(interceptors: Iterable[Interceptor], last: Next) -> Next:
    """Return a function that calls `interceptors`, the first one being the outermost, around `last`."""
    for interceptor in reversed(list(interceptors)):
        last = partial(_call_interceptor, interceptor, last)
    return last


def _call_interceptor(interceptor: Interceptor, after: Next, request: Request) -> Awaitable[Any]:
    result: Any = interceptor(request, after)
    return result if inspect.isawaitable(result) else _returned(result)


async def _returned(result: Any) -> Any:
    """Return the result of an interceptor that is a plain function, and has not called `next`."""
    return result


def check_interceptor(interceptor: Interceptor) -> None:
    """Check that a function can be called as an interceptor.

    Raises:
        LocalError: It takes other arguments, or yields.

    """
    if yields(interceptor):
        raise LocalError(f"the interceptor {interceptor!r} yields; it must return the result of next(request)")
    try:
        inspect.signature(interceptor).bind("request", "next")
    except TypeError as error:
        raise LocalError(f"the interceptor {interceptor!r} must accept (request, next): {error}") from None


async def close_items(items: object) -> None:
    """Close a source of items if it has `aclose`."""
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()


def items_of(result: object) -> AsyncIterable[Payload]:
    """Return the items that the interceptor of a stream has returned; raise :exc:`LocalError` if it returned none."""
    if not isinstance(result, AsyncIterable):
        raise LocalError(f"an interceptor returned {type(result).__name__}; it must return an async iterable of items")
    return result
