"""The types of a schema as generated clients declare them, in terms of no language."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "ANY", "NONE", "Array", "Choice", "Field", "Node", "Record", "Reference", "Scalar", "Struct", "Tuple", "Union",
]  # fmt: skip


@dataclass(frozen=True)
class Node:
    """A type."""


@dataclass(frozen=True)
class Scalar(Node):
    """A value without parts.

    Attributes:
        kind: any, none, text, number, integer, boolean, bytes, datetime, date, time, duration, uuid or decimal.
        limits: Keywords of JSON Schema that restrict it.
        format: What the schema calls it, if other tools distinguish it: Date, bigint, void or undefined.

    """

    kind: str
    limits: tuple[tuple[str, Any], ...] = ()
    format: str = ""


ANY: Final = Scalar("any")
NONE: Final = Scalar("none")


@dataclass(frozen=True)
class Choice(Node):
    """One of several constants: texts, integers, numbers or booleans. `name` is that of its declaration, if any."""

    values: tuple[str | int | float | bool, ...]
    name: str = ""


@dataclass(frozen=True)
class Array(Node):
    """Items of one type."""

    item: Node
    limits: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class Tuple(Node):
    """Items of different types; the first `required` must exist."""

    items: tuple[Node, ...]
    required: int


@dataclass(frozen=True)
class Record(Node):
    """Values of one type by arbitrary names, or by integers."""

    value: Node
    limits: tuple[tuple[str, Any], ...] = ()
    integer_keys: bool = False


@dataclass(frozen=True)
class Union(Node):
    """One of several types, none of which is itself a union."""

    members: tuple[Node, ...]


@dataclass(frozen=True)
class Reference(Node):
    """A declared object."""

    struct: Struct


@dataclass(frozen=True)
class Field:
    """A field of an object.

    Attributes:
        key: Its name in the data.
        node: Its type.
        required: Whether it must exist.
        description: For people.
        default: A list with its default; empty if there is none.

    """

    key: str
    node: Node
    required: bool
    description: str = ""
    default: tuple[Any, ...] = ()


@dataclass(eq=False)
class Struct:
    """An object with known fields, which is declared once.

    Attributes:
        name: Its name in the schema, or a name from its first use.
        description: For people.
        fields: Its fields.
        tag: The field whose constant distinguishes it in unions; None if there is none.
        others: The type of fields that are not listed; None if there are none, or they do not matter.
        named: Whether its name is that of the schema.

    """

    name: str
    description: str = ""
    fields: list[Field] = field(default_factory=list)
    tag: str | None = None
    others: Node | None = None
    named: bool = False

    def tag_value(self) -> str | int:
        """Return the constant of the tag."""
        node = next(each.node for each in self.fields if each.key == self.tag)
        assert isinstance(node, Choice)
        value = node.values[0]
        assert isinstance(value, str | int)
        return value
