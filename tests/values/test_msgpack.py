from __future__ import annotations

import struct
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.values.decoder import Decoder
from weirpool.values.msgpack import MsgpackReader

UNDEFINED = b"\xd4\x00\x00"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.binary() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


def decode(data: bytes, wanted: Any = Any) -> Any:
    return Decoder(MsgpackReader(), wanted).decode(data)


@given(VALUES)
def test_data_that_is_read_again_is_the_same(value: Any) -> None:
    data = msgspec.msgpack.encode(value)
    assert Decoder(MsgpackReader()).again(data) == msgspec.msgpack.decode(data)


@given(st.lists(VALUES | st.just(UNDEFINED) | st.just(b"\xd7\xff" + (999 << 34).to_bytes(8, "big")), max_size=6))
def test_extensions_are_found_only_where_a_value_begins(values: list[Any]) -> None:
    # Bytes that look like one are data.
    raw = [value if isinstance(value, bytes) else msgspec.msgpack.encode(value) for value in values]
    assert decode(msgspec.msgpack.encode({"a": raw})) == {"a": raw}


def test_undefined_is_null_among_other_extensions() -> None:
    ext = msgspec.msgpack.encode(msgspec.msgpack.Ext(0, b"\x00\x00"))
    found = decode(b"\x94" + UNDEFINED + ext + b"\xc4\x03" + UNDEFINED + UNDEFINED)
    assert (found[0], found[1].data, *found[2:]) == (None, b"\x00\x00", UNDEFINED, None)


def test_other_extensions_are_refused_where_they_are_read() -> None:
    # THREATS 64
    for ext in (b"\xd4\x01\x00", b"\xd5\x00\x00\x00", b"\xd4\xff\xff", b"\xc7\x03\x12\x01\x02\x03"):
        with pytest.raises(msgspec.ValidationError):
            decode(b"\x91" + ext, list[int | None])


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x91", b"\x92\xd4\x00\x00", b"\xd4\x00", b"\xd7\xff\x00", b"\x91\xc9"]
)
def test_malformed_data_is_refused(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(data)


def test_nanoseconds_are_dropped_in_place() -> None:
    for nanoseconds, microseconds in ((0, 0), (999, 0), (1_000, 1), (999_999_999, 999_999)):
        long = b"\xc7\x0c\xff" + struct.pack(">Iq", nanoseconds, 5)
        short = b"\xd7\xff" + (nanoseconds << 34 | 5).to_bytes(8, "big")
        wanted = datetime(1970, 1, 1, 0, 0, 5, microseconds, UTC)
        assert decode(b"\x92" + long + short, list[datetime]) == [wanted, wanted]
