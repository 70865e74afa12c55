"""What readers record in a journal from elsewhere."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.errors import JournalError, JournalMismatch
from penstock.journal.coordinator import FolderCoordinator, coordinator_of
from penstock.journal.gaps import Gap
from penstock.journal.ports import Coordinator
from penstock.serving.coordinator import RemoteCoordinator
from tests.journal.logs import SOURCE, write
from tests.journal.offers import check_offered

from .served import serving, until


def test_it_has_all_methods_of_a_coordinator() -> None:
    check_offered(Coordinator, RemoteCoordinator)


def test_it_records_what_a_coordinator_on_the_spot_does(tmp_path: Path) -> None:
    write(tmp_path, 10, 10, 10, segment_bytes=1)
    here = FolderCoordinator(str(tmp_path))
    with serving(tmp_path) as served:
        there = coordinator_of(served.url)
        assert isinstance(there, RemoteCoordinator)
        assert there.commit(SOURCE, "a", 5, query=None) == 5
        assert there.trim(SOURCE, "a", 20, query="q", retain_bytes=0) == 20
        assert there.cursors(SOURCE) == here.cursors(SOURCE)
        with pytest.raises(JournalMismatch, match="belongs to query q"):
            there.trim(SOURCE, "a", 20, query="p", retain_bytes=0)
        there.drop(SOURCE, "a")
        assert set(here.cursors(SOURCE)) == {"a"}
        there.commit(SOURCE, "b", 5, query=None)
        there.drop(SOURCE, "b")
        assert set(here.cursors(SOURCE)) == {"a"}
        loss = Gap(25, datetime(2026, 1, 1, tzinfo=UTC), "gone", lost=(22, 25), query="q")
        there.record(SOURCE, [loss])
        assert there.recorded(SOURCE) == here.recorded(SOURCE) == [loss]


def test_a_name_is_held_until_it_is_given_back_or_its_holder_is_gone(tmp_path: Path) -> None:
    here = FolderCoordinator(str(tmp_path))
    with serving(tmp_path) as served:
        there = RemoteCoordinator(served.url)
        held = there.hold("a")
        assert held is not None and there.hold("a") is None and here.hold("a") is None
        holder = there.holder("a")
        assert holder is not None and (holder.pid, holder.parent) == (os.getpid(), os.getppid())
        held.close()
        held.close()

        def free() -> bool:
            lock = here.hold("a")
            if lock is not None:
                lock.close()
            return lock is not None

        until(free)
        again = there.hold("a")
        assert again is not None
        served.cut()
        until(free)
        # The holder lives, and takes the name again.
        until(lambda: not free())
        again.close()
    with pytest.raises(JournalError, match="cannot be reached"):
        RemoteCoordinator(served.url).cursors(SOURCE)
