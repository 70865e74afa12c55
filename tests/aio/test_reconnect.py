from __future__ import annotations

from typing import Any

import pytest

from penstock import ConnectError, LinkLost, LocalError, Reconnect, SetupRejected
from penstock.aio.backoff import RESUME_LONGEST


@pytest.mark.parametrize(
    ("wrong", "part"),
    [
        ({"attempts": 0}, "attempts is 0"),
        ({"first_delay": -1.0}, "first_delay is -1"),
        ({"first_delay": 2.0, "longest_delay": 1.0}, "longest_delay"),
        ({"factor": 0.5}, "factor is 0.5"),
        ({"jitter": 1.5}, "jitter is 1.5"),
        ({"new_calls": "sleep"}, "'sleep'"),
    ],
)
def test_values_that_make_no_sense_are_named(wrong: dict[str, Any], part: str) -> None:
    with pytest.raises(LocalError, match=part):
        Reconnect(**wrong)


def test_everything_is_worth_another_try_but_a_refusal() -> None:
    policy = Reconnect()
    assert policy.retry(ConnectError("refused"))
    assert policy.retry(LinkLost("broke"))
    assert not policy.retry(SetupRejected("no"))


def test_delays_are_those_of_the_policy() -> None:
    backoff = Reconnect(first_delay=1.0, longest_delay=5.0, factor=4.0, jitter=0.0).backoff()
    assert [backoff.next() for _ in range(3)] == [1.0, 4.0, 5.0]


def test_policies_are_values() -> None:
    assert Reconnect(attempts=3) == Reconnect(attempts=3)
    with pytest.raises(AttributeError):
        Reconnect().attempts = 3  # type: ignore[misc]


def test_links_of_a_session_that_may_be_alive_are_tried_for_often() -> None:
    patient = Reconnect(first_delay=5.0, longest_delay=60.0, jitter=0.0).resuming()
    assert [patient.next() for _ in range(3)] == [RESUME_LONGEST] * 3
    hasty = Reconnect(first_delay=0.0, longest_delay=0.0).resuming()
    assert [hasty.next() for _ in range(3)] == [0.0, 0.0, 0.0]
