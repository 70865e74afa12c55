from __future__ import annotations

import json

from weirpool.bridging.counters import MAX_CODES, Counters, code_of
from weirpool.errors import ApplicationError, LinkLost, Rejected


def test_errors_are_counted_by_code_up_to_a_limit() -> None:
    counters = Counters()
    for number in range(2 * MAX_CODES):
        counters.failed(ApplicationError(f"E{number}"))
    assert len(counters.errors) == MAX_CODES + 1
    assert counters.errors["others"] == MAX_CODES


def test_totals_are_json() -> None:
    counters = Counters(clients=1)
    counters.requests["call"] += 2
    counters.failed(Rejected())
    shown = json.loads(json.dumps(counters.as_json()))
    assert (shown["clients"], shown["requests"], shown["errors"]) == (1, {"call": 2}, {"0x202": 1})


def test_code_is_a_number_a_string_or_a_class() -> None:
    assert [code_of(error) for error in (Rejected(), ApplicationError("NO"), LinkLost("x"))] == [
        "0x202",
        "NO",
        "LinkLost",
    ]
