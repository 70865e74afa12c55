from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Any, TypedDict

import msgspec
from msgspec import inspect

from weirpool.values.conversion import Conversion
from weirpool.values.forms import BINARY_FORMS, TIME_FORMS


class Leaf(msgspec.Struct):
    n: int
    note: str = ""


class Node(msgspec.Struct, tag_field="kind", tag="node"):
    leaf: Leaf | None
    leaves: list[Leaf]
    by_name: dict[str, Leaf]
    at: datetime
    price: Decimal
    next: Node | None = None


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    n: int


def test_fields_of_records_are_known_at_each_level() -> None:
    conversion = Conversion(Node, BINARY_FORMS)
    leaf = {"n": None, "note": None}
    assert conversion.fields == {
        "leaf": leaf,
        "leaves": [leaf],
        "by_name": [leaf],
        "at": None,
        "price": None,
        "next": None,
        "kind": None,
    }
    assert conversion.kinds >= {inspect.IntType, inspect.DateTimeType, inspect.StructType}


def test_loose_types_have_known_fields_alone() -> None:
    loose = Conversion(Node, TIME_FORMS).loose
    data: dict[str, Any] = {"leaf": {"n": 1, "x": 2}, "leaves": [{"x": 1}], "at": "?", "price": 1.5, "more": 1}
    found = msgspec.json.decode(msgspec.json.encode(data), type=loose)
    assert found == {"leaf": {"n": 1}, "leaves": [{}], "at": "?", "price": 1.5}
    # What may not be there is refused, so all of it is decoded.
    assert Conversion(Strict, BINARY_FORMS).loose is Any
    assert Conversion(Strict, BINARY_FORMS).fields is None


def test_values_are_fixed_where_a_type_has_a_form_for_them() -> None:
    fix = Conversion(Node, BINARY_FORMS).fix
    found = fix({"kind": "node", "leaf": {"n": 1.0}, "by_name": {"a": {"n": 2.0}}, "next": {"leaf": {"n": 3.0}}})
    assert repr(found) == repr(
        {"kind": "node", "leaf": {"n": 1}, "by_name": {"a": {"n": 2}}, "next": {"leaf": {"n": 3}}}
    )
    # Values of another type are for msgspec to refuse.
    for value in (None, 1.5, "x", [1.0], {"leaf": [{"n": 1.0}], "leaves": {"n": 1.0}}):
        assert repr(fix(value)) == repr(value)


def test_records_of_a_union_are_told_by_their_tag() -> None:
    class One(msgspec.Struct, tag=True):
        a: int

    class Two(msgspec.Struct, tag=True):
        a: float

    fix = Conversion(One | Two | int | None, BINARY_FORMS).fix
    assert repr(fix({"type": "One", "a": 1.0})) == "{'type': 'One', 'a': 1}"
    assert repr(fix({"type": "Two", "a": 1.0})) == "{'type': 'Two', 'a': 1.0}"
    assert repr(fix(1.0)) == "1"


def test_types_without_forms_need_no_conversion() -> None:
    value = {"a": [1.0, {"b": "x"}]}
    assert Conversion(Any, BINARY_FORMS).fix(value) is value
    typed = TypedDict("typed", {"a": list[str]})  # noqa: UP013
    assert Conversion(typed, TIME_FORMS).fix(value) is value
