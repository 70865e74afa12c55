"""Declares the types of a schema as Python classes that msgspec can read and write."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from .expressions import is_safe, parsed
from .layout import alias, call
from .naming import Names, camel, docstring, literal
from .nodes import ANY, NONE, Array, Choice, Field, Node, Record, Reference, Scalar, Struct, Tuple, Union
from .shapes import Shapes

__all__ = ["PythonTypes"]

MAX_EXPRESSION: Final = 60
"""Longer types get a name."""
SCALARS: Final = {
    "any": "Any",
    "none": "None",
    "text": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "bytes": "bytes",
    "datetime": "datetime.datetime",
    "date": "datetime.date",
    "time": "datetime.time",
    "duration": "datetime.timedelta",
    "uuid": "UUID",
    "decimal": "Decimal",
}
TEXTS: Final = frozenset({"datetime", "date", "time", "duration", "uuid", "decimal"})
"""Types that travel as text."""
META: Final = {
    "minimum": "ge",
    "exclusiveMinimum": "gt",
    "maximum": "le",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
    "minLength": "min_length",
    "maxLength": "max_length",
    "minByteLength": "min_length",
    "maxByteLength": "max_length",
    "minItems": "min_length",
    "maxItems": "max_length",
    "minProperties": "min_length",
    "maxProperties": "max_length",
    "pattern": "pattern",
}
INT64: Final = range(-(2**63), 2**63)
"""Integers that msgspec supports in a Literal and in limits."""
_UNSUPPORTED: Final = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec does not support in a field's name: an object with such a field stays a dict."""


