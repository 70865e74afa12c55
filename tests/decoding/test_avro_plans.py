from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import LocalError
from weirpool.decoding.avro import AvroSchema

from .decode import decode
from .messages import avro, record, text

LONGS = st.integers(-(1 << 63), (1 << 63) - 1)
RICH = record(
    ("l", "long"),
    ("i", ["null", "int"]),
    ("s", ["string", "null"]),
    ("d", "double"),
    ("b", "bytes"),
    ("o", "boolean"),
    ("e", {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]}),
    ("a", {"type": "array", "items": ["null", {"type": "map", "values": "long"}]}),
    ("r", record(("x", "float"), ("y", ["null", "E"]), name="Inner")),
)
VALUES = st.fixed_dictionaries(
    {
        "l": LONGS,
        "i": st.none() | st.integers(-(1 << 31), (1 << 31) - 1),
        "s": st.none() | st.text(),
        "d": st.floats(allow_nan=False),
        "b": st.binary(),
        "o": st.booleans(),
        "e": st.sampled_from("ABC"),
        "a": st.lists(st.none() | st.dictionaries(st.text(), LONGS, max_size=3), max_size=3),
        "r": st.fixed_dictionaries(
            {"x": st.floats(width=32, allow_nan=False), "y": st.none() | st.sampled_from("ABC")}
        ),
    }
)


def fixed(size: int) -> dict[str, Any]:
    return {"type": "fixed", "name": "F", "size": size}


def resolved(writer: Any, reader: Any, *values: Any) -> list[Any]:
    """Return values of a field, written with one type and read as another."""
    new = record(("a", reader))
    schema = AvroSchema(text(new), text(record(("a", writer))))
    rows, malformed = decode(schema.decoder(schema.fields), *(avro(record(("a", writer)), a=value) for value in values))
    return ["malformed" if index in malformed else row["a"] for index, row in enumerate(rows)]


@given(VALUES)
def test_values_are_those_that_were_written(values: dict[str, Any]) -> None:
    item = avro(RICH, **values)
    schema = AvroSchema(text(RICH))
    (row,), malformed = decode(schema.decoder(schema.fields), item)
    expected: Any = fastavro.schemaless_reader(io.BytesIO(item), fastavro.parse_schema(RICH), None)
    expected["a"] = [None if each is None else [*each.items()] for each in expected["a"]]
    assert not malformed and row == expected


def test_types_are_promoted() -> None:
    assert resolved("int", "long", 5) == [5]
    assert resolved("int", "double", 5) == resolved("long", "float", 5) == resolved("float", "double", 5) == [5.0]
    assert resolved("string", "bytes", "ä") == ["ä".encode()]
    assert resolved("bytes", "string", "ä".encode(), b"\xff") == ["ä", "malformed"]
    assert resolved("int", ["null", "long"], 5) == resolved(["null", "int"], ["null", "long"], 5) == [5]


def test_branches_that_the_reader_does_not_have_are_malformed() -> None:
    assert resolved(["null", "int", "string"], ["null", "int"], None, 5, "x") == [None, 5, "malformed"]
    assert resolved(["null", "int"], "int", 5, None) == [5, "malformed"]


def test_the_writer_says_what_its_numbers_mean() -> None:
    millis, micros = ({"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros"))
    time = datetime(2020, 1, 1, tzinfo=UTC)
    assert resolved(millis, micros, time) == resolved(micros, millis, time) == [time]
    assert resolved("long", millis, 1577836800000) == [time]
    cents = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}
    assert resolved(cents, {**cents, "scale": 3}, Decimal("1.25")) == [Decimal("1.250")]


