from __future__ import annotations


def test_every_kind_has_its_halves(build) -> None:
    halves = build.module("weirpool.core.halves")
    kinds = build.module("weirpool.kinds").Kind
    assert set(halves.INITIAL) == set(kinds)
    for kind, (requester, _) in halves.INITIAL.items():
        assert (requester == halves.OPEN) == kind.sends_items


def test_table_has_every_signal_of_both_sides(build) -> None:
    halves = build.module("weirpool.core.halves")
    assert set(halves.TERMINAL) == {(signal, side) for signal in halves.Signal for side in (True, False)}


def test_complete_ends_only_the_senders_half(build) -> None:
    halves = build.module("weirpool.core.halves")
    assert halves.TERMINAL[halves.Signal.COMPLETE, True] == (True, False)
    assert halves.TERMINAL[halves.Signal.COMPLETE, False] == (False, True)
