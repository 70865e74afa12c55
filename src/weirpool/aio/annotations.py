"""Reads the types of a handler's data from its annotations."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Mapping
from functools import reduce
from operator import or_
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from ..errors import LocalError
from ..kinds import Kind
from ..payload import MetadataPush, Payload, PayloadRun

__all__ = ["ITEMS", "REQUEST", "UNTYPED", "Types", "arguments_of", "takes_payload", "types_of"]

RAW: Final = (inspect.Parameter.empty, Payload, "Payload", "weirpool.Payload")
"""Annotations of data that is not converted; strings if the names exist only for type checkers."""
RAW_CLASSES: Final = (Payload, PayloadRun, MetadataPush, BaseException)
"""Classes of results that are sent as they are."""
ARROW: Final = ("__arrow_c_array__", "__arrow_c_stream__")
"""Attributes of record batches and tables, whose items are encoded already."""
REQUEST: Final = "request"
ITEMS: Final = "items"


class Types(NamedTuple):
    """Types or JSON Schemas of a handler's data; None if unknown, or if the data is not converted.

    Attributes:
        init: The type of the request.
        request: The type of the items that follow the request.
        response: The type of the response, or of each of its items.
        errors: The errors that the handler may raise.
        description: The handler's docstring.
        takes_request: False if the handler has no parameter for the request, which may be anything then.

    """

    init: Any = None
    request: Any = None
    response: Any = None
    errors: tuple[Any, ...] = ()
    description: str = ""
    takes_request: bool = True

    @property
    def typed(self) -> bool:
        """True if any data is converted."""
        return any(wanted is not None for wanted in self[:3])

    @property
    def described(self) -> tuple[Any, Any, Any, tuple[Any, ...], str]:
        """The types and the docstring for documents, in which a request that the handler does not take is null."""
        init = NoneType if self.typed and not self.takes_request else self.init
        return init, self.request, self.response, self.errors, self.description


UNTYPED: Final = Types()


def arguments_of(function: Callable[..., Any], kind: Kind) -> tuple[str, ...]:
    """Return which arguments a handler takes, in their order: REQUEST, and ITEMS if its kind has them.

    A handler that needs no request may have no parameters, or only the items.
    """
    full = (REQUEST, ITEMS) if kind.sends_items else (REQUEST,)
    parameters = list(inspect.signature(function).parameters.values())
    positional = [each for each in parameters if each.kind < each.VAR_POSITIONAL]
    if len(positional) >= len(full) or any(each.kind == each.VAR_POSITIONAL for each in parameters):
        return full
    if not kind.sends_items:
        return ()
    only_items = len(positional) == 1 and _is_items(_read(function, positional[0].annotation))
    return (ITEMS,) if only_items else full


def types_of(function: Callable[..., Any], kind: Kind, given: Types) -> Types:
    """Return the types of a handler: those given with its route, otherwise those of its annotations.

    Raises:
        LocalError: The annotation of the request, or of a typed handler's response, cannot be resolved at run time.

    """
    signature = inspect.signature(function)
    arguments = arguments_of(function, kind)
    parameters = zip(arguments, signature.parameters.values(), strict=False)
    annotated = {name: _read(function, each.annotation) for name, each in parameters}
    what = f"the {kind.name.lower()} handler {getattr(function, '__name__', function)!r}"
    init = given.init
    if init is None and annotated.get(REQUEST, Payload) not in RAW:
        init = _decodable(annotated[REQUEST], what, "request")
    request = given.request
    if request is None and ITEMS in annotated:
        request = _items_type(annotated[ITEMS], what)
    response = given.response
    if response is None and kind is not Kind.FIRE:
        answer = _read(function, signature.return_annotation)
        response = _response_type(answer, kind, init is not None or request is not None or not arguments, what)
    return Types(
        init, request, response, given.errors, _description(function), given.init is not None or REQUEST in arguments
    )


def takes_payload(function: Callable[..., Any]) -> bool:
    """Return True if a handler annotates its request as a Payload."""
    parameters = list(inspect.signature(function).parameters.values())
    return bool(parameters) and _read(function, parameters[0].annotation) in RAW[1:]


def _read(function: Callable[..., Any], annotation: Any) -> Any:
    """Return the type that an annotation names; the annotation itself if a name exists only for type checkers."""
    if annotation is inspect.Parameter.empty:
        return annotation
    # Callable objects and partial functions do not have `__globals__`.
    inner: Any = inspect.unwrap(getattr(function, "func", function))
    inner = inner if hasattr(inner, "__globals__") else type(inner).__call__
    names = getattr(inner, "__globals__", {})
    try:
        read = get_type_hints(SimpleNamespace(__annotations__={"it": annotation}), names, include_extras=True)["it"]
    except (NameError, AttributeError, SyntaxError, TypeError):
        return annotation
    return Any if read is object else read


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


def _is_items(annotation: Any) -> bool:
    origin = get_origin(annotation) or annotation
    return origin in ("Items", "weirpool.Items") or (isinstance(origin, type) and issubclass(origin, AsyncIterable))


def _items_type(annotation: Any, what: str) -> Any:
    """Return the type of each received item; None if items are not decoded."""
    element = _element(_readable(annotation, what, "items") if annotation not in ("Items", "weirpool.Items") else None)
    return None if element in RAW else _decodable(element, what, "items")


def _response_type(annotation: Any, kind: Kind, typed: bool, what: str) -> Any:
    """Return the type of a handler's response, or of each item; None if it is unknown.

    The response of an untyped handler is not converted, unless its type is a structure, which must be encoded.
    """
    if annotation in RAW or (isinstance(annotation, str) and not typed):
        return None
    annotation = _readable(annotation, what, "response")
    if isinstance(get_origin(annotation), type) and issubclass(get_origin(annotation), Awaitable):
        annotation = get_args(annotation)[-1]
    if kind.answers_items:
        annotation = _element(annotation)
    annotation = _converted(annotation)
    return annotation if annotation not in RAW and (typed or _has_structure(annotation)) else None


def _element(annotation: Any) -> Any:
    """Return the type of the items of an annotated iterable; Payload if it is not annotated."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if not isinstance(origin, type) or issubclass(origin, Mapping) or not arguments:
        return Payload
    element = arguments[0] if issubclass(origin, AsyncIterable | Iterable) else Payload
    return NoneType if element is None else element


def _converted(annotation: Any) -> Any:
    """Return a type without the members that are sent as they are; Payload if there are no others."""
    members = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    kept = [each for each in members if not _is_raw(each)]
    return annotation if len(kept) == len(members) else reduce(or_, kept) if kept else Payload


def _is_raw(annotation: Any) -> bool:
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    return is_class and (issubclass(annotation, RAW_CLASSES) or any(hasattr(annotation, name) for name in ARROW))


def _has_structure(annotation: Any) -> bool:
    """Return True if a type contains a class with fields."""
    from ..schema.contents import contents
    from ..schema.models import is_model

    return any(each.is_record or is_model(each.cls) for each in contents(annotation))


def _description(function: Callable[..., Any]) -> str:
    """Return the docstring of a function; empty for other callables, which inherit that of their class."""
    text = getattr(function, "__doc__", None) if inspect.isroutine(function) else None
    return inspect.cleandoc(text) if text else ""
