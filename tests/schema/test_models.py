"""Models of pydantic: their JSON form, the problems of data, and their JSON Schema."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, Generic, Literal, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as model_dataclass

from weirpool.errors import LocalError, Mismatch
from weirpool.schema import models
from weirpool.schema.models import InvalidModel, is_model, model_of

T = TypeVar("T")


class Color(Enum):
    RED = "red"


class Line(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=to_camel, populate_by_name=True)

    unit_price: Decimal
    color: Color = Color.RED


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)

    when: datetime
    key: UUID
    lines: dict[str, list[Line]] = {}
    pair: tuple[int, str] | None = None
    kind: Literal["a", "b"] = "a"
    blob: bytes = b""


class Box(pydantic.BaseModel, Generic[T]):
    content: T


class Node(pydantic.BaseModel):
    children: list[Node] = []


@model_dataclass
class Point:
    x: int = pydantic.Field(alias="xValue", gt=0)


@dataclasses.dataclass
class Plain:
    x: int


class Later(pydantic.BaseModel):
    missing: NotThere  # type: ignore[name-defined]  # noqa: F821


STRICT = Strict(
    when=datetime(2026, 1, 2, tzinfo=UTC),
    key=UUID(int=5),
    lines={"first": [Line(unit_price=Decimal("1.50"))]},
    pair=(1, "a"),
)


@pytest.mark.parametrize("value", [STRICT, Line(unit_price=Decimal(2)), Box[int](content=3), Node(children=[Node()])])
def test_models_come_back_from_their_json_form(value: Any) -> None:
    assert models.decode(type(value), msgspec.json.decode(msgspec.json.encode(models.encode(value)))) == value


def test_aliases_travel() -> None:
    assert models.encode(Line(unit_price=Decimal("1.50"))) == {"unitPrice": "1.50", "color": "red"}
    assert models.encode(Point(xValue=3)) == {"xValue": 3}  # type: ignore[call-arg]


def test_bytes_of_messagepack_stay_bytes() -> None:
    value = models.encode(Box[bytes](content=b"text"))
    assert value == {"content": "text"}
    assert models.decode(Box[bytes], {"content": b"\xff\x00"}) == Box[bytes](content=b"\xff\x00")
    with pytest.raises(ValueError, match="utf-8"):
        models.encode(Box[bytes](content=b"\xff"))


def test_infinity_of_messagepack_stays_a_number() -> None:
    assert models.decode(Box[float], {"content": float("inf")}) == Box[float](content=float("inf"))


@pytest.mark.parametrize(
    ("cls", "data", "path"),
    [
        (Line, {"unitPrice": "?"}, "/unitPrice"),
        (Line, {}, "/unitPrice"),
        (
            Strict,
            {"when": "2026-01-01T00:00:00Z", "key": str(UUID(int=1)), "lines": {"a/b": [{}]}},
            "/lines/a~1b/0/unitPrice",
        ),
        (Box[Line | int], {"content": {"unitPrice": []}}, "/content/unitPrice"),
        (Box[int], [], ""),
        (Point, {"xValue": 0}, "/xValue"),
    ],
)
def test_problems_have_json_pointers(cls: Any, data: Any, path: str) -> None:
    with pytest.raises(InvalidModel) as caught:
        models.decode(cls, data)
    assert caught.value.mismatch.problems[0][0] == path


def test_problems_are_bounded_and_have_no_values() -> None:
    with pytest.raises(Mismatch) as caught:
        model_of(list[Line]).decode([{"unitPrice": "secret"}] * 1_000)
    assert (len(caught.value.problems), caught.value.total) == (5, 1_000)
    assert "secret" not in str(caught.value)


def test_is_model_is_false_for_other_classes() -> None:
    assert all(map(is_model, [Line, Point, Box[int]]))
    assert not any(map(is_model, [Plain, int, Line(unit_price=Decimal(1)), list[Line], None, msgspec.Struct]))


def test_hooks_leave_other_classes_to_msgspec() -> None:
    assert models.decode(Plain, {"x": 1}) == {"x": 1}
    with pytest.raises(TypeError, match="objects of type Plain"):
        models.encode(Plain(1))
    assert list(models.json_schema(object)) == ["description"]


def test_unresolvable_model_is_refused() -> None:
    with pytest.raises(LocalError, match="Later'> is not a type that pydantic can read: name 'NotThere'"):
        model_of(Later)


def test_json_schema_is_that_of_the_json_form() -> None:
    schema = models.json_schema(Line)
    assert list(schema["properties"]) == ["unitPrice", "color"]
    assert schema["required"] == ["unitPrice"]
    # It reads what it writes, so that it has one schema.
    assert models.json_schema(Line, sent=True) == schema
    assert models.json_schema(Node)["$ref"] == "#/$defs/Node"


def test_json_schema_has_no_defaults_that_json_cannot_write() -> None:
    class Login(pydantic.BaseModel):
        password: pydantic.SecretStr = pydantic.SecretStr("letmein")
        limit: float = math.inf

    properties = models.json_schema(Login)["properties"]
    assert not any("default" in each for each in properties.values())


def test_model_without_json_schema_is_refused() -> None:
    with pytest.raises(LocalError, match="has no JSON Schema"):
        model_of(Box[Callable[[int], int]]).json_schema()


def test_pydantic_is_imported_only_by_its_users() -> None:
    script = "import sys; from weirpool.schema import models; print(models.is_model(int), 'pydantic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
