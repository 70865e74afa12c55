"""What readers record in a journal from elsewhere."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from tests.journal.logs import SOURCE, write
from tests.journal.offers import check_offered
from weirpool.errors import JournalError, JournalMismatch, LocalError
from weirpool.journal.coordinator import FolderCoordinator, coordinator_of
from weirpool.journal.gaps import Gap
from weirpool.journal.lock import Lock, Owner
from weirpool.journal.ports import Coordinator
from weirpool.serving import coordinator
from weirpool.serving.coordinator import RemoteCoordinator
from weirpool.serving.links import links
from weirpool.serving.messages import PREFIX, Hold

from .served import Served, serving, until


def free(here: FolderCoordinator) -> bool:
    """Return True if nobody holds the name "a"."""
    lock = here.hold("a")
    if lock is not None:
        lock.close()
    return lock is not None


def cut_and_take(served: Served, here: FolderCoordinator, taken: ExitStack) -> bool:
    """Break all connections; return True if the name "a" could be taken before its holder was back."""
    served.cut()
    lock = here.hold("a")
    if lock is not None:
        taken.callback(lock.close)
    return lock is not None


def test_it_has_all_methods_of_a_coordinator() -> None:
    check_offered(Coordinator, RemoteCoordinator)


def test_it_records_what_a_coordinator_on_the_spot_does(tmp_path: Path) -> None:
    write(tmp_path, 10, 10, 10, segment_bytes=1)
    here = FolderCoordinator(str(tmp_path))
    with serving(tmp_path, authorize=lambda connection, action: True) as served:
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
        assert there.seek(SOURCE, "c", 7) == 7 and here.cursors(SOURCE)["c"].position == 7
        with pytest.raises(JournalMismatch, match="belongs to query q"):
            there.seek(SOURCE, "a", 7)
        assert there.cursors_of(SOURCE, None) == here.cursors_of(SOURCE, None)
        assert there.cursors_of(SOURCE, "c") == {"c": here.cursors(SOURCE)["c"]}
        assert there.deletable(SOURCE, 30) == here.deletable(SOURCE, 30) == []
        with pytest.raises(LocalError, match="have not committed the rows below 30: "):
            there.delete(SOURCE, 30, force=False)
        assert there.forget(SOURCE, "c").keys() == {"c"} and set(here.cursors(SOURCE)) == {"a"}
        assert there.delete(SOURCE, 30, force=True) == []
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

        until(lambda: free(here))
        again = there.hold("a")
        assert again is not None
        again.close()
        until(lambda: free(here))
    with pytest.raises(JournalError, match="cannot be reached"):
        RemoteCoordinator(served.url).cursors(SOURCE)


def test_a_lost_name_is_asked_for_until_it_is_held_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # The collector has not noticed the loss of the link for whose end it would give the name back.
    monkeypatch.setattr(coordinator, "AGAIN", 0.01)
    monkeypatch.setattr(coordinator, "REFUSALS", 3)
    here = FolderCoordinator(str(tmp_path))
    with serving(tmp_path) as served:
        held = RemoteCoordinator(served.url).hold("a")
        assert held is not None
        with ExitStack() as taken:
            until(lambda: cut_and_take(served, here, taken))
            until(lambda: bool(caplog.records))
        until(lambda: not free(here))
        held.close()
        until(lambda: free(here))
    assert [record.message for record in caplog.records] == [
        f"{served.url}: another process has taken the reader's name while the network was down"
    ]


def test_a_name_that_is_held_for_a_client_that_has_gone_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, gone, done = threading.Event(), threading.Event(), threading.Event()
    hold = FolderCoordinator.hold

    def slow(self: FolderCoordinator, name: str, owner: Owner | None = None) -> Lock | None:
        waits.set()
        assert gone.wait(10)
        try:
            return hold(self, name, owner)
        finally:
            done.set()

    here = FolderCoordinator(str(tmp_path))
    with serving(tmp_path) as served:
        with monkeypatch.context() as patched:
            patched.setattr(FolderCoordinator, "hold", slow)
            task = links().submit(one_hold(served.url))
            assert waits.wait(10)
            task.cancel()
            served.cut()
            until(lambda: not served.server._drivers)
            gone.set()
            assert done.wait(10)
        until(lambda: free(here))


async def one_hold(url: str) -> None:
    """Ask for the name "a", and wait."""
    request = msgspec.json.encode(Hold(name="a", owner=Owner.here()))
    async with (await links().peer(url)).stream(f"{PREFIX}hold", request, credit=1) as stream:
        async for _ in stream:
            pass
