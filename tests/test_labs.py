from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests import sampling
from tests.labs import LABS, is_lab

TESTS = Path(__file__).parent


class Case:
    """A test as the marks see it."""

    def __init__(self, nodeid: str, is_lab: bool = False) -> None:
        self.nodeid = nodeid
        self.marks: set[str] = set()
        self._is_lab = is_lab

    def get_closest_marker(self, name: str) -> bool:
        return self._is_lab and name == "lab"

    def add_marker(self, name: str) -> None:
        self.marks.add(name)


def marked(cases: int, is_lab: bool = False, **how: Any) -> list[set[str]]:
    """Return the marks of the cases of a test, with another test beside it."""
    table = [Case(f"a.py::test_table[{number}]", is_lab) for number in range(cases)]
    items: Any = [Case("a.py::test_alone"), *table]
    sampling.mark_tables(items, **how)
    assert items[0].marks == set()
    return [case.marks for case in table]


def test_laboratories_exist() -> None:
    for place in LABS:
        path, _, name = place.partition("::")
        assert (TESTS / path).exists(), place
        assert not name or f"def {name}(" in (TESTS / path).read_text(), place


def test_folders_files_and_tests_are_laboratories() -> None:
    assert is_lab("floods/test_unread.py", "test_any")
    assert is_lab("transports/test_every.py", "test_any") and not is_lab("transports/test_tcp.py", "test_any")
    assert is_lab("sim/test_river_cuts.py", "test_a_cut_at_every_byte_changes_nothing")
    assert not is_lab("sim/test_river_cuts.py", "test_any")


def test_short_tables_run_whole() -> None:
    assert marked(sampling.CASES) == [set()] * sampling.CASES
    assert marked(sampling.LAB_CASES, is_lab=True) == [set()] * sampling.LAB_CASES


def test_sample_of_a_table_depends_on_the_seed_alone() -> None:
    first, again, other = (marked(500, whole=False, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert first.count({"table"}) == sampling.CASES
    assert first.count({"table", "rest"}) == 500 - sampling.CASES
    assert marked(500, is_lab=True, whole=False).count({"table"}) == sampling.LAB_CASES


def test_whole_table_has_no_rest() -> None:
    assert marked(500, whole=True) == [{"table"}] * 500


def test_header_says_how_to_repeat_a_sample(pytestconfig: pytest.Config) -> None:
    headers = pytestconfig.hook.pytest_report_header(config=pytestconfig, start_path=TESTS, startdir=None)
    assert any(f"WEIRPOOL_LABS_SEED={sampling.SEED}" in str(header) for header in headers) or sampling.WHOLE
