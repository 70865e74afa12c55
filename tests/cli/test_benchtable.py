from __future__ import annotations

import pytest

from weirpool.cli.benchtable import duration, progress, size, table
from weirpool.load.measured import Measured


def round_of(in_flight: int, latency: int) -> Measured:
    measured = Measured(in_flight, 1, rate=1e6, seconds=10.0, requests=99_999_999, items=9_999_999_999, bytes=10**13)
    measured.latency.record(latency)
    return measured


def test_table_of_large_numbers_fits_a_terminal() -> None:
    lines = table([round_of(100_000, 3_599 * 10**9), round_of(1, 1)])
    assert max(len(line) for line in lines) <= 96
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("nanoseconds", "shown"),
    [(0, "0us"), (999_499, "999us"), (1_500_000, "1.50ms"), (12_340_000, "12.3ms"), (123 * 10**9, "123s")],
)
def test_duration_has_three_digits(nanoseconds: int, shown: str) -> None:
    assert duration(nanoseconds) == shown


@pytest.mark.parametrize(("count", "shown"), [(0, "0B"), (1_500, "1.50kB"), (25e6, "25.0MB"), (3e12, "3000GB")])
def test_size_has_a_unit(count: float, shown: str) -> None:
    assert size(count) == shown


def test_codes_and_texts_of_peers_cannot_control_the_terminal() -> None:
    measured = Measured(1, 1)
    measured.fail("\x1b[2J", "bad\x1b[31m\nnews")
    assert all("\x1b" not in line and "\n" not in line for line in table([measured]))


def test_many_errors_are_summarized() -> None:
    measured = Measured(1, 1)
    for number in range(15):
        measured.fail(f"E{number}")
    assert table([measured])[-1] == "and 5 other errors"


def test_overdue_requests_are_explained() -> None:
    late = round_of(1, 1)
    late.unfinished = 1234
    assert "1,234 requests were due" in table([late])[-1]
    # One may be in flight.
    late.unfinished = 1
    assert len(table([late])) == 2


def test_a_round_without_a_result_is_explained() -> None:
    assert table([Measured(1, 1, seconds=2.0)])[-1] == "no request has ended in time; raise --duration"


def test_low_rates_have_decimals() -> None:
    measured = Measured(1, 1, seconds=2.0, requests=19)
    assert table([measured])[1].split()[1] == "9.50"


def test_progress_works_before_the_first_response() -> None:
    assert "0 requests, 0/s" in progress(Measured(1, 1), 0.0)
