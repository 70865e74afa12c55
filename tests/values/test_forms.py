from __future__ import annotations

import pytest

from weirpool.values.forms import text_time


@pytest.mark.parametrize(
    ("text", "usual"),
    [
        ("2024-12-31T23:59:59.9999999Z", "2024-12-31T23:59:59.999999Z"),
        ("2024-12-31T23:59:59.123456Z", "2024-12-31T23:59:59.123456Z"),
        ("2024-12-31T23:59:59+01", "2024-12-31T23:59:59+01:00"),
        ("2024-12-31T23:59:59.5-01", "2024-12-31T23:59:59.5-01:00"),
        ("2024-12-31T23:59:59+01:00[Europe/Paris]", "2024-12-31T23:59:59+01:00"),
        ("2024-12-31T23:59:59.1234567+01[Europe/Paris]", "2024-12-31T23:59:59.123456+01:00"),
        ("2024-12-31T23:59:59Z[UTC]", "2024-12-31T23:59:59Z"),
        ("2024-12-31T23:59:59[Europe/Paris]", "2024-12-31T23:59:59[Europe/Paris]"),
        ("2024-12-31T23:59:59Z[UTC][UTC]", "2024-12-31T23:59:59Z[UTC][UTC]"),
        ("2024-12-31", "2024-12-31"),
        ("", ""),
    ],
)
def test_times_are_written_in_one_way(text: str, usual: str) -> None:
    assert text_time(text) == usual


def test_long_texts_take_linear_time() -> None:
    # If each digit began a new search, this would take hours.
    for text in (":00." + "1" * 1_000_000, ":00.123456" * 100_000, "Z[" * 500_000, "+00" * 500_000):
        assert text_time(text)
