from __future__ import annotations

import random

import pytest

from weirpool.transports import places as places_module
from weirpool.transports.places import SPARED_SECONDS, Places


def places(limit: int = 2) -> tuple[Places[str], list[str]]:
    evicted: list[str] = []
    return Places(limit, evicted.append), evicted


def test_newcomer_gets_the_place_of_the_oldest_holder() -> None:
    kept, evicted = places()
    for number, name in enumerate("abcd"):
        now = number * SPARED_SECONDS
        assert kept.make_room(now)
        kept.take(name, now)
    assert evicted == ["a", "b"] and len(kept) == 2


@pytest.mark.parametrize(("drawn", "age", "room"), [(0.3, 0.25, False), (0.3, 0.35, True), (0.99, 1.0, True)])
def test_young_holder_may_be_spared(monkeypatch: pytest.MonkeyPatch, drawn: float, age: float, room: bool) -> None:
    monkeypatch.setattr(places_module, "random", lambda: drawn)
    kept, evicted = places()
    kept.take("a", 10.0)
    kept.take("b", 10.0 + age * SPARED_SECONDS)
    # The oldest decides.
    assert kept.make_room(10.0 + age * SPARED_SECONDS) == room
    assert evicted == (["a"] if room else [])


def test_flood_leaves_holders_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # At 100 times the rate at which all newcomers get a place, one in ten does, and keeps it for a tenth of the time.
    # Without sparing, it would keep it for a hundredth.
    monkeypatch.setattr(places_module, "random", random.Random(1).random)
    kept, evicted = places(10)
    rate = 100 * 10 / SPARED_SECONDS
    for number in range(10_000):
        if kept.make_room(number / rate):
            kept.take(str(number), number / rate)
    assert len(evicted) == pytest.approx(1_000, rel=0.1)


def test_place_is_free_after_its_holder_has_left() -> None:
    kept, evicted = places(1)
    kept.take("a", 0.0)
    kept.leave("a")
    kept.leave("a")
    assert kept.make_room(0.0) and evicted == [] and len(kept) == 0


def test_evicted_holder_has_left_before_it_is_told() -> None:
    told: list[int] = []
    kept = Places[str](1, lambda name: told.append(len(kept)))
    kept.take("a", 0.0)
    assert kept.make_room(SPARED_SECONDS) and told == [0]


@pytest.mark.parametrize("now", [0.0, 100.0])
def test_without_places_there_is_nobody_to_evict(now: float) -> None:
    kept, evicted = places(0)
    assert not kept.make_room(now) and evicted == []
