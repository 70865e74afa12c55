"""Services: tables of handlers by kind and route."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from importlib import import_module
from os import PathLike
from typing import Any, TypeVar

from ..errors import LocalError
from ..functions import yields
from ..kinds import Kind
from ..settings import Settings
from .annotations import REQUEST, Types, arguments_of, types_of
from .handlers import Handler, Interceptor, check_interceptor
from .routes import Patterns, RoutedHandler, has_variables, with_variables
from .surrounding import surrounding_of

__all__ = ["Service"]

H = TypeVar("H", bound=Callable[..., Any])
RESERVED = "has the route of descriptions; choose another route, or leave Settings.reflection out"


class Service:
    """The handlers of requests. One service may serve any number of connections, over any protocols.

    Register handlers with decorators::

        @service.call("quotes.latest")
        def latest(request: Payload) -> Payload: ...

    A handler that needs no request has no parameters, or only `items`.

    A handler is a plain function, which is the fastest, or a coroutine function. A handler of many items may also be a
    generator or async generator, or return any iterable or async iterable. Items are :class:`~weirpool.Payload`, bytes
    or strings, or many at once as a ``pyarrow.RecordBatch``. The handler with the empty route answers requests without
    a route.

    A route may have variables, which are whole segments between dots: the handler of ``quotes.{symbol}`` also receives
    the argument `symbol`, converted to its annotated type. A route without variables goes before one with them, and a
    literal segment before a variable.

    A handler with other annotated types, such as `Any`, is typed: its requests are decoded and its responses encoded,
    in the format of the connection's data MIME type, or of the request's own; see :class:`~weirpool.TypedPeer`. Types,
    or JSON Schemas, may also be passed to the decorator: `init` for the request, `request` for the items after it,
    `response` for the response or each of its items, and `errors` for the errors that it may raise, subclasses of
    :class:`~weirpool.TypedError`. A type that cannot be decoded is refused.

    A handler fails its stream by raising. Only the text of an :exc:`~weirpool.ApplicationError` is sent to the peer.
    Any other exception is logged, and the peer is told only that the handler failed.

    Args:
        interceptors: Functions around all handlers, the outermost first; see :meth:`intercept`. A service without
            interceptors calls its handlers directly.

    Attributes:
        interceptors: The interceptors, the outermost first.
        serving: True once a server or client uses the service: interceptors can no longer be added.
        typed: True if any handler is typed.

    """

    by_demand = False
    """True if items after a request are requested only as handlers permit it; see `Items._allow`."""

    def __init__(self, *, interceptors: Iterable[Interceptor] = ()) -> None:
        self.interceptors: list[Interceptor] = []
        self.serving = False
        self.typed = False
        self._reserved: set[str] = set()
        for interceptor in interceptors:
            self.intercept(interceptor)
        self._handlers: dict[int, dict[str, Handler]] = {kind: {} for kind in Kind}
        self._kinds: dict[str, Kind] = {}
        self._patterns: dict[int, Patterns] = {}
        self._converters: dict[Handler, tuple[str, Callable[[list[str]], Any]]] = {}
        self._push: Callable[[bytes], Any] | None = None

    def call(
        self, route: str, *, init: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Register a handler of calls: ``handler(request)`` returns one item, or an awaitable of it.

        Use it as a decorator. It returns the handler unchanged.

        Args:
            route: The name of the handler. A service has one handler for each route and kind.
            init: The type or JSON Schema of the request; the handler's annotation by default.
            response: The type or JSON Schema of the response; the handler's annotation by default.
            errors: The errors that the handler may raise: subclasses of :class:`~weirpool.TypedError`.

        Raises:
            LocalError: The route is taken or not a string, or the handler takes other arguments.

        """
        return self._register(Kind.CALL, route, Types(init, None, response, tuple(errors)))

    def fire(self, route: str, *, init: Any = None) -> Callable[[H], H]:
        """Register a handler of requests without a response: ``handler(request)``. Its errors are only logged.

        Use it as a decorator. Arguments and errors are those of :meth:`call`.
        """
        return self._register(Kind.FIRE, route, Types(init))

    def stream(
        self, route: str, *, init: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Register a handler of streams: ``handler(request)`` yields items, or returns an iterable of them.

        Use it as a decorator. Arguments and errors are those of :meth:`call`; `response` is the type of each item.
        """
        return self._register(Kind.STREAM, route, Types(init, None, response, tuple(errors)))

    def upload(
        self, route: str, *, init: Any = None, request: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Register a handler of uploads: ``handler(request, items)`` returns one item for many.

        `items` is a :class:`~weirpool.Items` of the items after the request. Use it as a decorator. Arguments and
        errors are those of :meth:`call`; `request` is the type of each item after the request.
        """
        return self._register(Kind.UPLOAD, route, Types(init, request, response, tuple(errors)))

    def channel(
        self, route: str, *, init: Any = None, request: Any = None, response: Any = None, errors: Iterable[Any] = ()
    ) -> Callable[[H], H]:
        """Register a handler of channels: ``handler(request, items)`` receives items and yields items.

        `items` is as for :meth:`upload`. Use it as a decorator. Arguments and errors are those of :meth:`call`;
        `request` is the type of each item after the request, `response` that of each item that the handler yields.
        """
        return self._register(Kind.CHANNEL, route, Types(init, request, response, tuple(errors)))

    def journal(self, route: str, path: str | PathLike[str], *, source: str | None = None) -> None:
        """Register a stream of the rows of a journal: history from where the client asks, then live items.

        A publisher that cannot replay gets replay: collect it, and serve the journal. Each client reads at its own
        pace, and holds up neither the collector nor other clients. `docs/how-to/share-journals.md` has the requests.

        Args:
            route: The name of the handler.
            path: The journal's folder, which need not exist yet.
            source: The log; None: the one that the client names, or the only one.

        Raises:
            LocalError: The route is taken, or `source` is not a valid name.

        """
        # A package above this one, which needs pyarrow.
        feed = import_module("..serving.feed", __package__)
        self.stream(route)(feed.JournalFeed(path, source))

    def push(self, handler: H) -> H:
        """Register a handler ``handler(metadata)`` for metadata that a peer pushes for the whole connection.

        It is a plain function or a coroutine function. Metadata of one connection is handled in order: while a
        coroutine function runs, further metadata waits, and too much of it stops reading. Errors are logged. Use it as
        a decorator.

        Raises:
            LocalError: The service already has a push handler, or the handler takes other arguments, or yields.

        """
        if self._push is not None:
            raise LocalError("the service already has a push handler; it can have only one")
        if yields(handler):
            raise LocalError("the push handler yields items, which nobody would receive; let it return")
        try:
            inspect.signature(handler).bind(b"metadata")
        except ValueError:
            # Some functions of C have no signature.
            pass
        except TypeError as error:
            raise LocalError(f"the push handler must accept (metadata): {error}") from None
        self._push = handler
        return handler

    def intercept(self, interceptor: Interceptor) -> Interceptor:
        """Add ``async def interceptor(request, next)`` around every handler, inside the existing interceptors.

        It receives every :class:`~weirpool.Request`, including those without a handler, but not pushed metadata. It
        returns the result of ``await next(request)``, or a replacement of the same kind. It may be used as a decorator.

        Raises:
            LocalError: It takes other arguments, or the service is already in use.

        """
        if self.serving:
            raise LocalError("the service is already in use; add interceptors before serve() or connect()")
        check_interceptor(interceptor)
        self.interceptors.append(interceptor)
        return interceptor

    def begin(self, settings: Settings) -> None:
        """Note that a server or client uses the service from now on, with these settings.

        Raises:
            LocalError: With `Settings.reflection`, the route of descriptions belongs to a handler.

        """
        self.serving = True
        if settings.reflection:
            from ..reflection.description import ROUTE

            self._reserved.add(ROUTE)
            for handlers in self._handlers.values():
                if ROUTE in handlers:
                    raise LocalError(f"{handlers[ROUTE].name} {RESERVED}")

    def find(self, kind: int, route: str, calls_by_streams: bool = False) -> Handler | None:
        """Return the handler of a request. Uploads arrive as channels, and calls as streams in some protocols.

        Args:
            kind: The kind of the request.
            route: The route of the request.
            calls_by_streams: True if calls arrive as streams.

        """
        handler = self._handlers[kind].get(route)
        if handler is None and kind == Kind.CHANNEL:
            handler = self._handlers[Kind.UPLOAD].get(route)
        elif handler is None and kind == Kind.STREAM and calls_by_streams:
            handler = self._handlers[Kind.CALL].get(route)
        if handler is None and self._patterns:
            return self._routed(kind, route, calls_by_streams)
        return handler

    def _routed(self, kind: int, route: str, calls_by_streams: bool) -> Handler | None:
        """Return the handler of a request whose route has values of variables."""
        others = (Kind.UPLOAD,) if kind == Kind.CHANNEL else (Kind.CALL,) if calls_by_streams else ()
        for each in (kind, *others):
            found = self._patterns[each].find(route) if each in self._patterns else None
            if found is not None:
                handler, values = found
                pattern, convert = self._converters[handler]
                return RoutedHandler(handler, pattern, partial(convert, values))
        return None

    def handles(self, kind: int, route: str) -> bool:
        """Return whether a handler is registered for requests of a kind, as they arrive, with exactly this route.

        A route with values of variables is chosen by a stranger, so that statistics must not have a row for it.
        """
        handler = Service.find(self, kind, route, True)
        return handler is not None and handler.lasting

    def kind_of(self, route: str) -> int | None:
        """Return the kind of a route's handler other than FIRE, for protocols whose requests do not have a kind."""
        kind = self._kinds.get(route)
        if kind is None and self._patterns:
            kinds = (each for each in Kind if each != Kind.FIRE and each in self._patterns)
            return next((each for each in kinds if self._patterns[each].find(route) is not None), None)
        return kind

    def pushed(self, metadata: bytes) -> Any:
        """Pass pushed metadata to the push handler, and return its result; without one it is ignored."""
        return None if self._push is None else self._push(metadata)

    def routes(self) -> list[tuple[Kind, str]]:
        """Return the kind and route of each handler, sorted."""
        return sorted((handler_kind, route) for handler_kind, route, _ in self._all())

    def _all(self) -> Iterator[tuple[Kind, str, Handler]]:
        """Yield the kind, the route and the handler of each."""
        for kind in Kind:
            patterns = self._patterns[kind].handlers if kind in self._patterns else {}
            for route, handler in (self._handlers[kind] | patterns).items():
                yield kind, route, handler

    def schema(self, handshake: Any = None) -> dict[str, Any]:
        """Return the schema of all handlers, in the format that River's reference implementation exports.

        Args:
            handshake: The type or JSON Schema of a client's handshake metadata.

        Raises:
            LocalError: A type has no JSON Schema.

        """
        from ..schema.export import Procedure, export

        return export(
            {route: Procedure(handler.kind.name, *handler.types.described) for _, route, handler in self._all()},
            handshake,
        )

    def _register(self, kind: Kind, route: str, given: Types) -> Callable[[H], H]:
        if not isinstance(route, str):
            raise LocalError(f"a route is a string, such as @service.{kind.name.lower()}('name'), not {route!r}")

        def decorate(function: H) -> H:
            if route in self._reserved:
                raise LocalError(f"the {kind.name.lower()} handler {route!r} {RESERVED}")
            if has_variables(route):
                self._register_pattern(function, kind, route, given)
                return function
            _check(function, kind, route)
            taken = self._handlers[kind].get(route)
            if taken is None and kind >= Kind.UPLOAD:
                taken = self._handlers[Kind.UPLOAD].get(route) or self._handlers[Kind.CHANNEL].get(route)
            if taken is not None:
                raise LocalError(f"{taken.name} is already registered; choose another route")
            self._handlers[kind][route] = self._handler(function, kind, route, given)
            if kind != Kind.FIRE:
                # Of several kinds, the one with the fewest items.
                self._kinds[route] = min(kind, self._kinds.get(route, kind))
            return function

        return decorate

    def _register_pattern(self, function: Callable[..., Any], kind: Kind, route: str, given: Types) -> None:
        """Register the handler of a route with variables."""
        written, convert = with_variables(function, route)
        _check(written, kind, route)
        handler = self._handler(written, kind, route, given)
        self._patterns.setdefault(kind, Patterns()).add(route, handler)
        self._converters[handler] = route, convert

    def _handler(self, function: Callable[..., Any], kind: Kind, route: str, given: Types) -> Handler:
        """Return the handler that calls `function`."""
        surrounding = surrounding_of(function)
        types = types_of(function if surrounding is None else surrounding.handler, kind, given)
        if not types.typed:
            return Handler(_with_all_arguments(function, kind), kind, route, types)
        if self.serving and not self.typed:
            raise LocalError("the service is already in use; add its first typed handler before serve() or connect()")
        from .typed import TypedHandler

        handler = TypedHandler(function, kind, route, types)
        self.typed = True
        return handler


def _with_all_arguments(function: Callable[..., Any], kind: Kind) -> Callable[..., Any]:
    """Return a function that takes the request, and the items if there are any, and passes on what a handler takes."""
    arguments = arguments_of(function, kind)
    if REQUEST in arguments:
        return function
    return (lambda request, items: function(items)) if arguments else (lambda request: function())


def _check(function: Callable[..., Any], kind: Kind, route: str) -> None:
    """Check at registration that a function can handle requests of `kind`.

    Raises:
        LocalError: It takes other arguments, or yields items although its kind has a single response.

    """
    what = f"the {kind.name.lower()} handler {route!r}"
    wanted = arguments_of(function, kind)
    try:
        inspect.signature(function).bind(*wanted)
    except TypeError as error:
        others = ", or only items annotated as Items or AsyncIterator" if kind.sends_items else ", or nothing"
        raise LocalError(f"{what} must accept ({', '.join(wanted)}){others}: {error}") from None
    if yields(function) and kind not in (Kind.STREAM, Kind.CHANNEL):
        raise LocalError(f"{what} yields items, but its kind returns one; register it as a stream or channel")
