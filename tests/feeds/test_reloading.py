from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.feeds.helpers import feeds
from tests.waiting import turns
from weirpool.feeds import reloading
from weirpool.feeds.board import Board
from weirpool.feeds.file import FeedsFile
from weirpool.feeds.reloading import Watch, follow
from weirpool.feeds.running import Control


def write(path: Path, *names: str) -> None:
    path.write_text(feeds(path.parent, *names).text)


@asynccontextmanager
async def following(path: Path, warn: Callable[[str], None] = lambda problem: None) -> AsyncIterator[Control]:
    control = Control()
    task = asyncio.create_task(follow(path, control, warn))
    await turns(3)
    try:
        yield control
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def given(control: Control) -> list[str]:
    """Return the names of the feeds in the next version of the file."""
    file: FeedsFile | None = None
    while file is None:
        file = await control.wait(60)
    return sorted(file.feeds)


def test_change_counts_once_when_the_file_has_settled(tmp_path: Path) -> None:
    path = tmp_path / "feeds.toml"
    write(path, "a")
    watch = Watch(path)
    assert [watch.changed(), watch.changed()] == [False, False]
    path.write_text("half of")
    assert not watch.changed()
    write(path, "a", "b")
    assert [watch.changed() for _ in range(3)] == [False, True, False]
    path.unlink()
    assert [watch.changed() for _ in range(2)] == [False, False]
    write(path, "c")
    assert [watch.changed() for _ in range(3)] == [False, True, False]


def test_replaced_link_is_a_change(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "feeds.toml", "a")
        os.utime(tmp_path / folder / "feeds.toml", (1, 1))
    (tmp_path / "data").symlink_to("one")
    watch = Watch(tmp_path / "data" / "feeds.toml")
    (tmp_path / "new").symlink_to("two")
    (tmp_path / "new").replace(tmp_path / "data")
    assert [watch.changed() for _ in range(3)] == [False, True, False]


async def test_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reloading, "POLL_SECONDS", 0.001)
    path = tmp_path / "feeds.toml"
    write(path, "a")
    async with following(path) as control:
        write(path, "a", "b")
        assert await given(control) == ["a", "b"]


async def test_broken_file_changes_nothing_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "feeds.toml"
    write(path, "a")
    board = Board()
    async with following(path, board.warn) as control:
        path.write_text("[feed.")
        signal.raise_signal(signal.SIGHUP)
        while "go on as before" not in caplog.text:
            assert await control.wait(0) is None
        assert f"{path}: not valid TOML" in caplog.text
        assert board.document().problem in caplog.text and "not valid TOML" in board.document().problem
        write(path, "c")
        signal.raise_signal(signal.SIGHUP)
        assert await given(control) == ["c"]
