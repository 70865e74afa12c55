"""Hostile items of every format: they cost their own row, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import cbor2
import msgspec
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weirpool.decoding.encoding import FORMATS, Encoding

from .decode import decode, schema
from .messages import avro, message, record, stream, text
from .test_encoding import ENCODINGS

NESTED = record(
    ("id", "long"),
    ("name", ["null", "string"]),
    ("list", {"type": "array", "items": ["null", "string"]}),
    ("map", {"type": "map", "values": {"type": "long", "logicalType": "timestamp-micros"}}),
    ("decimal", {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 3}),
    ("enum", {"type": "enum", "name": "E", "symbols": ["A", "B"]}),
)
FIELDS = schema(
    id=pa.int64(),
    name=pa.string(),
    list=pa.list_(pa.struct([("x", pa.decimal128(5, 2)), ("y", pa.timestamp("us", tz="UTC"))])),
    map=pa.map_(pa.string(), pa.float32()),
    date=pa.date32(),
    raw=pa.binary(),
)
TABLE = pa.table(
    {"id": [1, 2], "name": pa.array(["x", None]).dictionary_encode(), "map": pa.nulls(2), "raw": [b"", b"z"]}
)
ROW = {
    "id": 7,
    "name": "näme",
    "list": [{"x": 1.5, "y": 5}, None],
    "map": {"k": 1.5},
    "date": "2020-01-01",
    "z": [[{}]],
}


def seeds() -> dict[str, tuple[Encoding, pa.Schema, list[bytes]]]:
    """Return each format with its fields and sound items."""
    event = message("Event", id=7, name="n", points=[{"x": 1}], times=[{"seconds": 5}], by_name={"k": {"x": 5}})
    nested = avro(NESTED, id=7, name="n", list=[None, "x"], map={}, decimal=Decimal(5), enum="B")
    avro_encoding, proto_encoding = Encoding(format="avro", schema=text(NESTED)), ENCODINGS["protobuf"][0]
    return {
        "json": (Encoding(format="json"), FIELDS, [msgspec.json.encode(ROW)]),
        "msgpack": (Encoding(format="msgpack"), FIELDS, [msgspec.msgpack.encode({**ROW, "raw": b"x"})]),
        "cbor": (Encoding(format="cbor"), FIELDS, [cbor2.dumps({**ROW, "raw": b"x"})]),
        "avro": (avro_encoding, avro_encoding.fields(), [nested]),
        "protobuf": (proto_encoding, proto_encoding.fields(), [event.SerializeToString()]),
        "arrow": (Encoding(format="arrow"), FIELDS, [stream(TABLE), stream(TABLE, compression="zstd")]),
    }


SEEDS = seeds()
ENCODE = {"json": msgspec.json.encode, "msgpack": msgspec.msgpack.encode, "cbor": cbor2.dumps}


@st.composite
def mutated(draw: st.DrawFn, item: bytes) -> bytes:
    """Return an item with some bytes changed, removed, repeated or inserted."""
    data = bytearray(item)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        match draw(st.integers(0, 3)):
            case 0:
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                del data[at : at + draw(st.integers(1, 8))]
            case 2:
                data[at:at] = data[at : at + draw(st.integers(1, 64))]
            case _:
                data[at:at] = draw(st.sampled_from([b"\xff" * 8, b"\x00" * 8, b"[" * 300, b"\x81" * 300, b"\x7f"]))
    return bytes(data)


@pytest.mark.parametrize("name", FORMATS)
def test_sound_items_are_sound(name: str) -> None:
    encoding, fields, items = SEEDS[name]
    assert not decode(encoding.decoder(fields), *items)[1]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=50)
@given(data=st.data())
def test_mutated_items_cost_no_more_than_their_own_row(name: str, data: st.DataObject) -> None:
    encoding, fields, seeds = SEEDS[name]
    sound = data.draw(st.sampled_from(seeds))
    hostile = data.draw(st.lists(mutated(sound) | st.binary(max_size=64), min_size=1, max_size=3))
    decoder = encoding.decoder(fields)
    alone = [decode(decoder, item) for item in hostile]
    (expected, _) = decode(decoder, sound)
    rows, malformed = decode(decoder, sound, *hostile, sound)
    assert rows[: len(expected)] == rows[len(rows) - len(expected) :] == expected
    between = str(rows[len(expected) : len(rows) - len(expected)])
    assert between == str([row for found, _ in alone for row in found])
    assert [*malformed.values()] == [why for _, reasons in alone for why in reasons.values()]


UTC_TIME = pa.timestamp("us", tz="UTC")
OUTSIDE = ("0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999-23:59")
"""Instants outside of the years 1 to 9999, in which Spark and Python cannot show them."""


@pytest.mark.parametrize("name", ["json", "msgpack", "cbor"])
def test_an_offset_does_not_lead_out_of_the_years_that_there_are(name: str) -> None:
    decoder = Encoding(format=name).decoder(schema(a=UTC_TIME))
    items = [ENCODE[name]({"a": text}) for text in (*OUTSIDE, "0001-01-01T00:00:00Z")]
    _, malformed = decode(decoder, *items)
    assert [*malformed] == [0, 1]


@pytest.mark.parametrize("kind", [UTC_TIME, pa.date32(), pa.list_(UTC_TIME), pa.struct([("t", pa.date32())])])
def test_columns_of_arrow_do_not_have_such_times_either(kind: pa.DataType) -> None:
    wrong: object = 1 << 30 if kind in (pa.date32(), pa.struct([("t", pa.date32())])) else 1 << 62
    wrong = [wrong] if pa.types.is_list(kind) else {"t": wrong} if pa.types.is_struct(kind) else wrong
    items = [stream(pa.table({"a": pa.array([value], kind)})) for value in (None, wrong)]
    _, malformed = decode(Encoding(format="arrow").decoder(schema(a=kind)), *items)
    assert [*malformed] == [1]


@pytest.mark.parametrize("name", ["msgpack", "cbor"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()])
def test_formats_with_nan_and_infinity_keep_them_in_columns_of_each_width(name: str, kind: pa.DataType) -> None:
    found, malformed = decode(
        Encoding(format=name).decoder(schema(a=kind)), *(ENCODE[name]({"a": float(text)}) for text in ("inf", "nan"))
    )
    assert not malformed and str([row["a"] for row in found]) == "[inf, nan]"


@pytest.mark.parametrize("name", ["json", "msgpack", "cbor"])
def test_a_number_that_is_too_large_is_never_infinite(name: str) -> None:
    decoder = Encoding(format=name).decoder(schema(a=pa.float32()))
    rows, malformed = decode(
        decoder, *(ENCODE[name]({"a": number}) for number in (1e39, 3.4028234663852886e38, -1e300))
    )
    assert [*malformed] == [0, 2] and rows[1]["a"] == 3.4028234663852886e38


LAST = "2024-12-31T23:59:59.9999999Z"
LATEST = {
    "json": b'{"a":"%s"}' % LAST.encode(),
    "msgpack": b"\x81\xa1a\xd7\xff" + (999_999_900 << 34 | 1735689599).to_bytes(8, "big"),
    "cbor": cbor2.dumps({"a": cbor2.CBORTag(0, LAST)}),
    "arrow": stream(pa.table({"a": pa.array([1735689599_999999900], pa.timestamp("ns", "UTC"))})),
    "protobuf": message("Event", time={"seconds": 1735689599, "nanos": 999_999_900}).SerializeToString(),
}


@pytest.mark.parametrize("name", LATEST)
def test_the_last_instant_of_a_day_stays_in_it(name: str) -> None:
    encoding = SEEDS[name][0]
    column = "time" if name == "protobuf" else "a"
    fields = encoding.select([column]) if encoding.has_schema else schema(a=UTC_TIME)
    [row], malformed = decode(encoding.decoder(fields), LATEST[name])
    assert not malformed and str(row[column]) == "2024-12-31 23:59:59.999999+00:00"


@pytest.mark.parametrize("name", ["json", "msgpack", "cbor"])
def test_items_that_are_read_again_stand_where_they_were(name: str) -> None:
    decoder = Encoding(format=name).decoder(schema(a=UTC_TIME, b=pa.int32()))
    again = {"a": LAST, "b": 1}
    items = [{"a": "2024-01-01T00:00:00Z", "b": 0}, again, {"a": None, "b": "x"}, again, {"b": 4}, {"a": "?", "b": 5}]
    rows, malformed = decode(decoder, *map(ENCODE[name], items * 3))
    assert [row["b"] for row in rows] == [0, 1, None, 1, 4, None] * 3
    assert [row["a"] and row["a"].microsecond for row in rows[:6]] == [0, 999_999, None, 999_999, None, None]
    assert [*malformed] == [2, 5, 8, 11, 14, 17]
