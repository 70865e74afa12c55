from __future__ import annotations

from pathlib import Path

from tests.journal.logs import uuid, write
from weirpool.journal.budget import Budget
from weirpool.journal.layout import Extent
from weirpool.journal.retention import commit
from weirpool.journal.sealed import SealedState, write_sealed


def test_rows_count_until_a_reader_commits_them(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10)
    budget = Budget(folder, 1_000)
    budget.begin([Extent(0, 10, 400)])
    last = Extent(10, 20, 300)
    assert (budget.used(None), budget.used(last), budget.free(last)) == (400, 700, 300)
    commit(folder, "spark", 5)
    budget.refresh()
    assert (budget.used(last), budget.free(last)) == (500, 500)
    budget.add(last)
    assert (budget.used(Extent(20, 30, 900)), budget.free(Extent(20, 30, 900))) == (1_400, 0)


def test_rows_in_a_store_do_not_count(tmp_path: Path) -> None:
    folder = write(tmp_path, 10, 10)
    budget = Budget(folder, 1_000)
    budget.begin([Extent(0, 10, 400)])
    write_sealed(folder, SealedState(uuid(folder), 0, 10, 400, stored=False))
    budget.refresh()
    assert budget.used(Extent(10, 20, 300)) == 700
    write_sealed(folder, SealedState(uuid(folder), 0, 10, 400, stored=True))
    budget.refresh()
    assert budget.used(Extent(10, 20, 300)) == 300
