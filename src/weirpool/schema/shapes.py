"""Reads JSON Schema as the types that a generated client declares: equal objects become one type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from .budget import Budget
from .expressions import MAX_CHARACTERS as MAX_PATTERN
from .intersections import merged
from .naming import Names, camel
from .nodes import ANY, NONE, Array, Choice, Field, Node, Record, Reference, Scalar, Struct, Tuple, Union
from .references import References
from .wellformed import WellFormed, weight
from .writing import INTEGER_KEYS

__all__ = ["Loss", "Shapes"]

MAX_STEPS: Final = 50_000
"""Nodes of a schema to visit: references that lead to several others multiply."""
MAX_SEARCHED: Final = 500_000
"""Nodes to look at for the targets of references, and to compare objects."""
MAX_EXPRESSIONS: Final = 100_000
"""Characters of all patterns."""
MAX_CONSTANTS: Final = 1_000
"""Constants of an enumeration: more are data, and a type of them is of no use to a person."""
MAX_CHARACTERS: Final = 1_000
"""Characters of a constant or a default."""
MAX_LEVELS: Final = 64
MAX_TITLE: Final = 40
"""Longer titles are sentences."""
SIMPLE: Final = {
    "string": "text",
    "number": "number",
    "integer": "integer",
    "boolean": "boolean",
    "null": "none",
    # TypeBox's additions to JSON Schema's own types.
    "Uint8Array": "bytes",
    "bigint": "integer",
    "Date": "datetime",
    "void": "none",
    "undefined": "none",
}
EXTENSIONS: Final = ("bigint", "Date", "void", "undefined")
FORMATS: Final = {
    "date-time": "datetime",
    "date": "date",
    "time": "time",
    "duration": "duration",
    "uuid": "uuid",
    "decimal": "decimal",
}
LIMITS: Final = {
    "text": ("minLength", "maxLength", "pattern"),
    "bytes": ("minByteLength", "maxByteLength"),
    "number": ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
    "integer": ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf"),
}
OF_ARRAYS: Final = ("minItems", "maxItems")
OF_RECORDS: Final = ("minProperties", "maxProperties")


@dataclass(frozen=True)
class Loss:
    """A part of a schema that generated code cannot express. `place` is a path such as ``quotes.live init /symbol``."""

    place: str
    reason: str


class Shapes:
    """Reads schemas, and remembers the objects that it has read.

    Args:
        names: The names of the module.

    """

    def __init__(self, names: Names) -> None:
        self._losses: dict[Loss, None] = {}
        self._names = names
        self._known: dict[tuple[Any, ...], Reference] = {}
        self._choices: dict[tuple[str, tuple[Any, ...]], str] = {}
        self._formed = WellFormed()
        self._budget = Budget(MAX_STEPS, "reading the types of the schema")
        self._searched = Budget(MAX_SEARCHED, "comparing the types of the schema")
        self._references = References(self._searched)
        self._expressions = Budget(MAX_EXPRESSIONS, "reading the patterns of the schema")
        self._levels = 0

    @property
    def losses(self) -> list[Loss]:
        """What became a type of any value, and why."""
        return list(self._losses)

    def read(self, schema: Any, *words: str) -> Node:
        """Return the type of a schema; `words` describe it, for names: the service, the procedure, and its part.

        Raises:
            LocalError: The schema is too large.

        """
        place = f"{words[0]}.{' '.join(words[1:])}" if len(words) > 1 else words[0]
        formed = self.formed(schema, place)
        return self._read(formed, words, formed, place)

    def formed(self, schema: Any, place: str) -> Any:
        """Return a schema in its form; what is left out of it is recorded."""

        def report(path: str, key: str) -> None:
            self.lose(f"{place} {path}".rstrip(), f"{key or 'it'} is malformed")

        return self._formed.schema(schema, report)

    def lose(self, place: str, reason: str) -> Scalar:
        """Record that a part becomes any value, and return its type."""
        self._losses[Loss(place, reason)] = None
        return ANY

    def _read(self, schema: Any, words: tuple[str, ...], root: Any, place: str) -> Node:
        self._budget.spend()
        if schema is True or schema == {}:
            return ANY
        if not isinstance(schema, Mapping):
            return self.lose(place, "not a schema")
        if self._levels >= MAX_LEVELS:
            return self.lose(place, f"nested more than {MAX_LEVELS} levels deep")
        self._levels += 1
        try:
            return self._found(schema, words, root, place)
        finally:
            self._levels -= 1

    def _found(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any, place: str) -> Node:
        if isinstance(schema.get("$ref"), str):
            return self._referred(schema, words, root, place)
        if "const" in schema:
            return self._constants([schema["const"]], schema, place)
        if isinstance(schema.get("enum"), list):
            return self._constants(schema["enum"], schema, place)
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                return self._union(schema[keyword], schema, words, root, place)
        if "allOf" in schema:
            whole = merged(schema, lambda reference: self._references.target(reference, root), self._searched)
            return self._read(whole, words, root, place) if whole else self.lose(place, "allOf of parts of other types")
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union([{**schema, "type": one} for one in kind], {}, words, root, place)
        if kind == "array":
            return self._array(schema, words, root, place)
        if kind == "object" or isinstance(schema.get("properties"), Mapping):
            return self._object(schema, words, root, place)
        return self._scalar(schema, kind, place)

    def _scalar(self, schema: Mapping[str, Any], kind: Any, place: str) -> Node:
        if not isinstance(kind, str) or kind not in SIMPLE:
            wild = not any(key not in ("title", "description", "default", "examples", "$id") for key in schema)
            return ANY if wild else self.lose(place, f"type {kind!r}" if kind else f"only {', '.join(sorted(schema))}")
        found = SIMPLE[kind]
        if kind == "string":
            found = FORMATS.get(str(schema.get("format")), found)
            found = "bytes" if schema.get("contentEncoding") == "base64" else found
        names = LIMITS.get(found, ())
        size = len(schema.get("pattern", ""))
        if size > MAX_PATTERN or not self._expressions.afford(size):
            # A limit is a convenience: the other side checks it as well.
            names = tuple(name for name in names if name != "pattern")
        limits = () if kind in EXTENSIONS else _limits(schema, names)
        return Scalar(found, limits, kind if kind in EXTENSIONS else "")

    def _referred(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any, place: str) -> Node:
        target = self._references.target(schema["$ref"], root)
        if target is None:
            return self.lose(place, f"$ref to {schema['$ref']!r}, which does not exist")
        name = self._references.name(schema["$ref"])
        if isinstance(target, Mapping) and name and not _title(target):
            target = self._references.titled(target, name)
        return self._read(target, (words[0], name) if name else words, root, place)

    def _constants(self, values: list[Any], schema: Mapping[str, Any], place: str) -> Node:
        """Return the type of an enumeration of constants."""
        if len(values) > MAX_CONSTANTS:
            return self.lose(place, f"more than {MAX_CONSTANTS} constants")
        known = [value for value in dict.fromkeys(map(_hashable, values)) if value is not None]
        if any(not isinstance(value, str | int | float) for value in known):
            return self.lose(place, "a constant that is an object or an array")
        if any(isinstance(value, str) and len(value) > MAX_CHARACTERS for value in known):
            return self.lose(place, f"a constant of more than {MAX_CHARACTERS} characters")
        title = _title(schema)
        nodes = _split_constants(known)
        if len(nodes) == 1 and title and isinstance(nodes[0], Choice) and len(nodes[0].values) > 1:
            nodes = [Choice(nodes[0].values, self._choice_name(title, nodes[0].values))]
        return _joined([*nodes, *([NONE] if None in values else [])])

    def _choice_name(self, title: str, values: tuple[Any, ...]) -> str:
        key = (title, values)
        if key not in self._choices:
            self._choices[key] = self._names.give(camel(title), "Type")
        return self._choices[key]

    def _union(
        self, schemas: list[Any], whole: Mapping[str, Any], words: tuple[str, ...], root: Any, place: str
    ) -> Node:
        constants = [one for one in schemas if _is_constant(one)]
        values = [value for one in constants for value in ([one["const"]] if "const" in one else one["enum"])]
        found: list[Node] = [self._constants(values, whole, place)] if len(constants) > 1 else []
        rest = [one for one in schemas if not _is_constant(one)] if found else schemas
        objects = sum(isinstance(one, Mapping) and isinstance(one.get("properties"), Mapping) for one in rest)
        for number, schema in enumerate(rest, 1):
            tag = _tag_word(schema) if objects > 1 else ""
            more = (tag or f"Choice{number}",) if objects > 1 else ()
            found.append(self._read(schema, (*words, *more), root, place))
        node = _joined(found)
        if isinstance(node, Union):
            _mark_tag([one.struct for one in node.members if isinstance(one, Reference)])
        return node

    def _array(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any, place: str) -> Node:
        items = schema.get("items")
        fixed = schema.get("prefixItems", items)
        if isinstance(fixed, list):
            nodes = [
                self._read(one, (*words, str(number)), root, f"{place}/{number}") for number, one in enumerate(fixed)
            ]
            # TypeBox's tuples, those of draft 7, have no optional items.
            least = len(nodes) if fixed is items else schema.get("minItems", 0)
            needed = least if type(least) is int and 0 <= least <= len(nodes) else 0
            open_end = fixed is not items and isinstance(items, Mapping) and schema.get("maxItems") != len(nodes)
            if not open_end and (fixed is items or schema.get("maxItems") == len(nodes) or items is False):
                return Tuple(tuple(nodes), needed)
            return Array(self.lose(place, "a tuple with more items than are listed"))
        node = ANY if items is None else self._read(items, (*words, "Item"), root, f"{place}/*")
        return Array(node, _limits(schema, OF_ARRAYS))

    def _object(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any, place: str) -> Node:
        properties = schema.get("properties")
        others = schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        if isinstance(patterns, Mapping) and patterns:
            # TypeBox's form of a record.
            others = next(iter(patterns.values())) if len(patterns) == 1 else {"anyOf": list(patterns.values())}
        if not isinstance(properties, Mapping) or (not properties and isinstance(others, Mapping)):
            value = self._read(others, (*words, "Value"), root, f"{place}/*") if isinstance(others, Mapping) else ANY
            return Record(value, _limits(schema, OF_RECORDS), schema.get("propertyNames") == INTEGER_KEYS)
        key = self._references.key(schema, root)
        if key in self._known:
            return self._known[key]
        struct = Struct(self._name_of(schema, words), _text(schema.get("description")), named=bool(_title(schema)))
        found = self._known[key] = Reference(struct)
        required = frozenset(schema.get("required", ()))
        for name, each in properties.items():
            node = self._read(each, (*words, name), root, f"{place}/{name}")
            needed = name in required
            default = _default(each)
            described = (
                "" if isinstance(node, Reference) else _text(isinstance(each, Mapping) and each.get("description"))
            )
            struct.fields.append(Field(name, node, needed, described, default))
        # Of those that have no schema, only the names are known.
        struct.fields.extend(Field(name, ANY, True) for name in schema.get("required", ()) if name not in properties)
        if isinstance(others, Mapping) and others:
            struct.others = self._read(others, (*words, "Value"), root, f"{place}/*")
        return found

    def _name_of(self, schema: Mapping[str, Any], words: tuple[str, ...]) -> str:
        title = _title(schema)
        if not title:
            return self._names.give(camel(*words), "Type")
        name = camel(title)
        # The service distinguishes two types of one name, and the place of use those of one service.
        return self._names.first([name, camel(words[0], title), camel(*words)], "Type")


def _title(schema: Mapping[str, Any]) -> str:
    """Return the name of a type; empty if it has none."""
    for key in ("title", "$id"):
        name = schema.get(key)
        # TypeBox numbers recursive types: T0, T1, …
        if isinstance(name, str) and len(name) <= MAX_TITLE and camel(name)[:1].isalpha():
            if key == "title" or not (name[:1] == "T" and name[1:].isdigit()):
                return name.rpartition("/")[2] or name
    return ""


def _is_constant(schema: Any) -> bool:
    return isinstance(schema, Mapping) and ("const" in schema or "enum" in schema)


def _hashable(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else (str(value),)


def _default(schema: Any) -> tuple[Any, ...]:
    """Return the default of a field, if there is one that is not too long to be written."""
    if not isinstance(schema, Mapping) or "default" not in schema:
        return ()
    return (schema["default"],) if weight(schema["default"], MAX_CHARACTERS) <= MAX_CHARACTERS else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _limits(schema: Mapping[str, Any], keywords: tuple[str, ...]) -> tuple[tuple[str, Any], ...]:
    return tuple((name, schema[name]) for name in keywords if name in schema)


def _split_constants(values: list[Any]) -> list[Node]:
    """Return the types of constants: literals of texts and integers, and all others by their type."""
    found: list[Node] = []
    for kind in (str, int):
        each = tuple(value for value in values if type(value) is kind)
        if each:
            found.append(Choice(each))
    booleans = {value for value in values if type(value) is bool}
    if booleans:
        found.append(Choice(tuple(sorted(booleans))) if len(booleans) == 1 else Scalar("boolean"))
    if any(type(value) is float for value in values):
        found.append(Scalar("number"))
    return found


def _joined(nodes: list[Node]) -> Node:
    """Return a union without nested unions and duplicates; None comes last."""
    flat = [one for node in nodes for one in (node.members if isinstance(node, Union) else (node,))]
    if ANY in flat or not flat:
        return ANY
    distinct = list(dict.fromkeys(flat))
    nothing = [one for one in distinct if isinstance(one, Scalar) and one.kind == "none"]
    members = [*(one for one in distinct if one not in nothing), *nothing[:1]]
    return members[0] if len(members) == 1 else Union(tuple(members))


def _tag_word(schema: Any) -> str:
    """Return a constant of an object, which describes it among others."""
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties"), Mapping):
        return ""
    for each in schema["properties"].values():
        if isinstance(each, Mapping) and isinstance(each.get("const"), str) and camel(each["const"]):
            return str(each["const"])
    return ""


def _mark_tag(structs: list[Struct]) -> None:
    """Mark the field that distinguishes the objects of a union, if there is one."""
    if len(structs) < 2 or len({one.tag for one in structs if one.tag}) > 1:
        return
    known = [one.tag for one in structs if one.tag]
    constants = [_constants_of(one) for one in structs]
    for key in known[:1] or constants[0]:
        values = [each[key] for each in constants if key in each]
        kinds = {type(value) for value in values}
        if len(values) == len(structs) == len(set(values)) and (kinds == {str} or kinds == {int}):
            for one in structs:
                one.tag = key
            return


def _constants_of(struct: Struct) -> dict[str, Any]:
    """Return the values of the required fields that have only one."""
    return {
        field.key: field.node.values[0]
        for field in struct.fields
        # msgspec has no tag of an empty name.
        if field.key and field.required and isinstance(field.node, Choice) and len(field.node.values) == 1
    }
