"""What a side offers to its peers: handlers by kind and route."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import LocalError
from ..kinds import Kind
from ..payload import Payload

if TYPE_CHECKING:
    from .intercept import Interceptor

__all__ = ["Handler", "Service", "check_interceptor"]

H = TypeVar("H", bound=Callable[..., Any])

RAW = (inspect.Parameter.empty, Payload, Any, object)
"""Annotations of a handler that takes requests as they are."""


class Handler:
    """A function that answers requests of one kind on one route.

    Attributes:
        function: Called with the request, and for UPLOAD and CHANNEL with the items that follow it.
        kind: What it answers.
        name: What logs call it.

    """

    __slots__ = ("function", "kind", "name")

    def __init__(self, function: Callable[..., Any], kind: Kind, route: str) -> None:
        self.function = function
        self.kind = kind
        self.name = f"the {kind.name.lower()} handler {route!r}"


class Service:
    """Handlers for what peers ask. One service may serve any number of connections, over any protocols.

    Register handlers by decorating them::

        @service.call("quotes.latest")
        def latest(request: Payload) -> Payload: ...

    A handler is a plain function, which is the fastest, a coroutine function, or where it sends many items a
    generator or async generator; it may also return any iterable or async iterable. Items are
    :class:`~penstock.Payload`, bytes or strings, or many at once as a ``pyarrow.RecordBatch``. The empty route
    answers requests that name none.

    A handler fails its stream by raising. Only an :exc:`~penstock.ApplicationError` tells the peer its text;
    any other exception is logged here, and the peer learns just that the handler failed.

    Args:
        interceptors: What stands around all of its handlers, the first being the outermost; see
            :meth:`intercept`. A service without any calls its handlers directly.

    Attributes:
        interceptors: All of them.
        serving: Somebody serves it: its interceptors are not to change any more.

    """

    def __init__(self, *, interceptors: Iterable[Interceptor] = ()) -> None:
        self.interceptors: list[Interceptor] = []
        self.serving = False
        for interceptor in interceptors:
            self.intercept(interceptor)
        self._handlers: dict[int, dict[str, Handler]] = {kind: {} for kind in Kind}
        self._push: Callable[[bytes], None] | None = None

    def call(self, route: str) -> Callable[[H], H]:
        """Answer calls: ``handler(request)`` returns one item."""
        return self._register(Kind.CALL, route)

    def fire(self, route: str) -> Callable[[H], H]:
        """Take what is fired: ``handler(request)`` returns nothing, and nobody learns whether it failed."""
        return self._register(Kind.FIRE, route)

    def stream(self, route: str) -> Callable[[H], H]:
        """Answer with a stream: ``handler(request)`` yields items, or returns what yields them."""
        return self._register(Kind.STREAM, route)

    def upload(self, route: str) -> Callable[[H], H]:
        """Take many items: ``handler(request, items)`` returns one; `items` are those after the request."""
        return self._register(Kind.UPLOAD, route)

    def channel(self, route: str) -> Callable[[H], H]:
        """Take many items and send many: ``handler(request, items)`` yields them; `items` follow the request."""
        return self._register(Kind.CHANNEL, route)

    def push(self, handler: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Take metadata that a peer pushes for the whole connection: ``handler(metadata)``, a plain function."""
        if self._push is not None:
            raise LocalError("there is a push handler already; a service has one")
        self._push = handler
        return handler

    def intercept(self, interceptor: Interceptor) -> Interceptor:
        """Put ``async def interceptor(request, next)`` around every handler, within those that are there already.

        It sees every request, also those that no handler is there for, and returns what ``await next(request)``
        does, or something in its place; see :class:`~penstock.Request`. Pushed metadata does not pass it.

        Raises:
            LocalError: It takes other arguments, or the service is being served without it.

        """
        if self.serving:
            raise LocalError(
                "the service is served already, without this interceptor; add it before serve() or connect()"
            )
        check_interceptor(interceptor)
        self.interceptors.append(interceptor)
        return interceptor

    def find(self, kind: int, route: str) -> Handler | None:
        """Return the handler of a request. An upload asks like a channel."""
        handler = self._handlers[kind].get(route)
        if handler is None and kind == Kind.CHANNEL:
            handler = self._handlers[Kind.UPLOAD].get(route)
        return handler

    def kind_of(self, route: str) -> Kind | None:
        """Return the kind of the handler of that route, for protocols whose requests do not say it; FIRE is none."""
        for kind in (Kind.CALL, Kind.STREAM, Kind.UPLOAD, Kind.CHANNEL):
            if route in self._handlers[kind]:
                return kind
        return None

    def pushed(self, metadata: bytes) -> None:
        """Hand pushed metadata to the push handler; without one it is ignored."""
        if self._push is not None:
            self._push(metadata)

    def routes(self) -> list[tuple[Kind, str]]:
        """Return what is offered, sorted."""
        return sorted((Kind(kind), route) for kind, handlers in self._handlers.items() for route in handlers)

    def _register(self, kind: Kind, route: str) -> Callable[[H], H]:
        if not isinstance(route, str):
            raise LocalError(f"a route is a string, as in @service.{kind.name.lower()}('name'), not {route!r}")

        def decorate(function: H) -> H:
            _check(function, kind, route)
            taken = self._handlers[kind].get(route)
            if taken is None and kind >= Kind.UPLOAD:
                taken = self._handlers[Kind.UPLOAD].get(route) or self._handlers[Kind.CHANNEL].get(route)
            if taken is not None:
                raise LocalError(f"{taken.name} is registered already; choose another route")
            self._handlers[kind][route] = Handler(function, kind, route)
            return function

        return decorate


def check_interceptor(interceptor: Interceptor) -> None:
    """Refuse what cannot be called as an interceptor is.

    Raises:
        LocalError: It takes other arguments.

    """
    try:
        inspect.signature(interceptor).bind("request", "next")
    except TypeError as error:
        raise LocalError(f"the interceptor {interceptor!r} is called with (request, next): {error}") from None


def _check(function: Callable[..., Any], kind: Kind, route: str) -> None:
    """Refuse a function that cannot answer requests of `kind`, here and not when the first one comes.

    Raises:
        LocalError: It takes other arguments, or yields where one item is due.

    """
    what = f"the {kind.name.lower()} handler {route!r}"
    wanted = ("request", "items") if kind.sends_items else ("request",)
    try:
        signature = inspect.signature(function, eval_str=True)
    except NameError:
        # An annotation that can be read by type checkers alone.
        signature = inspect.signature(function)
    try:
        signature.bind(*wanted)
    except TypeError as error:
        raise LocalError(f"{what} is called with ({', '.join(wanted)}): {error}") from None
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if yields and kind not in (Kind.STREAM, Kind.CHANNEL):
        raise LocalError(f"{what} yields items, but it must return; register it as a stream or channel")
    first = next(iter(signature.parameters.values()))
    if first.annotation not in RAW and not isinstance(first.annotation, str):
        raise LocalError(f"{what} annotates its request as {first.annotation!r}; handlers take a Payload")
