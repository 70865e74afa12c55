from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.replica.groups import MemoryStore, Outage, rows, sequence
from weirpool.errors import DiskFull, JournalCorrupt, JournalError, StoreError
from weirpool.replica import bundler as bundler_module
from weirpool.replica.bundle import Part
from weirpool.replica.bundler import Bundler, State
from weirpool.replica.ownership import Superseded, Update, take

SECONDS = 30
"""The time limit of each wait."""


def line(source: str, position: int, **more: bytes) -> Update:
    """Return one row of a source."""
    text = b"%d x\n" % position
    return Update(
        Part(source, f"log of {source}", position, position + 1, f"head {position}", len(text), **more), [text]
    )


@contextmanager
def bundling(store: MemoryStore, interval: float = 0.0, heartbeat: float = 1_000.0) -> Iterator[Bundler]:
    bundler = Bundler(take(sequence(store)), interval=interval, heartbeat=heartbeat)
    try:
        yield bundler
    finally:
        bundler.close()


class Hang:
    """A step of a store that has not answered until it is over."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.over = threading.Event()

    def __call__(self, what: str) -> None:
        self.reached.set()
        self.over.wait(SECONDS)


def test_what_is_submitted_is_in_the_store() -> None:
    store = MemoryStore()
    with bundling(store) as bundler:
        for position in range(20):
            for source in "ab":
                bundler.submit(line(source, position)).result(SECONDS)
                assert rows(sequence(store), source)[position] == "x"
    assert {source: part.end for source, part in take(sequence(store)).logs.items()} == {"a": 20, "b": 20}


def test_all_feeds_share_a_bundle() -> None:
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        waiting = [bundler.submit(line(source, position)) for position in range(5) for source in "abc"]
        assert not any(each.done() for each in waiting)
    for each in waiting:
        each.result(SECONDS)
    bundles = sequence(store)
    assert bundles.numbers() == [0, 1]
    assert all(rows(bundles, source) == dict.fromkeys(range(5), "x") for source in "abc")


def test_consecutive_updates_are_joined() -> None:
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        bundler.submit(line("a", 0, identity=b"identity", secret=b"old"))
        bundler.submit(line("a", 1, secret=b"new"))
        bundler.submit(line("a", 2, state=b"state"))
    part = take(sequence(store)).logs["a"]
    assert (part.end, part.head, part.state, part.identity, part.secret) == (3, "head 2", b"state", b"identity", b"new")


def test_a_full_bundle_does_not_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "FULL_BYTES", 8)
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        first = bundler.submit(line("a", 0))
        assert not first.done()
        bundler.submit(line("b", 0)).result(SECONDS)
        first.result(SECONDS)


def test_bundles_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "LARGEST_BYTES", 8)
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        waiting = [bundler.submit(line(source, 0)) for source in "abcde"]
    for each in waiting:
        each.result(SECONDS)
    bundles = sequence(store)
    headers = bundles.headers(bundles.numbers())
    assert [sum(part.size > 0 for part in header.parts) for header in headers] == [0, 2, 2, 1]


def test_an_owner_without_rows_is_alive() -> None:
    store = MemoryStore()
    written = threading.Semaphore(0)
    with bundling(store, heartbeat=0.01):
        store.step = lambda what: written.release() if what == "after create" else None
        for _ in range(3):
            assert written.acquire(timeout=SECONDS)
    assert len(sequence(store).numbers()) >= 4


def test_nothing_is_acknowledged_while_the_store_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "RETRIES", (0.001,))
    store = MemoryStore()
    failures = threading.Semaphore(0)

    def fail(what: str) -> None:
        failures.release()
        raise Outage("the store does not answer")

    with bundling(store) as bundler:
        store.step = fail
        first = bundler.submit(line("a", 0))
        for _ in range(5):
            assert failures.acquire(timeout=SECONDS)
        later = bundler.submit(line("a", 1))
        assert (first.done(), later.done()) == (False, False)
        assert bundler.state is State.WAITING
        assert bundler.trouble == "the store does not answer"
        store.step = lambda what: None
        later.result(SECONDS)
        assert first.done()
    assert rows(sequence(store), "a") == {0: "x", 1: "x"}


def test_a_store_that_hangs_is_warned_of_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(bundler_module, "SLOW_SECONDS", 0.0)
    store = MemoryStore()
    hang = Hang()

    with bundling(store) as bundler:
        bundler.check()
        store.step = hang
        done = bundler.submit(line("a", 0))
        assert hang.reached.wait(SECONDS)
        for _ in range(2):
            bundler.check()
        store.step = lambda what: None
        hang.over.set()
        done.result(SECONDS)
        bundler.check()
    assert caplog.text.count("the store has not answered") == 1


def test_a_store_that_hangs_is_not_waited_for_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "CLOSE_SECONDS", 0.01)
    store = MemoryStore()
    hang = Hang()

    with bundling(store) as bundler:
        store.step = hang
        first = bundler.submit(line("a", 0))
        assert hang.reached.wait(SECONDS)
        later, asking = bundler.submit(line("a", 1)), bundler.confirm()
        bundler.close()
        for done in (first, later, asking):
            with pytest.raises(StoreError, match="has not answered"):
                done.result(0)
        # It may still be written, as by a process that died before it knew.
        store.step = lambda what: None
        hang.over.set()
        bundler._thread.join(SECONDS)
        assert not bundler._thread.is_alive()
    assert rows(sequence(store), "a") == {0: "x"}


def test_an_owner_that_is_superseded_acknowledges_nothing() -> None:
    store = MemoryStore()
    lost: list[JournalError] = []
    bundler = Bundler(take(sequence(store)), interval=0.0, heartbeat=1_000.0, lost=lost.append)
    take(sequence(store))
    with pytest.raises(Superseded):
        bundler.submit(line("a", 0)).result(SECONDS)
    with pytest.raises(Superseded):
        bundler.submit(line("a", 1)).result(SECONDS)
    bundler.close()
    assert bundler.state is State.LOST
    assert len(lost) == 1
    assert rows(sequence(store), "a") == {}


def test_a_store_that_is_away_does_not_keep_a_collector_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "RETRIES", (1_000.0,))
    store = MemoryStore()
    failed = threading.Event()

    def fail(what: str) -> None:
        failed.set()
        raise Outage("the store does not answer")

    with bundling(store) as bundler:
        store.step = fail
        done = bundler.submit(line("a", 0))
        assert failed.wait(SECONDS)
    with pytest.raises(StoreError):
        done.result(SECONDS)
    with pytest.raises(StoreError, match="closing"):
        bundler.submit(line("a", 1)).result(SECONDS)


def test_sealed_bundles_are_swept() -> None:
    store = MemoryStore()
    with bundling(store) as bundler:
        for position in range(3):
            bundler.submit(line("a", position)).result(SECONDS)
        bundler.release({"a": 2})
        for position in range(3, 5):
            bundler.submit(line("a", position)).result(SECONDS)
    assert sorted(rows(sequence(store), "a"))[0] >= 2
    assert {source: part.end for source, part in take(sequence(store)).logs.items()} == {"a": 5}


def test_the_owner_can_be_confirmed_without_rows() -> None:
    store = MemoryStore()
    with bundling(store) as bundler:
        bundler.confirm().result(SECONDS)
        assert len(sequence(store).numbers()) == 2
        take(sequence(store))
        with pytest.raises(Superseded):
            bundler.confirm().result(SECONDS)
        with pytest.raises(Superseded):
            bundler.confirm().result(SECONDS)


def test_nobody_can_cancel_what_is_submitted() -> None:
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        assert not bundler.submit(line("a", 0)).cancel()
        assert not bundler.confirm().cancel()
    assert rows(sequence(store), "a") == {0: "x"}


def test_the_last_bundle_gives_the_group_up() -> None:
    store = MemoryStore()
    with bundling(store, interval=1_000.0) as bundler:
        bundler.submit(line("a", 0))
    headers = list(sequence(store).headers(sequence(store).numbers()))
    assert [header.ended for header in headers] == [False, True]


def test_a_row_does_not_wait_for_the_heartbeat() -> None:
    store = MemoryStore()
    with bundling(store, interval=0.3) as bundler:
        bundler.submit(line("a", 0)).result(SECONDS)
        # Within the interval after a bundle: nothing else wakes the thread up.
        bundler.submit(line("a", 1)).result(SECONDS)
    assert rows(sequence(store), "a") == {0: "x", 1: "x"}


def test_a_store_without_space_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundler_module, "RETRIES", (0.001,))
    store = MemoryStore()
    failures = threading.Semaphore(0)

    def fail(what: str) -> None:
        failures.release()
        raise DiskFull("the disk is full")

    with bundling(store) as bundler:
        store.step = fail
        done = bundler.submit(line("a", 0))
        for _ in range(3):
            assert failures.acquire(timeout=SECONDS)
        assert (done.done(), bundler.state, bundler.trouble) == (False, State.WAITING, "the disk is full")
        store.step = lambda what: None
        done.result(SECONDS)
    assert rows(sequence(store), "a") == {0: "x"}


def test_a_damaged_bundle_in_the_place_of_the_next_one_ends_the_ownership() -> None:
    store = MemoryStore()
    lost: list[JournalError] = []
    bundler = Bundler(take(sequence(store)), interval=0.0, heartbeat=1_000.0, lost=lost.append)
    store.objects[sequence(store).name(1)] = b"something else, which is long enough for a header"
    with pytest.raises(JournalCorrupt, match="is not a bundle"):
        bundler.submit(line("a", 0)).result(SECONDS)
    with pytest.raises(JournalCorrupt):
        bundler.confirm().result(SECONDS)
    bundler.close()
    assert len(lost) == 1


def test_those_who_wait_learn_of_defects(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    reported: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", reported.append)

    def fail(what: object) -> None:
        raise RuntimeError("a defect")

    bundler = Bundler(take(sequence(store)), interval=0.0, heartbeat=1_000.0, lost=fail)
    store.step = fail
    with pytest.raises(JournalError, match="a defect"):
        bundler.submit(line("a", 0)).result(SECONDS)
    bundler.close()
    assert bundler.state is State.LOST
    # The hook `lost` failed, too: last of all, and not in silence.
    assert [str(each.exc_value) for each in reported] == ["a defect"]
