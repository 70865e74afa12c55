from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build

LONG = (1 << 63) - 1


def plan(build: Build, kind: str, *inner: Any, **more: Any) -> Any:
    values = build.module("weirpool.decoding.avro_values")
    return values.Plan(values.Kind[kind], inner, **more)


def read(build: Build, made: Any, item: bytes) -> Any:
    """Return a value, or why there is none."""
    try:
        return build.module("weirpool.decoding.avro_values").Cursor(item).whole(made)
    except ValueError as error:
        return str(error).partition(" ")[2]


def longs(build: Build) -> Any:
    return plan(build, "INTEGER", low=-LONG - 1, high=LONG)


@pytest.mark.parametrize(
    ("item", "number"),
    [
        (b"\x00", 0),
        (b"\x01", -1),
        (b"\x02", 1),
        (b"\x80\x01", 64),
        (b"\x80\x80\x00", 0),
        (b"\xfe" + b"\xff" * 8 + b"\x01", LONG),
        (b"\xff" * 9 + b"\x01", -LONG - 1),
        (b"\xff" * 9 + b"\x02", "number has more than 64 bits"),
        (b"\xff" * 9 + b"\x81\x00", "number has more than 64 bits"),
        (b"\x80", "item ends within a value"),
        (b"", "item ends within a value"),
        (b"\x00\x00", "item is longer than its record"),
    ],
)
def test_numbers(build: Build, item: bytes, number: Any) -> None:
    assert read(build, longs(build), item) == number


def test_numbers_have_limits_and_a_factor(build: Build) -> None:
    made = plan(build, "INTEGER", low=-2, high=3, factor=1_000)
    assert [read(build, made, bytes([byte])) for byte in (3, 6)] == [-2_000, 3_000]
    assert read(build, made, b"\x05") == read(build, made, b"\x08") == "number is out of range"


@pytest.mark.parametrize(
    ("kind", "item", "value"),
    [
        ("NULL", b"", None),
        ("BOOLEAN", b"\x01", True),
        ("BOOLEAN", b"\x00", False),
        ("BOOLEAN", b"\x80", "boolean is neither 0 nor 1"),
        ("DOUBLE", b"\x00\x00\x00\x00\x00\x00\xf8\x3f", 1.5),
        ("DOUBLE", b"\x00" * 7, "item ends within a value"),
        ("FLOAT", b"\x00\x00\xc0\x3f", 1.5),
        ("STRING", b"\x04\xc3\xa4", "ä"),
        ("STRING", b"\x03ab", "item ends within a value"),
        ("BYTES", b"\x04\xff\x00", b"\xff\x00"),
        ("BYTES", b"\xff" * 9 + b"\x01", "item ends within a value"),
        ("MISMATCH", b"", "reader's schema has no type for a value"),
    ],
)
def test_scalars(build: Build, kind: str, item: bytes, value: Any) -> None:
    assert read(build, plan(build, kind), item) == value


def test_text_must_be_utf8(build: Build) -> None:
    with pytest.raises(UnicodeDecodeError):
        build.module("weirpool.decoding.avro_values").Cursor(b"\x02\xff").whole(plan(build, "STRING"))


def test_choices_are_never_counted_from_the_end(build: Build) -> None:
    enum = plan(build, "ENUM", symbols=("A", "B"))
    union = plan(build, "UNION", plan(build, "NULL"), longs(build))
    assert [read(build, enum, item) for item in (b"\x00", b"\x02")] == ["A", "B"]
    assert [read(build, union, item) for item in (b"\x00", b"\x02\x04")] == [None, 2]
    for item in (b"\x01", b"\x04", b"\xff" * 9 + b"\x01"):
        assert read(build, enum, item) == read(build, union, item) == "union or an enum has an index out of range"


def test_arrays_and_maps_come_in_blocks(build: Build) -> None:
    array, table = plan(build, "ARRAY", longs(build)), plan(build, "MAP", longs(build))
    assert read(build, array, b"\x00") == [] and read(build, table, b"\x00") == {}
    assert read(build, array, b"\x02\x02\x03\x04\x06\x08\x00") == [1, 3, 4]
    assert read(build, table, b"\x02\x02a\x02\x02\x02b\x04\x00") == {"a": 1, "b": 2}
    # Whatever a block claims, it has at most one element a byte.
    for claim in (b"\xfe" + b"\xff" * 8 + b"\x01", b"\xff" * 9 + b"\x01\x00", b"\x10"):
        assert (
            read(build, array, claim) == read(build, table, claim) == "block has more elements than the item has bytes"
        )


def test_records_become_lists_in_the_order_of_their_slots(build: Build) -> None:
    inner = [longs(build), plan(build, "STRING"), plan(build, "FIXED", high=2)]
    made = plan(build, "RECORD", *inner, slots=(2, -1, 0), blank=(None, "default", None))
    assert read(build, made, b"\x02\x02xab") == [b"ab", "default", 1]
    assert read(build, made, b"\x04\x02yab") == [b"ab", "default", 2]


def test_values_are_converted(build: Build) -> None:
    assert read(build, plan(build, "BYTES", convert=len), b"\x06abc") == 3
    made = plan(build, "UNION", plan(build, "NULL"), plan(build, "BYTES", convert=len))
    assert [read(build, made, item) for item in (b"\x00", b"\x02\x02a")] == [None, 1]
