from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from weirpool import LocalError, Payload, Service, TypedError
from weirpool.schema.export import schema_of

REFERENCE = Path(__file__).parent.parent / "vectors" / "river-2.0-schema.json"


class Pair(msgspec.Struct):
    a: float
    b: float


class Sum(msgspec.Struct):
    sum: float


class Extras(msgspec.Struct):
    a: float


class Negative(TypedError, code="NEGATIVE"):
    extras: Extras


class Nothing(msgspec.Struct):
    pass


class Millis(msgspec.Struct):
    ms: float


class Data(msgspec.Struct):
    data: bytes
    n: Any


class DataOut(msgspec.Struct):
    data: bytes
    n: Any
    u: Any


class Prefix(msgspec.Struct):
    prefix: str


class Message(msgspec.Struct):
    msg: str


class Response(msgspec.Struct):
    response: str


class Start(msgspec.Struct):
    start: float


class Number(msgspec.Struct):
    n: float


class Total(msgspec.Struct):
    total: float


class Upto(msgspec.Struct):
    upto: float
    everyMs: float


class Index(msgspec.Struct):
    i: float


class Token(msgspec.Struct):
    token: str


def demo() -> Service:
    """Return the service whose schema the reference exported."""
    service = Service()

    @service.call("demo.add", errors=[Negative])
    async def add(init: Pair) -> Sum: ...

    @service.call("demo.boom")
    async def boom(init: Nothing) -> Nothing: ...

    @service.call("demo.slow")
    async def slow(init: Millis) -> Nothing: ...

    @service.call("demo.selfCancel")
    async def self_cancel(init: Nothing) -> Nothing: ...

    @service.call("demo.bytes")
    async def bytes_(init: Data) -> DataOut: ...

    @service.channel("demo.echo")
    def echo(init: Prefix, items: AsyncIterator[Message]) -> AsyncIterator[Response]: ...

    @service.upload("demo.sum")
    async def total(init: Start, items: AsyncIterator[Number]) -> Total: ...

    @service.stream("demo.count")
    def count(init: Upto) -> AsyncIterator[Index]: ...

    return service


def sorted_lists(node: Any) -> Any:
    """Return a schema with sorted lists of required properties, whose order has no meaning."""
    if isinstance(node, dict):
        return {key: sorted(value) if key == "required" else sorted_lists(value) for key, value in node.items()}
    return [sorted_lists(one) for one in node] if isinstance(node, list) else node


def untitled(node: Any) -> Any:
    """Return a schema without the names of classes, which the reference does not have."""
    if isinstance(node, dict):
        return {key: untitled(value) for key, value in node.items() if key != "title"}
    return [untitled(one) for one in node] if isinstance(node, list) else node


def test_schema_of_a_service_equals_that_of_the_reference() -> None:
    ours = demo().schema(Token)
    assert untitled(sorted_lists(ours)) == sorted_lists(json.loads(REFERENCE.read_bytes()))


def test_unknown_types_are_open_and_other_kinds_separate() -> None:
    service = Service()

    @service.call("shop.raw")
    def raw(request: Payload) -> bytes:
        """Say something."""
        return b""

    service.fire("shop.log")(lambda request: None)
    service.call("alone")(lambda request: b"")
    service.upload("shop.load", request=int, response={"type": "string"})(lambda request, items: "")
    schema = service.schema()
    assert list(schema) == ["services", "routes"]
    assert {route: each["type"] for route, each in schema["routes"].items()} == {"alone": "rpc", "shop.log": "fire"}
    assert list(schema["services"]) == ["shop"]
    procedures = schema["services"]["shop"]["procedures"]
    assert list(procedures) == ["load", "raw"]
    assert procedures["raw"]["init"] == procedures["raw"]["output"] == {}
    assert procedures["raw"]["description"] == "Say something."
    assert "input" not in procedures["raw"]
    assert procedures["load"]["input"] == {"type": "integer"}
    assert procedures["load"]["output"] == {"type": "string"}


class Leaf(msgspec.Struct):
    kind: Literal["leaf"]
    many: Literal["a", "b"] = "a"


class Tree(msgspec.Struct):
    """A tree."""

    leaf: Leaf
    other: Leaf
    children: list[Tree] = []
    size: Annotated[int, msgspec.Meta(ge=1)] = 1


class Cat(msgspec.Struct, tag=True):
    pass


class Dog(msgspec.Struct, tag=True):
    pass


def test_types_are_written_in_full_unless_recursive() -> None:
    schema = schema_of(Tree)
    assert schema["$ref"] == "#/$defs/Tree"
    tree = schema["$defs"]["Tree"]
    leaf = tree["properties"]["leaf"]
    assert leaf["properties"] == {
        "kind": {"type": "string", "const": "leaf"},
        "many": {"enum": ["a", "b"], "default": "a"},
    }
    assert leaf["required"] == ["kind"]
    assert tree["properties"]["other"] == leaf
    assert tree["properties"]["children"] == {"type": "array", "items": {"$ref": "#/$defs/Tree"}, "default": []}
    assert tree["properties"]["size"] == {"type": "integer", "minimum": 1, "default": 1}
    assert tree["description"] == "A tree."
    assert list(schema["$defs"]) == ["Tree"]


def test_unions_use_only_keywords_of_json_schema() -> None:
    schema = schema_of(Cat | Dog)
    assert list(schema) == ["anyOf"]
    assert [one["properties"]["type"]["const"] for one in schema["anyOf"]] == ["Cat", "Dog"]


def test_properties_named_as_keywords_stay() -> None:
    wanted = msgspec.defstruct("Odd", [("title", str), ("default", int), ("enum", list[int])])
    assert set(schema_of(wanted)["properties"]) == {"title", "default", "enum"}


def test_type_without_schema_is_an_error() -> None:
    with pytest.raises(LocalError, match="cannot be decoded"):
        schema_of(complex)
    doubled: Any = int
    for level in range(20):
        doubled = msgspec.defstruct(f"Level{level}", [("a", doubled), ("b", doubled)])
    with pytest.raises(LocalError, match="nodes"):
        schema_of(doubled)


def test_errors_are_typed_errors_or_schemas() -> None:
    service = Service()
    service.call("a.b", errors=[{"type": "object"}])(lambda request: b"")
    assert service.schema()["services"]["a"]["procedures"]["b"]["errors"]["anyOf"][0] == {"type": "object"}
    service.call("a.c", errors=[ValueError])(lambda request: b"")
    with pytest.raises(LocalError, match="neither a subclass"):
        service.schema()


class Plant(pydantic.BaseModel):
    leaf: Petal
    plants: list[Plant] = []


class Petal(pydantic.BaseModel):
    size: Annotated[int, pydantic.Field(alias="sizeMm", gt=0)]


class Forest(msgspec.Struct):
    plants: list[Plant]
    leaf: Petal | None


def test_models_of_pydantic_describe_themselves() -> None:
    leaf = {
        "title": "Petal",
        "type": "object",
        "properties": {"sizeMm": {"type": "integer", "exclusiveMinimum": 0}},
        "required": ["sizeMm"],
    }
    assert schema_of(Petal) == leaf
    schema = schema_of(Forest)
    assert schema["properties"] == {
        "plants": {"type": "array", "items": {"$ref": "#/$defs/Plant"}},
        "leaf": {"anyOf": [leaf, {"type": "null"}]},
    }
    assert schema["$defs"]["Plant"]["properties"]["leaf"] == leaf
