from __future__ import annotations

from typing import Any

import pytest

from penstock import LocalError
from penstock.schema.naming import Names
from penstock.schema.shapes import Shapes, call


def declared(schema: Any, *words: str) -> tuple[str, str]:
    """Return the type of a schema, and the source of its declarations."""
    shapes = Shapes(Names())
    found = shapes.type_of(schema, *(words or ("Shop", "Init")))
    return found, "\n".join("\n".join(block) for block in shapes.render())


def struct(required: str = "", **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({}, "Any"),
        (True, "Any"),
        ({"type": "string"}, "str"),
        ({"type": "string", "contentEncoding": "base64"}, "bytes"),
        ({"type": "Uint8Array"}, "bytes"),
        ({"type": "number"}, "float"),
        ({"type": "integer"}, "int"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "Date"}, "Any"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "patternProperties": {"^(.*)$": {"type": "number"}}}, "dict[str, float]"),
        ({"const": "a"}, 'Literal["a"]'),
        ({"const": None}, "None"),
        ({"const": True}, "bool"),
        ({"const": 1.5}, "float"),
        ({"enum": ["a", 1, None, "a"]}, 'Literal["a", 1, None]'),
        ({"enum": [{}]}, "Any"),
        ({"enum": []}, "Any"),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, 'Literal["a", "b"]'),
        ({"type": ["null", "string"]}, "str | None"),
        ({"anyOf": [{"type": "number"}]}, "float"),
        ({"anyOf": [{"type": "string"}, {"type": "Uint8Array"}]}, "Any"),
        ({"anyOf": [struct(a={}), struct(b={})]}, "Any"),
        ({"anyOf": [struct(a={}), {"type": "object"}]}, "Any"),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, "Any"),
        ({"type": "object", "properties": {'a"b': {}}}, "dict[str, Any]"),
        ({"$ref": "http://elsewhere"}, "Any"),
        ({"$ref": "#/$defs/none"}, "Any"),
    ],
)
def test_types(schema: Any, expected: str) -> None:
    assert declared(schema)[0] == expected


def test_an_object_is_a_struct() -> None:
    found, source = declared(struct("a class", a={"type": "string"}, b={"type": "number"}, **{"class": {}}))
    assert found == "ShopInit"
    assert source.splitlines() == [
        "class ShopInit(msgspec.Struct, kw_only=True):",
        "    a: str",
        "    b: float | msgspec.UnsetType = msgspec.UNSET",
        '    class_: Any = msgspec.field(name="class")',
    ]


def test_tagged_objects_are_distinguished() -> None:
    cat, dog = struct("kind", kind={"const": "cat"}), struct("kind n", kind={"const": "dog"}, n={"type": "number"})
    found, source = declared({"anyOf": [cat, dog, {"type": "null"}]}, "Pet")
    assert found == "PetCat | PetDog | None"
    assert 'class PetDog(msgspec.Struct, kw_only=True, tag_field="kind", tag="dog"):\n    n: float' in source


def test_all_of_several_objects_is_one() -> None:
    found, source = declared({"allOf": [struct("a", a={"type": "string"}), struct("b", b={"type": "number"})]})
    assert found == "ShopInit"
    assert source.endswith("    a: str\n    b: float")


def test_recursive_type_is_declared_once() -> None:
    tree = struct("next", next={"type": "array", "items": {"$ref": "#"}})
    assert declared(tree)[1].endswith("    next: list[ShopInit]")
    defined = {"$ref": "#/$defs/Node", "$defs": {"Node": struct(next={"$ref": "#/$defs/Node"})}}
    found, source = declared(defined)
    assert found == "ShopNode"
    assert source.count("class ") == 1


def test_endless_and_huge_schemas_end() -> None:
    deep: dict[str, Any] = {}
    for _ in range(500):
        deep = {"type": "array", "items": deep}
    assert declared(deep)[0]
    wide: Any = {}
    for _ in range(40):
        wide = struct(a=wide, b=wide)
    several = {"type": "object", "properties": {}, "additionalProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}
    for schema in (wide, several):
        with pytest.raises(LocalError, match="use fewer references"):
            declared(schema)


def test_long_types_are_aliases_after_their_types() -> None:
    schema = struct("x", x={"anyOf": [{"type": "array", "items": struct(n={})}, {"type": "boolean"}]})
    lines = declared(schema)[1].splitlines()
    assert "    x: ShopInitX" in lines
    assert lines[-1] == "ShopInitX: TypeAlias = list[ShopInitXChoice1Item] | bool"
    many = declared({"enum": ["x" * 30 + str(number) for number in range(5)]})[1].splitlines()
    assert (many[0], many[-1], len(many)) == ("ShopInit: TypeAlias = Literal[", "]", 7)


def test_long_calls_are_split_as_by_formatters() -> None:
    assert call("f", ["a", "b"], ":", "") == ["f(a, b):"]
    assert call("f", ["a" * 100, "b" * 100], ":", "") == ["f(", f"    {'a' * 100},", f"    {'b' * 100},", "):"]
