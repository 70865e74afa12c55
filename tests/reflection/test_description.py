"""The document: what a reader ignores, and what it refuses."""

from __future__ import annotations

import msgspec
import pytest

from weirpool import Description, NotDescribed
from weirpool.kinds import KIND_NAMES
from weirpool.reflection.description import MAX_BYTES, Described, Why, read
from weirpool.schema.formats import FORMATS


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


def described(**fields: object) -> bytes:
    """Return a description of one route with an error, and with these fields of it."""
    error = {key.removeprefix("error_"): fields.pop(key) for key in list(fields) if key.startswith("error_")}
    route = {"route": "a", "kind": "call", "encodings": ["application/json"], "errors": [{"code": "BAD"} | error]}
    return msgspec.json.encode({"version": 1, "routes": [route | fields]})


# THREATS 109
@pytest.mark.parametrize("field", ["kind", "error_code", "error_name", "encodings"])
@pytest.mark.parametrize(
    "text",
    [
        "call; touch x #\n", "call('x'); __import__('os').system('x'); await peer.call\t", "call\x1b]52;c;cm0K\x07",
        "call\u202e", "call\x9b31m", "$(touch x)\r", "<b>\u2028", "a\0b", "x\n", "application/json\n", "e" * 257,
    ],
)  # fmt: skip
def test_refuses_other_texts_than_those_of_a_type(field: str, text: str) -> None:
    with pytest.raises(NotDescribed) as caught:
        read(described(**{field: [text] if field == "encodings" else text}))
    assert caught.value.why is Why.FOREIGN


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "Call"}, {"kind": ""}, {"kind": "call "}, {"kind": "rpc"}, {"kind": 1}, {"kind": None},
        {"encodings": ["json"]}, {"encodings": ["a/b/c"]}, {"encodings": ["a b/c"]}, {"encodings": ["a/b;c"]},
        {"encodings": ["a/$(b)"]}, {"encodings": ["\u00e9/b"]}, {"error_name": "A B"}, {"error_name": "A.B"},
    ],
)  # fmt: skip
def test_refuses_other_words_than_those_of_a_type(fields: dict[str, object]) -> None:
    with pytest.raises(NotDescribed):
        read(described(**fields))


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_takes_what_weirpool_says(kind: str) -> None:
    mimes = ["application/vnd.river+json", "text/plain; charset=utf-8"]
    [route] = read(
        described(kind=kind, encodings=mimes, error_code="no such symbol: \u00e9", error_name="Fehlt\u00e9")
    ).routes
    assert (route.kind, route.encodings) == (kind, mimes)
    assert (route.errors[0].code, route.errors[0].name) == ("no such symbol: \u00e9", "Fehlt\u00e9")


def test_a_schema_gets_its_form_or_is_left_out() -> None:
    request = {"properties": "abc", "title": "A"}
    description = read(described(request=request, items={"$ref": "#/$defs/A"}, error_extras={"type": 5}))
    [route] = description.routes
    assert (route.request, route.items, route.errors[0].extras) == ({"title": "A"}, {"$ref": "#/$defs/A"}, {})
    assert not description.complete
    table = {"A": {"type": "string"}, "B": True, "C": False, "D": 5}
    description = read(msgspec.json.encode({"version": 1, "$defs": table}))
    assert description.definitions == {"A": {"type": "string"}, "B": {}, "C": {"not": {}}} and not description.complete


# THREATS 110
def test_what_is_too_large_is_refused_or_left_out() -> None:
    many = read(described(request={"enum": [0] * 200_000}))
    assert many.routes[0].request is None and not many.complete
    for text in (
        described(route="a" * 1_025),
        described(description="a" * 65_537),
        described(error_description="a" * 65_537),
        msgspec.json.encode({"version": 1, "$defs": {"a" * 1_025: {}}}),
        msgspec.json.encode({"version": 1, "software": "a" * 1_025}),
        msgspec.json.encode({"version": 1, "routes": [{"route": "a", "kind": "call"}] * 50_001}),
        msgspec.json.encode({"version": 1, "routes": [{"route": "a", "kind": "call", "encodings": ["a/b"] * 101}]}),
        b'{"version": 1, "more": [' + b"{}," * 1_000_000 + b"{}]}",
    ):
        with pytest.raises(NotDescribed):
            read(text)


def test_values_that_json_does_not_have_are_left_out() -> None:
    for form in FORMATS[1:]:
        schema = {"default": b"a", "const": {"b": b"c"}, "title": "A"}
        document = {"version": 1, "routes": [{"route": "a", "kind": "call", "request": schema}]}
        description = read(form.encode(document))
        assert description.routes[0].request == {"const": {}, "title": "A"} and not description.complete
