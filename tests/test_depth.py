from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builds import Build

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text()
    | st.text('"\\[{'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"\\[', max_size=3), inner, max_size=4),
    max_leaves=30,
)
LIMIT = 128


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@pytest.fixture(scope="module")
def depth(build: Build) -> Any:
    return build.module("weirpool.depth")


@given(VALUES, st.integers(0, 6))
def test_depth_matches_decoding(depth: Any, value: Any, limit: int) -> None:
    too_deep = depth_of(value) > limit
    for data in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")):
        assert (depth.json_too_deep(data, limit) >= 0) == too_deep
    assert (depth.msgpack_too_deep(msgspec.msgpack.encode(value), limit) >= 0) == too_deep


# THREATS 64
@pytest.mark.parametrize("levels", [LIMIT, LIMIT + 1, 100_000])
def test_bombs_are_found(depth: Any, levels: int) -> None:
    fits = levels <= LIMIT
    for opening in (b"[", b'{"a":'):
        assert (depth.json_too_deep(opening * levels) < 0) == fits
    for opening in (b"\x91", b"\x81\xa1a", b"\xdd\0\0\0\x01", b"\xde\0\x01\xa1a", b"\xdd\xff\xff\xff\xff"):
        assert (depth.msgpack_too_deep(opening * levels) < 0) == fits


# Malformed data of each kind that two scanners may interpret differently. The stricter result is required.
@pytest.mark.parametrize(
    "data",
    [
        # An empty container is a level, as in JSON.
        b"\x91\x90",
        b"\x81\xa1a\x80",
        b"\xdc\0\x01\xde\0\0",
        # Data after a complete value.
        b"\x01\x91\x91\x01",
        b"\x90\x91\x90",
        # The unused byte 0xC1.
        b"\xc1\x91\x91\x01",
        b"\x91\xc1\x91\x91\x01",
        # An incomplete length.
        b"\x91\xdc",
        b"\x91\xdd\0\0",
    ],
)
def test_malformed_msgpack_has_its_deepest_interpretation(depth: Any, data: bytes) -> None:
    assert depth.msgpack_too_deep(data, 1) >= 0
    assert depth.msgpack_too_deep(data, 2) < 0


@pytest.mark.parametrize("data", [b"[[", b"]]}[[", b"1 [[", b'"[" [[', b"[}[["])
def test_malformed_json_has_its_deepest_interpretation(depth: Any, data: bytes) -> None:
    assert depth.json_too_deep(data, 1) >= 0
    assert depth.json_too_deep(data, 2) < 0


def test_brackets_in_strings_do_not_count(depth: Any) -> None:
    assert depth.json_too_deep(json.dumps(["[" * 1_000, '"[[[\\"' * 1_000]).encode()) < 0


@pytest.mark.parametrize(
    "leaf",
    [
        "c0",
        "ca00000000",
        "cb" + "00" * 8,
        "cc91",
        "d0dc",
        "d49191",
        "d8" + "91" * 17,
        "c40291dc",
        "c7029191dc",
        "d90191",
    ],
)
def test_bytes_within_scalars_do_not_count(depth: Any, leaf: str) -> None:
    assert depth.msgpack_too_deep(b"\xdc\x03\xe8" + bytes.fromhex(leaf) * 1_000, 1) < 0


def test_every_msgpack_type_is_skipped(depth: Any) -> None:
    values = [b"\0" * 300, b"\0" * 70_000, "x" * 40, "x" * 300, "x" * 70_000, 1.5, 2**40, -(2**40), -5, 200, 2**20]
    values += [msgspec.msgpack.Ext(5, b"\x91" * size) for size in (1, 2, 3, 4, 8, 16, 300, 70_000)]
    wide = [[None] * 20, [None] * 70_000, {str(key): 1 for key in range(20)}, {str(key): 1 for key in range(70_000)}]
    assert depth.msgpack_too_deep(msgspec.msgpack.encode([*values, *wide]), 2) < 0
    assert depth.msgpack_too_deep(msgspec.msgpack.encode([*values, *wide, [[]]]), 2) > 0


