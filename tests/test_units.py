"""One spelling of sizes and durations, for the command line, files, and options of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from weirpool.cli.collect import size_of
from weirpool.cli.values import duration
from weirpool.feeds.values import Seconds, Size
from weirpool.spark.given import as_seconds, as_size
from weirpool.units import seconds, size

SIZES: list[Callable[[Any], Any]] = [size, size_of, Size.read, as_size]
DURATIONS: list[Callable[[Any], Any]] = [seconds, duration(), Seconds.read, as_seconds]


@pytest.mark.parametrize("read", SIZES)
@pytest.mark.parametrize(
    ("given", "count"),
    [
        ("1", 1),
        ("1000000", 10**6),
        ("64k", 2**16),
        ("64KB", 2**16),
        ("2KiB", 2048),
        ("256MiB", 2**28),
        (" 4 GiB ", 2**32),
        ("1t", 2**40),
        ("1TiB", 2**40),
        ("12b", 12),
        (7, 7),
    ],
)
def test_sizes(read: Callable[[Any], Any], given: object, count: int) -> None:
    assert read(given) == count


@pytest.mark.parametrize("read", SIZES)
@pytest.mark.parametrize(
    "given", ["", " ", "0", "-1", "+1", "1.5", "1e6", "lots", "1x", "1 2", "9" * 19, "٣", "1_000", 0, True, 1.5, None]
)
def test_invalid_size_is_an_error(read: Callable[[Any], Any], given: object) -> None:
    with pytest.raises(Exception, match="a size in bytes, such as 1000000, 64k, 256MiB or 4GiB"):
        read(given)


def test_zero_is_a_size_only_where_it_means_something() -> None:
    assert size("0", 0) == 0
    with pytest.raises(ValueError, match="or 0"):
        size("-1", 0)


@pytest.mark.parametrize("read", DURATIONS)
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("0", 0),
        ("5", 5),
        ("1.5", 1.5),
        ("500ms", 0.5),
        ("90s", 90),
        ("5 m", 300),
        ("15M", 900),
        ("1.5h", 5400),
        ("30d", 2_592_000),
        (1.5, 1.5),
        (3, 3),
    ],
)
def test_durations(read: Callable[[Any], Any], given: object, expected: float) -> None:
    assert read(given) == expected


@pytest.mark.parametrize("read", DURATIONS)
@pytest.mark.parametrize(
    "given",
    ["", "-1s", "1w", "1e300", "5 0", "99999d", "nan", "inf", True, float("nan"), float("inf"), -1, 1e300, None],
)
def test_invalid_duration_is_an_error(read: Callable[[Any], Any], given: object) -> None:
    with pytest.raises(Exception, match="a number of seconds, or a form such as 500ms, 90s, 5m, 12h or 30d"):
        read(given)


def test_duration_may_have_a_minimum() -> None:
    assert seconds("100ms", 0.1) == 0.1
    with pytest.raises(ValueError, match=r"of at least 0\.1 s"):
        seconds("99ms", 0.1)
