"""Which types read what they write."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

import pydantic
import pytest

from weirpool.schema.fitting import fits


class Plain(pydantic.BaseModel):
    price: Decimal
    at: datetime
    span: timedelta
    id: UUID
    data: bytes = b""
    tags: set[str] = set()
    pair: tuple[int, str] = (1, "x")
    note: str | None = None
    side: Literal["buy", "sell"] = "buy"
    children: list[Plain] = []
    others: dict[str, float] = {}


class Renamed(pydantic.BaseModel):
    number: int = pydantic.Field(serialization_alias="n")


class Computed(pydantic.BaseModel):
    number: int

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def twice(self) -> int:
        return 2 * self.number


class Serialized(pydantic.BaseModel):
    number: int

    @pydantic.field_serializer("number")
    def as_text(self, number: int) -> str:
        return str(number)


class Nested(pydantic.BaseModel):
    inner: list[Serialized]


class Branch(pydantic.BaseModel):
    next: Branch | None = None
    leaf: Renamed | None = None


def schemas(wanted: Any) -> list[dict[str, Any]]:
    adapter = pydantic.TypeAdapter(wanted)
    return [adapter.json_schema(mode=mode) for mode in ("serialization", "validation")]  # type: ignore[arg-type]


@pytest.mark.parametrize("wanted", [Plain, list[Plain], Plain | None, dict[str, Plain], int | str])
def test_most_models_read_what_they_write(wanted: Any) -> None:
    assert fits(*schemas(wanted))


@pytest.mark.parametrize("wanted", [Renamed, Computed, Serialized, Nested, Branch, Plain | Renamed, list[Computed]])
def test_some_models_write_what_they_do_not_read(wanted: Any) -> None:
    assert not fits(*schemas(wanted))


def test_a_required_property_must_be_written() -> None:
    read = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]}
    assert fits({"type": "object", "properties": {"a": {}}}, read)
    assert not fits({"type": "object", "properties": {"b": {}}}, read)
    assert not fits({"type": "object", "properties": {"a": {}, "c": {}}}, read)
