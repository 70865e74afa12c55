from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import FrameError, LocalError
from weirpool.reactivestreams.publisher import publisher_of, read_publisher


@pytest.mark.parametrize(
    ("route", "data", "publisher"),
    [
        ("ticks", b"", b"ticks"),
        ("ticks", b"A", b"ticks?QQ"),
        ("", b"\xff\xfe\xfd", b"?__79"),
        # THREATS 72: none of this has a special meaning.
        ("../../etc/passwd", b"", b"../../etc/passwd"),
        ("http://h/x#y", b"", b"http://h/x#y"),
    ],
)
def test_publisher_is_a_route_and_data(route: str, data: bytes, publisher: bytes) -> None:
    assert publisher_of(route, data, 100) == publisher
    assert read_publisher(publisher) == (route, data)


@given(st.text(max_size=50).filter(lambda route: "?" not in route), st.binary(max_size=50))
def test_publisher_is_decoded_as_encoded(route: str, data: bytes) -> None:
    assert read_publisher(publisher_of(route, data, 1000)) == (route, data)


@pytest.mark.parametrize("text", ["?A", "?QQ==", "?Q+", "?Q/", "? QQ", "?Q?", "?\u00e9"])
def test_invalid_base64url_is_rejected(text: str) -> None:
    with pytest.raises(FrameError, match="not valid base64url"):
        read_publisher(f"route{text}".encode())


@pytest.mark.parametrize(("text", "data"), [("x?", b""), ("x?QQ", b"A"), ("x?QR", b"A")])
def test_empty_data_and_unused_bits_are_accepted(text: str, data: bytes) -> None:
    # docs/reference/rs-0.md, Publisher and errors.
    assert read_publisher(text.encode()) == ("x", data)


def test_error_shows_the_invalid_data_in_our_words() -> None:
    with pytest.raises(FrameError) as error:
        read_publisher(b"route?" + b"A" * 101)
    what = "the data after '?' is not valid base64url without padding (A-Z, a-z, 0-9, - and _): "
    assert error.value.message == f"{what}'{'A' * 50}…'"


def test_unsendable_publisher_is_rejected() -> None:
    with pytest.raises(LocalError, match=r"contains '\?'"):
        publisher_of("what?", b"", 100)
    with pytest.raises(LocalError, match=r"take 102 bytes.* max_string_bytes \(100\)"):
        publisher_of("ticks", bytes(72), 100)