class PythonTypes:
    """Declares the types that are used, and no others.

    Args:
        names: The names of the module.
        shapes: The schemas, which record what is lost.

    """

    def __init__(self, names: Names, shapes: Shapes) -> None:
        self._names = names
        self._shapes = shapes
        self._structs: dict[Struct, list[tuple[Field, str]]] = {}
        self._aliases: dict[str, str] = {}
        self._named: dict[str, str] = {}

    def type_of(self, node: Node, *words: str) -> str:
        """Return a type as an expression, and declare what it needs.

        Args:
            node: The type.
            words: Its description, for the name of a long expression.

        """
        place = f"{words[0]}.{' '.join(words[1:])}" if len(words) > 1 else words[0]
        found = self._expression(node, place)
        return self._name(found, words) if len(found) > MAX_EXPRESSION else found

    def same(self, name: str, expression: str) -> str:
        """Give a declared type another name, and return it."""
        given = self._names.give(name, "Type")
        self._aliases[given] = expression
        return given

    @staticmethod
    def has_defaults(node: Node) -> bool:
        """Return True if a struct can be created without arguments."""
        if not isinstance(node, Reference):
            return False
        fields = [one for one in node.struct.fields if one.key != node.struct.tag]
        return not any(one.required and not _constant(one.node) for one in fields)

    def render(self) -> list[list[str]]:
        """Return the source of all declarations, in blocks of lines."""
        # Fields are resolved after all declarations, aliases at once: they follow the types that they name.
        blocks = [self._class(struct, fields) for struct, fields in self._structs.items()]
        if self._aliases:
            blocks.append([line for name, expression in self._aliases.items() for line in alias(name, expression)])
        return blocks

    # Expressions.

    def _expression(self, node: Node, place: str) -> str:
        if isinstance(node, Scalar):
            return _annotated(SCALARS[node.kind], node.limits, node.kind == "integer")
        if isinstance(node, Choice):
            return self._choice(node, place)
        if isinstance(node, Array):
            return _annotated(f"list[{self._inner(node.item, place, 'Item')}]", node.limits)
        if isinstance(node, Tuple):
            if node.required < len(node.items):
                return f"list[{self._union(node.items, place)}]"
            return f"tuple[{', '.join(self._inner(one, place, str(at)) for at, one in enumerate(node.items)) or '()'}]"
        if isinstance(node, Record):
            keys = "int" if node.integer_keys else "str"
            return _annotated(f"dict[{keys}, {self._inner(node.value, place, 'Value')}]", node.limits)
        if isinstance(node, Union):
            return self._union(node.members, place)
        assert isinstance(node, Reference)
        return self._reference(node.struct)

    def _inner(self, node: Node, place: str, word: str) -> str:
        found = self._expression(node, f"{place} {word}")
        return self._name(found, tuple(f"{place} {word}".split())) if len(found) > MAX_EXPRESSION else found

    def _name(self, expression: str, words: tuple[str, ...]) -> str:
        """Return the name of a long expression, which is declared once."""
        if expression not in self._named:
            self._named[expression] = self._names.give(camel(*words), "Type")
            self._aliases[self._named[expression]] = expression
        return self._named[expression]

    def _choice(self, node: Choice, place: str) -> str:
        if any(type(value) is int and value not in INT64 for value in node.values):
            return "int"
        if any(type(value) is bool for value in node.values):
            return "bool"
        found = f"Literal[{', '.join(literal(value) for value in node.values if isinstance(value, str | int))}]"
        if node.name:
            self._aliases[node.name] = found
            return node.name
        return found

    def _reference(self, struct: Struct) -> str:
        if any(_UNSUPPORTED.search(one.key) for one in struct.fields):
            self._shapes.lose(struct.name, "a field whose name has control characters, quotes or backslashes")
            return "dict[str, Any]"
        if struct not in self._structs:
            if struct.others is not None:
                self._shapes.lose(struct.name, "additional fields, which are not read")
            fields = self._structs[struct] = []
            listed = (one for one in struct.fields if one.key != struct.tag)
            fields.extend((one, self.type_of(one.node, struct.name, one.key)) for one in listed)
        return struct.name

    # Unions.

    def _union(self, members: tuple[Node, ...], place: str) -> str:
        """Return a union that msgspec can decode: of each category of types, it supports one."""
        found: dict[str, list[Node]] = {}
        for one in members:
            found.setdefault(self._category(one), []).append(one)
        if "any" in found:
            return "Any"
        parts = [self._one_of(category, nodes, place) for category, nodes in found.items()]
        if "Any" in parts:
            return "Any"
        return " | ".join(sorted(dict.fromkeys(parts), key="None".__eq__))

    def _one_of(self, category: str, nodes: list[Node], place: str) -> str:
        """Return the type of the members of one category."""
        if len(nodes) == 1:
            return self._expression(nodes[0], place)
        structs = [one.struct for one in nodes if isinstance(one, Reference)]
        if category == "object" and len(structs) == len(nodes):
            tags = {one.tag for one in structs}
            if len(tags) == 1 and None not in tags and len({one.tag_value() for one in structs}) == len(structs):
                return " | ".join(self._reference(one) for one in structs)
        if category == "array" and all(isinstance(one, Array) for one in nodes):
            return f"list[{self._union(tuple(one.item for one in nodes if isinstance(one, Array)), place)}]"
        scalars = {one.kind for one in nodes if isinstance(one, Scalar)}
        if category == "text" and "bytes" not in scalars:
            return "str"
        if category in ("integer", "number", "boolean"):
            return SCALARS[category]
        reason = "objects that no field with a constant distinguishes" if category == "object" else f"{category} types"
        self._shapes.lose(place, f"a union of {reason}")
        return "Any"

    @staticmethod
    def _category(node: Node) -> str:
        """Return the property by which msgspec distinguishes a type."""
        if isinstance(node, Scalar):
            return "text" if node.kind in TEXTS or node.kind == "bytes" else node.kind
        if isinstance(node, Choice):
            return {str: "text", int: "integer", bool: "boolean"}[type(node.values[0])]
        return "array" if isinstance(node, Array | Tuple) else "object"

    # Declarations.

    def _class(self, struct: Struct, fields: list[tuple[Field, str]]) -> list[str]:
        options = ["msgspec.Struct", "kw_only=True"]
        if struct.tag is not None:
            options += [f"tag_field={literal(struct.tag)}", f"tag={literal(struct.tag_value())}"]
        lines = call(f"class {struct.name}", options, ":", "")
        lines += docstring(struct.description, "    ")
        names = Names(self._names)
        written: list[str] = []
        for one, expression in fields:
            written += self._field(names.give(one.key, "field"), one, expression, struct)
            written += docstring(one.description, "    ")
        body = [*([""] if len(lines) > 1 and written else []), *written]
        return [*lines, *body] if len(lines) + len(body) > 1 else [*lines, "    pass"]

    def _field(self, name: str, field: Field, expression: str, struct: Struct) -> list[str]:
        """Return the lines of a field, which is called `field.key` in the data."""
        options = [] if name == field.key else [f"name={literal(field.key)}"]
        default = _default(field)
        if not default and not field.required:
            default = "msgspec.UNSET"
            known = expression.removesuffix("None").removesuffix(" | ")
            parts = [*([known] if known else []), "msgspec.UnsetType", *(["None"] if known != expression else [])]
            expression = " | ".join(parts)
        head = f"    {name}: {expression}"
        if not options:
            return [f"{head} = {default}" if default else head]
        mutable = {"[]": "default_factory=list", "{}": "default_factory=dict"}
        options += [mutable.get(default, f"default={default}")] if default else []
        return call(f"{head} = msgspec.field", options, "", "    ")


