"""What a subscriber of a journal may ask for."""

from __future__ import annotations

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.errors import Invalid
from weirpool.serving.subscriptions import Subscription

OBJECT = {"from": 5, "to": 9, "source": "a", "form": "arrow", "metadata": "position", "loss": "skip"}
WANTED = Subscription(start=5, end=9, source="a", form="arrow", metadata="position", loss="skip")


@pytest.mark.parametrize(
    ("text", "start"),
    [
        (b"", "new"),
        (b"new", "new"),
        (b" earliest\n", "earliest"),
        (b"12", 12),
        (b'"12"', 12),
        (b"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z"),
        (b"{}", "new"),
    ],
)
def test_a_text_is_where_to_start(text: bytes, start: int | str) -> None:
    assert Subscription.parse(text) == Subscription(start=start)


@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode, cbor2.dumps])
def test_an_object_may_be_encoded_in_three_ways(encode: object) -> None:
    assert Subscription.parse(encode(OBJECT)) == WANTED  # type: ignore[operator]


@pytest.mark.parametrize(
    "text",
    [
        b"yesterday",
        b"-1",
        b"2026-01-31T12:00:00",
        b'{"from": -1}',
        b'{"fro": 1}',
        b'{"form": "csv"}',
        b'{"to": "then"}',
        b"\xff",
        b"\x81",
        b"\xa1",
        b"\x81\xa4from\xc0",
    ],
)
def test_anything_else_is_refused_with_a_hint(text: bytes) -> None:
    with pytest.raises(Invalid, match=r"not a request of a journal .* send nothing for new items"):
        Subscription.parse(text)


@given(st.binary())
def test_no_bytes_do_harm(data: bytes) -> None:
    try:
        assert isinstance(Subscription.parse(data), Subscription)
    except Invalid:
        pass
