from __future__ import annotations

import random

import pytest

from weirpool.load.histogram import MAX_ERROR, Histogram


def test_empty_histogram_has_no_percentiles() -> None:
    empty = Histogram()
    assert (empty.percentile(50), empty.largest, empty.mean, list(empty.buckets())) == (0, 0, 0.0, [])


def test_small_values_are_exact() -> None:
    counted = Histogram()
    for value in range(100):
        counted.record(value)
    assert [counted.percentile(percent) for percent in (0, 1, 50, 99, 100)] == [0, 0, 49, 98, 99]
    assert counted.mean == 49.5


@pytest.mark.parametrize("seed", range(3))
def test_percentiles_are_within_the_promised_error(seed: int) -> None:
    chance = random.Random(seed)
    values = sorted(int(chance.lognormvariate(12, 3)) for _ in range(5_000))
    counted = Histogram()
    for value in values:
        counted.record(value)
    for percent in (10.0, 50.0, 90.0, 99.0, 99.9, 100.0):
        exact = values[max(0, -(-len(values) * percent // 100).__trunc__() - 1)]
        assert exact <= counted.percentile(percent) <= exact * (1 + MAX_ERROR) + 1
    assert counted.largest == values[-1]
    assert sum(count for _, count in counted.buckets()) == len(values)


@pytest.mark.parametrize("value", [127, 128, 255, 256, 257, (1 << 20) - 1, 1 << 20, (1 << 43) - 1])
def test_value_is_at_most_one_bucket_away(value: int) -> None:
    counted = Histogram()
    counted.record(value)
    counted.record(1 << 50)
    assert value <= counted.percentile(50) <= value * (1 + MAX_ERROR)


def test_values_out_of_range_are_counted() -> None:
    counted = Histogram()
    counted.record(-5)
    counted.record(1 << 60)
    assert (counted.count, counted.percentile(50), counted.percentile(100)) == (2, 0, 1 << 60)
