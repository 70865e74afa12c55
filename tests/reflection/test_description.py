"""The document: what a reader ignores, and what it refuses."""

from __future__ import annotations

import pytest

from penstock import Description, NotDescribed
from penstock.reflection.description import MAX_BYTES, Described, Why, read
from penstock.schema.formats import FORMATS


def test_reads_every_encoding_and_ignores_what_it_does_not_know() -> None:
    document = {"version": 1, "routes": [{"route": "a", "kind": "call", "later": 1}], "$defs": {"A": {}}, "more": []}
    for form in FORMATS:
        assert read(form.encode(document)) == Description(1, routes=[Described("a", "call")], definitions={"A": {}})


def test_finds_all_kinds_of_a_route() -> None:
    description = Description(1, routes=[Described("a", "call"), Described("b", "call"), Described("a", "stream")])
    assert [each.kind for each in description.find("a")] == ["call", "stream"]


def test_finds_a_route_with_values_by_its_variables() -> None:
    routes = ["q.all", "q.{s}", "q.{s}.{t}", "q.{s}.live", "{a}.{b}"]
    description = Description(1, routes=[Described(each, "call") for each in routes])
    for route, found in {
        "q.all": ["q.all"],
        "q.ACME": ["q.{s}"],
        "q.{s}": ["q.{s}"],
        "q.ACME.live": ["q.{s}.live"],
        "q.ACME.x": ["q.{s}.{t}"],
        "x.y": ["{a}.{b}"],
        "q.": [],
        "q": [],
    }.items():
        assert [each.route for each in description.find(route)] == found


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"a": "\xff"}', b"x" * (MAX_BYTES + 1), b"\x81" * 1_000, b"\xa1" * 1_000]
)
def test_refuses_everything_else(data: bytes) -> None:
    with pytest.raises(NotDescribed) as caught:
        read(data)
    assert caught.value.why is Why.FOREIGN
