"""The Arrow types of Python types, and how their values become Arrow's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, Final, NamedTuple, get_origin, get_type_hints

import pyarrow as pa
from msgspec import UNSET, inspect

from ..errors import LocalError

__all__ = ["Kind", "Member", "kind_of", "members_of"]

Convert = Callable[[Any], Any]

UTC: Final = pa.timestamp("us", tz="UTC")
LOCAL: Final = pa.timestamp("us")
DECIMAL: Final = pa.decimal128(38, 18)
"""A type does not tell its digits: half of them on each side, as many as there are."""

_PLAIN: Final[dict[type, pa.DataType]] = {
    inspect.NoneType: pa.null(),
    inspect.BoolType: pa.bool_(),
    inspect.IntType: pa.int64(),
    inspect.FloatType: pa.float64(),
    inspect.StrType: pa.string(),
    inspect.BytesType: pa.binary(),
    inspect.ByteArrayType: pa.binary(),
    inspect.MemoryViewType: pa.binary(),
    inspect.DateType: pa.date32(),
    inspect.TimeType: pa.time64("us"),
    inspect.TimeDeltaType: pa.duration("us"),
    inspect.DecimalType: DECIMAL,
}
_LISTS: Final = (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType)
_STRUCTURES: Final = (inspect.StructType, inspect.DataclassType, inspect.NamedTupleType)
_OF_VALUES: Final = {str: pa.string(), int: pa.int64(), bool: pa.bool_(), float: pa.float64(), bytes: pa.binary()}
_OF_PYDANTIC: Final = {
    "AwareDatetime": UTC,
    "PastDatetime": UTC,
    "FutureDatetime": UTC,
    "NaiveDatetime": LOCAL,
    "PastDate": pa.date32(),
    "FutureDate": pa.date32(),
    "EmailStr": pa.string(),
}
"""Pydantic's names for values of the standard library, by the name of their class."""


class Kind(NamedTuple):
    """How values of a Python type become a column.

    Attributes:
        type: The type of the column.
        convert: Returns what Arrow accepts for a value other than None; None if that is the value.

    """

    type: pa.DataType
    convert: Convert | None = None

    def each(self, values: Iterable[Any]) -> list[Any]:
        """Return what Arrow accepts for each value, which may be None."""
        convert = self.convert
        if convert is None:
            found = list(values)
            # A field that msgspec did not find.
            return [None if value is UNSET else value for value in found] if UNSET in found else found
        return [None if value is None or value is UNSET else convert(value) for value in values]


class Member(NamedTuple):
    """A field of a structure.

    Attributes:
        name: Its name.
        get: Returns its value in an object.
        type: Its type: a type or annotation, or a node of `msgspec.inspect`.

    """

    name: str
    get: Convert
    type: Any


def members_of(wanted: Any) -> list[Member] | None:
    """Return the fields of a structure: of msgspec, a dataclass, attrs, Pydantic, a TypedDict or a named tuple.

    None is returned for other types.
    """
    node = _node(wanted)
    if isinstance(node, _STRUCTURES):
        return [Member(field.name, attrgetter(field.name), field.type) for field in node.fields]
    if isinstance(node, inspect.TypedDictType):
        # msgspec sorts them.
        order = [*get_type_hints(get_origin(node.cls) or node.cls)]
        fields_of_dict = sorted(node.fields, key=lambda field: order.index(field.name))
        return [Member(field.name, _key(field.name), field.type) for field in fields_of_dict]
    fields = _fields_of_model(node.cls) if isinstance(node, inspect.CustomType) else None
    if isinstance(fields, dict):
        return [Member(name, attrgetter(name), field.annotation) for name, field in fields.items()]
    return None


def _fields_of_model(cls: Any) -> Any:
    """Return the fields of a model of Pydantic; None for another class."""
    if not getattr(cls, "__pydantic_complete__", True):
        # It mentions models that were defined after it.
        try:
            cls.model_rebuild()
        except NameError as error:
            raise LocalError(f"{cls!r} is not a type of columns: {error}") from None
    return getattr(cls, "model_fields", None)


