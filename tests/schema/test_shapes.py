from __future__ import annotations

from typing import Any

import pytest

from weirpool import LocalError
from weirpool.schema.naming import Names
from weirpool.schema.python_types import PythonTypes
from weirpool.schema.shapes import Shapes


def declared(schema: Any, *words: str) -> tuple[str, str]:
    """Return the type of a schema, and the source of its declarations."""
    found, types, _ = read(schema, *words)
    return found, "\n".join("\n".join(block) for block in types.render())


def lost(schema: Any) -> list[str]:
    """Return why parts of a schema become Any."""
    return [loss.reason for loss in read(schema)[2].losses]


def read(schema: Any, *words: str) -> tuple[str, PythonTypes, Shapes]:
    names = Names()
    shapes = Shapes(names)
    types = PythonTypes(names, shapes)
    words = words or ("Shop", "Init")
    return types.type_of(shapes.read(schema, *words), *words), types, shapes


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
        ({"type": "Date"}, "datetime.datetime"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "object"}, "dict[str, Any]"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "dict[str, float]"),
        ({"type": "object", "patternProperties": {"^(.*)$": {"type": "number"}}}, "dict[str, float]"),
        ({"const": "a"}, 'Literal["a"]'),
        ({"const": None}, "None"),
        ({"const": True}, "bool"),
        ({"const": 1.5}, "float"),
        ({"enum": ["a", 1, None, "a"]}, 'Literal["a"] | Literal[1] | None'),
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
    assert found == "Node"
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
    assert declared(wide)[1].count("class ") == 40
    with pytest.raises(LocalError, match="use fewer references"):
        declared(several)


def test_long_types_are_aliases_after_their_types() -> None:
    options = [{"type": "string", "maxLength": 10}, {"type": "array", "items": struct(n={})}, {"type": "boolean"}]
    lines = declared(struct("x", x={"anyOf": options}))[1].splitlines()
    assert "    x: ShopInitX" in lines
    assert (
        lines[-1] == "ShopInitX: TypeAlias = Annotated[str, msgspec.Meta(max_length=10)] | list[ShopInitXItem] | bool"
    )
    many = declared({"enum": ["x" * 30 + str(number) for number in range(5)]})[1].splitlines()
    assert (many[0], many[-1], len(many)) == ("ShopInit: TypeAlias = Literal[", "]", 7)


T0 = {"$id": "T0", **struct("next", next={"type": "array", "items": {"$ref": "T0"}})}
CYCLE = {"$defs": {"Node": {"$id": "Node", **struct("next", next={"$ref": "Node"})}}, "$ref": "Node"}


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"const": "a"}, {"const": "b"}, {"type": "null"}]}, 'Literal["a", "b"] | None'),
        ({"type": "bigint"}, "int"),
        ({"type": "void"}, "None"),
        ({"type": "undefined"}, "None"),
        ({"type": "string", "format": "date-time"}, "datetime.datetime"),
        ({"type": "string", "format": "uuid"}, "UUID"),
        ({"type": "string", "format": "email"}, "str"),
        ({"type": "array", "items": [{"type": "integer"}, {"type": "string"}], "minItems": 2}, "tuple[int, str]"),
        ({"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1, "maxItems": 1}, "tuple[int]"),
        ({"type": "integer", "minimum": 1, "exclusiveMaximum": 9}, "Annotated[int, msgspec.Meta(ge=1, lt=9)]"),
        ({"type": "string", "pattern": "^a+$"}, 'Annotated[str, msgspec.Meta(pattern="^a+$")]'),
        ({"type": "string", "pattern": "(?<n>a)"}, "str"),
        ({"type": "object", "propertyNames": {"pattern": "^-?[0-9]+$"}}, "dict[int, Any]"),
        ({"anyOf": [{"type": "array", "items": {"type": t}} for t in ("string", "null")]}, "list[str | None]"),
        ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "Annotated[str, msgspec.Meta(min_length=1)]"),
        (T0, "ShopInit"),
        (CYCLE, "Node"),
    ],
)
def test_forms_of_typebox_lose_nothing(schema: Any, expected: str) -> None:
    assert declared(schema)[0] == expected
    assert lost(schema) == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"$ref": "nowhere"}, "$ref to 'nowhere', which does not exist"),
        ({"type": "Promise"}, "type 'Promise'"),
        ({"not": {}}, "only not"),
        ({"anyOf": [struct(a={}), struct(b={})]}, "a union of objects that no field with a constant distinguishes"),
        ({"allOf": [{"type": "string"}, {"type": "number"}]}, "allOf of parts of other types"),
    ],
)
def test_what_is_lost_is_reported(schema: Any, reason: str) -> None:
    assert lost(schema) == [reason]


def test_equal_objects_are_one_type_and_names_stay_apart() -> None:
    point = struct("x", x={"type": "number"})
    schema = struct("a b", a=point, b=point | {"description": "Where it ends."}, c=point | {"title": "Point"})
    source = declared(schema)[1]
    assert source.count("class ") == 3
    assert "a: ShopInitA" in source and "b: ShopInitA" in source and "c: Point | " in source


def test_a_required_property_without_a_schema_is_any_value() -> None:
    _, source = declared({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b", ""]})
    assert "    b: Any\n" in source and '    field: Any = msgspec.field(name="")' in source
