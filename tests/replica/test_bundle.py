from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.errors import JournalCorrupt
from weirpool.replica.bundle import MAX_POSITION, Cursor, Header, Part, decode, decode_header, encode

PARTS = [Part("a", "A", 3, 5, "h", 4, b"s", b"i", b"x"), Part("b", "B", 7, 7), Part("c", "C", 0, 1, size=2)]


def header(**changes: object) -> Header:
    fields = {
        "number": 7,
        "owner": "me",
        "epoch": 2,
        "time": 5,
        "previous": "before",
        "snapshot": 3,
        "floor": 1,
        "checksum": b"",
        "parts": PARTS,
    }
    return Header(**{**fields, **changes})


def test_a_bundle_has_what_was_put_into_it() -> None:
    data, digest = encode(header(), [b"aa", memoryview(b"aa"), b"cc"])
    bundle = decode(data, "name")
    assert bundle.digest == digest
    assert bundle.header.parts == PARTS
    assert (bundle.header.number, bundle.header.epoch, bundle.header.previous) == (7, 2, "before")
    assert [bytes(bundle.batches(source)) for source in "abcd"] == [b"aaaa", b"", b"cc", b""]


def test_a_bundle_of_another_format_is_named() -> None:
    data = bytearray(encode(header(), [b"aaaacc"])[0])
    data[7:8] = b"1"
    with pytest.raises(JournalCorrupt, match="has format '1', and this version reads format '2'"):
        decode(bytes(data), "name")


def test_readers_come_back() -> None:
    readers = {
        "lake": Cursor(5, "query", datetime(2026, 1, 1, tzinfo=UTC)),
        "lake@two": Cursor(MAX_POSITION, None, None),
    }
    for found in (readers, {}, None):
        data, _ = encode(header(parts=[Part("a", "A", 7, 7, readers=found)]), [])
        assert decode(data, "name").header.parts[0].readers == found


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "a@", "a@../b", "a@b@c", "x" * 200])
def test_hostile_names_of_readers_are_refused(name: str) -> None:
    data, _ = encode(header(parts=[Part("a", "A", 7, 7, readers={name: Cursor(0, None, None)})]), [])
    with pytest.raises(JournalCorrupt, match="name: is not a bundle"):
        decode(data, "name")


@pytest.mark.parametrize(
    "cursor", [Cursor(-1, None, None), Cursor(0, "a/b", None), Cursor(MAX_POSITION + 1, None, None)]
)
def test_hostile_positions_and_queries_are_refused(cursor: Cursor) -> None:
    data, _ = encode(header(parts=[Part("a", "A", 7, 7, readers={"lake": cursor})]), [])
    with pytest.raises(JournalCorrupt, match="name: is not a bundle"):
        decode(data, "name")


def test_too_many_readers_are_refused() -> None:
    readers = {f"reader-{number}": Cursor(0, None, None) for number in range(1_001)}
    data, _ = encode(header(parts=[Part("a", "A", 7, 7, readers=readers)]), [])
    with pytest.raises(JournalCorrupt, match="1001 readers"):
        decode(data, "name")


def test_the_digest_covers_the_content() -> None:
    assert encode(header(), [b"aaaa", b"cc"])[1] != encode(header(), [b"aaab", b"cc"])[1]


def test_a_header_is_read_from_the_beginning() -> None:
    data, digest = encode(header(), [b"aaaacc"])
    start = len(data) - 6
    assert decode_header(data[:10], "name") is None
    assert decode_header(data[: start - 1], "name") is None
    found = decode_header(data[:start], "name")
    assert found is not None
    assert (found[0].parts, found[1], found[2]) == (PARTS, digest, start)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_flipped_bit_is_found(at: int, bit: int) -> None:
    data = bytearray(encode(header(), [b"aaaacc"])[0])
    data[at % len(data)] ^= 1 << bit
    with pytest.raises(JournalCorrupt, match="name: is not a bundle"):
        decode(bytes(data), "name")


@given(size=st.integers(0, 10_000))
def test_every_cut_is_found(size: int) -> None:
    data = encode(header(), [b"aaaacc"])[0]
    with pytest.raises(JournalCorrupt):
        decode(data[: size % len(data)], "name")


@given(data=st.binary(max_size=200))
def test_junk_is_refused(data: bytes) -> None:
    with pytest.raises(JournalCorrupt):
        decode(data, "name")


def test_contradictions_are_refused() -> None:
    for wrong in (header(snapshot=8), header(parts=[Part("a", "A", 5, 3)])):
        with pytest.raises(JournalCorrupt, match="contradicts"):
            decode(encode(wrong, [])[0], "name")
    with pytest.raises(JournalCorrupt, match="another length"):
        decode(encode(header(), [b"short"])[0], "name")


@pytest.mark.parametrize("sources", [("a", "a"), ("../a",), ("",), ("a", "b/c"), (".",)])
def test_sources_that_are_no_names_or_repeated_are_refused(sources: tuple[str, ...]) -> None:
    parts = [Part(source, "log", 0, 1, size=1) for source in sources]
    data, _ = encode(header(parts=parts), [b"x"] * len(parts))
    with pytest.raises(JournalCorrupt, match="a source in its header is invalid, or is there twice"):
        decode(data, "b")
