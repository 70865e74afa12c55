from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.spark.drivers import FRUGAL
from weirpool.aio import loop
from weirpool.cli import demo
from weirpool.cli.main import run
from weirpool.demo.flights import FLIGHTS_COUNT
from weirpool.demo.processes import DemoFailed


class Frame:
    """The part of a data frame that the demo uses to count."""

    def __init__(self, rows: int, distinct: int) -> None:
        self.rows = rows
        self.different = distinct

    def count(self) -> int:
        return self.rows

    def select(self, column: str) -> Frame:
        assert column == "position"
        return self

    def distinct(self) -> Frame:
        return Frame(self.different, self.different)


class Pipeline:
    """A pipeline with the results that a test chooses."""

    parquet = Path("parquet")

    def __init__(self, rows: int, distinct: int) -> None:
        self.frame = Frame(rows, distinct)

    def flights(self) -> Frame:
        return self.frame

    def publish(self, url: str, route: str) -> list[Any]:
        assert route == "delays"
        return [{"origin": "JFK", "hour": 5, "delay": 1.0, "flights": 1}]


def finish(monkeypatch: pytest.MonkeyPatch, folder: Path, rows: int, distinct: int, heard: int) -> None:
    def ran(main: Any) -> int:
        main.close()
        return heard

    monkeypatch.setattr(loop, "run", ran)
    demo._finish(Pipeline(rows, distinct), "rsocket+memory://nowhere", folder)  # type: ignore[arg-type]


def test_results_are_printed_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finish(monkeypatch, tmp_path, FLIGHTS_COUNT, FLIGHTS_COUNT, 1)
    said = capsys.readouterr().out
    assert f"{FLIGHTS_COUNT:,} flights, each exactly once" in said
    assert "published back to the service: 1 delays" in said
    assert (tmp_path / "delays.png").exists()


@pytest.mark.parametrize("off", [-1, 1])
def test_missing_or_duplicate_flight_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: int) -> None:
    with pytest.raises(DemoFailed, match=f"{FLIGHTS_COUNT + off:,} arrived"):
        finish(monkeypatch, tmp_path, FLIGHTS_COUNT + off, FLIGHTS_COUNT, 1)
    with pytest.raises(DemoFailed, match="of them distinct"):
        finish(monkeypatch, tmp_path, FLIGHTS_COUNT, FLIGHTS_COUNT - 1, 1)


def test_missing_delay_fails_the_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DemoFailed, match="published 1 delays back; 0 arrived"):
        finish(monkeypatch, tmp_path, FLIGHTS_COUNT, FLIGHTS_COUNT, 0)


def test_only_output_of_a_demo_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "demo"
    demo._empty(folder)
    (folder / "journal").mkdir()
    (folder / "precious").touch()
    demo._empty(folder)
    assert [path.name for path in folder.iterdir()] == ["precious"]


@pytest.mark.slow
@pytest.mark.spark
def test_demo_runs_and_writes_its_output(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", FRUGAL)
    with pytest.raises(SystemExit) as ended:
        run(["demo", "--dir", str(tmp_path)])
    said = capfd.readouterr().out
    assert ended.value.code == 0, said
    assert f"{FLIGHTS_COUNT:,} flights, each exactly once" in said
    assert (tmp_path / "delays.png").stat().st_size > 10_000
