"""What is left of a process's descriptors."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator

import pytest

from weirpool.aio.descriptors import UNLIMITED, limit, reserve, spare


@pytest.fixture
def few() -> Iterator[int]:
    """A process that may have 200 descriptors more than it has."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 200, before[1]))
    yield lowest + 200
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize(
    ("limit", "kept"), [(8, 2), (24, 6), (64, 16), (160, 20), (1_024, 128), (8_192, 1_024), (1 << 20, 1_024)]
)
def test_a_part_of_the_limit_is_kept(limit: int, kept: int) -> None:
    assert reserve(limit) == kept


def test_descriptors_in_use_are_not_spare(few: int) -> None:
    assert limit() == few
    before = spare()
    assert before <= few - reserve(few)
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(10)]
    try:
        assert spare() <= before - 10
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert spare() == before


def test_nothing_is_spare_when_all_are_in_use(few: int) -> None:
    opened = []
    try:
        with pytest.raises(OSError, match="Too many open files"):
            while True:
                opened.append(os.open(os.devnull, os.O_RDONLY))
        assert spare() == 0
        while spare() <= 0:
            os.close(opened.pop())
        # The reserve is not for clients.
        assert few - len(os.listdir("/proc/self/fd")) >= reserve(few) - 1
    finally:
        for descriptor in opened:
            os.close(descriptor)


def test_without_a_limit_all_are_spare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert limit() == spare() == UNLIMITED
