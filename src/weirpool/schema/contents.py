"""Finds the classes within a type, and refuses those that cannot be decoded."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from types import UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    ForwardRef,
    Literal,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import msgspec
from msgspec import UnsetType, inspect

from ..errors import LocalError
from .models import is_model

__all__ = ["WORKING", "Found", "check_supported", "contents", "shown_type"]

WORKING: Final = (
    "use msgspec structs, dataclasses, attrs classes, typed dicts, named tuples, enums, models of pydantic 2, or types"
    " such as int, str, list[int] and datetime"
)
"""What works instead, for error messages."""

_PREFIXES: Final = re.compile(r"(?:\w+\.|<locals>\.)+(?=\w)")
_DECODED: Final[tuple[Any, ...]] = (None, True, 0, 0.0, "", b"", [], {})
"""Values of JSON: msgspec accepts a class that it does not know if a decoded value is an instance of it."""


class Found:
    """A class within a type.

    Attributes:
        cls: The class, without its arguments.
        place: Where it is, such as ``field 'lines' of Order``; empty for the type itself and its arguments.
        is_record: True if it has fields that are visited: those of a model are not.

    """

    __slots__ = ("cls", "is_record", "place")

    def __init__(self, cls: Any, place: str) -> None:
        self.cls = cls
        self.place = place
        has_fields = dataclasses.is_dataclass(cls) or is_typeddict(cls) or issubclass(cls, msgspec.Struct)
        is_tuple = issubclass(cls, tuple) and hasattr(cls, "_fields")
        self.is_record = (has_fields or is_tuple or hasattr(cls, "__attrs_attrs__")) and not is_model(cls)


def shown_type(wanted: Any) -> str:
    """Return the name of a type for error messages: ``Order``, ``list[Order]``."""
    name = wanted.__qualname__ if isinstance(wanted, type) and get_origin(wanted) is None else repr(wanted)
    # Without modules, and without the functions that contain a class.
    return _PREFIXES.sub("", name)


def contents(wanted: Any) -> Iterator[Found]:
    """Yield each class within a type: itself, its arguments, and the types of its fields, once each.

    The fields of models are not visited, because pydantic reads them.

    Raises:
        LocalError: An annotation cannot be resolved at run time.

    """
    pending: list[tuple[Any, str]] = [(wanted, "")]
    seen: set[Any] = set()
    while pending:
        each, place = pending.pop()
        if isinstance(each, str | ForwardRef):
            raise LocalError(_unresolved(each, place))
        if each is None or isinstance(each, TypeVar) or get_origin(each) is Literal or not _is_new(each, seen):
            continue
        # NewType and `type` statements.
        named = getattr(each, "__supertype__", None) or getattr(each, "__value__", None)
        origin, arguments = get_origin(each), get_args(each)
        if named is not None and not isinstance(each, type):
            pending.append((named, place))
        elif hasattr(each, "__metadata__"):
            pending.append((arguments[0], place))
        else:
            cls = origin if isinstance(origin, type) else each
            if isinstance(cls, type) and cls is not UnionType:
                found = Found(cls, place)
                yield found
                pending += _fields(cls) if found.is_record else ()
            if not is_model(each):
                pending += [(argument, place) for argument in arguments if not isinstance(argument, list)]


def _is_new(each: Any, seen: set[Any]) -> bool:
    """Return whether a type was not visited yet."""
    try:
        key = each if hash(each) is not None else None
    except TypeError:
        key = id(each)
    new = key not in seen
    seen.add(key)
    return new


def _fields(cls: type) -> Iterator[tuple[Any, str]]:
    """Yield the type and the place of each field of a class."""
    try:
        hints = get_type_hints(cls, include_extras=True)
    except NameError as error:
        raise LocalError(_unresolved(error.name, f"an annotation of {shown_type(cls)}")) from None
    except TypeError:
        # msgspec reports what is wrong.
        return
    for name, hint in hints.items():
        if hint is not ClassVar and get_origin(hint) is not ClassVar and not isinstance(hint, dataclasses.InitVar):
            yield hint, f"field {name!r} of {shown_type(cls)}"


def _unresolved(name: Any, place: str) -> str:
    text = name.__forward_arg__ if isinstance(name, ForwardRef) else name
    where = f" in {place}" if place else ""
    return f"{text!r}{where} cannot be resolved at run time; define or import it at the top of the module"


def check_supported(wanted: Any, found: list[Found]) -> None:
    """Refuse a type with a class that msgspec would accept now, and fail to decode later, or decode without its checks.

    Args:
        wanted: The type.
        found: Its contents.

    Raises:
        LocalError: There is such a class.

    """
    for each in found:
        if _is_unknown(each.cls):
            raise LocalError(f"{_shown(each, wanted)} is a class whose values cannot be decoded or encoded; {WORKING}")
    for each in found:
        if private := _private_field(each.cls):
            raise LocalError(
                f"{_shown(each, wanted)} has the field {private!r}, which msgspec reads and does not write; name it"
                " without an underscore, or let __init__ not take it"
            )
        if is_model(each.cls) and dataclasses.is_dataclass(each.cls):
            raise LocalError(
                f"{_shown(each, wanted)} is a dataclass of pydantic, whose checks would not run there; make it a model,"
                " or use no msgspec struct, attrs class or typed dict around it"
            )


def _shown(found: Found, wanted: Any) -> str:
    where = f"in {found.place}" if found.place else f"in {shown_type(wanted)}"
    return shown_type(found.cls) if found.cls is wanted else f"{shown_type(found.cls)} {where}"


def _private_field(cls: Any) -> str:
    """Return the name of a field that values lose on their way; empty if there is none."""
    if not isinstance(cls, type) or is_model(cls):
        return ""
    fields = dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else getattr(cls, "__attrs_attrs__", ())
    return next((field.name for field in fields if field.name[:1] == "_" and field.init), "")


def _is_unknown(cls: Any) -> bool:
    """Return True for a class that neither msgspec nor pydantic can decode."""
    # The type of a field that may be absent: `int | UnsetType`.
    if cls is UnsetType or is_model(cls):
        return False
    try:
        if not isinstance(inspect.type_info(cls), inspect.CustomType):
            return False
        return not any(isinstance(value, cls) for value in _DECODED)
    except TypeError:
        # msgspec reports what is wrong with it; a protocol cannot be checked.
        return False
