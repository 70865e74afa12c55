from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from weirpool import LocalError
from weirpool.decoding.avro import AvroSchema

from .decode import decode, values
from .messages import avro, record, text

TIME = datetime(2020, 1, 1, tzinfo=UTC)
POINT = record(("x", "int"), name="Point")


def only(kind: Any, *found: Any) -> list[Any]:
    """Return the values of a field that were written with its type; bytes are items."""
    schema = AvroSchema(text(record(("a", kind))))
    items = [each if isinstance(each, bytes) else avro(record(("a", kind)), a=each) for each in found]
    return values(schema.decoder(schema.fields), *items)


def logical(kind: str, name: str, **more: int) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def test_each_type_has_a_column() -> None:
    assert only("int", 1, -1) == [1, -1]
    assert only("double", 1.5) == [1.5]
    assert only(["null", "string"], None, "x") == [None, "x"]
    assert only([{"type": "boolean"}], True) == [True]
    assert only({"type": "fixed", "name": "F", "size": 2}, b"\x01\x02") == [b"\x01\x02"]
    assert only({"type": "enum", "name": "E", "symbols": ["A", "B"]}, "B") == ["B"]
    assert only({"type": "array", "items": ["null", POINT]}, [None, {"x": 1}], []) == [[None, {"x": 1}], []]
    assert only({"type": "map", "values": POINT}, {"k": {"x": 1}}) == [[("k", {"x": 1})]]
    assert only(["null", "int", "long"], 1 << 40, None) == [1 << 40, None]


def test_each_logical_type_has_a_column() -> None:
    assert only(logical("int", "date"), date(2020, 2, 29)) == [date(2020, 2, 29)]
    assert only(logical("long", "timestamp-millis"), TIME) == [TIME]
    assert only(logical("long", "timestamp-micros"), TIME) == [TIME]
    assert only(logical("long", "local-timestamp-micros"), datetime(2020, 1, 1)) == [datetime(2020, 1, 1)]
    assert only(logical("bytes", "decimal", precision=5, scale=2), Decimal("-1.25")) == [Decimal("-1.25")]
    assert only(logical("string", "uuid"), "any text") == ["any text"]
    assert only(logical("int", "time-millis"), 5) == [5]
    assert only(logical("long", "unheard-of"), 5) == [5]


def test_a_name_stands_for_its_definition() -> None:
    schema = record(("a", POINT), ("b", ["null", "Point"]))
    decoder = AvroSchema(text(schema))
    rows, _ = decode(decoder.decoder(decoder.fields), avro(schema, a={"x": 1}, b={"x": 2}))
    assert rows == [{"a": {"x": 1}, "b": {"x": 2}}]
    rows, _ = decode(decoder.decoder(decoder.select(["b"])), avro(schema, a={"x": 1}, b={"x": 2}))
    assert rows == [{"b": {"x": 2}}]


def test_items_may_be_of_an_older_schema() -> None:
    old = record(("gone", "string"), ("number", "int"))
    new = record(("number", "double"))
    new["fields"].append({"name": "added", "type": "string", "default": "?"})
    schema = AvroSchema(text(new), text(old))
    rows, _ = decode(schema.decoder(schema.fields), avro(old, gone="x", number=5))
    assert rows == [{"number": 5.0, "added": "?"}]


@pytest.mark.parametrize(
    ("kind", "item"),
    [
        ("string", b""),
        ("string", b"\x01"),
        ("string", b"\x08ab"),
        ("string", b"\x02\xff"),
        ("string", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ("int", b"\x02\x02"),
        ("int", b"\x80\x80\x80\x80\x10"),
        ("int", b"\xff" * 20),
        (["null", "int"], b"\x04"),
        ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f\x02"),
        ({"type": "map", "values": "int"}, b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x01"),
        (["null", "int"], b"\x01\x02"),
        ("boolean", b"\x02"),
        ("boolean", b"\xff"),
        ("long", b"\xff" * 9 + b"\x02"),
        ("double", b"\x00" * 7),
        ("bytes", b"\x01a"),
        ({"type": "fixed", "name": "F", "size": 2}, b"a"),
        ({"type": "array", "items": "int"}, b"\x02\x02"),
        (logical("int", "date"), b"\xff\xff\xff\xff\x0f"),
        (logical("long", "timestamp-micros"), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (logical("bytes", "decimal", precision=4, scale=0), b"\x40" + b"\x7f" * 32),
    ],
    ids=str,
)
def test_malformed_items(kind: Any, item: bytes) -> None:
    assert only(kind, item) == ["malformed"]


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ("int", "must be a record"),
        (["null", "int"], "must be a record"),
        ({"type": "record", "fields": []}, "invalid Avro schema"),
        (record(("a", "strnig")), "invalid Avro schema"),
        (record(("a", {"type": "fixed", "name": "F"})), "invalid Avro schema"),
        (record(("a", ["int", "string"])), "'a' of the Avro schema may have 2 types"),
        (record(("a", "null")), "'a' of the Avro schema is of type null"),
        (record(("a", record(("b", logical("bytes", "decimal", precision=50)), name="B"))), "'a.b'.*decimal"),
        (record(("a", ["null", "Event"])), "contains itself"),
        # A few bytes would claim any number of values.
        (record(("a", {"type": "array", "items": "null"})), "values without bytes"),
        (record(("a", {"type": "array", "items": record(name="Empty")})), "values without bytes"),
        (record(("a", {"type": "map", "values": {"type": "array", "items": "null"}})), "values without bytes"),
    ],
    ids=str,
)
def test_mistakes_are_named(schema: Any, problem: str) -> None:
    with pytest.raises(LocalError, match=problem):
        _ = AvroSchema(text(schema)).fields


def test_the_schema_of_the_writer_is_checked_too() -> None:
    with pytest.raises(LocalError, match="contains itself"):
        AvroSchema(text(record(("a", "int"))), text(record(("a", "int"), ("b", ["null", "Event"]))))
    with pytest.raises(LocalError, match="invalid Avro schema"):
        AvroSchema(b"{")
    with pytest.raises(LocalError, match="invalid Avro schema: 'name' is there twice"):
        AvroSchema(b'{"type": "record", "name": "A", "name": "B", "fields": []}')
    with pytest.raises(LocalError, match="no field 'b'"):
        AvroSchema(text(record(("a", "int")))).select(["b"])


def test_items_in_confluents_wire_format() -> None:
    schema = record(("a", "long"), ("b", "string"))
    item = avro(schema, a=5, b="x")
    framed = b"\0\0\0\0\x07" + item
    plain, with_id = AvroSchema(text(schema)), AvroSchema(text(schema), None, 7)
    assert decode(with_id.decoder(with_id.fields), framed) == ([{"a": 5, "b": "x"}], {})
    _, malformed = decode(plain.decoder(plain.fields), framed, item[:1], item)
    assert 'set "decodeSchemaId"' in malformed[0] and "Confluent" not in malformed[1] and [*malformed] == [0, 1]
    others = [item, b"\0\0\0\0\x08" + item, b"\x01" + framed[1:], framed[:4], b"", framed[:5]]
    _, malformed = decode(with_id.decoder(with_id.fields), *others)
    assert [*malformed] == [0, 1, 2, 3, 4, 5] and malformed[1].endswith("in Confluent's wire format")
    with pytest.raises(LocalError, match="32 bits"):
        AvroSchema(text(schema), None, 1 << 32)
