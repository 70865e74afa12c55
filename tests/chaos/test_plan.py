"""The faults of the chaos laboratory follow from their seed."""

from __future__ import annotations

from itertools import islice

from chaos.plan import KINDS, NAMES, faults


def test_same_seed_gives_the_same_faults() -> None:
    assert list(islice(faults(7, 0.5), 500)) == list(islice(faults(7, 0.5), 500))


def test_other_seed_gives_other_faults() -> None:
    assert list(islice(faults(7, 0.5), 10)) != list(islice(faults(8, 0.5), 10))


def test_every_fault_comes_in_a_long_run() -> None:
    drawn = list(islice(faults(7, 0.5), 20_000))
    assert {fault.kind for fault in drawn} == set(KINDS)
    assert {fault.target for fault in drawn} == {"", *NAMES}


def test_only_kills_and_cuts_are_over_at_once() -> None:
    for fault in islice(faults(7, 0.5), 2_000):
        assert (fault.seconds == 0) == (fault.kind.startswith("kill") or fault.kind == "cut")
