"""The latencies of calls are summed up as percentiles, and shown next to the rate of the streams."""

from __future__ import annotations

import pytest
from benchmarks.fairness import SCENARIOS, Fairness, Latencies, percentile


@pytest.mark.parametrize(("share", "expected"), [(0.5, 50), (0.99, 99), (1.0, 100), (0.001, 1)])
def test_percentile_is_a_measured_number(share: float, expected: int) -> None:
    assert percentile(range(1, 101), share) == expected


def test_row_shows_medians_of_rounds_and_the_longest_call() -> None:
    row = Latencies("a peer")
    for worst in (0.009, 0.001, 0.005):
        row.add([0.002, worst, 0.001], 1e6)
    row.failed = 2
    assert str(row).split() == ["a", "peer", "2.00", "5.00", "9.00", "1,000,000", "2", "streams", "failed"]


def test_results_can_be_saved() -> None:
    row = Latencies("a peer")
    row.add([0.5], 3.0)
    saved = Fairness("fair-1-one", "a title", [row]).as_object()
    assert saved["scenario"] in SCENARIOS
    assert saved["rows"] == [
        {"name": "a peer", "p50": [0.5], "p99": [0.5], "longest": [0.5], "rates": [3.0], "failed": 0}
    ]
