from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.journal.logs import fill
from weirpool import LocalError
from weirpool.cli.journal.selection import one_log, position_of, selected_logs
from weirpool.journal import Journal


def test_logs_are_selected_by_name(tmp_path: Path) -> None:
    fill(tmp_path, "a", 3)
    fill(tmp_path, "b", 3)
    assert selected_logs(str(tmp_path), None)[1] == ["a", "b"]
    assert selected_logs(str(tmp_path), "b")[1] == ["b"]
    assert one_log(str(tmp_path), "a")[1] == "a"
    with pytest.raises(LocalError, match=r"several logs \(a, b\)"):
        one_log(str(tmp_path), None)
    with pytest.raises(LocalError, match="no log 'c'"):
        selected_logs(str(tmp_path), "c")
    with pytest.raises(LocalError, match="no journal"):
        selected_logs(str(tmp_path / "none"), None)


@pytest.mark.parametrize(
    ("place", "position"),
    [("earliest", 0), ("latest", 20), ("7", 7), ("-5", 15), ("-500", 0), ("1999-01-01", 0), ("2999-01-01T00:00Z", 20)],
)
def test_places_are_positions(tmp_path: Path, place: str, position: int) -> None:
    fill(tmp_path, "a", 20)
    assert position_of(Journal(tmp_path).reader("a"), place, "--to") == position


@pytest.mark.parametrize("place", ["", "-", "soon", "1" * 30, "12:00"])
def test_other_places_are_refused(tmp_path: Path, place: str) -> None:
    fill(tmp_path, "a", 20)
    with pytest.raises(LocalError, match="--to is"):
        position_of(Journal(tmp_path).reader("a"), place, "--to")
