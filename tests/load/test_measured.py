from __future__ import annotations

import json

from weirpool.load.measured import MAX_CODES, MAX_POINTS, OTHERS, Measured, Series


def test_series_stays_bounded_and_loses_no_request() -> None:
    series = Series()
    for second in range(10_000):
        series.add(second)
    assert len(series.counts) <= MAX_POINTS
    assert sum(series.counts) == 10_000
    assert max(series.counts) <= series.seconds + 1


def test_many_different_errors_are_counted_together() -> None:
    measured = Measured(1, 1)
    for number in range(2 * MAX_CODES):
        measured.fail(str(number), "why")
    measured.fail("0", "another text")
    assert measured.failed == 2 * MAX_CODES + 1
    assert (measured.errors["0"], measured.errors[OTHERS]) == (2, MAX_CODES)
    assert (measured.texts["0"], measured.texts[OTHERS]) == ("why", "")


def test_json_has_rates_and_seconds() -> None:
    measured = Measured(8, 2, rate=50, seconds=2.0, requests=100, bytes=1_000)
    measured.latency.record(3_000_000)
    shown = json.loads(json.dumps(measured.as_json()))
    assert (shown["requests_per_second"], shown["bytes_per_second"], shown["rate"]) == (50, 500, 50)
    assert shown["latency"]["p99.9"] == shown["latency"]["max"] == 0.003
    assert shown["first_item"] is None


def test_rates_of_an_empty_round_are_zero() -> None:
    assert Measured(1, 1).per_second(5) == 0