def test_deep_and_broken_input_takes_linear_time(depth: Any) -> None:
    # If the scan restarted at each quote, the second one would take hours.
    assert depth.json_too_deep(b"[" * 129 + b'"' + b'\\"' * 1_000_000, 250) < 0
    for data in (b"[" * 1_000_000, b'{"a":' * 200_000):
        assert depth.json_too_deep(b"[" * 129 + data, 250) > 0
    for data in (b"\x91" * 1_000_000, b"\xdd\xff\xff\xff\xff" * 1_000):
        assert depth.msgpack_too_deep(data) > 0


JUNK = (
    st.binary(max_size=40)
    | st.text('"\\\\[]{},:1 ', max_size=30).map(str.encode)
    | st.lists(
        st.sampled_from(
            [b"\x91", b"\x90", b"\x80", b"\x81\xa1a", b"\xdc\0\x02", b"\xdf\0", b"\xc7\x01", b"\xd8", b"\xa1", b"\xc1"]
        )
    ).map(b"".join)
    | VALUES.map(msgspec.msgpack.encode)
    | VALUES.map(lambda value: json.dumps(value).encode())
)


@given(st.binary(max_size=80))
def test_junk_has_no_more_levels_than_bytes(depth: Any, data: bytes) -> None:
    assert depth.json_too_deep(data * 3, 3 * len(data)) < 0
    assert depth.msgpack_too_deep(data * 3, 3 * len(data)) < 0


@given(data=JUNK, limit=st.integers(0, 6), at=st.integers(0, 5), count=st.integers(0, 4))
def test_both_builds_return_the_same_depth(
    builds: dict[str, Build], data: bytes, limit: int, at: int, count: int
) -> None:
    found = []
    for build in builds.values():
        depth = build.module("weirpool.depth")
        found.append(
            (
                depth.json_too_deep(data, limit),
                depth.msgpack_too_deep(data, limit),
                depth.skip_json(data, at),
                depth.skip_msgpack(data, at, count),
            )
        )
    assert all(each == found[0] for each in found)


@given(VALUES, st.binary(max_size=3))
def test_values_are_skipped(depth: Any, value: Any, more: bytes) -> None:
    data = json.dumps(value, separators=(",", ":")).encode()
    assert depth.skip_json(b"?" + data + b"," + more, 1) == 1 + len(data)
    packed = msgspec.msgpack.encode(value)
    assert depth.skip_msgpack(b"?" + packed + more, 1) == 1 + len(packed)
    assert depth.skip_msgpack(packed[:-1], 0) == -1


@pytest.mark.parametrize("data", [b"", b'"abc', b'"abc\\"', b"[1", b",", b"}", b'{"a":[1}'])
def test_incomplete_json_has_no_end(depth: Any, data: bytes) -> None:
    assert depth.skip_json(data, 0) == -1


def test_depth_checks_its_arguments(build: Build, depth: Any) -> None:
    for function in (depth.json_too_deep, depth.msgpack_too_deep):
        with pytest.raises((TypeError, AttributeError)):
            function(None)
    if build.name == "compiled":
        with pytest.raises(IndexError):
            depth.skip_msgpack(b"\x01", -1)
        with pytest.raises(IndexError):
            depth.skip_json(b"1", -1)
        with pytest.raises(ValueError, match="depth limit is 300"):
            depth.msgpack_too_deep(b"", 300)


@given(VALUES)
def test_builds_count_the_values_of_messagepack(builds: dict[str, Build], value: Any) -> None:
    data = msgspec.msgpack.encode(value)

    def count(value: Any) -> int:
        if isinstance(value, dict):
            return 2 + sum(1 + count(each) for each in value.values())
        return 2 + sum(map(count, value)) if isinstance(value, list) else 1

    assert {build.module("weirpool.depth").count_msgpack(data) for build in builds.values()} == {count(value)}
