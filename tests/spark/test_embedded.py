from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from weirpool import ConnectError, JournalLocked
from weirpool.journal import collect
from weirpool.spark import embedded
from weirpool.spark.embedded import EmbeddedCollector

from .journals import advance, options, read_between, stream_reader
from .peers import receiving

WAIT = 10.0


class FakeCollector:
    """Stands in for the real one, and tells what happens to it."""

    made: ClassVar[list[tuple[Any, ...]]] = []
    errors: ClassVar[list[Exception]] = []
    running = threading.Event()
    cancelled = threading.Event()

    def __init__(self, *args: Any, **options: Any) -> None:
        self.made.append((*args, options))

    async def run(self) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.running.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> type[FakeCollector]:
    monkeypatch.setattr(collect, "Collector", FakeCollector)
    monkeypatch.setattr(embedded, "LOCK_RETRY", 0.001)
    FakeCollector.made.clear()
    FakeCollector.errors.clear()
    FakeCollector.running.clear()
    FakeCollector.cancelled.clear()
    return FakeCollector


@pytest.fixture
def make(tmp_path: Path, fake: type[FakeCollector]) -> Callable[[], EmbeddedCollector]:
    more = {"url": "rsocket+tcp://127.0.0.1:7878", "route": "flights", "data": "2013"}
    before = signal.getsignal(signal.SIGTERM)
    made: list[EmbeddedCollector] = []

    def make() -> EmbeddedCollector:
        made.append(EmbeddedCollector(options(tmp_path, **more)))
        return made[-1]

    yield make
    for collector in made:
        collector.stop()
    signal.signal(signal.SIGTERM, before)


def test_collects_from_the_first_run_until_it_is_stopped(
    make: Callable[[], EmbeddedCollector], fake: type[FakeCollector], tmp_path: Path
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    collector = make()
    assert fake.made == []
    collector.run()
    collector.run()
    assert fake.running.wait(WAIT)
    assert fake.made == [
        ("rsocket+tcp://127.0.0.1:7878", "flights", str(tmp_path), {"source": "flights", "data": b"2013"})
    ]
    collector.stop()
    assert fake.cancelled.is_set()
    assert signal.getsignal(signal.SIGTERM) is before


def test_one_that_never_ran_can_be_stopped(make: Callable[[], EmbeddedCollector]) -> None:
    collector = make()
    collector.stop()
    assert collector._thread is None


def test_what_it_fails_with_ends_the_query(make: Callable[[], EmbeddedCollector], fake: type[FakeCollector]) -> None:
    fake.errors.append(ConnectError("nobody listens there"))
    collector = make()
    with pytest.raises(ConnectError, match="nobody listens there"):
        while True:
            collector.run()


def test_waits_for_the_lock_of_a_driver_that_was_killed(
    make: Callable[[], EmbeddedCollector], fake: type[FakeCollector]
) -> None:
    fake.errors += [JournalLocked("the old one"), JournalLocked("still the old one")]
    collector = make()
    collector.run()
    assert fake.running.wait(WAIT)
    collector.run()
    collector.stop()


def test_does_not_wait_for_ever(
    make: Callable[[], EmbeddedCollector], fake: type[FakeCollector], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "LOCK_PATIENCE", -1.0)
    fake.errors.append(JournalLocked("another collector"))
    collector = make()
    with pytest.raises(JournalLocked, match="another collector"):
        while True:
            collector.run()


def test_stops_when_spark_ends_the_process(make: Callable[[], EmbeddedCollector], fake: type[FakeCollector]) -> None:
    passed_on = []
    signal.signal(signal.SIGTERM, lambda number, frame: passed_on.append(number))
    collector = make()
    collector.run()
    assert fake.running.wait(WAIT)
    os.kill(os.getpid(), signal.SIGTERM)
    # Python runs handlers between two instructions of the main thread.
    assert fake.cancelled.wait(WAIT)
    assert passed_on == [signal.SIGTERM]


def test_the_real_one_feeds_the_query_that_runs_it(tmp_path: Path) -> None:
    with receiving() as receiver:
        reader = stream_reader(tmp_path / "journal", url=receiver.url, route="count", data="1000")
        at, rows = reader.initialOffset(), 0
        try:
            while rows < 1000:
                end = advance(reader, at)
                rows += len(read_between(reader, at, end)) if end != at else 0
                at = end
        finally:
            reader.stop()
    assert at["sources"] == {"count": 1000}


def test_leaves_signals_alone_in_other_threads(
    make: Callable[[], EmbeddedCollector], fake: type[FakeCollector]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    collector = make()
    thread = threading.Thread(target=collector.run)
    thread.start()
    thread.join(WAIT)
    assert signal.getsignal(signal.SIGTERM) is before
    collector.stop()
