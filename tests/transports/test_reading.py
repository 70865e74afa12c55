from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.builds import Build


@pytest.fixture
def reading(build: Build) -> Any:
    return build.module("weirpool.transports.reading")


def read(buffer: Any, data: bytes) -> None:
    """Do what a socket does."""
    buffer.view()[: len(data)] = data


def test_take_returns_the_bytes_read(reading: Any) -> None:
    buffer = reading.ReadBuffer()
    for data in (b"first", b"2nd", b""):
        read(buffer, data)
        assert buffer.take(len(data)) == data


@pytest.mark.parametrize("less", [0, 1])
def test_a_read_is_not_overwritten_by_the_next(reading: Any, less: int) -> None:
    buffer = reading.ReadBuffer()
    reads = []
    for octet in b"abc":
        data = bytes([octet]) * (reading.READ_BYTES - less)
        read(buffer, data)
        reads.append(buffer.take(len(data)))
    assert [set(data) for data in reads] == [{ord("a")}, {ord("b")}, {ord("c")}]
    assert {len(data) for data in reads} == {reading.READ_BYTES - less}


@pytest.mark.parametrize("count", [-1, 2**17 + 1, 2**62])
def test_taking_more_than_the_buffer_raises(build: Build, reading: Any, count: int) -> None:
    buffer = reading.ReadBuffer()
    buffer.view()
    with pytest.raises(build.module("weirpool.errors").LocalError, match="were taken of a read buffer"):
        buffer.take(count)


def test_reads_go_to_the_current_receiver(reading: Any) -> None:
    got: list[tuple[str, bytes]] = []
    first = SimpleNamespace(received=lambda data: got.append(("first", data)))
    second = SimpleNamespace(received=lambda data: got.append(("second", data)))
    link = reading.Reading(first, reading.ReadBuffer())
    for receiver in (first, second):
        link.receiver = receiver
        link.get_buffer(-1)[:2] = b"hi"
        link.buffer_updated(2)
    assert got == [("first", b"hi"), ("second", b"hi")]
