from __future__ import annotations

import pytest

from tests.replica.groups import MemoryStore, Outage, sequence
from weirpool.errors import StoreError
from weirpool.replica.ownership import take
from weirpool.replica.watch import Watch


def test_an_owner_is_alive_while_it_writes() -> None:
    now = 100.0
    bundles = sequence(MemoryStore())
    owned = take(bundles)
    watch = Watch(bundles, patience=5, clock=lambda: now)
    assert not watch.silent()
    now += 4
    owned.append()
    assert not watch.silent()
    now += 4.9
    assert not watch.silent()
    now += 0.1
    assert watch.silent()
    owned.append()
    assert not watch.silent()


def test_a_group_without_bundles_has_no_owner() -> None:
    bundles = sequence(MemoryStore())
    watch = Watch(bundles, patience=5, clock=lambda: 0.0)
    assert watch.silent()
    take(bundles)
    assert not watch.silent()


def test_an_owner_that_has_ended_is_not_waited_for() -> None:
    bundles = sequence(MemoryStore())
    owned = take(bundles)
    watch = Watch(bundles, patience=5, clock=lambda: 0.0)
    owned.append(ended=True)
    assert watch.silent()
    take(bundles)
    assert not watch.silent()


def test_a_new_owner_is_not_taken_for_the_one_that_has_ended() -> None:
    store = MemoryStore()
    bundles = sequence(store)
    watch = Watch(bundles, patience=5, clock=lambda: 0.0)
    take(bundles).append(ended=True)
    assert watch.silent()
    take(bundles)

    def fail(what: str) -> None:
        if what == "before get":
            raise Outage("the store does not answer")

    store.step = fail
    with pytest.raises(StoreError):
        watch.silent()
    store.step = lambda what: None
    assert not watch.silent()
