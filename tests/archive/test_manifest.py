from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.archive import manifest as manifests
from weirpool.archive.manifest import GapFile, Manifest, Segment, decode, decode_page, encode, encode_page, folded
from weirpool.errors import JournalCorrupt

UUID = "6a2f1a7e-0000-4000-8000-000000000000"


def entry(first: int, end: int, **changes: Any) -> Segment:
    fields = {
        "first": first, "end": end, "name": manifests.segment_file(first), "rows": end - first, "size": 1_000,
        "raw_bytes": 4_000, "times": (first * 10, end * 10), "head": "a" * 64, "checksum": "b" * 32,
        "chunks": b"", "footer_bytes": 100, "footer": "c" * 32,
    }  # fmt: skip
    return Segment(**{**fields, **changes})


def made(*entries: Segment, **changes: Any) -> Manifest:
    fields = {"uuid": UUID, "version": 1, "writer": "w", "first": entries[0].first if entries else 0}
    return Manifest(**{**fields, "segments": list(entries), **changes})


def test_a_manifest_is_read_as_it_was_written() -> None:
    manifest = made(
        entry(5, 10), entry(10, 30, rows=0, times=None), gaps=GapFile(f"{1:020d}-{'0' * 16}.gaps", "d" * 32)
    )
    assert decode(encode(manifest), "m") == manifest
    assert (manifest.end, manifest.raw_bytes) == (30, 8_000)
    assert made().end == 0 and decode(encode(made()), "m") == made()


def test_versions_differ_by_their_writer() -> None:
    one, two = made().successor(), made().successor()
    assert one.version == two.version == 2 and encode(one) != encode(two)


@given(at=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_every_flipped_bit_is_noticed(at: int, bit: int) -> None:
    data = bytearray(encode(made(entry(0, 10), entry(10, 20))))
    # Not the newline, which means nothing.
    data[at % (len(data) - 1)] ^= 1 << bit
    try:
        assert decode(bytes(data), "m") == made(entry(0, 10), entry(10, 20))
    except JournalCorrupt as error:
        assert str(error).startswith("m: ")


@given(st.binary(max_size=200))
def test_junk_is_refused(data: bytes) -> None:
    with pytest.raises(JournalCorrupt, match="is not a manifest"):
        decode(data, "m")


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        (made(entry(0, 10), entry(11, 20)), "do not follow"),
        (made(entry(0, 10), entry(9, 20)), "do not follow"),
        (made(entry(10, 10, rows=0, times=None)), "no positions"),
        (made(entry(0, 10), first=11), "outside its first entry"),
        (made(entry(3, 10), first=2), "outside its first entry"),
        (made(entry(0, 10, name="../../etc/passwd")), "not named after"),
        (made(entry(0, 10, name="/etc/passwd")), "not named after"),
        (made(entry(0, 10, name=f"../{manifests.segment_file(0)}")), "not named after"),
        (made(entry(0, 10, name=f"{manifests.segment_file(0)}\n")), "not named after"),
        (made(entry(0, 10, name=manifests.segment_file(1))), "not named after"),
        (made(entry(0, 10, rows=11)), "sizes"),
        (made(entry(0, 10, footer_bytes=1_001)), "sizes"),
        (made(entry(0, 10, times=None)), "times"),
        (made(entry(0, 10, rows=0)), "times"),
        (made(uuid=UUID.upper()), "canonical"),
        (made(uuid="x"), "UUID"),
        (made(version=0), "start at 1"),
        (made(gaps=GapFile("../x", "d" * 32)), "file of gaps"),
    ],
)
def test_impossible_manifests_are_refused(manifest: Manifest, message: str) -> None:
    with pytest.raises(JournalCorrupt, match=message):
        decode(encode(manifest), "m")


@pytest.mark.parametrize(
    "changes",
    [
        {"first": -1},
        {"end": 1 << 63},
        {"head": "x"},
        {"checksum": "A" * 32},
        {"times": [0, 1 << 62]},
        {"size": -1},
        {"rows": 1 << 63},
        {"rows": "1"},
        {"rows": 1.5},
        {"raw_bytes": -1},
        {"footer_bytes": -1},
        {"chunks": 5},
        {"name": None},
        {"name": ["a"]},
    ],
)
def test_values_out_of_range_are_refused(changes: dict[str, Any]) -> None:
    content = msgspec.to_builtins(made(entry(0, 10)))
    content["segments"][0] |= changes
    with pytest.raises(JournalCorrupt, match="is not a manifest"):
        decode(json.dumps({"weirpool": 1, **content, "checksum": "0" * 16}).encode(), "m")


def test_a_newer_format_is_named() -> None:
    with pytest.raises(JournalCorrupt, match=r"format 2.*update Weirpool"):
        decode(b'{"weirpool": 2, "checksum": ""}', "m")


def test_what_is_too_long_is_not_parsed() -> None:
    with pytest.raises(JournalCorrupt, match="longer than"):
        decode(bytes(manifests.MAX_BYTES + 1), "m")


def test_old_entries_move_to_a_page() -> None:
    many = made(*(entry(each * 10, each * 10 + 10) for each in range(manifests.MAX_SEGMENTS + 1)))
    small, page, data = folded(many)
    assert page is not None and page.segments == manifests.PAGE_SEGMENTS
    assert (page.first, page.end, page.rows, page.times) == (0, 1_280, 1_280, (0, 12_800))
    assert [*decode_page(data, page, "p"), *small.segments] == many.segments
    assert (small.end, small.raw_bytes) == (many.end, many.raw_bytes)
    assert decode(encode(small), "m") == small
    assert folded(small) == (small, None, b"")


def test_a_page_that_was_changed_is_refused() -> None:
    many = made(*(entry(each * 10, each * 10 + 10) for each in range(manifests.MAX_SEGMENTS + 1)))
    _, page, data = folded(many)
    assert page is not None
    other = encode_page([entry(0, 10)])
    for content, expected in (
        (data[:-9], page),
        (other, msgspec.structs.replace(page, checksum=manifests.checksum(other))),
    ):
        with pytest.raises(JournalCorrupt, match="p: is not a page"):
            decode_page(content, expected, "p")


def test_a_segment_of_impossible_size_is_refused() -> None:
    with pytest.raises(JournalCorrupt, match=r"the sizes of 0{20}.parquet are impossible"):
        decode(encode(made(entry(0, 10, raw_bytes=1 << 41))), "m")
