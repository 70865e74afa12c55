"""Handlers, requests as interceptors see them, interceptors, and the end of the items that they yield."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

from ..connection import Connection
from ..errors import LocalError
from ..kinds import Kind
from ..payload import Payload
from .annotations import UNTYPED, Types

__all__ = ["Handler", "Interceptor", "Next", "Request", "chain", "check_interceptor", "close_items"]


class Handler:
    """A function that answers requests of one kind on one route; for UPLOAD and CHANNEL it also takes items."""

    __slots__ = ("function", "kind", "name", "types")

    def __init__(self, function: Callable[..., Any], kind: Kind, route: str, types: Types = UNTYPED) -> None:
        self.function = function
        self.kind = kind
        self.types = types
        self.name = f"the {kind.name.lower()} handler {route!r}"

    def bound(self, connection: Connection) -> Handler:
        """Return the handler for the requests of one connection."""
        return self


class Request:
    """What was asked, as interceptors see it on either side.

    Its payload and items may be replaced before `next` is called, on a client also `route` and `routed`.

    Attributes:
        kind: What travels each way.
        route: The handler that is asked for.
        payload: The request: its data and its metadata.
        routed: The metadata is all that travels, with the route in it, as always on a server. Else, on a client,
            the route is put beside it when the request is sent.
        items: What follows the request in an UPLOAD or CHANNEL: on a server the :class:`~penstock.Items`
            that the handler gets, on a client what it sends. None for the other kinds.
        connection: The connection.

    """

    __slots__ = ("connection", "items", "kind", "payload", "route", "routed")

    def __init__(self, kind: Kind, route: str, payload: Payload, connection: Connection, items: Any = None) -> None:
        self.routed = not connection.is_client
        self.kind = kind
        self.route = route
        self.payload = payload
        self.items = items
        self.connection = connection

    @property
    def route_beside(self) -> str:
        """The route that is to be put beside the metadata; empty where that names it."""
        return "" if self.routed else self.route

    def __repr__(self) -> str:
        return f"<Request {self.kind.name} {self.route!r}>"


Next: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Goes on: to the next interceptor, and behind the last one to the handler, or to the other side."""

Interceptor: TypeAlias = Callable[[Request, Next], Awaitable[Any]]
"""``async def interceptor(request, next)``: returns what ``await next(request)`` does, or something in its place.

That is a :class:`~penstock.Payload` for CALL and UPLOAD, None for FIRE, and for STREAM and CHANNEL an async
iterable of the items, which may be wrapped. What it raises fails the request, as if the handler had raised it.
"""


def chain(interceptors: Iterable[Interceptor], last: Next) -> Next:
    """Return what goes through `interceptors`, the first being the outermost, and then calls `last`."""
    for interceptor in reversed(list(interceptors)):
        last = partial(_through, interceptor, last)
    return last


def _through(interceptor: Interceptor, after: Next, request: Request) -> Awaitable[Any]:
    return interceptor(request, after)


def check_interceptor(interceptor: Interceptor) -> None:
    """Refuse what cannot be called as an interceptor is.

    Raises:
        LocalError: It takes other arguments.

    """
    try:
        inspect.signature(interceptor).bind("request", "next")
    except TypeError as error:
        raise LocalError(f"the interceptor {interceptor!r} is called with (request, next): {error}") from None


async def close_items(items: object) -> None:
    """Close what yields items, if it is an async iterator that can be closed."""
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()
