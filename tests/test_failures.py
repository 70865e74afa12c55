"""The page of failures names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reference/failures.md").read_text()
ROWS = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in PAGE.splitlines() if line.startswith("| ")]
FAULTS = [row for row in ROWS if row[0] != "fault"]


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row[0])
def test_every_failure_row_names_a_test(row: list[str]) -> None:
    assert len(row) == 4
    shown = [re.fullmatch(r"`(tests/[\w/]+\.py)::(\w+)`", each) for each in row[3].split(", ")]
    for each in shown:
        assert each is not None, "name each test as `FILE::FUNCTION`"
        file, name = each.groups()
        assert f"def {name}(" in (ROOT / file).read_text()


def test_every_component_has_a_table() -> None:
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == COMPONENTS


@pytest.mark.parametrize("text", PAGE.split("\n## ")[1:], ids=lambda text: text.partition("\n")[0])
def test_every_table_says_what_its_tests_cover(text: str) -> None:
    # A test of one reader, or of one step, is no proof for the others.
    before, _, _ = text.partition("\n| fault |")
    assert "These tests " in before.replace("\n", " ")


COMPONENTS = [
    "Publisher", "Link", "Collector", "Feeds", "Disk and journal", "Cold storage", "Spark", "Receiver", "River"
]  # fmt: skip
