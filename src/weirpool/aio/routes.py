"""Routes with variables: ``quotes.{symbol}`` answers ``quotes.ACME``, and its handler receives `symbol`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, Final

import msgspec

from ..connection import Connection
from ..errors import Invalid, LocalError
from ..functions import is_async
from ..values.conversion import Conversion, Fix
from ..values.forms import TIME_FORMS
from .handlers import Handler

__all__ = ["Patterns", "RoutedHandler", "has_variables", "with_variables"]

_VARIABLES: Final[ContextVar[Mapping[str, Any]]] = ContextVar("weirpool_route_variables")
"""The variables of the request that is handled in this context; each request has its own."""
_BRACES: Final = re.compile(r"[{}]")


def has_variables(route: str) -> bool:
    """Return True if a registered route has braces."""
    return _BRACES.search(route) is not None


class RoutedHandler(Handler):
    """The handler of one request, whose route has the values of variables.

    Attributes:
        pattern: The route as it is registered.

    """

    __slots__ = ("_handler", "_variables", "pattern")
    # Strangers choose the values.
    lasting = False

    def __init__(self, handler: Handler, pattern: str, variables: Callable[[], Mapping[str, Any]]) -> None:
        super().__init__(partial(_call, variables, handler.function), handler.kind, "", handler.types)
        self.name, self.measure = handler.name, handler.measure
        self.pattern = pattern
        self._handler = handler
        self._variables = variables

    def bound(self, connection: Connection) -> Handler:
        """Return the handler for a request of one connection."""
        return RoutedHandler(self._handler.bound(connection), self.pattern, self._variables)


class Patterns:
    """The handlers of routes with variables, of one kind.

    A variable stands for one segment between dots, which is not empty. In its value, ``%2E`` is a dot. Of several
    routes that match, the first segment that differs decides: a literal one goes before a variable. The cost of a
    search is bounded by the number of registered routes.
    """

    def __init__(self) -> None:
        self.handlers: dict[str, Handler] = {}
        self._tree: dict[str, Any] = {}
        self._deepest = 0

    def add(self, route: str, handler: Handler) -> None:
        """Add a handler.

        Raises:
            LocalError: Another route has its variables in the same places.

        """
        node = self._tree
        segments = route.split(".")
        for segment in segments:
            # No segment of a request's route leads to this key, because "{" without a name is not registered.
            node = node.setdefault("{" if segment[:1] == "{" else segment, {})
        if _HERE in node:
            raise LocalError(f"{node[_HERE].name} is already registered, and matches the same routes as {route!r}")
        node[_HERE] = handler
        self.handlers[route] = handler
        self._deepest = max(self._deepest, len(segments))

    def find(self, route: str) -> tuple[Handler, list[str]] | None:
        """Return the handler of a request's route and the values of its variables, in order; None if none matches."""
        segments = route.split(".", self._deepest)
        return _match(self._tree, segments, 0, [])


_HERE: Final = ""
"""The key of a node's handler. A route with an empty segment has no variables."""


def _match(node: dict[str, Any], segments: list[str], at: int, values: list[str]) -> tuple[Handler, list[str]] | None:
    if at == len(segments):
        return (node[_HERE], values) if _HERE in node else None
    segment = segments[at]
    if not segment:
        return None
    if segment != "{" and segment in node:
        found = _match(node[segment], segments, at + 1, values)
        if found is not None:
            return found
    # As Spring writes a dot in the value of a variable.
    value = segment.replace("%2E", ".")
    return _match(node["{"], segments, at + 1, [*values, value]) if "{" in node else None


def names_in(route: str) -> list[str]:
    """Return the names of a route's variables, in order.

    Raises:
        LocalError: A variable is not a whole segment or has no valid name, or a name is used twice.

    """
    names = []
    for segment in route.split("."):
        if not segment:
            raise LocalError(f"the route {route!r} has variables and an empty segment; remove a dot")
        if not has_variables(segment):
            continue
        name = segment[1:-1]
        if segment[0] != "{" or segment[-1] != "}" or not name.isidentifier():
            raise LocalError(
                f"{segment!r} in the route {route!r} is not a variable; write {{name}}, as a whole segment between dots"
            )
        if name in names:
            raise LocalError(f"the route {route!r} has two variables named {name!r}")
        names.append(name)
    return names


def with_variables(function: Callable[..., Any], route: str) -> tuple[Callable[..., Any], Callable[[list[str]], Any]]:
    """Return a handler without the variables of its route, and a function that converts their values.

    The handler passes them to `function` by name. It must be called by a :class:`RoutedHandler`.

    Raises:
        LocalError: The route is not valid, or the function does not accept its variables by name.

    """
    names = names_in(route)
    signature = inspect.signature(function)
    parameters = signature.parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    missing = [name for name in names if name not in parameters and not takes_all]
    if missing:
        raise LocalError(f"the handler of the route {route!r} must accept {', '.join(missing)} as arguments")
    globals_of = getattr(inspect.unwrap(function), "__globals__", {})
    types = {name: _type_of(parameters.get(name), globals_of, route) for name in names}

    if is_async(function):

        @wraps(function)
        async def handle(*arguments: Any) -> Any:
            return await function(*arguments, **_VARIABLES.get())
    else:

        @wraps(function)
        def handle(*arguments: Any) -> Any:
            return function(*arguments, **_VARIABLES.get())

    kept = [each for name, each in parameters.items() if name not in names]
    handle.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]  # inspect reads it
    # Forms of times that msgspec refuses or rounds.
    fixes = {name: (wanted, Conversion(wanted, TIME_FORMS).fix) for name, wanted in types.items()}
    return handle, partial(_converted, fixes)


def _type_of(parameter: inspect.Parameter | None, names: dict[str, Any], route: str) -> Any:
    """Return the type of a variable; str without an annotation.

    Raises:
        LocalError: A text cannot be converted to the type.

    """
    annotation = str if parameter is None or parameter.annotation is parameter.empty else parameter.annotation
    try:
        found = eval(annotation, names) if isinstance(annotation, str) else annotation
        msgspec.json.Decoder(found)
    except (NameError, AttributeError, TypeError) as error:
        raise LocalError(f"a variable of the route {route!r} is annotated as {annotation!r}: {error}") from None
    return found


def _converted(types: Mapping[str, tuple[Any, Fix]], values: list[str]) -> dict[str, Any]:
    """Return the values of variables as their types.

    Raises:
        Invalid: A value does not match its type.

    """
    converted = {}
    for (name, (wanted, fix)), text in zip(types.items(), values, strict=True):
        if text == f"{{{name}}}":
            raise Invalid(message=f"the variable {text} in the route has no value; write a value in its place")
        try:
            converted[name] = msgspec.convert(fix(text), wanted, strict=False)
        except msgspec.ValidationError as error:
            raise Invalid(message=f"{name!r} in the route is not valid: {error}") from None
    return converted


def _call(variables: Callable[[], Mapping[str, Any]], function: Callable[..., Any], *arguments: Any) -> Any:
    # In the request's own context, which is that of its generator or task as well.
    _VARIABLES.set(variables())
    return function(*arguments)
