from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build

PIECES = [
    b".", b":", b"0", b"12", b"1234567", b"S", b"s", b"123456789", b"999999", b"12:34:56.1234567", b"\xd7\xff",
    b"\xc7\x0c\xff", b"\0\0\0\4", b"\0\0\3\xe8", b"\0\0\x0f\xa0", b"x", b"\0" * 8,
]  # fmt: skip
JUNK = st.binary(max_size=40) | st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join)


@pytest.fixture(scope="module")
def precision(build: Build) -> Any:
    return build.module("weirpool.values.precision")


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":"2024-12-31T23:59:59.9999999Z"}',
        b"\x81\xa1a\xbc2024-12-31T23:59:59.0000000Z",
        b'{"a":"23:59:59.123456789"}',
        b'{"a":"PT1.0000005S"}',
        b'{"a":"pt0.00000000s"}',
        b'{"a":1735689599.999999900}',
        b'{"a":1735689599.9999999}',
        b'{"a":-1735689599.9999990}',
        b"\xd7\xff" + (1 << 34).to_bytes(8, "big"),
        b"\xc7\x0c\xff\x00\x00\x00\x01" + b"\x00" * 8,
        b"\xc7\xd7\xff" + (999 << 34).to_bytes(8, "big"),
        b"\xd7\xff" + (1_000 << 34).to_bytes(8, "big") + b"\xd7\xff" + (1_001 << 34).to_bytes(8, "big"),
    ],
)
def test_digits_beyond_the_microsecond_are_found(precision: Any, data: bytes) -> None:
    assert precision.has_finer_time(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b".",
        b'{"a":"2024-12-31T23:59:59.999999Z","b":0.1234567891234567,"c":1700000000.1234567}',
        b'{"a":12345678.9999999,"b":1735689599.999999,"c":1735689599.9999899}',
        b'{"a":-12345.123456789012,"b":"PT1.5S"}',
        b"\xd7\xff" + (1_000 << 34).to_bytes(8, "big"),
        b"\xd7\xff" + (1 << 34).to_bytes(8, "big")[:7],
        b"\xc7\x0c\xff\x00\x00\x03\xe8" + b"\x00" * 8,
        b"\xc7\x0c\xff\x00\x00\x00",
        b"\xd6\xff\x00\x00\x00\x01",
        b"\xd7\x00" + (1 << 34).to_bytes(8, "big"),
    ],
)
def test_what_msgspec_reads_exactly_is_not(precision: Any, data: bytes) -> None:
    assert not precision.has_finer_time(data)


def test_words_are_found_everywhere(precision: Any) -> None:
    words = (b"\xd4\x00\x00", b"\xf7")
    for data in (b"\xd4\x00\x00", b"x\xd4\xd4\x00\x00", b"\xd4\x00\xf7", b"23:59:59.123456789"):
        assert precision.contains(words, data)
    for data in (b"", b"\xd4\x00", b"x\xd4\x00\x01", b"\xd4"):
        assert not precision.contains(words, data)


@given(JUNK, st.lists(st.sampled_from(PIECES)).map(tuple))
def test_both_builds_find_the_same(builds: dict[str, Build], data: bytes, words: tuple[bytes, ...]) -> None:
    found = {build.module("weirpool.values.precision").has_finer_time(data) for build in builds.values()}
    assert len(found) == 1
    found = {build.module("weirpool.values.precision").contains(words, data) for build in builds.values()}
    assert len(found) == 1


def test_long_data_takes_linear_time(precision: Any) -> None:
    # If digits were counted again at each point, this would take minutes.
    assert not precision.has_finer_time(b"1.2" * 1_000_000 + b"." + b"1" * 1_000_000)
