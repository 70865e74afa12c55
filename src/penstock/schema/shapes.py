"""Converts JSON Schema to the source of Python types, for a generated client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ..errors import LocalError
from .formats import JSON
from .naming import MAX_CHARACTERS, Names, camel, docstring, literal

__all__ = ["Shapes", "call", "listed"]

LINE: Final = 120
MAX_STEPS: Final = 50_000
"""Nodes of a schema to visit: references that lead to several others multiply."""
MAX_LEVELS: Final = 64
ANY: Final = "Any"
SIMPLE: Final = {
    "string": "str",
    "number": "float",
    "integer": "int",
    "boolean": "bool",
    "null": "None",
    # TypeBox's addition to JSON Schema's own types.
    "Uint8Array": "bytes",
}
CATEGORIES: Final = {"str": "text", "bytes": "text", "float": "float", "int": "int", "bool": "bool", "None": "none"}
"""Types that msgspec can distinguish in a union: one of each."""
INT64: Final = range(-(2**63), 2**63)
"""Types that msgspec supports in a Literal."""

DEFINITIONS: Final = ("$defs", "definitions")
_REFERENCE: Final = re.compile(r'"\$ref":"([^"]*)"')

_UNSUPPORTED: Final = re.compile(r'[\x00-\x1f"\\]')
"""Characters that msgspec does not support in a field's name: an object with such a field stays a dict."""