def test_fields_come_and_go_in_nested_records() -> None:
    old = record(("gone", {"type": "array", "items": "string"}), ("x", "int"), name="Point")
    new = record(("x", "int"), name="Point")
    defaults = {
        "n": (["null", "int"], None, None),
        "s": ("string", "x", "x"),
        "o": (["bytes", "null"], None, None),
        "b": ("bytes", "\u00ff", b"\xff"),
        "l": ({"type": "array", "items": "int"}, [1], [1]),
        "m": ({"type": "map", "values": "int"}, {"k": 1}, [("k", 1)]),
        "r": (record(("z", "int"), name="R"), {"z": 1}, {"z": 1}),
        "t": ({"type": "long", "logicalType": "timestamp-millis"}, 0, datetime(1970, 1, 1, tzinfo=UTC)),
        "c": ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}, "\u000f", Decimal("1.5")),
    }
    new["fields"] += [{"name": name, "type": kind, "default": value} for name, (kind, value, _) in defaults.items()]
    assert resolved(old, new, {"gone": ["a", "b"], "x": 1}) == [
        {"x": 1, **{name: value for name, (_, _, value) in defaults.items()}}
    ]


def test_what_is_not_needed_is_not_checked() -> None:
    schema = AvroSchema(
        text(record(("day", {"type": "int", "logicalType": "date"}), ("x", ["null", "int", "string"]), ("a", "int")))
    )
    item = avro(record(("day", "int"), ("x", ["null", "string"]), ("a", "int")), day=1 << 30, x=None, a=5)
    assert decode(schema.decoder(schema.select(["a"])), item) == ([{"a": 5}], {})


@pytest.mark.parametrize(
    ("writer", "reader", "problem"),
    [
        (record(("a", "string")), record(("a", "int")), "'a': the type of the writer's schema does not fit"),
        (record(("a", fixed(1))), record(("a", fixed(2))), "'a'"),
        (record(("b", "int")), record(("a", "int")), "'a' is not in the writer's schema, and has no default"),
        (record(("a", record(("b", "long"), name="I"))), record(("a", record(("b", "int"), name="I"))), "'b'"),
    ],
    ids=str,
)  # fmt: skip
def test_schemas_that_do_not_fit_are_refused(writer: Any, reader: Any, problem: str) -> None:
    schema = AvroSchema(text(reader), text(writer))
    with pytest.raises(LocalError, match=problem):
        schema.decoder(schema.fields)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        ("string", b"\x02\xff"),
        ("boolean", b"\x05"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x08"),
        ("int", b"\xfe\xff\xff\xff\xff\x0f"),
        ({"type": "map", "values": "string"}, b"\x02\x02\xff\x02\xff\x00"),
        ({"type": "map", "values": "string"}, b"\x01\x08\x02\xff\x02\xff\x00"),
        ({"type": "array", "items": "boolean"}, b"\x02\x07\x00"),
        (record(("s", "string"), name="R"), b"\x02\xff"),
        (["null", "string"], b"\x02\x02\xff"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x80\x02" + b"x" * 128),
        ({"type": "long", "logicalType": "timestamp-millis"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
    ids=str,
)
def test_values_that_are_not_read_are_not_checked(kind: Any, wrong: bytes) -> None:
    schema = AvroSchema(text(record(("z", kind), ("a", "int"))))
    assert decode(schema.decoder(schema.select(["a"])), wrong + b"\x0a") == ([{"a": 5}], {})
    _, malformed = decode(schema.decoder(schema.select(["z"])), wrong + b"\x0a")
    assert malformed
    for cut in range(len(wrong)):
        assert decode(schema.decoder(schema.select(["a"])), wrong[:cut])[1]


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (["null", "string"], b"\x04"),
        ({"type": "array", "items": "int"}, b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01"),
        ("long", b"\xff" * 10),
        ("string", b"\x01"),
    ],
    ids=str,
)
def test_what_has_no_end_is_malformed_where_it_is_not_read(kind: Any, wrong: bytes) -> None:
    schema = AvroSchema(text(record(("z", kind), ("a", "int"))))
    assert decode(schema.decoder(schema.select(["a"])), wrong + b"\x0a")[1]
