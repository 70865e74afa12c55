from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool import FrameError, LocalError
from weirpool.rsocket.extensions.mimes import NAMES, LiteralMime, decode_accept, decode_mime, encode_accept
from weirpool.rsocket.extensions.mimes import write_mime as encode_mime

UNKNOWN = sorted(set(range(128)) - set(NAMES))
MIMES = (
    st.sampled_from(sorted(NAMES.values()))
    | st.sampled_from(UNKNOWN)
    | st.text(st.characters(max_codepoint=127), min_size=1, max_size=128)
)


@pytest.mark.parametrize(
    ("mime", "data"),
    [
        ("application/json", "85"),
        ("x/y", "02782f79"),
        ("message/x.rsocket.composite-metadata.v0", "ff"),
        (0x30, "b0"),
        (LiteralMime("text/css"), "07746578742f637373"),
    ],
)
def test_mime_type(mime: str | int, data: str) -> None:
    assert encode_mime(mime).hex() == data
    read = decode_mime(bytes.fromhex(data))
    assert (read, type(read)) == (mime, type(mime))


def test_named_numbers_become_names() -> None:
    assert decode_mime(encode_mime(0x05)) == "application/json"


@pytest.mark.parametrize(
    ("mimes", "data"),
    [
        ((), ""),
        (("application/json", "x/y"), "8502782f79"),
        (("x/y", "text/plain", 0x70, "z"), "02782f79a1f0007a"),
    ],
)
def test_accepted_mime_types(mimes: tuple[str | int, ...], data: str) -> None:
    assert encode_accept(mimes).hex() == data
    assert decode_accept(bytes.fromhex(data)) == mimes


@given(st.lists(MIMES, max_size=8))
def test_encoded_values_are_decoded(mimes: list[str | int]) -> None:
    assert decode_accept(encode_accept(mimes)) == tuple(mimes)
    for mime in mimes:
        assert decode_mime(encode_mime(mime)) == mime


@given(st.binary(max_size=60))
def test_junk_is_an_error_or_round_trips(junk: bytes) -> None:
    try:
        assert encode_accept(decode_accept(junk)) == junk
        assert encode_mime(decode_mime(junk)) == junk
    except FrameError:
        pass


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("", "byte 0: the MIME type is missing"),
        ("8585", "byte 1: 1 bytes follow the MIME type"),
        ("0378", "byte 0: MIME type of 4 bytes runs past the end"),
    ],
)
def test_bytes_after_the_mime_type_are_refused(data: str, message: str) -> None:
    with pytest.raises(FrameError, match=message):
        decode_mime(bytes.fromhex(data))


def test_list_of_mime_types_is_limited() -> None:
    assert len(decode_accept(b"\x85" * 3, 3)) == 3
    with pytest.raises(FrameError, match="byte 3: the list of accepted MIME types has more than 3"):
        decode_accept(b"\x85" * 1_000_000, 3)
    with pytest.raises(FrameError, match="byte 1: MIME type of 3 bytes runs past"):
        decode_accept(b"\x85\x02x")


def test_invalid_mime_types_are_refused() -> None:
    for mime in ("", "é", 128):
        with pytest.raises(LocalError, match="MIME type"):
            encode_mime(mime)
        with pytest.raises(LocalError, match="MIME type"):
            encode_accept(["text/plain", mime])
