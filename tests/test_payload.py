from __future__ import annotations

from array import array
from types import ModuleType

import pytest
from hypothesis import given

from tests.builds import Build
from tests.wire.strategies import items


@pytest.fixture(scope="session")
def payload(build: Build) -> ModuleType:
    return build.module("weirpool.payload")


@pytest.fixture(scope="session")
def errors(build: Build) -> ModuleType:
    return build.module("weirpool.errors")


def test_text_is_encoded(payload: ModuleType) -> None:
    item = payload.Payload("é", "m")
    assert (item.data, item.metadata) == (b"\xc3\xa9", b"m")


@pytest.mark.parametrize("kind", [bytearray, memoryview, lambda octets: array("B", octets)])
def test_bytes_like_objects_are_copied(payload: ModuleType, kind: type) -> None:
    item = payload.Payload(kind(b"abc"), kind(b"m"))
    assert (item.data, item.metadata) == (b"abc", b"m")
    assert type(item.data) is type(item.metadata) is bytes


@pytest.mark.parametrize("wrong", [5, None, ["a"], object()])
def test_objects_without_bytes_raise(payload: ModuleType, errors: ModuleType, wrong: object) -> None:
    with pytest.raises(errors.LocalError, match="data is of type"):
        payload.Payload(wrong)
    if wrong is not None:
        with pytest.raises(errors.LocalError, match="metadata is of type"):
            payload.Payload(b"", wrong)


def test_empty_metadata_differs_from_none(payload: ModuleType) -> None:
    absent, empty = payload.Payload(b"d"), payload.Payload(b"d", b"")
    assert absent != empty
    assert absent.metadata is None
    assert empty.metadata == b""
    assert empty == payload.Payload(b"d", b"")
    assert hash(empty) == hash(payload.Payload(b"d", b""))
    assert absent != b"d"


def test_payload_repr_shows_content(payload: ModuleType) -> None:
    assert repr(payload.Payload(b"d")) == "Payload(b'd')"
    assert repr(payload.Payload(b"d", b"m")) == "Payload(b'd', metadata=b'm')"


@given(items=items)
def test_run_returns_its_payloads(payload: ModuleType, items: list[tuple[bytes, bytes | None]]) -> None:
    payloads = [payload.Payload(*item) for item in items]
    run = payload.PayloadRun.of(iter(payloads))
    assert len(run) == len(items)
    assert run.size == sum(len(data) + len(metadata or b"") for data, metadata in items)
    assert list(run) == run.payloads() == payloads
    for start in range(len(items) + 1):
        assert run.payloads(start) == payloads[start:]
        assert run.payloads(0, start) == payloads[:start]
        assert run.check(0, start) == sum(len(data) + len(metadata or b"") for data, metadata in items[:start])


def test_run_repr_shows_its_size(payload: ModuleType) -> None:
    run = payload.PayloadRun.of([payload.Payload(b"abc", b"m")])
    assert repr(run) == "<PayloadRun of 1 items, 4 bytes>"


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (2, 1), (3, 3), (0, -1), (2**40, 2**40)])
def test_items_outside_a_run_raise(payload: ModuleType, errors: ModuleType, start: int, stop: int) -> None:
    run = payload.PayloadRun.of([payload.Payload(b"a"), payload.Payload(b"b")])
    with pytest.raises(errors.LocalError, match="run of 2"):
        run.payloads(start, stop)


LYING = [(0, 1, 5), (-1, 3, 2), (2, 1, 4), (-2, 0, 1), (-1, -1, 1), (-1, 0, 2**31 - 1), (5, 5, 5), (-1, 5, 5)]


@pytest.mark.parametrize("offsets", LYING)
def test_invalid_offsets_raise(payload: ModuleType, errors: ModuleType, offsets: tuple[int, int, int]) -> None:
    run = payload.PayloadRun(b"abcd", array("i", (-1, 0, 1, *offsets)), 0)
    assert run.payloads(0, 1) == [payload.Payload(b"a")]
    for read in (run.payloads, lambda: list(run), lambda: run.check(0, 2)):
        with pytest.raises(errors.LocalError, match="item 1 of the run"):
            read()


