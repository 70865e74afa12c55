"""The readers of a group's logs, before and after a take-over; tests/saboteurs/succeeding.py searches for more."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.archive.logs import catalog
from tests.journal.logs import SOURCE, append, write
from tests.replica.test_group import Machine
from weirpool.archive import Sealer, SealOptions, seal
from weirpool.archive.retire import retire
from weirpool.errors import JournalCorrupt, JournalError, JournalMismatch
from weirpool.journal import Journal, JournalWriter, asks, retention
from weirpool.journal.coordinator import FolderCoordinator
from weirpool.journal.layout import ASKS, COMMITTED, log_folder
from weirpool.journal.retention import Committed
from weirpool.replica.bundle import MAX_POSITION, Cursor, Part
from weirpool.replica.group import Group
from weirpool.replica.readers import cursors, restore_readers


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    yield Machine(tmp_path, "one"), Machine(tmp_path, "two")


def desk(machine: Machine) -> FolderCoordinator:
    return FolderCoordinator(str(machine.journal))


def fill(machine: Machine, group: Group) -> None:
    """Append a hundred rows, and seal ninety of them."""
    with machine.writer(group, segment_bytes=1) as writer:
        append(writer, *[10] * 10)
    while seal(machine.journal, SOURCE, SealOptions(store=machine.store, target_bytes=1)) is not None:
        pass
    group.tend(0.0)


def found(machine: Machine) -> dict[str, tuple[str | None, int]]:
    return {name: (cursor.query, cursor.position) for name, cursor in desk(machine).cursors(SOURCE).items()}


def history(machine: Machine) -> int:
    """Return the first position of the history in the store."""
    manifest = catalog(machine.journal, machine.store).newest()
    assert manifest is not None
    return manifest.first


@pytest.mark.parametrize("end", ["stop", "silence", "loss"])
def test_a_successor_knows_the_readers(machines: tuple[Machine, Machine], end: str) -> None:
    one, two = machines
    group = one.group()
    fill(one, group)
    desk(one).commit(SOURCE, "lake", 50, query="query")
    desk(one).commit(SOURCE, "lake@two", 40, query="query")
    desk(one).commit(SOURCE, "gone", 10, query="other")
    Journal(one.journal).seek(SOURCE, "back", 60)
    Journal(one.journal).seek(SOURCE, "back", 30)
    Journal(one.journal).forget(SOURCE, "gone")
    times = {name: cursor.time for name, cursor in desk(one).cursors(SOURCE).items()}
    if end == "stop":
        group.close()
    taken = two.group()
    if end == "loss":
        group.close()
        shutil.rmtree(one.journal)
    assert found(two) == {"lake": ("query", 50), "lake@two": ("query", 40), "back": (None, 30)}
    assert {name: cursor.time for name, cursor in desk(two).cursors(SOURCE).items()} == times
    with pytest.raises(JournalMismatch, match="belongs to query query"):
        desk(two).commit(SOURCE, "lake", 50, query="another")
    assert retire(two.journal, SOURCE, SealOptions(store=two.store, keep=0)) == 30
    for name in ("lake", "back"):
        Journal(two.journal).forget(SOURCE, name)
    assert retire(two.journal, SOURCE, SealOptions(store=two.store, keep_bytes=0)) == 90
    taken.close()
    group.close()


def test_a_stop_takes_the_newest_positions_along(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    group = one.group()
    fill(one, group)
    for position in range(10, 100):
        desk(one).commit(SOURCE, "lake", position, query="query")
    group.close()
    group = two.group()
    assert found(two) == {"lake": ("query", 99)}
    group.close()


def test_readers_from_before_the_group_are_kept(machines: tuple[Machine, Machine]) -> None:
    one, two = machines
    with JournalWriter.open(one.journal, SOURCE, segment_bytes=1) as writer:
        append(writer, 10, 10)
    desk(one).commit(SOURCE, "lake", 5, query="query")
    group = one.group()
    # The group does not have the log yet, and the folder counts.
    desk(one).commit(SOURCE, "export", 7, query="query")
    with one.writer(group):
        pass
    group.close()
    group = two.group()
    assert found(two) == {"lake": ("query", 5), "export": ("query", 7)}
    group.close()


def test_rows_are_not_retired_where_the_group_is_not_owned(
    machines: tuple[Machine, Machine], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = machines
    group = one.group()
    fill(one, group)
    taken = two.group()
    monkeypatch.setattr(asks, "PATIENCE", 0.2)
    sealer = Sealer(one.journal, SealOptions(store=one.store, keep=0))
    sealer.step()
    assert "does not know all readers" in sealer.failures[SOURCE]
    assert history(one) == 0
    with pytest.raises(JournalError, match="has not stored that"):
        desk(one).commit(SOURCE, "lake", 5, query="query")
    group.close()
    taken.close()
    # What was not answered is forgotten by the next owner, here too.
    group = one.group()
    assert found(one) == {}
    sealer.step()
    assert sealer.failures == {} and history(one) == 90
    group.close()


def test_an_unchanged_log_is_answered_too(machines: tuple[Machine, Machine]) -> None:
    one, _ = machines
    group = one.group()
    fill(one, group)
    folder = log_folder(one.journal, SOURCE)
    for _ in range(2):
        asks.confirm(folder)
    group.close()
    assert list((Path(one.journal) / ASKS).iterdir()) == []


def test_damaged_cursors_hold_all_rows(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    time = datetime(2026, 1, 1, tzinfo=UTC)
    for name, position, query, log in [
        ("good", 5, "query", uuid),
        ("high", MAX_POSITION + 5, None, uuid),
        ("strange", 5, "a/b", uuid),
        ("foreign", 5, None, "another"),
    ]:
        retention._write(folder / COMMITTED / name, Committed(position, query, log, time))
    (folder / COMMITTED / "damaged").write_bytes(b"junk")
    (folder / COMMITTED / "-no-name").write_bytes(b"junk")
    assert cursors(folder, uuid) == {
        "good": Cursor(5, "query", time),
        "high": Cursor(MAX_POSITION, None, time),
        "strange": Cursor(0, None, None),
        "damaged": Cursor(0, None, None),
    }


def test_too_many_readers_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path, 10)
    monkeypatch.setattr("weirpool.replica.readers.MAX_CURSORS", 1)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    retention.commit(folder, "one", 1)
    assert len(cursors(folder, uuid)) == 1
    retention.commit(folder, "two", 1)
    with pytest.raises(JournalError, match="the log has 2 readers"):
        cursors(folder, uuid)


def test_unknown_readers_are_not_none(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    retention.commit(folder, "lake", 5)
    with pytest.raises(JournalCorrupt, match="do not say which readers"):
        restore_readers(folder, Part(SOURCE, uuid, 10, 10))
    assert set(retention.cursors(folder)) == {"lake"}
    restore_readers(folder, Part(SOURCE, uuid, 10, 10, readers={}))
    assert retention.cursors(folder) == {}


def test_a_position_beyond_the_end_stops_no_log(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    uuid = Journal(tmp_path).reader(SOURCE).uuid
    restore_readers(folder, Part(SOURCE, uuid, 10, 10, readers={"lake": Cursor(1_000, "q", datetime.now(UTC))}))
    assert retention.commits(folder) == {"lake": 10}
    with JournalWriter.open(tmp_path, SOURCE) as writer:
        append(writer, 1)
