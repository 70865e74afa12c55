from __future__ import annotations

import io

import pytest
from rich.console import Console

from weirpool.demo.board import Board


def test_lines_are_printed_elsewhere_than_on_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Board(2_000) as board:
        board.collected(1_500)
        board.stored(1_000, 250.4)
    assert capsys.readouterr().out == "Spark: 1,000 flights in Parquet, 250/s\n"


def test_bars_are_drawn_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr("rich.console.Console", lambda: Console(file=out, force_terminal=True, width=80))
    with Board(2_000) as board:
        board.collected(2_000)
        board.stored(1_000, 250.4)
    assert "2000/2000" in out.getvalue() and "1000/2000" in out.getvalue()