def _annotated(expression: str, limits: tuple[tuple[str, Any], ...], integer: bool = False) -> str:
    """Return a type with its limits, as far as msgspec supports them."""
    found: dict[str, str] = {}
    for keyword, value in limits:
        shown = _limit(keyword, value, integer)
        if shown:
            found[META[keyword]] = shown
    for one, other in (("gt", "ge"), ("lt", "le")):
        if one in found:
            found.pop(other, None)
    inside = ", ".join(f"{name}={value}" for name, value in found.items())
    return f"Annotated[{expression}, msgspec.Meta({inside})]" if inside else expression


def _limit(keyword: str, value: Any, integer: bool) -> str:
    if keyword == "pattern":
        return literal(value) if _is_checked(value) else ""
    if integer or (keyword[:3] in ("min", "max") and keyword not in ("minimum", "maximum")):
        return repr(int(value)) if value == int(value) and int(value) in INT64 else ""
    positive = keyword != "multipleOf" or value > 0
    return repr(value) if math.isfinite(value) and positive and (type(value) is float or value in INT64) else ""


def _is_checked(pattern: str) -> bool:
    """Return True for a pattern that Python reads, and that no text of a peer makes slow."""
    try:
        return is_safe(parsed(pattern))
    except ValueError:
        return False


def _constant(node: Node) -> bool:
    return isinstance(node, Choice) and len(node.values) == 1


def _default(field: Field) -> str:
    """Return the default of a field as an expression; empty if there is none."""
    if field.required and isinstance(field.node, Choice) and _constant(field.node):
        value = field.node.values[0]
        if isinstance(value, bool | float) or (isinstance(value, int) and value not in INT64):
            return ""
        return literal(value)
    if not field.default:
        return ""
    value = field.default[0]
    members = field.node.members if isinstance(field.node, Union) else (field.node,)
    for one in members:
        shown = _shown(value, one)
        if shown:
            return shown
    return ""


def _shown(value: Any, node: Node) -> str:
    if isinstance(node, Array | Record):
        return repr(value) if value in ([], {}) and isinstance(value, list) == isinstance(node, Array) else ""
    if isinstance(node, Choice):
        return (
            literal(value) if isinstance(value, str | int) and type(value) is not bool and value in node.values else ""
        )
    if node == NONE and value is None:
        return "None"
    if not isinstance(node, Scalar) or node == ANY:
        return ""
    if node.kind == "text" and isinstance(value, str):
        return literal(value)
    if node.kind == "boolean" and isinstance(value, bool):
        return repr(value)
    if node.kind in ("integer", "number") and type(value) in (int, float) and math.isfinite(value):
        return repr(float(value)) if node.kind == "number" else repr(value) if type(value) is int else ""
    return ""