def kind_of(wanted: Any, name: str, within: tuple[Any, ...] = ()) -> Kind:
    """Return the column of a type.

    Args:
        wanted: A type or annotation, or a node of `msgspec.inspect`.
        name: The path of the field, for errors.
        within: The structures that contain it.

    Raises:
        LocalError: Values of this type do not fit into one column.

    """
    node = _node(wanted)
    if type(node) in _PLAIN:
        return Kind(_PLAIN[type(node)])
    if isinstance(node, inspect.DateTimeType):
        return Kind(LOCAL if node.tz is False else UTC)
    if isinstance(node, inspect.UUIDType):
        return Kind(pa.string(), str)
    if isinstance(node, inspect.EnumType):
        return Kind(_of_values([each.value for each in node.cls], node, name), attrgetter("value"))
    if isinstance(node, inspect.LiteralType):
        return Kind(_of_values(node.values, node, name))
    if isinstance(node, inspect.UnionType):
        return _union(node, name, within)
    if isinstance(node, _LISTS):
        return _list(kind_of(node.item_type, name, within))
    if isinstance(node, inspect.TupleType):
        return _tuple([kind_of(each, name, within) for each in node.item_types], node, name)
    if isinstance(node, inspect.DictType):
        return _map(kind_of(node.key_type, name, within), kind_of(node.value_type, name, within))
    members = members_of(node)
    if members is not None:
        return _structure(node, members, name, within)
    if isinstance(node, inspect.CustomType):
        return _custom(node, name)
    raise _no_column(node, name)


def _node(wanted: Any) -> Any:
    """Return what `msgspec.inspect` says of a type."""
    if isinstance(wanted, inspect.Type):
        node = wanted
    else:
        try:
            node = inspect.type_info(wanted)
        except (TypeError, NameError) as error:
            raise LocalError(f"{wanted!r} is not a type of columns: {error}") from None
    while isinstance(node, inspect.Metadata):
        node = node.type
    return node


def _structure(node: Any, members: list[Member], name: str, within: tuple[Any, ...]) -> Kind:
    if node.cls in within:
        raise LocalError(f"field {name!r} has no column type: {node.cls.__name__} contains itself; pass a schema")
    kinds = [kind_of(member.type, f"{name}.{member.name}", (*within, node.cls)) for member in members]
    fields = [pa.field(member.name, kind.type) for member, kind in zip(members, kinds, strict=True)]
    parts = [(member.name, member.get, _of_optional(kind)) for member, kind in zip(members, kinds, strict=True)]
    return Kind(pa.struct(fields), lambda value: {key: convert(get(value)) for key, get, convert in parts})


def _list(element: Kind) -> Kind:
    return Kind(pa.list_(element.type), list if element.convert is None else element.each)


def _tuple(elements: list[Kind], node: Any, name: str) -> Kind:
    if len({element.type for element in elements}) != 1:
        raise _no_column(node, name)
    return _list(elements[0])


def _map(key: Kind, value: Kind) -> Kind:
    def pairs(mapping: dict[Any, Any]) -> list[tuple[Any, Any]]:
        return list(zip(key.each(mapping.keys()), value.each(mapping.values()), strict=True))

    return Kind(pa.map_(key.type, value.type), pairs)


def _union(node: Any, name: str, within: tuple[Any, ...]) -> Kind:
    some = [each for each in node.types if not isinstance(each, inspect.NoneType)]
    if len(some) == 1:
        return kind_of(some[0], name, within)
    if {type(each) for each in some} == {inspect.IntType, inspect.FloatType}:
        return Kind(pa.float64())
    raise _no_column(node, name)


def _custom(node: Any, name: str) -> Kind:
    cls = node.cls
    if cls.__name__ in _OF_PYDANTIC and cls.__module__.startswith("pydantic"):
        return Kind(_OF_PYDANTIC[cls.__name__])
    base = next((base for base in _OF_VALUES if isinstance(cls, type) and issubclass(cls, base)), None)
    if base is None:
        raise _no_column(node, name)
    return Kind(_OF_VALUES[base], base)


def _of_values(values: Iterable[Any], node: Any, name: str) -> pa.DataType:
    """Return the type of the values of an enumeration or literal."""
    kinds = {type(value) for value in values if value is not None}
    found = _OF_VALUES.get(kinds.pop()) if len(kinds) == 1 else None
    if found is None:
        raise _no_column(node, name)
    return found


def _no_column(node: Any, name: str) -> LocalError:
    what = getattr(getattr(node, "cls", None), "__name__", type(node).__name__.removesuffix("Type"))
    return LocalError(f"field {name!r} has no column type: {what} has values of several kinds; pass a schema")


def _same(value: Any) -> Any:
    return value


def _key(name: str) -> Convert:
    return lambda value: value.get(name)


def _of_optional(kind: Kind) -> Convert:
    """Return the conversion of a value that may be None or unset."""
    convert = kind.convert or _same
    return lambda value: None if value is None or value is UNSET else convert(value)
