from __future__ import annotations

from pathlib import Path

import pytest

from tests.archive.logs import SMALL, broken, fill, positions, seal_all
from tests.archive.steps import Crash
from tests.journal.logs import SOURCE, append, flip
from tests.objects.stores import numbers
from weirpool.archive import SealOptions
from weirpool.archive.retire import retire
from weirpool.errors import JournalCorrupt, JournalMismatch
from weirpool.journal import Journal, JournalWriter
from weirpool.journal.layout import SEALED, log_folder


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A log of 15 rows, of which ten are sealed."""
    path = tmp_path / "one"
    fill(path, 1, 2, 3, 4, gaps=(1, 2))
    fill(path, 5)
    seal_all(path)
    return path


def copied(one: Path | str, two: Path) -> list[int]:
    """Copy a log; return its rows in the copy, after checking that it is sound."""
    Journal(one).copy(SOURCE, two)
    report = Journal(two).verify([SOURCE], against=one)[SOURCE]
    assert report.problems == []
    return positions(Journal(two).reader(SOURCE))


def test_a_copy_has_the_sealed_rows_too(one: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    assert copied(one, two) == [*range(15)]
    assert broken(two, 15, {1, 3}) == []
    assert [(gap.position, gap.reason) for gap in Journal(two).reader(SOURCE).gaps()] == [(1, "gap 1"), (3, "gap 2")]
    again = Journal(one).copy(SOURCE, two)
    assert (again.first, again.end, again.size) == (0, 15, 0)
    # It can be continued and sealed as a log of its own.
    fill(two, 3)
    seal_all(two)
    assert positions(Journal(two).reader(SOURCE)) == [*range(18)]


def test_a_copy_from_before_sealing_is_brought_up_to_date(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    fill(one, 1, 2, 3)
    assert copied(one, two) == [*range(6)]
    for counts in ((4,), (5, 6, 7), (8,)):
        fill(one, *counts)
        seal_all(one)
        total = positions(Journal(one).reader(SOURCE))
        assert copied(one, two) == total
        assert sorted(path.name for path in log_folder(two, SOURCE).glob("*.arrows")) == sorted(
            path.name for path in log_folder(one, SOURCE).glob("*.arrows")
        )


@pytest.mark.parametrize("store", [False, True])
def test_a_log_of_which_nothing_is_sealed_yet_is_copied(tmp_path: Path, store: bool) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    fill(one, 3)
    # The last segment is never sealed.
    assert seal_all(one, SealOptions(target_bytes=1, store=str(tmp_path / "store") if store else None)) == 0
    assert (log_folder(one, SOURCE) / SEALED).exists()
    assert copied(one, two) == [*range(3)]
    assert copied(one, two) == [*range(3)]


def test_a_copy_from_a_store_has_what_is_sealed_there(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    uri = f"memory://copying-{next(numbers)}"
    fill(one, 1, 2, 3)
    seal_all(one, SealOptions(target_bytes=1, store=uri))
    assert copied(uri, two) == [*range(3)]
    fill(one, 4, 5)
    seal_all(one, SealOptions(target_bytes=1, store=uri))
    assert copied(uri, two) == [*range(10)]
    assert copied(one, two) == [*range(15)]
    # What the copy has beyond the store stays.
    assert copied(uri, two) == [*range(15)]
    with JournalWriter.open(two, SOURCE, fsync=False) as writer:
        append(writer, 2)
    assert positions(Journal(two).reader(SOURCE)) == [*range(17)]


def test_a_copy_from_a_store_is_continued(tmp_path: Path) -> None:
    uri = f"memory://copying-{next(numbers)}"
    fill(tmp_path / "one", 1, 2, 3)
    seal_all(tmp_path / "one", SealOptions(target_bytes=1, store=uri))
    copied(uri, tmp_path / "two")
    fill(tmp_path / "two", 4, 5)
    assert seal_all(tmp_path / "two") == 1
    assert positions(Journal(tmp_path / "two").reader(SOURCE)) == [*range(12)]


def test_what_the_log_retires_stays_in_the_copy(one: Path, tmp_path: Path) -> None:
    two = tmp_path / "two"
    copied(one, two)
    fill(one, 6, 7)
    seal_all(one)
    retire(one, SOURCE, SealOptions(keep_bytes=1))
    assert positions(Journal(one).reader(SOURCE))[0] == 21
    with pytest.raises(JournalMismatch, match="the rows between are gone"):
        copied(one, two)
    assert positions(Journal(two).reader(SOURCE)) == [*range(15)]
    assert copied(one, tmp_path / "three")[0] == 21


def test_what_does_not_fit_is_refused(one: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    fill(other, 1, 2, 3)
    seal_all(other)
    with pytest.raises(JournalMismatch, match="choose another folder"):
        copied(one, other)
    two = tmp_path / "two"
    fill(two, 1)
    with pytest.raises(JournalMismatch, match="choose another folder"):
        copied(one, two)
    flip(log_folder(one, SOURCE) / "00000000000000000003.parquet", 700)
    with pytest.raises(JournalCorrupt, match="differs from what was sealed"):
        copied(one, tmp_path / "three")


def test_a_copy_that_was_sealed_at_other_positions_is_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    fill(one, 1, 2, 3)
    copied(one, two)
    seal_all(two, SMALL)
    fill(one, 4)
    seal_all(one, SealOptions())
    with pytest.raises(JournalMismatch, match="was sealed on its own"):
        copied(one, two)


def test_a_kill_at_every_step_is_made_up_for(one: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weirpool.objects.folder import FolderStore

    for step in range(1, 20):
        two = tmp_path / f"two-{step}"
        left = step

        def killed(self: FolderStore, *arguments: object, real: object = FolderStore.put) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise Crash
            real(self, *arguments)  # type: ignore[operator]

        with monkeypatch.context() as patched:
            patched.setattr(FolderStore, "put", killed)
            try:
                Journal(one).copy(SOURCE, two)
            except Crash:
                pass
            else:
                break
        assert copied(one, two) == [*range(15)]
    assert step > 4
