from __future__ import annotations

from pathlib import Path

import pytest

from tests.journal.logs import segment, uuid, write
from weirpool import JournalCorrupt
from weirpool.journal.damage import Damage
from weirpool.journal.gaps import load
from weirpool.journal.losses import accept, examine, is_accepted, set_aside
from weirpool.journal.retention import last_commit
from weirpool.journal.storage import LogFolder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A log of two batches in one segment."""
    return write(tmp_path, 3, 2)


def test_a_sound_log_has_lost_nothing(folder: Path) -> None:
    condition = examine(LogFolder.local(folder), uuid(folder), last_commit(folder, uuid(folder)))
    assert (condition.lost, condition.error, condition.mark_is_damaged, condition.tail.position) == ([], None, False, 5)


def test_what_is_lost_is_an_error_until_it_is_accepted(folder: Path) -> None:
    with open(segment(folder), "r+b") as file:
        file.truncate(segment(folder).stat().st_size - 1)
    condition = examine(LogFolder.local(folder), uuid(folder), last_commit(folder, uuid(folder)))
    assert [(name, damage.first, damage.end) for name, damage in condition.lost] == [(str(segment(folder)), 3, 5)]
    assert isinstance(condition.error, JournalCorrupt)
    accept(folder, condition.lost, 1.5, condition.tail)
    condition = examine(LogFolder.local(folder), uuid(folder), last_commit(folder, uuid(folder)))
    assert (condition.lost, condition.error, condition.tail.position) == ([], None, 5)


def test_a_loss_is_accepted_position_by_position(folder: Path) -> None:
    found = [("a", Damage(3, 5, "why")), ("b", Damage(5, 5, "why")), ("c", Damage(7, None, "why"))]
    assert not any(is_accepted(each, []) for _, each in found)
    accept(folder, found, 1.5)
    gaps = load(folder)
    assert [(gap.position, gap.lost, gap.reason) for gap in gaps] == [
        (5, (3, 5), "accepted as lost: a: why"),
        (5, (5, 5), "accepted as lost: b: why"),
        (7, (7, 7), "accepted as lost: c: why"),
    ]
    assert [gap.time.timestamp() for gap in gaps] == [1.5] * 3
    assert all(is_accepted(each, gaps) for _, each in found)
    assert is_accepted(Damage(3, 4, ""), gaps)
    assert not any(is_accepted(each, gaps) for each in (Damage(2, 5, ""), Damage(3, 6, ""), Damage(6, 6, "")))


def test_what_is_set_aside_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert set_aside(path) is None
    for content, name in (("a", "file.damaged"), ("b", "file.2.damaged"), ("c", "file.3.damaged")):
        path.write_text(content)
        assert set_aside(path) == tmp_path / name
        assert (tmp_path / name).read_text() == content
    assert not path.exists()
