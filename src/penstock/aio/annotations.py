"""What a handler's annotations say of its data."""

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
"""Annotations of a request that is taken as it is; as strings where only type checkers can read them."""
UNKNOWN: Final = (inspect.Parameter.empty, Payload, Any, object, None, type(None))
"""Annotations of an answer that say nothing of its data."""


class Types(NamedTuple):
    """Types or JSON Schemas of a handler's data; None: nothing is known, or it is taken as it is.

    Attributes:
        init: Of the request.
        request: Of the items that follow the request.
        response: Of the answer, or of each of its items.
        errors: What the handler may raise.
        description: What it does.

    """

    init: Any = None
    request: Any = None
    response: Any = None
    errors: tuple[Any, ...] = ()
    description: str = ""

    @property
    def typed(self) -> bool:
        """Whether anything is converted."""
        return any(wanted is not None for wanted in self[:3])


UNTYPED: Final = Types()


def types_of(function: Callable[..., Any], kind: Kind, given: Types) -> Types:
    """Return the types of a handler: those that were given with its route, else those of its annotations.

    Raises:
        LocalError: The request's annotation, or that of a typed handler's answer, cannot be read at run time.

    """
    signature = inspect.signature(function)
    arguments = [_read(function, each.annotation) for each in signature.parameters.values()]
    what = f"the {kind.name.lower()} handler {getattr(function, '__name__', function)!r}"
    init = given.init
    if init is None and arguments[0] not in RAW:
        init = _taken(arguments[0], what, "request")
    request = given.request
    if request is None and kind.sends_items and len(arguments) > 1:
        request = _items_type(arguments[1], what)
    response = given.response
    if response is None and kind is not Kind.FIRE:
        answer = _read(function, signature.return_annotation)
        response = _response_type(answer, kind, init is not None or request is not None, what)
    return Types(init, request, response, given.errors, _description(function))


def takes_payload(function: Callable[..., Any]) -> bool:
    """Return whether a handler says that it wants its request as it came."""
    first = next(iter(inspect.signature(function).parameters.values()))
    return _read(function, first.annotation) in (Payload, "Payload", "penstock.Payload")


def _read(function: Callable[..., Any], annotation: Any) -> Any:
    """Return what an annotation names; the string itself where only type checkers can read it."""
    if not isinstance(annotation, str):
        return annotation
    # Callable objects and partial functions have no globals of their own.
    inner = inspect.unwrap(getattr(function, "func", function))
    try:
        return eval(annotation, getattr(inner, "__globals__", {}))
    except (NameError, AttributeError):
        return annotation


def _readable(annotation: Any, what: str, part: str) -> Any:
    if isinstance(annotation, str):
        raise LocalError(
            f"{what} annotates its {part} as {annotation!r}, which cannot be found at run time; define or import "
            "it at the top of the module, or take a Payload"
        )
    return annotation


def _taken(annotation: Any, what: str, part: str) -> Any:
    """Return the type that a handler takes."""
    if annotation is bytes:
        # It would mean text in base64 as JSON has it, which is hardly what was meant.
        raise LocalError(f"{what} annotates its {part} as bytes; take a Payload, whose data they are")
    return _readable(annotation, what, part)


def _items_type(annotation: Any, what: str) -> Any:
    """Return the type of each item that a handler takes; None where it takes them as they are."""
    element = _element(_readable(annotation, what, "items") if annotation not in ("Items", "penstock.Items") else None)
    return None if element in UNKNOWN else _taken(element, what, "items")


def _response_type(annotation: Any, kind: Kind, typed: bool, what: str) -> Any:
    """Return the type of a handler's answer, or of each item; None where it is not known.

    What an untyped handler returns is its own matter, unless it is a structure that cannot travel as it is.
    """
    if isinstance(annotation, str) and not typed:
        return None
    annotation = _readable(annotation, what, "answer")
    if isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Awaitable):
        annotation = get_args(annotation)[-1]
    if kind.answers_items:
        annotation = _element(annotation)
    if annotation in UNKNOWN:
        return None
    return annotation if typed or _is_structure(annotation) else None


def _element(annotation: Any) -> Any:
    """Return the type of what an annotated iterable yields; None where that does not say."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(origin, type) or issubclass(origin, Mapping) or not arguments:
        return None
    return arguments[0] if issubclass(origin, AsyncIterable | Iterable) else None


def _is_structure(annotation: Any) -> bool:
    """Whether a type, or a part of it, has fields."""
    if isinstance(annotation, type) and (
        is_dataclass(annotation) or is_typeddict(annotation) or hasattr(annotation, "__struct_fields__")
    ):
        return True
    return any(_is_structure(part) for part in get_args(annotation))


def _description(function: Callable[..., Any]) -> str:
    """Return what a function's own docstring says."""
    text = getattr(function, "__doc__", None) if inspect.isroutine(function) else None
    return inspect.cleandoc(text) if text else ""