def test_run_of_2_gib_raises(payload: ModuleType, errors: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MAX_RUN_BYTES", 10)
    assert len(payload.PayloadRun.of([payload.Payload(bytes(10))])) == 1
    with pytest.raises(errors.LocalError, match="make several"):
        payload.PayloadRun.of([payload.Payload(bytes(10)), payload.Payload(b"", b"m")])


# Items of one width.


@pytest.mark.parametrize("width", [1, 3, 8])
def test_items_of_one_width_equal_others(payload: ModuleType, width: int) -> None:
    octets = bytes(range(24 * 4))
    fixed = payload.PayloadRun.fixed(octets, width, 24, 72)
    items = [payload.Payload(octets[at : at + width]) for at in range(24, 72, width)]
    assert (fixed.width, fixed.first, fixed.size, len(fixed), fixed.sound) == (width, 24, 48, len(items), True)
    assert fixed.buffer is octets
    assert list(fixed) == items
    assert fixed.payloads(1, 3) == items[1:3]
    assert fixed.check(2, 5) == 3 * width
    with_offsets = payload.PayloadRun(octets, fixed.offsets, 48)
    assert (with_offsets.width, with_offsets.payloads(), with_offsets.check(0, len(items))) == (0, items, 48)


@pytest.mark.parametrize("make", [bytearray, memoryview, lambda octets: array("q", octets)])
def test_numbers_are_copied_once(payload: ModuleType, make: type) -> None:
    octets = bytes(range(64))
    fixed = payload.PayloadRun.fixed(make(octets), 8)
    assert (fixed.buffer, type(fixed.buffer), len(fixed)) == (octets, bytes, 8)


@pytest.mark.parametrize(
    ("width", "start", "stop"), [(0, 0, 4), (-1, 0, 4), (3, 0, 4), (2, -2, 2), (2, 4, 2), (2, 0, 6)]
)
def test_fixed_run_with_invalid_bounds_raises(
    payload: ModuleType, errors: ModuleType, width: int, start: int, stop: int
) -> None:
    with pytest.raises(errors.LocalError, match=f"cannot be split into items of {width} bytes"):
        payload.PayloadRun.fixed(b"abcd", width, start, stop)


def test_fixed_run_of_text_raises(payload: ModuleType, errors: ModuleType) -> None:
    for wrong in ("text", 5, None):
        with pytest.raises(errors.LocalError, match=r"must be bytes"):
            payload.PayloadRun.fixed(wrong, 1)


def test_fixed_run_of_2_gib_raises(payload: ModuleType, errors: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload, "MAX_RUN_BYTES", 3)
    with pytest.raises(errors.LocalError, match="make several"):
        payload.PayloadRun.fixed(b"abcd", 2)


@given(items=items)
def test_part_shares_the_bytes(payload: ModuleType, items: list[tuple[bytes, bytes | None]]) -> None:
    run = payload.PayloadRun.of([payload.Payload(*item) for item in items])
    for start in range(len(items) + 1):
        part = run.part(start, len(items))
        assert part.payloads() == run.payloads(start)
        assert part.size == run.check(start, len(items))
        assert part.buffer is run.buffer
    fixed = payload.PayloadRun.fixed(bytes(range(64)), 8, 16)
    assert fixed.part(1, 4).payloads() == fixed.payloads(1, 4)
    assert fixed.part(1, 4).buffer is fixed.buffer


@pytest.mark.parametrize(("start", "stop"), [(-1, 1), (0, 3), (2, 1), (3, 3)])
def test_parts_outside_a_run_raise(payload: ModuleType, errors: ModuleType, start: int, stop: int) -> None:
    for run in (payload.PayloadRun.fixed(b"abcd", 2), payload.PayloadRun.of([payload.Payload(b"a")] * 2)):
        for read in (run.part, run.payloads, run.check):
            with pytest.raises(errors.LocalError, match="run of 2"):
                read(start, stop)
