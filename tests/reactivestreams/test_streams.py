from __future__ import annotations

import heapq

from hypothesis import given
from hypothesis import strategies as st

from weirpool.kinds import Kind
from weirpool.reactivestreams.streams import UNBOUNDED, Subscriptions, add, spend


def test_saturated_demand_is_unbounded() -> None:
    assert add(UNBOUNDED - 1, 5) == UNBOUNDED == (1 << 63) - 1
    assert (spend(UNBOUNDED, 1000), spend(5, 2)) == (UNBOUNDED, 3)


def test_numbers_are_reused_and_ids_are_not() -> None:
    table = Subscriptions()
    first = table.open(Kind.STREAM, 1)
    table.fence(first.number)
    table.end(first)
    second = table.open(Kind.STREAM, 1)
    assert (first.number, second.number) == (1, 1)
    assert first.id != second.id
    # The id of the first one does not affect the second.
    assert (table.of(first.id), table.of(second.id)) == (None, second)


def test_number_is_reused_after_its_subscribed() -> None:
    table = Subscriptions()
    first, second, third = (table.open(Kind.STREAM, 1) for _ in range(3))
    assert [each.number for each in (first, second, third)] == [1, 2, 3]
    table.end(second)
    table.end(second)
    assert (table.live, table.get(2), table.get(3)) == (2, None, third)
    # Its `subscribed` is pending, so earlier messages are ignored.
    assert table.open(Kind.STREAM, 1).number == 4
    assert table.fence(2) is second
    assert table.fence(2) is None
    assert table.open(Kind.STREAM, 1).number == 2
    assert table.fence(9) is None
    assert [table.was_used(number) for number in (0, 4, 5)] == [False, True, False]


@given(st.lists(st.tuples(st.sampled_from(["open", "end", "fence"]), st.integers(0, 5)), max_size=60))
def test_numbers_are_the_lowest_free_ones(steps: list[tuple[str, int]]) -> None:
    table = Subscriptions()
    held: dict[int, set[str]] = {}
    for verb, choice in steps:
        if verb == "open":
            expected = heapq.nsmallest(1, set(range(1, len(held) + 2)) - held.keys())[0]
            assert table.open(Kind.STREAM, 0).number == expected
            held[expected] = set()
        elif held:
            number = sorted(held)[choice % len(held)]
            if verb == "fence":
                assert (table.fence(number) is None) is ("fence" in held[number])
            elif (subscription := table.get(number)) is not None:
                table.end(subscription)
            held[number].add(verb)
            if held[number] == {"end", "fence"}:
                del held[number]
        assert table.live == sum("end" not in said for said in held.values()) == len(table.all())
