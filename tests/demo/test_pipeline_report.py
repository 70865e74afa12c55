from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from weirpool.demo.pipeline import TABLE_ROWS, draw_chart, print_table


def delays(count: int) -> list[Any]:
    """Return rows in the form of Spark's, worst first."""
    return [
        {"origin": ("JFK", "EWR")[number % 2], "hour": 5 + number, "delay": 30.25 - number, "flights": 1_000 + number}
        for number in range(count)
    ]


def test_the_table_shows_the_worst(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(delays(TABLE_ROWS + 2))
    said = capsys.readouterr().out
    assert "JFK" in said and "5:00" in said and "30.2" in said and "1,000" in said
    assert f"{4 + TABLE_ROWS}:00" in said
    assert f"{5 + TABLE_ROWS}:00" not in said


def test_the_chart_is_a_picture(tmp_path: Path) -> None:
    chart = tmp_path / "chart.png"
    draw_chart(delays(10), chart)
    assert chart.read_bytes().startswith(b"\x89PNG")
