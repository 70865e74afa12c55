"""Declares the types of a schema in TypeScript: an interface for each object."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from .naming import Names, paragraphs
from .nodes import Array, Choice, Field, Node, Record, Reference, Scalar, Struct, Tuple, Union

__all__ = ["RESERVED_NAMES", "TypescriptTypes", "jsdoc", "key", "quoted", "type_names"]

RESERVED_NAMES: Final = frozenset(
    "Array AsyncIterable AsyncIterator Buffer Cancellable Date Error Iterable Iterator Map Number Object Options"
    " ErrorClass Items Outgoing Sink StreamOptions"
    " Payload Procedure Promise RSocket RSocketError Record Requestable Requester Schemas ServiceSchema Set Static"
    " String Subscription Symbol Type TypedError Uint8Array connect setup services constructor then toString valueOf"
    " hasOwnProperty propertyIsEnumerable isPrototypeOf toLocaleString".split()
)
"""Names with a meaning in generated code."""
SCALARS: Final = {
    "any": "unknown",
    "none": "null",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
}
EXTENSIONS: Final = {"Date": "Date", "bigint": "bigint", "void": "void", "undefined": "undefined"}
"""Types that only River's codecs carry."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def type_names() -> Names:
    """Return the names of a TypeScript module."""
    return Names(used=RESERVED_NAMES)


class TypescriptTypes:
    """Declares the types that are used, and no others.

    Args:
        data: The type of bytes: ``Uint8Array`` if the encoding carries them, or ``string`` for base64 text.
        extended: Whether the encoding carries the types that TypeBox adds to those of JSON.

    Attributes:
        structs: The objects, in the order of their first use.
        choices: The named enumerations.

    """

    def __init__(self, data: str, extended: bool) -> None:
        self.structs: dict[Struct, None] = {}
        self.choices: dict[str, Choice] = {}
        self._data = data
        self._extended = extended

    def type_of(self, node: Node) -> str:
        """Return a type as an expression, and declare what it needs."""
        if isinstance(node, Scalar):
            if self._extended and node.format:
                return EXTENSIONS[node.format]
            return self._data if node.kind == "bytes" else SCALARS.get(node.kind, "string")
        if isinstance(node, Choice):
            if node.name:
                self.choices[node.name] = node
            return node.name or choice(node)
        if isinstance(node, Array):
            inner = self.type_of(node.item)
            return f"({inner})[]" if " | " in inner else f"{inner}[]"
        if isinstance(node, Tuple):
            optional = enumerate(self.type_of(one) for one in node.items)
            parts = [one if at < node.required else f"({one})?" for at, one in optional]
            return f"[{', '.join(parts)}]"
        if isinstance(node, Record):
            return f"Record<string, {self.type_of(node.value)}>"
        if isinstance(node, Union):
            return " | ".join(dict.fromkeys(self.type_of(one) for one in node.members))
        assert isinstance(node, Reference)
        self._declare(node.struct)
        return node.struct.name

    def _declare(self, struct: Struct) -> None:
        if struct not in self.structs:
            self.structs[struct] = None
            for field in struct.fields:
                self.type_of(field.node)

    def render(self) -> list[list[str]]:
        """Return the source of all declarations, in blocks of lines."""
        blocks = [[f"export type {name} = {choice(node)};"] for name, node in self.choices.items()]
        return [*blocks, *map(self._interface, self.structs)]

    def _interface(self, struct: Struct) -> list[str]:
        lines = [*jsdoc(struct.description), f"export interface {struct.name} {{"]
        for field in struct.fields:
            lines += jsdoc(_notes(field), "  ")
            lines.append(f"  {key(field.key)}{'' if field.required else '?'}: {self.type_of(field.node)};")
        return [*lines, "}"]


def choice(node: Choice) -> str:
    """Return a union of literals."""
    return " | ".join(quoted(value) for value in node.values)


def _notes(field: Field) -> str:
    """Return the description of a field, with what its type does not say."""
    default = f"By default {quoted(field.default[0])}." if field.default else ""
    return " ".join(part for part in (field.description, default) if part)


def quoted(value: Any) -> str:
    """Return a value as a literal, which is also safe in comments and scripts: ASCII without control characters."""
    return json.dumps(value, ensure_ascii=True).replace("</", "<\\/").replace("*/", "*\\/").replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """Return the name of a property."""
    if name == "__proto__":
        # In an object, without brackets, it would be its prototype.
        return '["__proto__"]'
    return name if _IDENTIFIER.fullmatch(name) else quoted(name)


def jsdoc(text: str, indent: str = "") -> list[str]:
    """Return a comment with the paragraphs of `text`, which cannot end it early; empty if there is no text."""
    lines = [line.replace("*/", "* /") for line in paragraphs(text)]
    if len(lines) <= 1:
        return [f"{indent}/** {line} */" for line in lines]
    return [f"{indent}/**", *(f"{indent} * {line}".rstrip() for line in lines), f"{indent} */"]
