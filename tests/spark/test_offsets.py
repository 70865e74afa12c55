from __future__ import annotations

import json
from typing import Any

import pytest

from weirpool import JournalMismatch, LocalError
from weirpool.spark.offsets import Offset, same_logs

NOON = "2026-01-02T12:00:00+00:00"
NEW = {"v": 2, "query": None, "from": "earliest", "sources": {}, "logs": {}}
OLD = {"v": 2, "query": "q1", "from": {"a": 0}, "sources": {"a": 5}, "logs": {"a": "u"}}


def test_keys_and_sources_have_one_order() -> None:
    offset = Offset({"b": 1, "a": 0}, {"b": 2, "a": 3}, {"b": "w", "a": "u"}, "q1")
    assert json.dumps(offset.json()) == (
        '{"v": 2, "query": "q1", "from": {"a": 0, "b": 1}, "sources": {"a": 3, "b": 2}, "logs": {"a": "u", "b": "w"}}'
    )


@pytest.mark.parametrize("begun", ["earliest", "latest", {"a": 7}, {"a": "latest"}, {"a": NOON}, NOON])
def test_goes_through_json_and_back(begun: Any) -> None:
    for offset in (Offset(begun), Offset(begun, {"a": 9}, {"a": "u"}, "q1"), Offset(begun, query="q1", since=NOON)):
        assert Offset.parse(json.loads(json.dumps(offset.json()))) == offset


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "earliest",
        {},
        {**NEW, "v": 3},
        {**NEW, "more": 1},
        {**NEW, "from": "first"},
        {**NEW, "from": None},
        {**NEW, "from": {"a": -1}},
        {**NEW, "from": {"a": "2026-01-02"}},
        {**NEW, "from": "2026-01-02"},
        {**NEW, "from": []},
        {**OLD, "since": None, "more": 1},
        {**OLD, "since": "yesterday"},
        {**OLD, "since": 1767355200},
        {**OLD, "from": {"../a": 0}, "sources": {"../a": 5}, "logs": {"../a": "u"}},
        {**NEW, "sources": []},
        {**NEW, "query": 1},
        {**NEW, "query": ""},
        {**OLD, "query": None},
        {**OLD, "query": "../q"},
        {**OLD, "sources": {"a": "latest"}},
        {**OLD, "sources": {"a": 1.0}},
        {**OLD, "sources": {"a": True}},
        {**OLD, "sources": {"a": -1}},
        {**OLD, "logs": {}},
        {**OLD, "logs": {"a": "u", "b": "w"}},
        {**OLD, "logs": {"a": 1}},
        {**OLD, "logs": ["a"]},
        {"v": 2, "rows": "gaps", "from": "earliest", "sources": {}, "logs": {}},
    ],
)
def test_what_is_no_offset_is_refused(value: Any) -> None:
    # THREATS 82
    with pytest.raises(LocalError, match="not an offset of this source"):
        Offset.parse(value)


def test_the_checkpoint_of_an_earlier_version_is_refused() -> None:
    # It does not tell which log it counts in.
    with pytest.raises(LocalError, match=r"an earlier version of Weirpool.*with a new checkpoint on a new journal"):
        Offset.parse({"v": 1, "from": {"a": 0}, "sources": {"a": 5}})


def test_sources_that_came_later_begin_with_their_first_row() -> None:
    assert Offset("latest").place("a") == "latest"
    assert Offset({"a": 5}).place("a") == 5
    assert Offset({"a": 5}, {"a": 8}).place("a") == 8
    assert Offset({"a": 5}, {"a": 8}).place("b") == "earliest"


def test_latest_becomes_the_time_at_which_the_query_began() -> None:
    assert Offset("latest").opened(NOON) == Offset("latest", since=NOON)
    assert Offset("earliest").opened(NOON) == Offset("earliest")
    assert Offset({"a": "latest", "b": 3}).opened(NOON) == Offset({"a": NOON, "b": 3})
    begun = Offset({"a": 5}, {"a": 8}, {"a": "u"}, "q1", NOON)
    assert begun.opened("2027-01-02T12:00:00+00:00") == begun
    assert (begun.place("a"), begun.origin("a"), begun.place("b"), begun.origin("b")) == (8, 5, NOON, NOON)


def test_first_range_begins_where_the_end_says() -> None:
    start, end = Offset("latest"), Offset({"a": 5, "b": 0}, {"a": 9, "b": 0})
    assert start.ranges(end) == {"a": (5, 9)}


def test_later_ranges_begin_where_the_last_ended() -> None:
    start, end = Offset({"a": 5}, {"a": 9}), Offset({"a": 5, "b": 2}, {"a": 12, "b": 4})
    assert start.ranges(end) == {"a": (9, 12), "b": (2, 4)}


@pytest.mark.parametrize("end", [Offset({"a": 0}, {"a": 8}), Offset("latest", {"a": 10, "b": 3})])
def test_ranges_that_cannot_be_are_refused(end: Offset) -> None:
    with pytest.raises(LocalError, match="another query"):
        Offset({"a": 0}, {"a": 9}).ranges(end)


def test_the_end_of_another_query_is_refused() -> None:
    with pytest.raises(LocalError, match="begins in query q1 and ends in query q2"):
        Offset({"a": 0}, {"a": 9}, query="q1").ranges(Offset({"a": 0}, {"a": 10}, query="q2"))
    assert Offset("earliest").ranges(Offset({"a": 0}, {"a": 1}, query="q1")) == {"a": (0, 1)}


@pytest.mark.parametrize("logs", [{}, {"b": "w"}, {"a": "v"}])
def test_an_end_without_a_log_of_the_start_is_refused(logs: dict[str, str]) -> None:
    # Else that log would be read again from where the query began.
    start = Offset({"a": 0}, {"a": 5}, {"a": "u"}, "q1")
    end = Offset({"a": 0, "b": 0}, {source: 9 for source in logs}, logs, "q1")
    with pytest.raises(LocalError, match="ends without a log in which it begins; this checkpoint was changed by hand"):
        start.ranges(end)


def test_another_log_is_refused() -> None:
    # THREATS 99
    same_logs("/j", {"a": "u", "gone": "w"}, {"a": "u", "new": "x"})
    with pytest.raises(
        JournalMismatch, match=r"source 'a' of journal /j is log x, .* belongs to log u: .* new checkpoint"
    ):
        same_logs("/j", {"a": "u"}, {"a": "x"})
