"""What a driver knows about the ends of logs without asking."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from tests.journal.logs import SOURCE, write
from weirpool.errors import JournalCorrupt, JournalError, JournalMissing
from weirpool.serving.collectors import Collectors
from weirpool.serving.mirror import Mirror

from .served import Served, serving, until


def followed(mirror: Mirror, served: Served) -> bool:
    return mirror._known(served.url) is not None


def test_it_asks_once_then_is_told(tmp_path: Path) -> None:
    folder = write(tmp_path, 10)
    with serving(tmp_path) as served:
        mirror = Mirror(Collectors(served.url))
        assert mirror.state(SOURCE).end == 10
        until(lambda: followed(mirror, served))
        write(tmp_path, 5)
        until(lambda: mirror.state(SOURCE).end == 15)
        with pytest.raises(JournalMissing, match="no log 'absent'"):
            mirror.state("absent")
        (folder / "_durable").write_bytes(b"junk")
        with pytest.raises(JournalCorrupt, match="neither of its two slots"):
            until(lambda: mirror.state(SOURCE).end == 0)


def test_it_follows_again_after_a_lost_connection(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        mirror = Mirror(Collectors(served.url))
        mirror.states()
        until(lambda: followed(mirror, served))
        served.cut()
        until(lambda: not followed(mirror, served))
        until(lambda: followed(mirror, served))
        write(tmp_path, 5)
        until(lambda: mirror.state(SOURCE).end == 15)


def test_it_says_at_once_that_a_collector_is_gone(tmp_path: Path) -> None:
    write(tmp_path, 10)
    with serving(tmp_path) as served:
        mirror = Mirror(Collectors(served.url))
        mirror.states()
        until(lambda: followed(mirror, served))
    until(lambda: not followed(mirror, served))
    with pytest.raises(JournalError, match="cannot be reached"):
        mirror.states()


def test_a_collector_that_refuses_is_not_asked_without_a_pause(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    twice = threading.Event()
    never = asyncio.Event()

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > 1:
            twice.set()
            await never.wait()

    monkeypatch.setattr("weirpool.serving.mirror.sleep", pause)
    with serving(tmp_path, authorize=lambda connection, action: False) as served:
        mirror = Mirror(Collectors(served.url))
        mirror._follow()
        assert twice.wait(10)
    assert pauses == [1.0, 1.0]
