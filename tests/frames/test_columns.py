from __future__ import annotations

import dataclasses
import enum
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Annotated, Any, Literal, TypedDict
from uuid import UUID

import attrs
import msgspec
import pyarrow as pa
import pydantic
import pytest

import weirpool
from weirpool import LocalError, Mismatch, Settings
from weirpool.frames.columns import ValueColumns


class Color(enum.Enum):
    RED = "red"


class Inner(msgspec.Struct):
    a: int
    b: str | None = None


class Everything(msgspec.Struct):
    """A field of each kind."""

    flag: bool
    count: int
    ratio: float
    name: str
    raw: bytes
    day: date
    clock: time
    span: timedelta
    at: datetime
    local: Annotated[datetime, msgspec.Meta(tz=False)]
    price: Decimal
    key: UUID
    color: Color
    side: Literal["buy", "sell"]
    maybe: int | None
    several: list[int]
    some: set[str]
    by_name: dict[str, float]
    inner: Inner
    inners: list[Inner | None]
    nested: dict[str, list[Inner]]


def everything(number: int) -> Everything:
    return Everything(
        flag=number % 2 == 0,
        count=number,
        ratio=number / 3,
        name=f"name {number}",
        raw=bytes([number]),
        day=date(2024, 2, 1 + number),
        clock=time(1, 2, number, 5),
        span=timedelta(days=number, microseconds=1),
        at=datetime(2024, 1, 1, number, tzinfo=timezone(timedelta(hours=number))),
        local=datetime(2024, 1, 1, number),
        price=Decimal(f"{number}.25"),
        key=UUID(int=number),
        color=Color.RED,
        side="buy",
        maybe=number if number % 2 else None,
        several=list(range(number)),
        some={f"{number}"},
        by_name={"x": float(number)},
        inner=Inner(number),
        inners=[Inner(number, "b"), None],
        nested={"n": [Inner(1)]},
    )


def plain(value: Any) -> Any:
    """Return a value as Arrow returns it."""
    if isinstance(value, msgspec.Struct):
        return {name: plain(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | set):
        return [plain(each) for each in value]
    if isinstance(value, dict):
        return [(key, plain(each)) for key, each in value.items()]
    return value.astimezone(UTC) if isinstance(value, datetime) and value.tzinfo is not None else value


@pytest.mark.parametrize(
    "url", ["rsocket+tcp://127.0.0.1:0", "river+tcp://127.0.0.1:0", "reactive-streams+memory://everything"]
)
@pytest.mark.parametrize("mime", ["application/json", "application/msgpack"])
async def test_stream_of_every_type_is_the_table_of_its_objects(url: str, mime: str) -> None:
    service = weirpool.Service()
    values = [everything(number) for number in range(20)]

    @service.stream("every.thing")
    def stream(n: int) -> list[Everything]:
        return values[:n]

    settings = Settings(data_mime=mime) if not url.startswith("river") else None
    async with weirpool.serve(service, url, settings=settings) as server:
        async with weirpool.connect(server.urls[0], settings=settings) as peer:
            asked = weirpool.typed(peer)
            table = await asked.stream("every.thing", 20, returns=Everything).to_arrow()
            batches = [batch async for batch in asked.stream("every.thing", 20, returns=Everything).batches(7)]
    assert table.to_pylist() == [plain(value) for value in values]
    assert pa.Table.from_batches(batches).equals(table)
    assert max(batch.num_rows for batch in batches) <= 7
    assert str(table.schema.field("price").type) == "decimal128(38, 18)" and table["price"][1].as_py() == Decimal(
        "1.25"
    )


@dataclasses.dataclass
class Data:
    a: int
    inner: Inner


@attrs.define
class Attrs:
    a: int
    inner: Inner


class Part(pydantic.BaseModel):
    b: str | None = None


class Model(pydantic.BaseModel):
    a: int
    inner: Part


class Dict(TypedDict):
    a: int
    inner: Inner


@pytest.mark.parametrize(
    ("wanted", "value"),
    [
        (Data, Data(1, Inner(2, "x"))),
        (Attrs, Attrs(1, Inner(2, "x"))),
        (Model, Model(a=1, inner=Part(b="x"))),
        (Dict, Dict(a=1, inner=Inner(2, "x"))),
    ],
    ids=["dataclass", "attrs", "pydantic", "TypedDict"],
)
def test_structures_of_all_libraries_become_columns(wanted: Any, value: Any) -> None:
    batch = ValueColumns(wanted, msgspec.json.decode).build([value])
    [row] = batch.to_pylist()
    assert row["a"] == 1 and row["inner"]["b"] == "x"


def test_other_values_become_one_column() -> None:
    columns = ValueColumns(list[int], msgspec.json.decode)
    assert columns.build([[1], []]).to_pydict() == {"value": [[1], []]}


def test_schema_selects_and_converts_columns() -> None:
    schema = pa.schema([("color", pa.dictionary(pa.int32(), pa.string())), ("count", pa.int8())])
    batch = ValueColumns(Everything, msgspec.json.decode, schema).build([everything(1)])
    assert batch.schema == schema and batch.to_pylist() == [{"color": "red", "count": 1}]
    with pytest.raises(LocalError, match="the schema has a column 'other', but the values have flag, count"):
        ValueColumns(Everything, msgspec.json.decode, pa.schema([("other", pa.int8())]))


class Loose(msgspec.Struct):
    anything: Any


def test_schema_gives_columns_to_types_of_several_kinds() -> None:
    with pytest.raises(LocalError, match="field 'anything' has no column type"):
        ValueColumns(Loose, msgspec.json.decode)
    schema = pa.schema([("anything", pa.int16())])
    assert ValueColumns(Loose, msgspec.json.decode, schema).build([Loose(5)]).to_pydict() == {"anything": [5]}


@pytest.mark.parametrize(("wanted", "value"), [(int, 1 << 70), (Decimal, Decimal("1e-30")), (Loose, Loose("x"))])
def test_value_that_does_not_fit_is_reported_with_its_field(wanted: Any, value: Any) -> None:
    schema = pa.schema([("anything", pa.int16())]) if wanted is Loose else None
    with pytest.raises(Mismatch, match=r"/(value|anything): a value does not fit into a column of type"):
        ValueColumns(wanted, msgspec.json.decode, schema).build([value])
