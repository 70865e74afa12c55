"""Small descriptions that ask for very much of something (THREATS 110)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["bombs", "described"]

Schema = dict[str, Any]


def described(schema: Any = None, definitions: Schema | None = None, routes: list[Schema] | None = None) -> bytes:
    """Return a description whose route has this schema everywhere."""
    error = {"code": "BAD", "name": "Bad", "extras": schema}
    every = {"route": "a.b", "kind": "channel", "request": schema, "items": schema, "response": schema}
    document = {"version": 1, "routes": routes or [every | {"errors": [error]}], "$defs": definitions or {}}
    return json.dumps(document).encode()


def _object(fields: Schema) -> Schema:
    return {"type": "object", "properties": fields, "required": list(fields)}


def _deep(inner: Schema, levels: int, **more: Any) -> Schema:
    for _ in range(levels):
        inner = {"type": "array", "items": inner, **more}
    return inner


def _ref(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _layers(count: int, width: int, keyword: str) -> Schema:
    """Return definitions of which each refers to the next one several times."""
    made: Schema = {f"L{count}": {"type": "string"}}
    for level in range(count):
        inner = [_ref(f"L{level + 1}") for _ in range(width)]
        fields = {f"f{number}": each for number, each in enumerate(inner)}
        made[f"L{level}"] = _object(fields) if keyword == "properties" else {keyword: inner}
    return made


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield descriptions by name."""
    text = {"type": "string"}
    yield "arrays within arrays", described(_deep(text, 12, minItems=10))
    yield "arrays with 10^9 items", described({"type": "array", "items": text, "minItems": 10**9})
    yield "tuples within tuples", described({"prefixItems": [_deep(text, 20, minItems=10)] * 50, "type": "array"})
    yield "a type that requires itself", described(_ref("A"), {"A": _object({"a": _ref("A"), "b": _ref("A")})})
    yield (
        "a list that requires itself",
        described(_ref("A"), {"A": {"type": "array", "items": _ref("A"), "minItems": 9}}),
    )
    yield "references in a circle", described(_ref("A"), {"A": _ref("B"), "B": _ref("A")})
    for keyword in ("properties", "anyOf", "oneOf", "allOf", "prefixItems"):
        yield f"2^40 by {keyword}", described(_ref("L0"), _layers(40, 2, keyword))
        yield f"10^9 by {keyword}", described(_ref("L0"), _layers(9, 10, keyword))
    yield "types of types", described(_types(6))
    chain = {f"C{n}": _object({"next": _ref(f"C{n + 1}")}) for n in range(20_000)}
    yield "a chain of definitions", described(_ref("C0"), chain)
    yield "a chain used everywhere", described(routes=_many(5_000, _ref("C0")), definitions=chain)
    yield "100,000 routes", described(routes=[{"route": f"a.r{n}", "kind": "call"} for n in range(90_000)])
    yield "20,000 routes", described(routes=[{"route": f"a.{chr(0x4E00 + n)}", "kind": "call"} for n in range(20_000)])
    services = [{"route": f"{chr(0x4E00 + n)}.a", "kind": "call"} for n in range(5_000)]
    yield "5,000 services", described(routes=services)
    wide = {f"f{n}": text for n in range(60_000)}
    yield "60,000 fields", described(_ref("W"), {"W": _object(wide)})
    yield "60,000 optional fields", described(_ref("W"), {"W": {"type": "object", "properties": wide}})
    yield "many uses of many fields", described(routes=_many(5_000, _ref("W")), definitions={"W": _object(wide)})
    many = {f"f{n}": _ref("W") for n in range(2_000)}
    yield "many fields with many fields", described(_object(many), {"W": {"type": "object", "properties": wide}})
    yield "100,000 constants", described(_ref("E"), {"E": {"enum": [f"e{n}" for n in range(100_000)]}})
    enums = {f"f{n}": _ref("E") for n in range(2_000)}
    yield "uses of 100,000 constants", described(_object(enums), {"E": {"enum": [f"e{n}" for n in range(100_000)]}})
    yield (
        "many uses of 100,000 constants",
        described(routes=_many(5_000, _ref("E")), definitions={"E": {"enum": [f"e{n}" for n in range(100_000)]}}),
    )
    objects = [_object({"kind": {"const": f"k{n}"}, **{f"x{m}": text for m in range(20)}}) for n in range(1_000)]
    yield "1,000 variants", described({"anyOf": objects})
    two = [_object({f"{side}{n}": {"const": n} for n in range(20_000)}) for side in "ab"]
    yield "two wide variants", described({"anyOf": two})
    mixed = [{"const": f"c{n}"} for n in range(5_000)] + [{"type": "string", "maxLength": n} for n in range(5_000)]
    yield "constants and types", described({"anyOf": mixed})
    huge = "x" * 1_000_000
    for word in ("default", "const", "title", "description", "format", "pattern", "$ref", "$id", "contentEncoding"):
        fields = {f"f{n}": _ref("H") for n in range(2_000)}
        yield f"a huge {word}", described(_object(fields), {"H": {"type": "string", word: huge}})
    yield "a huge example", described(_object({f"f{n}": _ref("H") for n in range(2_000)}), {"H": {"examples": [huge]}})
    yield "a huge name of a field", described(_object({huge: text}))
    yield "a huge name of a definition", described(_ref(huge), {huge: _object({"a": text})})
    yield "a huge name of a type", described({"type": huge})
    for word in ("route", "description"):
        yield f"a huge {word}", described(routes=[{"route": "a.b", "kind": "call", word: "a" * 4_000_000}])
    yield "huge words of a route", described(routes=[{"route": "a." + "b c " * 250_000, "kind": "call"}])
    yield "huge software", json.dumps({"version": 1, "software": "a b " * 900_000, "routes": []}).encode()
    yield "a huge code", described(routes=[{"route": "a", "kind": "call", "errors": [{"code": huge, "name": huge}]}])
    yield (
        "many errors",
        described(routes=[{"route": "a.b", "kind": "call", "errors": [{"code": f"E{n}"} for n in range(50_000)]}]),
    )
    same = [{"code": chr(0x4E00 + n), "extras": {"type": "integer"}} for n in range(20_000)]
    yield "many errors of one name", described(routes=[{"route": "a.b", "kind": "call", "errors": same}])
    yield "a million values", described({"default": [0] * 1_000_000})
    for pattern in PATTERNS:
        yield f"the pattern {pattern[:24]}", described({"type": "string", "pattern": pattern})
    slow = {f"f{n}": {"type": "string", "pattern": f"(?:){{{10**9 + n}}}"} for n in range(5_000)}
    yield "5,000 patterns", described(_object(slow))
    long = {f"f{n}": {"type": "string", "minLength": 10_000} for n in range(5_000)}
    yield "5,000 long texts", described(_object(long))
    yield "numbers beyond all", described(_object({f"n{n}": {"type": "number", "minimum": 10**18} for n in range(99)}))


