from __future__ import annotations

from typing import Any

import cbor2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.values.cbor_pruning import MAX_VALUES, pruned

BAD = b"\x61\xff"
"""A text that is not UTF-8: what is kept of it cannot be read."""


def only(data: bytes, fields: Any) -> Any:
    return cbor2.loads(pruned(data, fields))


@pytest.mark.parametrize(
    ("data", "fields", "kept"),
    [
        (b"\xa2\x61a\x01\x61b" + BAD, {"a": None}, {"a": 1}),
        (b"\xbf\x61b" + BAD + b"\x61a\x01\xff", {"a": None}, {"a": 1}),
        (b"\xb9\x00\x02\x61b" + BAD + b"\x61a\xa1\x61c" + BAD, {"a": {"d": None}}, {"a": {}}),
        (b"\xa1\x61a\x82\xa2\x61x\x01\x61y" + BAD + b"\xf6", {"a": [{"x": None}]}, {"a": [{"x": 1}, None]}),
        (b"\xa1\x61a\x9f\xa1\x61y" + BAD + b"\xff", {"a": [{"x": None}]}, {"a": [{}]}),
        (b"\xa1\x61a\xa1\x61k\xa1\x61y" + BAD, {"a": [{"x": None}]}, {"a": {"k": {}}}),
        (b"\xd9\xd9\xf7\xa1\x61b" + BAD, {"a": None}, {}),
        (b"\xa1\x78\x01a\x01", {"a": None}, {"a": 1}),
        (b"\xa1\x61b\x5f\x41x\xff", {"a": None}, {}),
    ],
)
def test_fields_that_are_not_asked_for_are_left_out(data: bytes, fields: Any, kept: Any) -> None:
    assert only(data, fields) == kept


@pytest.mark.parametrize(
    ("data", "fields"),
    [
        (b"\xa1\x61a" + BAD, {"a": None}),
        (b"\xa1\x01" + BAD, {"a": None}),
        (b"\xa1\x7f\x61a\xff" + BAD, {"b": None}),
        (b"\xa1\x61a\x81" + BAD, {"a": {"x": None}}),
        (b"\x81" + BAD, {"a": None}),
    ],
    ids=["asked for", "key of another type", "key in parts", "array for a record", "no record"],
)
def test_the_rest_is_kept(data: bytes, fields: Any) -> None:
    with pytest.raises(cbor2.CBORDecodeError):
        only(data, fields)


@pytest.mark.parametrize(
    "data",
    [b"", b"\xa1", b"\xa1\x61", b"\xa2\x61b\x01", b"\xbf\x61b\x01", b"\xbf\x61b\xff", b"\xa1\x61b\x1c",
     b"\xa1\x61b\xf8\x18", b"\xa1\x61b\x9b\xff\xff\xff\xff\xff\xff\xff\xff", b"\xa1\x61b\x62a", b"\xff"],
)  # fmt: skip
def test_malformed_data_stays_as_it_is(data: bytes) -> None:
    assert pruned(data, {"a": None}) == data


def test_data_after_the_value_stays() -> None:
    assert pruned(b"\xa1\x61b\x01\x05", {"a": None}) == b"\xbf\xff\x05"


def test_the_work_is_bounded() -> None:
    wide = b"\xbf" + b"\x61b\x01" * MAX_VALUES + b"\xff"
    assert pruned(wide, {"a": None}) == wide
    assert pruned(b"\x9f" + b"\xa0" * MAX_VALUES + b"\xff", [{"a": None}])[:2] == b"\x9f\xa0"


NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.recursive(
    st.integers() | st.text() | st.floats(allow_nan=False) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)
FIELDS = st.recursive(
    st.none(), lambda inner: st.lists(inner, min_size=1, max_size=1) | st.dictionaries(NAMES, inner), max_leaves=8
)


def expected(value: Any, fields: Any) -> Any:
    if isinstance(value, dict) and isinstance(fields, dict):
        return {name: expected(each, fields[name]) for name, each in value.items() if name in fields}
    if isinstance(value, dict) and isinstance(fields, list):
        return {name: expected(each, fields[0]) for name, each in value.items()}
    if isinstance(value, list) and isinstance(fields, list):
        return [expected(each, fields[0]) for each in value]
    return value


@given(VALUES, FIELDS, st.booleans())
def test_what_is_left_are_the_fields(value: Any, fields: Any, endless: bool) -> None:
    data = cbor2.dumps(value, indefinite_containers=endless)
    assert only(data, fields) == expected(value, fields)
