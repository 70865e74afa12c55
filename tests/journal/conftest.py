"""Collectors that wait for nothing, and are watched."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import weirpool
from tests.journal.publishing import Reporter
from weirpool.aio import client
from weirpool.aio.reconnect import Backoff
from weirpool.journal import JournalWriter, collect, progress, rhythm
from weirpool.journal.feedlog import FeedLog, State


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for time to pass."""
    monkeypatch.setattr(collect, "LINGER", 0.0)
    monkeypatch.setattr(rhythm, "linger_of", lambda feeds: 0.0)
    for module in (collect, progress):
        monkeypatch.setattr(module, "RETRY", 0.0)
    for module in (collect, client):
        monkeypatch.setattr(module, "Backoff", lambda: Backoff(0.0, 0.0))


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What collectors do, in order."""
    log: list[str] = []
    append, keep, grant = JournalWriter.append, FeedLog.keep, weirpool.Stream.grant

    @asynccontextmanager
    async def connect(*arguments: Any, **options: Any) -> AsyncIterator[Reporter]:
        async with weirpool.connect(*arguments, **options) as peer:
            yield Reporter(peer, log)

    def appending(writer: JournalWriter, *arguments: Any) -> int:
        log.append("append")
        position = append(writer, *arguments)
        log.append("durable")
        return position

    def keeping(feed: FeedLog, state: State) -> None:
        log.append("append")
        keep(feed, state)
        log.append("durable")

    def granting(stream: weirpool.Stream, count: int) -> None:
        log.append("ask")
        grant(stream, count)

    monkeypatch.setattr(collect, "connect", connect)
    monkeypatch.setattr(JournalWriter, "append", appending)
    # Before there is a log, this is what makes a state durable.
    monkeypatch.setattr(FeedLog, "keep", keeping)
    monkeypatch.setattr(weirpool.Stream, "grant", granting)
    return log
