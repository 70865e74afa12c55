from __future__ import annotations

import pytest

from penstock.transports.places import SPARED_SECONDS, Places


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


def test_young_holder_is_spared_and_newcomer_refused() -> None:
    kept, evicted = places()
    kept.take("a", 10.0)
    kept.take("b", 10.5)
    assert not kept.make_room(10.9) and evicted == []
    # The oldest decides.
    assert kept.make_room(10.0 + SPARED_SECONDS) and evicted == ["a"]
    kept.take("c", 10.0 + SPARED_SECONDS)
    assert not kept.make_room(10.4 + SPARED_SECONDS)


def test_flood_evicts_no_more_than_all_holders_in_the_time_that_they_are_spared() -> None:
    kept, evicted = places(10)
    for number in range(10_000):
        now = number / 1_000
        if kept.make_room(now):
            kept.take(str(number), now)
    assert len(evicted) <= 10 * 10 / SPARED_SECONDS


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
