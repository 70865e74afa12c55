"""Writes the JSON Schema of a Python type in the format of River's reference."""

from __future__ import annotations

import enum
import inspect as signatures
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from ..errors import LocalError
from .converter import Converter
from .inlining import inlined
from .models import json_schema

__all__ = ["INTEGER_KEYS", "schema_of"]

MAX_NODES: Final = 100_000
"""Nodes of one schema: types that use each other many times multiply when each use is written in full."""

FIELDS: Final = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType)
SIMPLE: Final[dict[type, dict[str, Any]]] = {
    inspect.AnyType: {},
    inspect.RawType: {},
    inspect.NoneType: {"type": "null"},
    inspect.BoolType: {"type": "boolean"},
    inspect.DateTimeType: {"type": "string", "format": "date-time"},
    inspect.TimeType: {"type": "string", "format": "time"},
    inspect.DateType: {"type": "string", "format": "date"},
    inspect.TimeDeltaType: {"type": "string", "format": "duration"},
    inspect.UUIDType: {"type": "string", "format": "uuid"},
    inspect.DecimalType: {"type": "string", "format": "decimal"},
}
# In contrast to msgspec, times without a zone have a format as well: it says which type reads the text.
LIMITS: Final = {
    "gt": "exclusiveMinimum",
    "ge": "minimum",
    "lt": "exclusiveMaximum",
    "le": "maximum",
    "multiple_of": "multipleOf",
}
SIZES: Final = {"number": {}, "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}}
OF_BYTES: Final = {"min_length": "minByteLength", "max_length": "maxByteLength"}
OF_ARRAYS: Final = {"min_length": "minItems", "max_length": "maxItems"}
OF_OBJECTS: Final = {"min_length": "minProperties", "max_length": "maxProperties"}
INTEGER_KEYS: Final = {"pattern": "^-?[0-9]+$"}
"""The names of a record's fields that are integers, which MessagePack carries as such."""
BYTES: Final = (inspect.BytesType, inspect.ByteArrayType, inspect.MemoryViewType)


def schema_of(wanted: Any, *, sent: bool = False) -> dict[str, Any]:
    """Return the JSON Schema of a type; a schema is returned unchanged, and None allows any value.

    The format is the reference's: every use of a type in full, and bytes as the type ``Uint8Array``. In addition, the
    ``title`` of an object or an enumeration is the name of its class, and fields have their ``default``. A recursive
    type cannot be written in full and stays under ``$defs``.

    Args:
        wanted: The type.
        sent: True for what a handler returns; see :func:`weirpool.schema.models.json_schema`.

    Raises:
        LocalError: The type has no schema.

    """
    if wanted is None or wanted is Any or wanted is object:
        return {}
    if isinstance(wanted, Mapping):
        return dict(wanted)
    model = Converter(wanted).model_schema(sent=sent)
    if model is not None:
        return inlined(model)
    try:
        info = inspect.type_info(wanted)
        writer = _Writer(info, sent)
        made = writer.write(info)
    except (TypeError, NameError, RecursionError) as error:
        raise LocalError(f"{wanted!r} has no JSON Schema: {error}") from None
    if writer.definitions:
        made["$defs"] = {name: writer.definitions[name] for name in sorted(writer.definitions)}
    return made


class _Writer:
    """Writes one schema. The definitions of recursive types are in `definitions`."""

    def __init__(self, info: Any, sent: bool) -> None:
        self._sent = sent
        self.definitions: dict[str, Any] = {}
        self._recursive = _recursive_classes(info)
        self._names: dict[Any, str] = {}
        self._nodes = 0

    def write(self, info: Any) -> dict[str, Any]:
        """Return the schema of a type."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise LocalError(f"a schema has more than {MAX_NODES} nodes with each type in full; use fewer types")
        if isinstance(info, inspect.Metadata):
            return self.write(info.type) | dict(info.extra_json_schema or {})
        if type(info) in SIMPLE:
            return dict(SIMPLE[type(info)])
        if isinstance(info, FIELDS):
            return self._named(info)
        if isinstance(info, inspect.IntType | inspect.FloatType):
            kind = "integer" if isinstance(info, inspect.IntType) else "number"
            return {"type": kind, **_limits(info, LIMITS)}
        if isinstance(info, inspect.StrType):
            return {"type": "string", **_limits(info, SIZES["string"])}
        if isinstance(info, BYTES):
            return {"type": "Uint8Array", **_limits(info, OF_BYTES)}
        if isinstance(info, inspect.LiteralType):
            return _choice(info.values)
        if isinstance(info, inspect.EnumType):
            return _described(info, _choice([each.value for each in info.cls]))
        return self._container(info)

    def _container(self, info: Any) -> dict[str, Any]:
        if isinstance(info, inspect.UnionType):
            return {"anyOf": _flat(self.write(each) for each in _none_last(info.types))}
        if isinstance(info, inspect.TupleType):
            return self._array(info.item_types)
        if isinstance(info, inspect.CollectionType):
            unique = isinstance(info, inspect.SetType | inspect.FrozenSetType)
            made = {"type": "array"} | self._inner("items", info.item_type) | _limits(info, OF_ARRAYS)
            return made | {"uniqueItems": True} if unique else made
        if hasattr(info, "key_type"):
            made = {"type": "object"} | self._inner("additionalProperties", info.value_type)
            keys = {name: value for name, value in self.write(info.key_type).items() if name != "type"}
            keys = INTEGER_KEYS if isinstance(info.key_type, inspect.IntType) else keys
            return made | ({"propertyNames": keys} if keys else {}) | _limits(info, OF_OBJECTS)
        return self._custom(info)

    def _inner(self, keyword: str, info: Any) -> dict[str, Any]:
        inner = self.write(info)
        return {keyword: inner} if inner else {}

    def _array(self, items: Any) -> dict[str, Any]:
        made = {"type": "array", "minItems": len(items), "maxItems": len(items)}
        return made | ({"prefixItems": [self.write(each) for each in items]} if items else {})

    def _custom(self, info: Any) -> dict[str, Any]:
        cls = getattr(info, "cls", info)
        made = inlined(json_schema(cls, sent=self._sent))
        definitions = made.pop("$defs", {})
        for name, each in definitions.items():
            if self.definitions.setdefault(name, each) != each:
                raise TypeError(f"two classes are called {name}; rename one of them")
        return made

    # Classes with fields.

    def _named(self, info: Any) -> dict[str, Any]:
        if info.cls not in self._recursive:
            return self._fields(info)
        if info.cls not in self._names:
            name = self._names[info.cls] = _unused(_title(info.cls), self.definitions)
            # Set first, because it refers to itself.
            self.definitions[name] = {}
            self.definitions[name] = self._fields(info)
        return {"$ref": f"#/$defs/{_escaped(self._names[info.cls])}"}

    def _fields(self, info: Any) -> dict[str, Any]:
        if isinstance(info, inspect.NamedTupleType) or getattr(info, "array_like", False):
            tag = [{"const": info.tag}] if getattr(info, "tag_field", None) else []
            made = self._array([field.type for field in info.fields])
            items = [*tag, *made.get("prefixItems", [])]
            least = len(tag) + sum(field.required for field in info.fields)
            return _described(info, {"type": "array", "minItems": least, "maxItems": len(items), "prefixItems": items})
        properties, required = {}, []
        if getattr(info, "tag_field", None):
            properties[info.tag_field] = _choice([info.tag])
            required.append(info.tag_field)
        for field in info.fields:
            properties[field.encode_name] = self.write(field.type) | _default(field)
            if field.required:
                required.append(field.encode_name)
        made = {"type": "object", "properties": properties} | ({"required": required} if required else {})
        if getattr(info, "forbid_unknown_fields", False):
            made["additionalProperties"] = False
        return _described(info, made)


def _limits(info: Any, names: Mapping[str, str]) -> dict[str, Any]:
    return {there: getattr(info, here) for here, there in names.items() if getattr(info, here) is not None}


def _choice(values: Any) -> dict[str, Any]:
    """Return the schema of constants, sorted if possible: msgspec returns them in no fixed order."""
    values = list(values)
    if len(values) == 1 and isinstance(values[0], str | int):
        return {"type": "string" if isinstance(values[0], str) else "integer", "const": values[0]}
    return {"enum": sorted(values, key=lambda value: (str(type(value)), value is not None and value))}


def _none_last(types: Any) -> list[Any]:
    return sorted(types, key=lambda info: isinstance(info, inspect.NoneType))


def _flat(schemas: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the members of a union, without unions that only group some of them."""
    return [one for schema in schemas for one in (schema["anyOf"] if list(schema) == ["anyOf"] else [schema])]


def _default(field: Any) -> dict[str, Any]:
    """Return the default of a field, if it has one that JSON can represent."""
    if field.required:
        return {}
    value = field.default
    if field.default_factory in (list, dict, set, frozenset, tuple, bytes):
        value = field.default_factory()
    if value is msgspec.NODEFAULT or value is msgspec.UNSET:
        return {}
    try:
        default = msgspec.to_builtins(value)
        # JSON has no infinity.
        json.dumps(default, allow_nan=False)
        return {"default": default}
    except (TypeError, ValueError):
        return {}


def _described(info: Any, schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with the name and the docstring of its class."""
    cls = info.cls
    described = {"title": _title(cls)}
    text = _docstring(getattr(cls, "__origin__", cls))
    return schema | described | ({"description": text} if text else {})


def _docstring(cls: Any) -> str:
    """Return the docstring that a class has itself; Python writes one for data classes, and inherits others."""
    text = vars(cls).get("__doc__")
    made = isinstance(text, str) and text.startswith(f"{cls.__name__}(") and text.endswith(")")
    return "" if not isinstance(text, str) or made or text == enum.Enum.__doc__ else signatures.cleandoc(text)


def _title(cls: Any) -> str:
    """Return the name of a class, with the arguments of a generic one."""
    arguments = getattr(cls, "__args__", ())
    name = str(getattr(cls, "__name__", None) or cls.__origin__.__name__)
    return f"{name}[{', '.join(getattr(each, '__name__', str(each)) for each in arguments)}]" if arguments else name


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _escaped(name: str) -> str:
    """Return a step of a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1")


def _recursive_classes(info: Any) -> set[Any]:
    """Return the classes that contain themselves, directly or indirectly."""
    uses: dict[Any, set[Any]] = {}
    pending = list(_classes(info))
    while pending:
        one = pending.pop()
        if one.cls not in uses:
            inner = [each for field in one.fields for each in _classes(field.type)]
            uses[one.cls] = {each.cls for each in inner}
            pending += inner
    found = set()
    for start in uses:
        seen, ahead = set[Any](), list(uses[start])
        while ahead:
            each = ahead.pop()
            if each not in seen:
                seen.add(each)
                ahead += uses[each]
        if start in seen:
            found.add(start)
    return found


def _classes(info: Any) -> Iterator[Any]:
    """Yield the classes with fields that a type names, without those within them."""
    pending = [info]
    while pending:
        one = pending.pop()
        if isinstance(one, FIELDS):
            yield one
            continue
        parts = ("type", "item_type", "key_type", "value_type")
        pending += [getattr(one, name) for name in parts if hasattr(one, name)]
        pending += [*getattr(one, "types", ()), *getattr(one, "item_types", ())]
