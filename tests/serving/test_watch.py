"""What a collector notices in its journal, and tells its followers."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, append, write
from tests.spark.journals import quiet_collector
from weirpool.journal import Journal, JournalWriter
from weirpool.serving.watch import Scan, Watch, states


def ends(journal: Path) -> dict[str, int]:
    return {state.source: state.end for state in states(Journal(journal))}


def test_a_journal_is_looked_at_as_it_is(tmp_path: Path) -> None:
    assert ends(tmp_path / "absent") == {}
    write(tmp_path, 10)
    assert ends(tmp_path) == {SOURCE: 10}


def test_every_append_is_seen_even_two_at_once(tmp_path: Path) -> None:
    scan = Scan(Journal(tmp_path))
    with JournalWriter.open(tmp_path, SOURCE, fsync=False) as writer:
        for end in range(1, 200):
            append(writer, 1)
            assert scan.look()[SOURCE].end == end


def test_a_log_that_is_not_there_yet_or_damaged_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    (folder / "_durable").write_bytes(b"junk")
    with quiet_collector(tmp_path, "quiet"):
        found = Scan(Journal(tmp_path)).look()
    assert found["quiet"].awaited and not found["quiet"].uuid
    assert found[SOURCE].trouble.startswith("JournalCorrupt: ") and not found[SOURCE].awaited


@pytest.mark.parametrize("slow", [False, True])
async def test_followers_get_all_logs_then_what_changes(tmp_path: Path, slow: bool) -> None:
    write(tmp_path, 10)
    with ThreadPoolExecutor(1) as threads:
        watch = Watch(Journal(tmp_path), threads)
        changes = watch.changes()
        assert [(state.source, state.end) for state in await anext(changes)] == [(SOURCE, 10)]
        others = watch.changes()
        assert [state.source for state in await anext(others)] == [SOURCE]
        if slow:
            write(tmp_path, 5)
            await asyncio.wait_for(anext(others), 10)
        write(tmp_path, 5)
        # A slow follower gets the latest state alone.
        found = await asyncio.wait_for(anext(changes), 10)
        while found[0].end < 15 + 5 * slow:
            found = await asyncio.wait_for(anext(changes), 10)
        assert [state.source for state in found] == [SOURCE]
        await changes.aclose()
        await others.aclose()


async def test_what_changes_while_a_follower_is_busy_is_told_next(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with ThreadPoolExecutor(1) as threads:
        watch = Watch(Journal(tmp_path), threads)
        busy, quick = watch.changes(), watch.changes()
        for changes in (busy, quick):
            assert [state.end for state in await anext(changes)] == [10]
        write(tmp_path, 5)
        for changes in (quick, busy):
            assert [state.end for state in await asyncio.wait_for(anext(changes), 10)] == [15]
            await changes.aclose()


async def test_a_journal_is_left_alone_without_followers(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with ThreadPoolExecutor(1) as threads:
        watch = Watch(Journal(tmp_path), threads)
        changes = watch.changes()
        await anext(changes)
        await changes.aclose()
        assert {task for task in asyncio.all_tasks() if not task.cancelling()} == {asyncio.current_task()}


async def test_a_look_that_fails_unexpectedly_is_not_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, 10)
    real = Scan.look
    failures = [1, 1, 1]

    def look(self: Scan) -> object:
        return failures.pop() / 0 if failures else real(self)

    monkeypatch.setattr(Scan, "look", look)
    with ThreadPoolExecutor(1) as threads:
        changes = Watch(Journal(tmp_path), threads).changes()
        async with asyncio.timeout(10):
            while not await anext(changes):
                pass
        await changes.aclose()
    assert not failures
    # It is told once, and not each time.
    assert caplog.text.count("a look at the journal has failed") == 1
