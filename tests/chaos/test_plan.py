"""The faults of the chaos laboratory follow from their seed."""

from __future__ import annotations

from itertools import islice

from chaos.plan import KINDS, NAMES, SPARK_KILLS, faults, spark_kills
from chaos.publisher import KEEPALIVE_LIFETIME


def test_same_seed_gives_the_same_faults() -> None:
    assert list(islice(faults(7, 0.5), 500)) == list(islice(faults(7, 0.5), 500))


def test_other_seed_gives_other_faults() -> None:
    assert list(islice(faults(7, 0.5), 10)) != list(islice(faults(8, 0.5), 10))


def test_every_fault_comes_in_a_long_run() -> None:
    drawn = list(islice(faults(7, 0.5), 20_000))
    assert {fault.kind for fault in drawn} == set(KINDS)
    assert {fault.target for fault in drawn} == {"", *NAMES}


def test_only_kills_stops_and_cuts_are_over_at_once() -> None:
    for fault in islice(faults(7, 0.5), 2_000):
        is_short = fault.kind == "cut" or fault.kind.split()[0] in ("kill", "stop")
        assert (fault.seconds == 0) == (is_short and not fault.kind.endswith("twice") and " and " not in fault.kind)


def test_long_pauses_are_longer_than_silence_is_endured() -> None:
    long = [fault for fault in islice(faults(7, 0.5), 20_000) if fault.kind.startswith("long pause")]
    assert {fault.kind for fault in long} == {f"long pause {whom}" for whom in ("collector", "publisher", "proxy")}
    assert all(fault.seconds > KEEPALIVE_LIFETIME for fault in long)


def test_stops_and_black_holes_say_how() -> None:
    said: dict[str, set[str]] = {"stop": set(), "black": set()}
    for fault in islice(faults(7, 0.5), 20_000):
        said.setdefault(fault.kind.split()[0], set()).add(fault.how)
    assert said.pop("stop") == {"SIGTERM", "SIGINT"}
    assert said.pop("black") == {"there", "back", "both"}
    assert set.union(*said.values()) == {""}


def test_some_faults_come_at_once() -> None:
    # Four in a row within 60 ms would else come once in 6,000 times.
    pauses = [fault.pause for fault in islice(faults(7, 0.6), 2_000)]
    bursts = sum(sum(pauses[at : at + 3]) < 0.06 for at in range(len(pauses)))
    assert bursts > 100


def test_every_round_of_kills_has_each_process_of_spark() -> None:
    kills = list(islice(spark_kills(7, 10.0), 400))
    assert kills == list(islice(spark_kills(7, 10.0), 400)) != list(islice(spark_kills(8, 10.0), 400))
    size = len(SPARK_KILLS)
    assert all({kill.kind for kill in kills[at : at + size]} == set(SPARK_KILLS) for at in range(0, 400, size))
    assert set(SPARK_KILLS) <= set(KINDS)
    assert 9.0 < sum(kill.pause for kill in kills) / 400 < 11.0
