from __future__ import annotations

import pytest

from weirpool import Connection, Kind, Outcome
from weirpool.aio.durations import BOUNDS, Durations, Request

CALL = Request(Kind.CALL, False, "r", Outcome.COMPLETED)
FAILED = CALL._replace(outcome=Outcome.FAILED)
CONNECTION = Connection("rsocket", "place", False)


@pytest.mark.parametrize(
    ("seconds", "bucket"), [(0.0, 0), (0.005, 0), (0.0051, 1), (1.0, 9), (10.0, len(BOUNDS) - 1), (11.0, len(BOUNDS))]
)
def test_bound_belongs_to_its_bucket(seconds: float, bucket: int) -> None:
    durations = Durations()
    durations.add(CONNECTION, CALL, seconds)
    counts, total = durations.snapshot()[CALL]
    assert [place for place, count in enumerate(counts) if count] == [bucket]
    assert (len(counts), total) == (len(BOUNDS) + 1, seconds)


def test_each_request_has_its_histogram_and_snapshots_stay() -> None:
    durations = Durations()
    for _ in range(3):
        durations.add(CONNECTION, CALL, 0.5)
    before = durations.snapshot()
    durations.add(CONNECTION, FAILED, 20.0)
    durations.add(CONNECTION, CALL, 0.5)
    assert {request: (sum(counts), total) for request, (counts, total) in before.items()} == {CALL: (3, 1.5)}
    after = durations.snapshot()
    assert {request: (sum(counts), total) for request, (counts, total) in after.items()} == {
        CALL: (4, 2.0),
        FAILED: (1, 20.0),
    }


def test_recorders_are_told_of_each_request() -> None:
    durations, told = Durations(), []
    durations.recorders.append(lambda *arguments: told.append(arguments))
    durations.add(CONNECTION, CALL, 0.5)
    assert told == [(CONNECTION, CALL, 0.5)]
