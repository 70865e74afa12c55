from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build

UNDEFINED = b"\xd4\x00\x00"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)
PIECES = (
    UNDEFINED, b"\xd7\xff", b"\xc7\x0c\xff", b"\xd4\x01\x00", b"\xff" * 4, b"\0" * 8, b"\x91", b"\xdc", b"\xa3",
    b"\xc4\x03", b"\xf7", b"\x82", b"\x9f", b"\xe0", b"\xf8", b"\x43", b"\x18", b"\xf9",
)  # fmt: skip
JUNK = st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=10).map(b"".join)


@pytest.fixture(scope="module")
def rewriting(build: Build) -> Any:
    return build.module("weirpool.values.rewriting")


def short(nanoseconds: int, seconds: int = 1735689599) -> bytes:
    return b"\xd7\xff" + (nanoseconds << 34 | seconds).to_bytes(8, "big")


def long(nanoseconds: int, seconds: int = -1) -> bytes:
    return b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, seconds)


@pytest.mark.parametrize("form", [short, long])
@pytest.mark.parametrize(
    ("nanoseconds", "kept"), [(0, 0), (999, 0), (1_000, 1_000), (123_456_789, 123_456_000), (999_999_999, 999_999_000)]
)
def test_timestamps_have_whole_microseconds(
    rewriting: Any, form: Callable[[int], bytes], nanoseconds: int, kept: int
) -> None:
    around = (b"\x93\xa1x", b"\xc4\x03" + UNDEFINED)
    data = around[0] + form(nanoseconds) + around[1]
    assert rewriting.usual_msgpack(data, True) == around[0] + form(kept) + around[1]


def test_the_largest_seconds_stay(rewriting: Any) -> None:
    for seconds in (0, (1 << 34) - 1):
        assert rewriting.usual_msgpack(short(999_999_999, seconds), False) == short(999_999_000, seconds)


def test_undefined_is_nil_if_asked_for(rewriting: Any) -> None:
    data = b"\x95" + UNDEFINED + b"\xd4\x01\x00\xd5\x00\x00\x00\xa3x\x00\x00" + UNDEFINED
    assert rewriting.usual_msgpack(data, False) == data
    assert rewriting.usual_msgpack(data, True) == data.replace(UNDEFINED, b"\xc0")


@given(VALUES)
def test_other_values_stay_as_they_are(rewriting: Any, value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    assert rewriting.usual_msgpack(data, True) == data
    assert rewriting.usual_cbor(cbor2.dumps(value)) == cbor2.dumps(value)


@pytest.mark.parametrize(
    "data", [b"", b"\xd4", UNDEFINED[:2], b"\x91\xd7\xff\x00", b"\xc7\x0c\xff\x00", b"\xdb\xff\xff"]
)
def test_data_that_ends_early_stays_as_it_is(rewriting: Any, data: bytes) -> None:
    assert rewriting.usual_msgpack(data, True) == data
    assert rewriting.usual_msgpack(UNDEFINED + data, True) == b"\xc0" + data


def test_undefined_of_cbor_is_null_where_it_is_a_value(rewriting: Any) -> None:
    for data, wanted in (
        (b"\xf7", b"\xf6"),
        (b"\xa2\x61a\xf7\x61b\x9f\xf7\xa1\x61c\xf7\x01\xff", b"\xa2\x61a\xf6\x61b\x9f\xf6\xa1\x61c\xf6\x01\xff"),
        (b"\x82\x43\xf7\xf7\xf7\x19\xf7\xf7", b"\x82\x43\xf7\xf7\xf7\x19\xf7\xf7"),
        (b"\xc1\xfb\xf7\xf7\xf7\xf7\xf7\xf7\xf7\xf7", b"\xc1\xfb\xf7\xf7\xf7\xf7\xf7\xf7\xf7\xf7"),
        (b"", b""),
    ):
        kept = bytearray(data)
        assert rewriting.usual_cbor(data) == wanted
        assert data == kept


@given(JUNK, st.booleans())
def test_both_builds_rewrite_alike(builds: dict[str, Build], data: bytes, undefined: bool) -> None:
    def rewritten(build: Build) -> tuple[bytes, bytes]:
        module = build.module("weirpool.values.rewriting")
        return module.usual_msgpack(data, undefined), module.usual_cbor(data)

    assert len({rewritten(build) for build in builds.values()}) == 1
