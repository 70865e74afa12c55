from __future__ import annotations

import asyncio
import gc
import threading

import pytest

from tests.waiting import turns
from weirpool import DiskFull, JournalError, LocalError
from weirpool.journal import progress as modules
from weirpool.journal.progress import (
    FIRST_WINDOW,
    LARGEST_WINDOW,
    WINDOW_BYTES,
    Lasting,
    Phase,
    Progress,
    Window,
    closing,
    settled,
    write,
)


def test_a_window_fits_the_items() -> None:
    window = Window(None)
    assert (window.first, window.outstanding) == (FIRST_WINDOW, 0)
    window.open(0)
    window.resize(1_000, 1_000 * WINDOW_BYTES // 100)
    assert window.wanted(0) == 100
    window.resize(1_000, 1_000)
    # The next items may be larger.
    assert window.wanted(0) == 200
    for _ in range(20):
        window.resize(1_000, 1_000)
    assert window.wanted(0) == LARGEST_WINDOW


def test_a_few_items_are_requested_only_if_no_others_are_in_flight() -> None:
    window = Window(100)
    window.open(100)
    assert [window.wanted(rows) for rows in (49, 50, 100)] == [0, 50, 100]
    window.open(300)
    assert window.wanted(100) == 0
    assert window.wanted(300) == 300


def test_a_window_is_never_empty() -> None:
    for credit, smallest in ((None, 2), (1, 1)):
        window = Window(credit)
        window.resize(1, 2 * WINDOW_BYTES)
        assert window.wanted(0) == smallest
    with pytest.raises(LocalError, match="credit is 0; a collector needs at least 1"):
        Window(0)


def test_small_window_begins_with_few_items() -> None:
    window = Window(None, WINDOW_BYTES // 64)
    assert window.first == FIRST_WINDOW // 64
    for _ in range(20):
        window.resize(16, 16 * 1_024)
    window.open(0)
    window.resize(1, WINDOW_BYTES // 64 // 4)
    assert window.wanted(0) == 4
    assert Window(None, 1).first == 2


@pytest.mark.parametrize("error", [None, JournalError("the disk failed")])
async def test_canceled_task_ends_after_what_lasts(caplog: pytest.LogCaptureFixture, error: Exception | None) -> None:
    writing, progress = Lasting(), Progress()
    task = asyncio.create_task(settled(progress, lambda: writing))
    for _ in range(3):
        await turns(2)
        assert task.cancel()
    await turns(2)
    assert not task.done() and not writing.done()
    if error is None:
        writing.set_result(None)
    else:
        writing.set_exception(error)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert progress.syncs == 0
    assert [record.args for record in caplog.records] == ([] if error is None else [(error,)])


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("when", ["in the block", "while closing", "never"])
async def test_log_is_closed_in_a_thread_whenever_the_task_is_canceled(
    fails: bool, when: str, caplog: pytest.LogCaptureFixture
) -> None:
    loop, begun, held, closed = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), []

    def close() -> None:
        loop.call_soon_threadsafe(begun.set)
        held.wait()
        closed.append(threading.current_thread())
        if fails:
            raise JournalError("the disk failed")

    async def work() -> None:
        async with closing(close):
            if when == "in the block":
                await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await turns(2)
    if when == "in the block":
        task.cancel()
    await begun.wait()
    if when != "never":
        task.cancel()
    await turns(3)
    assert not task.done()
    held.set()
    [error] = await asyncio.gather(task, return_exceptions=True)
    assert closed and closed[0] is not threading.current_thread()
    if when != "never":
        assert isinstance(error, asyncio.CancelledError)
        assert ("its log could not be closed: the disk failed" in caplog.text) == fails
    else:
        assert isinstance(error, JournalError) == fails


async def test_failed_write_is_logged_once_when_canceled(caplog: pytest.LogCaptureFixture) -> None:
    loop, begun, full = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    noise: list[str] = []
    loop.set_exception_handler(lambda _, context: noise.append(str(context["message"])))

    def action() -> None:
        loop.call_soon_threadsafe(begun.set)
        full.wait()
        raise DiskFull("no room on the disk")

    task = asyncio.create_task(write(Progress(), action))
    await begun.wait()
    task.cancel()
    await turns(3)
    full.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    del task
    gc.collect()
    await turns(3)
    assert noise == []
    assert [line.getMessage() for line in caplog.records if "its last write failed: no room" in line.getMessage()]


async def test_phase_tells_what_the_collector_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules, "RETRY", 0)
    progress = Progress()
    progress.turn(Phase.LIVE)
    seen: list[tuple[Phase, str]] = []

    def action() -> None:
        seen.append((progress.phase, progress.waiting))
        if len(seen) < 3:
            raise DiskFull("no room on the disk")

    await write(progress, action)
    full = (Phase.WAITING_FOR_DISK, "no room on the disk")
    assert seen == [(Phase.LIVE, ""), full, full]
    assert (progress.phase, progress.waiting) == (Phase.LIVE, "")
    assert progress.sync_seconds > 0


async def test_phases_and_counts() -> None:
    progress = Progress()
    assert progress.phase is Phase.CONNECTING
    await write(progress, lambda: None)
    assert (progress.syncs, progress.phase) == (1, Phase.CONNECTING)
    progress.stopped()
    assert progress.phase is Phase.STOPPED
    progress.turn(Phase.COMPLETE)
    progress.stopped()
    assert progress.phase is Phase.COMPLETE
