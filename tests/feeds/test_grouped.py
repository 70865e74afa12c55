from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.feeds.helpers import Announced, items
from tests.journal.publishing import ROUTE, URL, Publisher, numbered
from weirpool.errors import LocalError, StoreError
from weirpool.feeds.file import FeedsFile, parse
from weirpool.feeds.grouped import Grouped, membership
from weirpool.feeds.status import FeedState, FeedStatus
from weirpool.journal import DEFAULT_BUDGET_BYTES
from weirpool.journal.layout import log_folder
from weirpool.replica.group import Group
from weirpool.replica.vault import new_key

KEY = new_key()


def grouped(folder: Path, *feeds: str, name: str = "edge", store: str = "store", journal: str = "one") -> FeedsFile:
    (folder / "key").write_text(KEY)
    text = f'[group]\nname = "{name}"\nkey = {{file = "key"}}\n'
    text += f'[defaults]\nurl = "{URL}"\nroute = "{ROUTE}"\njournal = "{journal}"\n'
    text += f'[defaults.storage]\nstore = "{store}"\ndurable = "remote"\n'
    return parse(folder / "feeds.toml", text + "".join(f"[feed.{feed}]\n" for feed in feeds))


@asynccontextmanager
async def running(board: Announced, file: FeedsFile) -> AsyncIterator[Grouped]:
    runner = Grouped(board.publish)
    await runner.apply(file)
    publishing = asyncio.create_task(publish(runner))
    try:
        yield runner
    finally:
        publishing.cancel()
        assert await runner.stop() == []


def reached(position: int, *names: str) -> Callable[[dict[str, FeedStatus]], bool]:
    """Return what tells whether these feeds, and no others, are at a position."""
    return lambda feeds: {name: feed.position for name, feed in feeds.items()} == dict.fromkeys(names, position)


async def publish(runner: Grouped) -> None:
    while True:
        runner.publish()
        await asyncio.sleep(0)


async def test_feeds_of_a_group_are_collected_and_kept(tmp_path: Path) -> None:
    board = Announced()
    async with (
        Publisher(*numbered(0, 9), asyncio.Event()).serve(),
        running(board, grouped(tmp_path, "a", "b")) as runner,
    ):
        await board.until(reached(9, "a", "b"))
        await runner.apply(grouped(tmp_path, "a", "c"))
        await board.until(reached(9, "a", "c"))
    group = Group(membership(grouped(tmp_path, "a", journal="two")))
    group.close()
    assert [items(tmp_path / "two", source) for source in "abc"] == [numbered(0, 9)] * 3


async def test_a_group_that_is_held_elsewhere_is_shown(tmp_path: Path) -> None:
    board = Announced()
    other = Group(membership(grouped(tmp_path, "a", journal="two")))
    async with running(board, grouped(tmp_path, "a", "b")):
        await board.until(lambda feeds: any("another collector" in feed.reason for feed in feeds.values()))
        await board.until(lambda feeds: {feed.state for feed in feeds.values()} == {FeedState.STANDBY})
    assert not log_folder(tmp_path / "one", "a").exists()
    other.close()


async def test_a_collector_that_stands_by_shows_budgets_and_errors(tmp_path: Path) -> None:
    board = Announced()
    other = Group(membership(grouped(tmp_path, "a", journal="two")))
    file = dataclasses.replace(grouped(tmp_path, "a"), problems={"b": "feeds.toml: feed 'b': why"})
    async with running(board, file):
        await board.until(lambda feeds: feeds.keys() == {"a", "b"} and feeds["a"].state is FeedState.STANDBY)
        shown = {feed.name: feed for feed in board.document().feeds}
    assert shown["a"].budget == DEFAULT_BUDGET_BYTES
    assert (shown["b"].state, shown["b"].problem) == (FeedState.REFUSED, "feeds.toml: feed 'b': why")
    other.close()


async def test_another_group_needs_a_restart(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board = Announced()
    async with Publisher(*numbered(0, 3), asyncio.Event()).serve(), running(board, grouped(tmp_path, "a")) as runner:
        await board.until(reached(3, "a"))
        await runner.apply(grouped(tmp_path, "a", "b", name="other"))
        assert "needs a restart" in caplog.text
        await board.until(reached(3, "a"))


def test_what_a_group_needs_is_checked_at_once(tmp_path: Path) -> None:
    file = grouped(tmp_path, "a")
    assert membership(file).journal == tmp_path / "one"
    (tmp_path / "key").write_text("too short")
    with pytest.raises(LocalError, match="must be 32 random bytes"):
        membership(file)
    (tmp_path / "key").unlink()
    with pytest.raises(LocalError, match="group: key: cannot read"):
        membership(file)
    with pytest.raises(StoreError, match="no conditional writes"):
        membership(grouped(tmp_path, "a", store="mock://bucket"))


async def test_work_that_has_failed_is_not_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(group: Group) -> None:
        raise RuntimeError("a defect")

    runner = Grouped(Announced().publish)
    monkeypatch.setattr(runner, "_sealer", fail)
    await runner.apply(grouped(tmp_path, "a"))
    with pytest.raises(RuntimeError, match="a defect"):
        await publish(runner)
    with pytest.raises(RuntimeError, match="a defect"):
        await runner.stop()