class Shapes:
    """Declares types, and remembers the declarations.

    Args:
        names: The names of the module.

    """

    def __init__(self, names: Names) -> None:
        self._names = names
        self._structs: list[_Struct] = []
        self._aliases: list[tuple[str, str]] = []
        self._categories: dict[str, str] = {}
        # By the identity of a referenced schema, which may contain itself.
        self._referred: dict[int, str] = {}
        # By everything that they depend on.
        self._defined: dict[str, str] = {}
        self._written: dict[int, str] = {}
        self._levels = 0
        self._steps = 0

    def type_of(self, schema: Any, *words: str, root: Any = None) -> str:
        """Return the type of a schema as an expression, and declare the types that it needs.

        Schemas that msgspec cannot distinguish, or that are not supported, are Any.

        Args:
            schema: The schema.
            words: Its description, for names.
            root: The enclosing schema, in which its references are resolved; by default itself.

        Raises:
            LocalError: The schema is too large.

        """
        root = schema if root is None else root
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise LocalError(f"the schema has more than {MAX_STEPS} parts, references included; use fewer references")
        if not isinstance(schema, Mapping) or self._levels >= MAX_LEVELS:
            return ANY
        self._levels += 1
        try:
            found = self._found(schema, words, root)
        finally:
            self._levels -= 1
        # Lines have a maximum length, and a name is easier to read.
        return self._alias(found, words) if len(found) > MAX_CHARACTERS else found

    def has_defaults(self, name: str) -> bool:
        """Return True if a declared struct can be created without arguments."""
        return any(one.name == name and not any(needed for _, _, needed in one.fields) for one in self._structs)

    def render(self) -> list[list[str]]:
        """Return the source of all declarations, in blocks of lines."""
        # Fields are resolved after all declarations, aliases at once: they follow the types that they name.
        blocks = [one.render(Names(self._names)) for one in self._structs]
        if self._aliases:
            blocks.append([line for name, expression in self._aliases for line in _alias(name, expression)])
        return blocks

    def _found(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any) -> str:
        if isinstance(schema.get("$ref"), str):
            return self._reference(schema["$ref"], words, root)
        if "const" in schema:
            return self._literals([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return self._literals(schema["enum"])
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                return self._union(schema[keyword], words, root)
        if isinstance(schema.get("allOf"), list):
            return self._found(_merged(schema), words, root)
        kind = schema.get("type")
        if isinstance(kind, list):
            return self._union([{**schema, "type": one} for one in kind], words, root)
        if kind == "array":
            items = schema.get("items")
            return f"list[{self.type_of(items, *words, 'Item', root=root)}]" if items else "list[Any]"
        if kind == "object" or isinstance(schema.get("properties"), Mapping):
            return self._object(schema, words, root)
        if kind == "string" and schema.get("contentEncoding") == "base64":
            return "bytes"
        return SIMPLE.get(kind, ANY) if isinstance(kind, str) else ANY

    def _reference(self, reference: str, words: tuple[str, ...], root: Any) -> str:
        """Return the type of a reference within the schema; Any for all others."""
        target: Any = root if reference == "#" else None
        if reference.startswith("#/"):
            target = root
            for step in reference[2:].split("/"):
                step = step.replace("~1", "/").replace("~0", "~")
                target = target.get(step) if isinstance(target, Mapping) else None
        # Only objects with fields can be declared while they are being read.
        if not isinstance(target, Mapping) or not isinstance(target.get("properties"), Mapping):
            return ANY
        if id(target) in self._referred:
            return self._referred[id(target)]
        place, _, name = reference.rpartition("/")
        same = self._same_definition(place, name, words[0], root)
        known = self._defined.get(same)
        if known is not None:
            return known
        made = self._object(target, (words[0], name), root)
        if same:
            self._defined[same] = made
        return made

    def _same_definition(self, place: str, name: str, service: str, root: Any) -> str:
        """Return a common key of two equal definitions; empty if one refers to more than definitions.

        Every schema of a service has its own definitions, and most of them are equal.
        """
        definitions = root.get(place[2:]) if isinstance(root, Mapping) else None
        if place[2:] not in DEFINITIONS or not isinstance(definitions, Mapping):
            return ""
        if id(definitions) not in self._written:
            text = JSON.encode(definitions).decode()
            alone = all(found.startswith(f"{place}/") for found in _REFERENCE.findall(text))
            self._written[id(definitions)] = text if alone else ""
        text = self._written[id(definitions)]
        return f"{service} {name} {text}" if text else ""

    def _literals(self, values: list[Any]) -> str:
        """Return the type of an enumeration of values."""
        known = [value for value in values if value is None or type(value) is str or type(value) is int]
        if not values or len(known) != len(values) or any(type(one) is int and one not in INT64 for one in known):
            kinds = {type(value) for value in values}
            return "bool" if kinds == {bool} else "float" if kinds <= {float, int} and kinds else ANY
        if known == [None]:
            return "None"
        found = f"Literal[{', '.join(literal(value) for value in dict.fromkeys(known))}]"
        kinds = {type(value) for value in known}
        self._categories[found] = "text" if kinds == {str} else "int" if kinds == {int} else "mixed"
        return found

    def _union(self, schemas: list[Any], words: tuple[str, ...], root: Any) -> str:
        """Return the type of a union."""
        if all(isinstance(one, Mapping) and "const" in one for one in schemas):
            return self._literals([one["const"] for one in schemas])
        tag = _tag(schemas)
        found: dict[str, None] = {}
        for number, schema in enumerate(schemas, 1):
            if tag and _is_object(schema):
                made = self._object(schema, (*words, str(schema["properties"][tag]["const"])), root, tag)
            else:
                made = self.type_of(schema, *words, f"Choice{number}", root=root)
            found[made] = None
        if len(found) == 1:
            return next(iter(found))
        categories = [self._category(one, bool(tag)) for one in found]
        distinct = len(set(categories)) == len(categories) and not {"any", "mixed"} & set(categories)
        return " | ".join(sorted(found, key="None".__eq__)) if distinct else ANY

    def _category(self, expression: str, tagged: bool) -> str:
        """Return the property by which msgspec distinguishes a type. Tagged structs are distinguished by their tags."""
        known = CATEGORIES.get(expression) or self._categories.get(expression)
        if known is None:
            return "array" if expression.startswith("list[") else "any"
        return expression if known == "object" and tagged and expression[:5] != "dict[" else known

    def _object(self, schema: Mapping[str, Any], words: tuple[str, ...], root: Any, tag: str = "") -> str:
        properties = schema.get("properties")
        others = schema.get("additionalProperties")
        patterns = schema.get("patternProperties")
        if isinstance(patterns, Mapping) and len(patterns) == 1 and not properties:
            # TypeBox's form of a record.
            (others,) = patterns.values()
        if not isinstance(properties, Mapping) or (not properties and isinstance(others, Mapping)):
            found = f"dict[str, {self.type_of(others, *words, 'Value', root=root)}]"
            self._categories[found] = "object"
            return found
        if any(_UNSUPPORTED.search(key) for key in properties):
            return self._object({"type": "object"}, words, root)
        name = self._names.give(camel(*words), "Type")
        self._categories[name] = "object"
        self._referred.setdefault(id(schema), name)
        required = schema.get("required")
        struct = _Struct(name, schema.get("description"), tag, properties[tag]["const"] if tag else "")
        for key, value in properties.items():
            if key != tag:
                needed = isinstance(required, list) and key in required
                struct.fields.append((key, self.type_of(value, *words, key, root=root), needed))
        self._structs.append(struct)
        return name

    def _alias(self, expression: str, words: tuple[str, ...]) -> str:
        name = self._names.give(camel(*words), "Type")
        known = self._category(expression, False)
        self._categories[name] = "mixed" if " | " in expression else known
        self._aliases.append((name, expression))
        return name


class _Struct:
    """A class with fields: for each, the name in the data, the type, and whether it is required."""

    def __init__(self, name: str, description: object, tag: str, value: str) -> None:
        self.name = name
        self.fields: list[tuple[str, str, bool]] = []
        self._description = description if isinstance(description, str) else ""
        self._tag, self._value = tag, value

    def render(self, names: Names) -> list[str]:
        """Return the lines of the class; `names` are those of its scope."""
        options = ["msgspec.Struct", "kw_only=True"]
        if self._tag:
            options += [f"tag_field={literal(self._tag)}", f"tag={literal(self._value)}"]
        head = call(f"class {self.name}", options, ":", "")
        doc = docstring(self._description, "    ")
        fields = [
            line
            for key, expression, required in self.fields
            for line in _field(names.give(key, "field"), key, expression, required)
        ]
        return [*head, *doc, *([""] if doc and fields else []), *fields, *([] if doc or fields else ["    pass"])]


def _alias(name: str, expression: str) -> list[str]:
    """Return the lines that give a type a name."""
    line = f"{name}: TypeAlias = {expression}"
    if len(line) <= LINE:
        return [line]
    if expression.startswith("Literal["):
        head, parts = "Literal", _split(expression.removeprefix("Literal[").removesuffix("]"), ", ")
    else:
        head, parts = "Union", _split(expression, " | ")
    return listed(f"{name}: TypeAlias = {head}", parts, "", "", "[]")


def _field(name: str, key: str, expression: str, required: bool) -> list[str]:
    """Return the lines of a field, which is called `key` in the data."""
    options = [] if name == key else [f"name={literal(key)}"]
    if required:
        head = f"    {name}: {expression}"
    else:
        # None comes last.
        known = expression.removesuffix("None").removesuffix(" | ")
        parts = [*([known] if known else []), "msgspec.UnsetType", *(["None"] if known != expression else [])]
        head = f"    {name}: {' | '.join(parts)}"
        if not options:
            return [f"{head} = msgspec.UNSET"]
        options.append("default=msgspec.UNSET")
    return call(f"{head} = msgspec.field", options, "", "    ") if options else [head]


def call(head: str, arguments: list[str], tail: str, indent: str) -> list[str]:
    """Return a call on one line, or if that is too long, with one line per argument, as formatters do.

    Args:
        head: The text before the parenthesis, including its indent.
        arguments: The arguments.
        tail: The text after the parenthesis.
        indent: The indent of the line.

    """
    return listed(head, arguments, tail, indent, "()")


def listed(head: str, parts: list[str], tail: str, indent: str, brackets: str) -> list[str]:
    """Return items within brackets, as :func:`call` does."""
    opening, closing = brackets[0], brackets[1]
    line = f"{head}{opening}{', '.join(parts)}{closing}{tail}"
    if len(line) <= LINE:
        return [line]
    return [f"{head}{opening}", *(f"{indent}    {part}," for part in parts), f"{indent}{closing}{tail}"]


def _split(text: str, between: str) -> list[str]:
    """Split an expression at its outermost level; literals contain no quotes other than their own."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "[]":
            depth += 1 if character == "[" else -1
        elif not quoted and not depth and text.startswith(between, at):
            parts.append(text[start:at])
            start = at + len(between)
    return [*parts, text[start:]]


def _is_object(schema: Any) -> bool:
    return isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping)


def _tag(schemas: list[Any]) -> str:
    """Return the property that distinguishes the objects among several schemas; empty if there is none."""
    objects = [one for one in schemas if _is_object(one)]
    if len(objects) < 2:
        return ""
    for key in filter(lambda key: not _UNSUPPORTED.search(key), objects[0]["properties"]):
        values = []
        for one in objects:
            value = one["properties"].get(key)
            required = one.get("required")
            if isinstance(value, Mapping) and isinstance(required, list) and key in required:
                values.append(value.get("const"))
        if len(values) == len(objects) == len({value for value in values if isinstance(value, str)}):
            return str(key)
    return ""


def _merged(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return one object that is the intersection of several objects; any value if they are not objects."""
    parts = [*schema["allOf"], {key: value for key, value in schema.items() if key != "allOf"}]
    objects = [part for part in parts if part != {}]
    if not objects or not all(_is_object(part) for part in objects):
        return {}
    merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
    for part in objects:
        merged["properties"].update(part["properties"])
        merged["required"] += part.get("required") or []
    return merged
