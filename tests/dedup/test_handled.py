from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from weirpool import DedupError, Rejected
from weirpool.dedup.handled import Handled
from weirpool.dedup.progress import Origin, Progress
from weirpool.dedup.store import Store

TASK = Origin("q", 0)


async def test_requests_share_progress_and_its_record(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    async with handled.progress(TASK) as one, handled.progress(TASK) as two:
        assert one is two
        one.add(0, 0)
        two.add(0, 1)
        await asyncio.gather(*(handled.record({TASK: one}, {key}) for key in "abc"))
    assert store.load(TASK) == Progress(0, [0], [2])
    assert await handled.has_key("b")
    store.close()


async def test_failed_record_is_not_believed_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    failures = [DedupError("full"), DedupError("full")]
    real = store.save

    def save(*arguments: object) -> None:
        if failures:
            raise failures.pop()
        real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(store, "save", save)
    records = [handled.record({}, {key}) for key in "abc"]
    results = await asyncio.gather(*records, return_exceptions=True)
    assert [type(result) for result in results] == [DedupError, DedupError, type(None)]
    assert [await handled.has_key(key) for key in "abc"] == [True] * 3
    store.close()


async def test_a_key_is_handled_by_one_request_at_a_time(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    with handled.claimed("k"):
        with pytest.raises(Rejected, match="being handled"), handled.claimed("k"):
            pass
    with handled.claimed("k"):
        pass
    store.close()


async def test_transaction_of_a_client_that_went_away_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path / "db")
    handled = Handled(store)
    begun, go = threading.Event(), threading.Event()
    real = store.begin

    def begin() -> None:
        begun.set()
        go.wait(10)
        real()

    async def handle() -> None:
        async with handled.transaction():
            pass

    monkeypatch.setattr(store, "begin", begin)
    request = asyncio.create_task(handle())
    await asyncio.to_thread(begun.wait, 10)
    request.cancel()
    go.set()
    await asyncio.wait([request])
    assert request.cancelled()
    await asyncio.wait_for(handle(), 10)
    store.close()
