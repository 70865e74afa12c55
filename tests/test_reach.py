from __future__ import annotations

from pathlib import Path

import pytest
from tools.reach import LABORATORIES, ROOT, SOURCES, Laboratory, Reached, main, table

FLOORS = {name: floor for laboratory in LABORATORIES for name, floor in laboratory.floors.items()}


@pytest.mark.parametrize("name", FLOORS)
def test_each_package_of_the_store_has_a_floor(name: str) -> None:
    assert FLOORS.keys() >= {"journal", "archive", "replica", "receiving"}
    assert (ROOT / SOURCES / name).exists()


def test_laboratories_are_there() -> None:
    assert [path for laboratory in LABORATORIES for path in laboratory.tests if not (ROOT / path).exists()] == []


def test_a_package_has_the_branches_of_its_modules() -> None:
    laboratory = Laboratory(("journal",), (), {"journal": 60, "journal/redo.py": 90})
    modules = {"journal/redo.py": (8, 10), "journal/tip.py": (5, 10), "archive/file.py": (1, 1)}
    rows = list(table(laboratory, modules))
    assert [(row.name, row.percent, row.is_low) for row in rows] == [
        ("journal", 65.0, False), ("journal/redo.py", 80.0, True), ("journal/tip.py", 50.0, False)
    ]  # fmt: skip
    assert "TOO LOW" in str(rows[1]) and "at least" not in str(rows[2])
    assert Reached("empty", 0, 0, 100).is_low is False


@pytest.mark.slow
@pytest.mark.parametrize(
    ("floors", "code"),
    [({"receiving/ledger.py": 1}, 0), ({"receiving/ledger.py": 101}, 1), ({"receiving/gone.py": 1}, 1)],
    ids=["reached", "too low", "gone"],
)
def test_floors_are_checked(floors: dict[str, int], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    test = Path("tests/receiving/test_ledger.py")
    assert main([Laboratory(("receiving",), (str(test),), floors)]) == code
    assert "receiving/ledger.py" in capsys.readouterr().out


def test_a_test_that_fails_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([Laboratory(("receiving",), ("tests/receiving/test_messages.py", "-k", "test_messages or"), {})]) == 1
