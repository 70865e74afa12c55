"""Converts decoded values to a type, also those that have another form than msgspec takes for it.

A type is visited once. For each of its parts, this tells as what to decode it first, how to convert what was decoded,
and which fields it has: values that nobody asked for are neither decoded nor checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias, TypedDict

from msgspec import Raw, inspect

__all__ = ["Conversion", "Fields", "Fix", "Forms", "Kind"]

Kind: TypeAlias = type[inspect.Type]
"""A kind of types, as :mod:`msgspec.inspect` has them."""

Fix: TypeAlias = Callable[[Any], Any]
"""Returns a value in the form that msgspec takes, and any other value unchanged."""
Forms: TypeAlias = Mapping[Kind, Callable[[Any], Fix | None]]
"""Returns the fix of a scalar type, for each kind that has one."""
Fields: TypeAlias = "Mapping[str, Fields] | list[Fields] | None"
"""The fields of a record by name; in a list, those of each element of an array or a map; None: all is read."""

# What is decoded as itself, unless it has other forms. A decimal must not pass through a float.
_NATURAL: Final[Mapping[Kind, Any]] = {
    inspect.DecimalType: Decimal,
    inspect.IntType: int,
    inspect.BoolType: bool,
    inspect.StrType: str,
    inspect.RawType: Raw,
}
_RECORDS: Final = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType)


class _Part(NamedTuple):
    """How the values of a part of a type are read.

    Attributes:
        loose: What to decode them as.
        fix: Converts what was decoded, in place if it is a container; None: nothing needs it.
        fields: Those that it has.

    """

    loose: Any = Any
    fix: Fix | None = None
    fields: Fields = None


class Conversion:
    """The conversion of values to one type.

    Args:
        wanted: The type.
        forms: The forms that values have in a format.

    Attributes:
        loose: The type to decode data as before the conversion. Its records are dicts.
        fields: The fields that the type has.
        kinds: The kinds of all types within the type.

    """

    def __init__(self, wanted: Any, forms: Forms) -> None:
        self.kinds: set[Kind] = set()
        self._forms = forms
        # By the address of a description, which is kept. That of a recursive type contains itself.
        self._parts: dict[int, tuple[Any, _Part | None]] = {}
        self.loose, self._fix, self.fields = self._part(inspect.type_info(wanted))

    def fix(self, value: Any) -> Any:
        """Return a decoded value in the form that msgspec takes for the type, if it has another one."""
        return value if self._fix is None else self._fix(value)

    def _part(self, info: Any) -> _Part:
        while isinstance(info, inspect.Metadata):
            info = info.type
        if id(info) not in self._parts:
            self._parts[id(info)] = info, None
            self._parts[id(info)] = info, self._visited(info)
        part = self._parts[id(info)][1]
        # A type within itself is decoded whole.
        return part or _Part(fix=lambda value: self._again(info, value))

    def _again(self, info: Any, value: Any) -> Any:
        part = self._part(info)
        return value if part.fix is None else part.fix(value)

    def _visited(self, info: Any) -> _Part:
        self.kinds.add(type(info))
        if isinstance(info, inspect.UnionType):
            return self._union([each for each in info.types if not isinstance(each, inspect.NoneType)])
        if isinstance(info, _RECORDS):
            return self._record(info)
        if isinstance(info, inspect.NamedTupleType):
            return self._positions(field.type for field in info.fields)
        if isinstance(info, inspect.TupleType):
            return self._positions(info.item_types)
        if isinstance(info, inspect.CollectionType):
            return _elements(self._part(info.item_type))
        if hasattr(info, "key_type"):
            return _entries(self._part(info.key_type), self._part(info.value_type))
        form = self._forms.get(type(info))
        return _Part(_NATURAL.get(type(info), Any) if form is None else Any, None if form is None else form(info))

    def _union(self, types: Sequence[Any]) -> _Part:
        parts = [self._part(info) for info in types]
        if len(parts) == 1:
            [part] = parts
            return part if part.loose is Any else part._replace(loose=part.loose | None)
        fixes: dict[type, list[Fix]] = {dict: [], list: [], object: []}
        for info, part in zip(types, parts, strict=True):
            if part.fix is not None and not _is_itself(info, types):
                fixes[_container(info)].append(part.fix)
        # A list is a time only where it cannot be an array.
        lists = fixes[list] if any(_container(info) is list for info in types) else fixes[object]
        return _Part(fix=_chosen({dict: fixes[dict], list: lists}, fixes[object]) if any(fixes.values()) else None)

    def _record(self, info: Any) -> _Part:
        tag, tag_field = getattr(info, "tag", None), getattr(info, "tag_field", None)
        parts = {field.encode_name: self._part(field.type) for field in info.fields}
        if getattr(info, "array_like", False):
            return _positions(([_Part()] if tag_field else []) + list(parts.values()), tag)
        fixes = {name: part.fix for name, part in parts.items() if part.fix is not None}
        fix = _named(fixes, tag_field, tag) if fixes else None
        if getattr(info, "forbid_unknown_fields", False):
            return _Part(fix=fix)
        if tag_field is not None:
            parts[tag_field] = _Part()
        known = {name: part.loose for name, part in parts.items()}
        loose = TypedDict("Record", known, total=False)  # type: ignore[misc]
        return _Part(loose, fix, {name: part.fields for name, part in parts.items()})

    def _positions(self, types: Iterable[Any]) -> _Part:
        return _positions([self._part(info) for info in types])


def _is_itself(info: Any, types: Sequence[Any]) -> bool:
    """Return True for a scalar type of a union in which its other forms are values of another type."""
    if any(isinstance(each, inspect.DecimalType) for each in types):
        return _container(info) is object
    return isinstance(info, inspect.IntType) and any(isinstance(each, inspect.FloatType) for each in types)


def _container(info: Any) -> type:
    """Return the type of the values that a type is decoded from: dict, list, or object for scalars."""
    if hasattr(info, "key_type") or isinstance(info, inspect.DataclassType | inspect.TypedDictType):
        return dict
    if isinstance(info, inspect.StructType):
        return list if info.array_like else dict
    return list if isinstance(info, inspect.CollectionType | inspect.TupleType | inspect.NamedTupleType) else object


def _chosen(containers: Mapping[type, list[Fix]], scalars: list[Fix]) -> Fix:
    def fix(value: Any) -> Any:
        for each in containers.get(type(value), scalars):
            value = each(value)
        return value

    return fix


def _named(fixes: Mapping[str, Fix], tag_field: str | None, tag: Any) -> Fix:
    def fix(value: Any) -> Any:
        if type(value) is dict and (tag_field is None or value.get(tag_field, tag) == tag):
            for name, each in fixes.items():
                if name in value:
                    value[name] = each(value[name])
        return value

    return fix


def _positions(parts: Sequence[_Part], tag: Any = None) -> _Part:
    fixes = [(at, part.fix) for at, part in enumerate(parts) if part.fix is not None]

    def fix(value: Any) -> Any:
        if type(value) is list and (tag is None or value[:1] == [tag]):
            for at, each in fixes:
                if at < len(value):
                    value[at] = each(value[at])
        return value

    return _Part(fix=fix if fixes else None)


def _elements(part: _Part) -> _Part:
    each = part.fix

    def fix(value: Any) -> Any:
        return list(map(each, value)) if each is not None and type(value) is list else value

    loose = Any if part.loose is Any else list[part.loose]  # type: ignore[name-defined]
    return _Part(loose, None if each is None else fix, None if part.fields is None else [part.fields])


def _entries(key: _Part, part: _Part) -> _Part:
    fix_key, fix_value = key.fix or _same, part.fix or _same

    def fix(value: Any) -> Any:
        return {fix_key(name): fix_value(each) for name, each in value.items()} if type(value) is dict else value

    loose = Any if part.loose is Any else dict[Any, part.loose]  # type: ignore[name-defined]
    none = key.fix is None and part.fix is None
    return _Part(loose, None if none else fix, None if part.fields is None else [part.fields])


def _same(value: Any) -> Any:
    return value
