from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.feeds.helpers import feeds, items
from tests.journal.logs import SOURCE, write
from tests.journal.publishing import Publisher, numbered
from tests.waiting import until
from weirpool.archive.options import SealOptions
from weirpool.feeds import sealing as sealing_module
from weirpool.feeds.config import FeedConfig, Storage
from weirpool.feeds.sealing import Sealing, seal_options, seal_seconds
from weirpool.feeds.supervisor import Supervisor
from weirpool.feeds.values import Seconds, Size


def config(journal: Path, storage: Storage | None) -> FeedConfig:
    return FeedConfig(url="rsocket+memory://nobody", route="r", journal=str(journal), storage=storage)


def sealed(folder: Path) -> bool:
    return bool(list(folder.glob("**/*.parquet")))


def test_keys_of_the_file_are_options_of_sealing(tmp_path: Path) -> None:
    assert seal_options(Storage()) == SealOptions()
    storage = Storage("s3://bucket/x", Seconds(60), Size(1_000), Seconds(3_600), Size(5_000))
    assert seal_options(storage) == SealOptions(
        store="s3://bucket/x", max_age=60, target_bytes=1_000, keep=3_600, keep_bytes=5_000
    )
    assert seal_seconds(config(tmp_path, storage)) == 60
    assert seal_seconds(config(tmp_path, None)) == float("inf")


async def test_only_logs_with_storage_are_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing_module, "INTERVAL", 0.01)
    for name in ("one", "two"):
        write(tmp_path / name, 3, 2, 4, segment_bytes=1)
    storage = Storage(store=str(tmp_path / "store"), seal_age=Seconds(0))
    sealing = Sealing()
    sealing.apply([(SOURCE, config(tmp_path / "one", storage)), (SOURCE, config(tmp_path / "two", None))])
    await until(lambda: sealed(tmp_path / "store"))
    assert sealing.failures() == {}
    sealing.apply([])
    sealing.stop()
    assert not sealed(tmp_path / "two")
    assert list(map(int, items(tmp_path / "one", SOURCE))) == list(range(9))


async def test_failures_are_told(tmp_path: Path) -> None:
    write(tmp_path / "one", 3, 2, 4, segment_bytes=1)
    (tmp_path / "store").write_text("not a folder")
    sealing = Sealing()
    storage = Storage(store=str(tmp_path / "store"), seal_age=Seconds(0))
    sealing.apply([(SOURCE, config(tmp_path / "one", storage))])
    await until(lambda: bool(sealing.failures()))
    [(where, why)] = sealing.failures().items()
    assert where == (str(tmp_path / "one"), SOURCE)
    assert "store" in why
    sealing.stop()


async def test_what_a_feed_collects_is_sealed_and_stays_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealing_module, "INTERVAL", 0.01)
    file = feeds(tmp_path, 'a storage = {store = "store", seal_age = "1ms"}; linger = "1ms"')
    gate = asyncio.Event()
    supervisor = Supervisor()
    async with Publisher(*numbered(0, 50), gate, *numbered(50, 60), asyncio.Event()).serve():
        await supervisor.apply(file)
        await until(lambda: supervisor.statuses()[0].rows == 50)
        gate.set()
        await until(lambda: sealed(tmp_path / "store"))
        await until(lambda: supervisor.statuses()[0].rows == 60)
        await supervisor.stop()
    assert list(map(int, items(tmp_path / "journal", "a"))) == list(range(60))
