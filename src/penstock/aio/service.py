"""What a side offers to its peers: handlers by kind and route."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..errors import LocalError
from ..kinds import Kind
from .annotations import Types, types_of
from .handlers import Handler, Interceptor, check_interceptor

__all__ = ["Service"]

H = TypeVar("H", bound=Callable[..., Any])


class Service:
    """Handlers for what peers ask. One service may serve any number of connections, over any protocols.

    Register handlers by decorating them::

        @service.call("quotes.latest")
        def latest(request: Payload) -> Payload: ...

    A handler is a plain function, which is the fastest, a coroutine function, or where it sends many items a
    generator or async generator; it may also return any iterable or async iterable. Items are
    :class:`~penstock.Payload`, bytes or strings, or many at once as a ``pyarrow.RecordBatch``. The empty route
    answers requests that name none.

    A handler that is annotated by other types is typed: its requests are decoded, and its answers encoded, as the MIME
    type of the connection's data says, or that of the request itself; see :class:`~penstock.TypedPeer`. Types, or JSON
    Schemas, may also be given with the route: `init` is the request's, `request` that of the items behind it,
    `response` that of the answer or of each of its items, and `errors` are those it may raise, subclasses of
    :class:`~penstock.TypedError`.

    A handler fails its stream by raising. Only an :exc:`~penstock.ApplicationError` tells the peer its text;
    any other exception is logged here, and the peer learns just that the handler failed.

    Args:
        interceptors: What stands around all of its handlers, the first being the outermost; see
            :meth:`intercept`. A service without any calls its handlers directly.

    Attributes:
        interceptors: All of them.
        serving: Somebody serves it: its interceptors are not to change any more.
        typed: One of its handlers is typed.

    """

    def __init__(self, *, interceptors: Iterable[Interceptor] = ()) -> None:
        self.interceptors: list[Interceptor] = []
        self.serving = False
        self.typed = False
        for interceptor in interceptors:
            self.intercept(interceptor)
        self._handlers: dict[int, dict[str, Handler]] = {kind: {} for kind in Kind}
        self._kinds: dict[str, Kind] = {}
        self._push: Callable[[bytes], None] | None = None

    def call(
        self, route: str, *, init: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Answer calls: ``handler(request)`` returns one item, or a coroutine for it.

        Use it as a decorator; the handler is returned as it is.

        Args:
            route: Its name. A service has one handler of a route and kind.
            init: The type or JSON Schema of the request; else what the handler's annotation says.
            response: The same, of the answer.
            errors: Those that it may raise, by name: subclasses of :class:`~penstock.TypedError`.

        Raises:
            LocalError: The route is taken or no string, or the handler cannot be called so.

        """
        return self._register(Kind.CALL, route, Types(init, None, response, tuple(errors)))

    def fire(self, route: str, *, init: Any = None) -> Callable[[H], H]:
        """Take what is fired: ``handler(request)`` returns nothing, and nobody learns whether it failed.

        Use it as a decorator. Arguments and errors are those of :meth:`call`.
        """
        return self._register(Kind.FIRE, route, Types(init))

    def stream(
        self, route: str, *, init: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Answer with a stream: ``handler(request)`` yields items, or returns what yields them.

        Use it as a decorator. Arguments and errors are those of :meth:`call`; `response` is the type of each item.
        """
        return self._register(Kind.STREAM, route, Types(init, None, response, tuple(errors)))

    def upload(
        self, route: str, *, init: Any = None, request: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Take many items: ``handler(request, items)`` returns one; `items` are those after the request.

        Use it as a decorator. Arguments and errors are those of :meth:`call`; `request` is the type of each item after
        the request.
        """
        return self._register(Kind.UPLOAD, route, Types(init, request, response, tuple(errors)))

    def channel(
        self, route: str, *, init: Any = None, request: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Take many items and send many: ``handler(request, items)`` yields them; `items` follow the request.

        Use it as a decorator. Arguments and errors are those of :meth:`call`; `request` is the type of each item after
        the request, `response` that of each item that is sent.
        """
        return self._register(Kind.CHANNEL, route, Types(init, request, response, tuple(errors)))

    def push(self, handler: Callable[[bytes], None]) -> Callable[[bytes], None]:
        """Take metadata that a peer pushes for the whole connection: ``handler(metadata)``, a plain function.

        Use it as a decorator. What the handler raises is logged.

        Raises:
            LocalError: The service has a push handler already.

        """
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

    def find(self, kind: int, route: str, calls_by_streams: bool = False) -> Handler | None:
        """Return the handler of a request. An upload asks like a channel, and a call by some protocols like a stream.

        Args:
            kind: How it asks.
            route: Whom it asks.
            calls_by_streams: This is such a protocol.

        """
        handler = self._handlers[kind].get(route)
        if handler is None and kind == Kind.CHANNEL:
            handler = self._handlers[Kind.UPLOAD].get(route)
        elif handler is None and kind == Kind.STREAM and calls_by_streams:
            handler = self._handlers[Kind.CALL].get(route)
        return handler

    def kind_of(self, route: str) -> Kind | None:
        """Return the kind of the handler of that route, for protocols whose requests do not say it; FIRE is none."""
        return self._kinds.get(route)

    def pushed(self, metadata: bytes) -> None:
        """Hand pushed metadata to the push handler; without one it is ignored."""
        if self._push is not None:
            self._push(metadata)

    def routes(self) -> list[tuple[Kind, str]]:
        """Return what is offered, sorted."""
        return sorted((Kind(kind), route) for kind, handlers in self._handlers.items() for route in handlers)

    def schema(self, handshake: Any = None) -> dict[str, Any]:
        """Return what is known of the data of all handlers, in the form that River's reference exports.

        Args:
            handshake: The type, or the JSON Schema, of what a client says of itself when it connects.

        Raises:
            LocalError: A type has no JSON Schema.

        """
        from ..schema.export import Procedure, export

        return export(
            {
                route: Procedure(handler.kind.name, *handler.types)
                for handlers in self._handlers.values()
                for route, handler in handlers.items()
            },
            handshake,
        )

    def _register(self, kind: Kind, route: str, given: Types) -> Callable[[H], H]:
        if not isinstance(route, str):
            raise LocalError(f"a route is a string, as in @service.{kind.name.lower()}('name'), not {route!r}")

        def decorate(function: H) -> H:
            _check(function, kind, route)
            taken = self._handlers[kind].get(route)
            if taken is None and kind >= Kind.UPLOAD:
                taken = self._handlers[Kind.UPLOAD].get(route) or self._handlers[Kind.CHANNEL].get(route)
            if taken is not None:
                raise LocalError(f"{taken.name} is registered already; choose another route")
            self._handlers[kind][route] = self._handler(function, kind, route, given)
            if kind != Kind.FIRE:
                # Of several, the one with the least items.
                self._kinds[route] = min(kind, self._kinds.get(route, kind))
            return function

        return decorate

    def _handler(self, function: Callable[..., Any], kind: Kind, route: str, given: Types) -> Handler:
        """Return what runs `function`: itself, unless it is typed."""
        types = types_of(function, kind, given)
        if not types.typed:
            return Handler(function, kind, route, types)
        if self.serving and not self.typed:
            raise LocalError(
                "the service is served already, without typed handlers; add them before serve() or connect()"
            )
        from .typed import TypedHandler

        handler = TypedHandler(function, kind, route, types)
        self.typed = True
        return handler


def _check(function: Callable[..., Any], kind: Kind, route: str) -> None:
    """Refuse a function that cannot answer requests of `kind`, here and not when the first one comes.

    Raises:
        LocalError: It takes other arguments, or yields where one item is due.

    """
    what = f"the {kind.name.lower()} handler {route!r}"
    wanted = ("request", "items") if kind.sends_items else ("request",)
    signature = inspect.signature(function)
    try:
        signature.bind(*wanted)
    except TypeError as error:
        raise LocalError(f"{what} is called with ({', '.join(wanted)}): {error}") from None
    yields = inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function)
    if yields and kind not in (Kind.STREAM, Kind.CHANNEL):
        raise LocalError(f"{what} yields items, but it must return; register it as a stream or channel")
