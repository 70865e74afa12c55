"""What readers record in a journal in a folder."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from weirpool.errors import JournalMismatch
from weirpool.journal.coordinator import FolderCoordinator, coordinator_of
from weirpool.journal.gaps import Gap
from weirpool.journal.lock import Owner

from .logs import SOURCE, write


def test_a_folder_has_a_coordinator_and_a_store_has_none(tmp_path: Path) -> None:
    assert isinstance(coordinator_of(tmp_path), FolderCoordinator)
    assert isinstance(coordinator_of(f"file://{tmp_path}"), FolderCoordinator)
    assert coordinator_of("s3://bucket/journal") is None


def test_positions_are_committed_and_rewound(tmp_path: Path) -> None:
    write(tmp_path, 10, 10)
    desk = FolderCoordinator(str(tmp_path))
    assert desk.commit(SOURCE, "a", 15, query="q") == 15
    assert desk.commit(SOURCE, "a", 5, query="q") == 5
    assert desk.trim(SOURCE, "a", 8, query="q", retain_bytes=0) == 0
    assert {name: cursor.position for name, cursor in desk.cursors(SOURCE).items()} == {"a": 8}
    with pytest.raises(JournalMismatch, match="belongs to query q"):
        desk.commit(SOURCE, "a", 9, query="another")
    desk.commit(SOURCE, "b", 3, query=None)
    for name in ("a", "b"):
        desk.drop(SOURCE, name)
    assert set(desk.cursors(SOURCE)) == {"a"}


def test_a_name_is_held_once_and_its_holder_is_known(tmp_path: Path) -> None:
    desk = FolderCoordinator(str(tmp_path))
    assert desk.holder("a") is None
    held = desk.hold("a")
    assert held is not None and desk.hold("a") is None
    holder = desk.holder("a")
    assert holder is not None
    assert (holder.pid, holder.host, holder.parent) == (os.getpid(), socket.gethostname(), os.getppid())
    held.close()
    assert desk.holder("a") is None and not list((tmp_path / "_readers").iterdir())
    elsewhere = Owner(7, "elsewhere", datetime(2026, 1, 1, tzinfo=UTC), 6)
    lent = desk.hold("a", elsewhere)
    assert lent is not None and desk.holder("a") == elsewhere
    lent.close()


def test_losses_are_recorded_once(tmp_path: Path) -> None:
    write(tmp_path, 10)
    desk = FolderCoordinator(str(tmp_path))
    loss = Gap(5, datetime(2026, 1, 1, tzinfo=UTC), "gone", lost=(3, 5), query="q")
    desk.record(SOURCE, [loss])
    desk.record(SOURCE, [loss])
    assert desk.recorded(SOURCE) == [loss]