PATTERNS = (
    "(?:){2000000000}", "(a{1000}){1000}", "((((a{99}){99}){99}){99}){99}", "(?:(?:){60000}){60000}",
    "a{4000000000}", "(" * 5_000, "(" * 5_000 + ")" * 5_000, "(a+)+$" * 100, "(a|a)*" * 1_000,
    "[" + "a-z" * 100_000 + "]", "a" * 1_000_000, "(?:a?){5000}a{5000}", "[^a]{9999}", "(x*)*" * 5_000,
    "(" + "|".join(f"a{n}" for n in range(100_000)) + ")", "(?P<n>a{9999})" + "(?P=n)" * 5_000, "\\" * 99_999,
    "(?i)" * 9_999, "(?=(?=(?=a)))" * 999, "[[a]", "(?a)(?u)",
)  # fmt: skip


def _types(levels: int) -> Schema:
    inner: Schema = {"type": "string"}
    for _ in range(levels):
        every = ["object", "array", "string", "number", "boolean", "null", "integer"] * 20
        inner = {"type": every, "properties": {f"f{n}": inner for n in range(2)}, "items": inner}
    return inner


def _many(count: int, schema: Schema) -> list[Schema]:
    return [{"route": f"a.r{n}", "kind": "call", "request": schema, "response": schema} for n in range(count)]
