"""Reads the types of a handler's data from its annotations."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from dataclasses import is_dataclass
from typing import Any, Final, NamedTuple, get_args, get_origin, is_typeddict

from ..errors import LocalError
from ..kinds import Kind
from ..payload import Payload

__all__ = ["UNTYPED", "Types", "takes_payload", "types_of"]

RAW: Final = (inspect.Parameter.empty, Payload, Any, object, "Payload", "penstock.Payload", "Any", "object")
"""Annotations of a request that is not decoded; strings if the names exist only for type checkers."""
UNKNOWN: Final = (inspect.Parameter.empty, Payload, Any, object, None, type(None))
"""Annotations of a response that do not name the type of its data."""


class Types(NamedTuple):
    """Types or JSON Schemas of a handler's data; None if unknown, or if the data is not converted.

    Attributes:
        init: The type of the request.
        request: The type of the items that follow the request.
        response: The type of the response, or of each of its items.
        errors: The errors that the handler may raise.
        description: The handler's docstring.

    """

    init: Any = None
    request: Any = None
    response: Any = None
    errors: tuple[Any, ...] = ()
    description: str = ""

    @property
    def typed(self) -> bool:
        """True if any data is converted."""
        return any(wanted is not None for wanted in self[:3])


UNTYPED: Final = Types()


def types_of(function: Callable[..., Any], kind: Kind, given: Types) -> Types:
    """Return the types of a handler: those given with its route, otherwise those of its annotations.

    Raises:
        LocalError: The annotation of the request, or of a typed handler's response, cannot be resolved at run time.

    """
    signature = inspect.signature(function)
    arguments = [_read(function, each.annotation) for each in signature.parameters.values()]
    what = f"the {kind.name.lower()} handler {getattr(function, '__name__', function)!r}"
    init = given.init
    if init is None and arguments[0] not in RAW:
        init = _decodable(arguments[0], what, "request")
    request = given.request
    if request is None and kind.sends_items and len(arguments) > 1:
        request = _items_type(arguments[1], what)
    response = given.response
    if response is None and kind is not Kind.FIRE:
        answer = _read(function, signature.return_annotation)
        response = _response_type(answer, kind, init is not None or request is not None, what)
    return Types(init, request, response, given.errors, _description(function))


def takes_payload(function: Callable[..., Any]) -> bool:
    """Return True if a handler annotates its request as a Payload."""
    first = next(iter(inspect.signature(function).parameters.values()))
    return _read(function, first.annotation) in (Payload, "Payload", "penstock.Payload")


def _read(function: Callable[..., Any], annotation: Any) -> Any:
    """Return the object that an annotation names; the string itself if the name exists only for type checkers."""
    if not isinstance(annotation, str):
        return annotation
    # Callable objects and partial functions do not have `__globals__`.
    inner = inspect.unwrap(getattr(function, "func", function))
    try:
        return eval(annotation, getattr(inner, "__globals__", {}))
    except (NameError, AttributeError):
        return annotation


def _readable(annotation: Any, what: str, part: str) -> Any:
    if isinstance(annotation, str):
        raise LocalError(
            f"{what} annotates its {part} as {annotation!r}, which cannot be resolved at run time; define or import "
            "it at the top of the module, or use Payload"
        )
    return annotation


def _decodable(annotation: Any, what: str, part: str) -> Any:
    """Return the type of an argument, which is not bytes."""
    if annotation is bytes:
        # msgspec would decode base64 text from JSON, which is hardly intended.
        raise LocalError(f"{what} annotates its {part} as bytes; use Payload, and read its data")
    return _readable(annotation, what, part)


def _items_type(annotation: Any, what: str) -> Any:
    """Return the type of each received item; None if items are not decoded."""
    element = _element(_readable(annotation, what, "items") if annotation not in ("Items", "penstock.Items") else None)
    return None if element in UNKNOWN else _decodable(element, what, "items")


def _response_type(annotation: Any, kind: Kind, typed: bool, what: str) -> Any:
    """Return the type of a handler's response, or of each item; None if it is unknown.

    The response of an untyped handler is not converted, unless its type is a structure, which must be encoded.
    """
    if isinstance(annotation, str) and not typed:
        return None
    annotation = _readable(annotation, what, "response")
    if isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Awaitable):
        annotation = get_args(annotation)[-1]
    if kind.answers_items:
        annotation = _element(annotation)
    if annotation in UNKNOWN:
        return None
    return annotation if typed or _is_structure(annotation) else None


def _element(annotation: Any) -> Any:
    """Return the type of the items of an annotated iterable; None if it is not annotated."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(origin, type) or issubclass(origin, Mapping) or not arguments:
        return None
    return arguments[0] if issubclass(origin, AsyncIterable | Iterable) else None


def _is_structure(annotation: Any) -> bool:
    """Return True if a type, or one of its arguments, has fields."""
    if isinstance(annotation, type) and (
        is_dataclass(annotation) or is_typeddict(annotation) or hasattr(annotation, "__struct_fields__")
    ):
        return True
    return any(_is_structure(part) for part in get_args(annotation))


def _description(function: Callable[..., Any]) -> str:
    """Return the docstring of a function; empty for other callables, which inherit that of their class."""
    text = getattr(function, "__doc__", None) if inspect.isroutine(function) else None
    return inspect.cleandoc(text) if text else ""
