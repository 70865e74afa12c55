from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from weirpool import LocalError
from weirpool.decoding.protobuf import ProtobufSchema

from .decode import decode, values
from .messages import DESCRIPTORS, INCOMPLETE, message

SCHEMA = ProtobufSchema(DESCRIPTORS, "test.Event")
TIME = datetime(2020, 1, 1, tzinfo=UTC)


def only(name: str, *items: bytes) -> list[Any]:
    return values(SCHEMA.decoder(SCHEMA.select([name])), *items)


def item(**fields: Any) -> bytes:
    return message("Event", **fields).SerializeToString()


def test_all_fields_become_columns() -> None:
    full = item(
        id=7, name="n", raw=b"\xff", color=1, time=TIME, count={"value": 3}, point={"x": -1, "color": 1},
        points=[{"x": 1}, {}], times=[TIME], by_name={"k": {"x": 5}}, **{"class": 1.5},
    )  # fmt: skip
    rows, malformed = decode(SCHEMA.decoder(SCHEMA.fields), full)
    assert not malformed
    assert rows == [
        {
            "id": 7, "name": "n", "raw": b"\xff", "color": "BLUE", "time": TIME, "count": 3,
            "point": {"x": -1, "color": "BLUE"}, "points": [{"x": 1, "color": "RED"}, {"x": 0, "color": "RED"}],
            "times": [TIME], "by_name": [("k", {"x": 5, "color": "RED"})], "class": 1.5,
        }
    ]  # fmt: skip


def test_what_a_message_does_not_have_is_null_and_scalars_have_their_default() -> None:
    rows, _ = decode(SCHEMA.decoder(SCHEMA.fields), b"")
    assert rows == [
        {
            "id": 0, "name": None, "raw": b"", "color": "RED", "time": None, "count": None, "point": None,
            "points": [], "times": [], "by_name": [], "class": 0.0,
        }
    ]  # fmt: skip
    assert only("count", item(count={"value": 0})) == [0]


def test_unknown_fields_and_numbers_of_enums_are_kept_apart() -> None:
    assert only("color", b"\xa2\x1f\x01x" + item(color=5)) == ["5"]


def test_unsigned_numbers_never_become_negative() -> None:
    assert only("id", item(id=(1 << 63) - 1), item(id=1 << 63)) == [(1 << 63) - 1, "malformed"]


def test_times_out_of_range_are_malformed() -> None:
    far = [item(time={"seconds": seconds}) for seconds in (1 << 62, -(1 << 62), 1 << 40)]
    assert only("time", *far, item(time=TIME)) == ["malformed"] * 3 + [TIME]
    assert only("times", item(times=[{"seconds": 1 << 62}])) == ["malformed"]


@pytest.mark.parametrize(
    "wrong",
    [b"\xff", b"\x0a", b"\x08", b"\x12\x05ab", b"\x12\x01\xff", b"\x3a\x7f" + b"\x3a" * 50, b"\x07", b"\x0c",
     b"\x08" + b"\xff" * 11],
)  # fmt: skip
def test_malformed_messages(wrong: bytes) -> None:
    assert only("name", wrong, item(name="n")) == ["malformed", "n"]


def test_other_fields_are_not_read() -> None:
    tree = ProtobufSchema(DESCRIPTORS, "test.Tree")
    deep = b""
    while len(deep) < 60_000:
        length, size = b"", len(deep)
        while size > 0x7F:
            length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
        deep = b"\x12" + length + bytes([size]) + deep
    assert values(tree.decoder(tree.select(["leaf"])), deep + b"\x08\x05", b"\x12\x05\x08") == [5, "malformed"]
    # A text that is not UTF-8, a message that is none, and the member of a oneof.
    wrong = b"\x12\x01\xff" + b"\x3a\x01\xff" + b"\x08\x07"
    assert values(SCHEMA.decoder(SCHEMA.select(["id"])), wrong) == [7]
    assert values(SCHEMA.decoder(SCHEMA.select(["name"])), wrong, item(name="n")) == ["malformed", "n"]


def test_a_type_that_contains_itself_has_other_columns_only() -> None:
    tree = ProtobufSchema(DESCRIPTORS, "test.Tree")
    with pytest.raises(LocalError, match=r"test.Tree.branch contains itself.*\.schema"):
        _ = tree.fields
    assert tree.select(["leaf"]).names == ["leaf"]


def test_mistakes_are_named() -> None:
    with pytest.raises(LocalError, match="no message 'Event'"):
        ProtobufSchema(DESCRIPTORS, "Event")
    with pytest.raises(LocalError, match="no field 'nmae'"):
        SCHEMA.select(["nmae"])
    for wrong in (b"junk", INCOMPLETE):
        with pytest.raises(LocalError, match="include_imports"):
            ProtobufSchema(wrong, "test.Event")
