"""The sources as they are: no trip and no other number has grown beyond its limit."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from walk.limits import excesses, load
from walk.rows import SRC, Row, code_rows, trace, trip_rows
from walk.sources import PACKAGE, Source, read


@pytest.fixture(scope="module")
def sources() -> list[Source]:
    """The sources as they are."""
    return read(SRC / PACKAGE)


@pytest.fixture(scope="module")
def rows(sources: list[Source]) -> list[Row]:
    """What is measured today."""
    return trip_rows(trace(SRC)) + code_rows(sources)


def test_nothing_has_grown(rows: list[Row]) -> None:
    assert excesses(rows, load()) == []


def test_trace_counts_the_same_each_time(rows: list[Row]) -> None:
    again = trip_rows(trace(SRC))
    assert again == rows[: len(again)]


def test_trips_begin_and_end_where_they_should(rows: list[Row]) -> None:
    trips = {row.name: row.items for row in rows if "files," in row.name}
    assert len(trips) == 12
    for name, files in trips.items():
        assert ("transports/memory.py" in files) == (", socket" in name), name
        assert ("the user's" in files) == ("handler" in name or "caller" in name), name


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package that a test may change."""
    ignored = shutil.ignore_patterns("*.so", "*.c", "__pycache__")
    shutil.copytree(SRC, tmp_path / "src", ignore=ignored)
    return tmp_path / "src"


def test_detour_by_another_file_is_refused(copied: Path) -> None:
    """A class in front of the link, in a file of its own: each trip to the socket enters one more."""
    (copied / "weirpool" / "transports" / "detour.py").write_text("def passed(data):\n    return data\n")
    memory = copied / "weirpool" / "transports" / "memory.py"
    text = memory.read_text()
    assert "other.receiver.received(data)" in text
    memory.write_text(
        text.replace("other.receiver.received(data)", "other.receiver.received(passed(data))").replace(
            "from .base import", "from .detour import passed\nfrom .base import", 1
        )
    )
    told = excesses(trip_rows(trace(copied)), load())
    limit = load().limits["River: files, socket -> handler"]
    assert f"River: files, socket -> handler: {limit + 1}, more than the limit of {limit}" in told


def test_circle_and_name_that_are_new_are_refused(sources: list[Source]) -> None:
    fresh = [
        Source("aio/fresh_a.py", "from . import fresh_b"),
        Source("aio/fresh_b.py", "from . import fresh_a\nRIVER = 1"),
    ]
    told = " ".join(excesses(code_rows(sources + fresh), load()))
    assert "import circles:" in told
    assert "files above the waist that name a protocol:" in told


def test_command_tells_the_row_and_fails(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from walk import __main__ as command

    grown = [Row(name, limit) for name, limit in load().limits.items()]
    monkeypatch.setattr(command, "measure", lambda sources: grown)
    monkeypatch.setattr(sys, "argv", ["walk"])
    assert command.main() == 0
    grown[0] = Row(grown[0].name, grown[0].number + 1)
    assert command.main() == 1
    assert grown[0].name in capsys.readouterr().err
