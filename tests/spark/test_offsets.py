from __future__ import annotations

import json
from typing import Any

import pytest

from penstock import LocalError
from penstock.spark.offsets import Offset


def test_keys_and_sources_have_one_order() -> None:
    offset = Offset({"b": 1, "a": 0}, {"b": 2, "a": 3})
    assert json.dumps(offset.json()) == '{"v": 1, "from": {"a": 0, "b": 1}, "sources": {"a": 3, "b": 2}}'


@pytest.mark.parametrize("begun", ["earliest", "latest", {"a": 7}, {"a": "latest"}])
def test_goes_through_json_and_back(begun: Any) -> None:
    offset = Offset(begun, {"a": 9})
    assert Offset.parse(json.loads(json.dumps(offset.json()))) == offset


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "earliest",
        {},
        {"v": 2, "from": "earliest", "sources": {}},
        {"v": 1, "from": "earliest"},
        {"v": 1, "from": "earliest", "sources": {}, "more": 1},
        {"v": 1, "from": "first", "sources": {}},
        {"v": 1, "from": None, "sources": {}},
        {"v": 1, "from": {"a": -1}, "sources": {}},
        {"v": 1, "from": "earliest", "sources": []},
        {"v": 1, "from": "earliest", "sources": {"a": "latest"}},
        {"v": 1, "from": "earliest", "sources": {"a": 1.0}},
        {"v": 1, "from": "earliest", "sources": {"a": True}},
        {"v": 1, "from": "earliest", "sources": {"a": -1}},
    ],
)
def test_what_is_no_offset_is_refused(value: Any) -> None:
    # THREATS 82
    with pytest.raises(LocalError, match="none of this source"):
        Offset.parse(value)


def test_sources_that_came_later_begin_with_their_first_row() -> None:
    assert Offset("latest", {}).place("a") == "latest"
    assert Offset({"a": 5}, {}).place("a") == 5
    assert Offset({"a": 5}, {"a": 8}).place("a") == 8
    assert Offset({"a": 5}, {"a": 8}).place("b") == "earliest"


def test_first_range_begins_where_the_end_says() -> None:
    start, end = Offset("latest", {}), Offset({"a": 5, "b": 0}, {"a": 9, "b": 0})
    assert start.ranges(end) == {"a": (5, 9)}


def test_later_ranges_begin_where_the_last_ended() -> None:
    start, end = Offset({"a": 5}, {"a": 9}), Offset({"a": 5, "b": 2}, {"a": 12, "b": 4})
    assert start.ranges(end) == {"a": (9, 12), "b": (2, 4)}


@pytest.mark.parametrize("end", [Offset({"a": 0}, {"a": 8}), Offset("latest", {"a": 10, "b": 3})])
def test_ranges_that_cannot_be_are_refused(end: Offset) -> None:
    with pytest.raises(LocalError, match="another query"):
        Offset({"a": 0}, {"a": 9}).ranges(end)
