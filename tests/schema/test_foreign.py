from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.missing import need_module
from weirpool import LocalError, Mismatch
from weirpool.schema.converter import Converter
from weirpool.schema.foreign import Validator, check_schema
from weirpool.schema.formats import JSON, MSGPACK

ORDER: dict[str, Any] = {
    "type": "object",
    "required": ["n"],
    "properties": {"n": {"type": "integer"}, "a/b": {"type": "array", "items": {"type": "string"}}},
}


def test_missing_package_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(LocalError, match=r"pip install 'weirpool\[schema\]'"):
        Validator(ORDER)


LINKS: dict[str, Any] = {f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 2} for level in range(20)}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "#"}, "infinitely recursive"),
        ({"anyOf": [{"type": "string"}, {"$ref": "#"}]}, "infinitely recursive"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"not": {"$ref": "#/$defs/b"}}, "b": {"$ref": "#/$defs/a"}}},
            "infinitely recursive",
        ),
        ({"properties": {"x": {"$ref": "http://127.0.0.1/x"}}}, "only references such as"),
        ({"$ref": "other"}, "only references such as"),
        ({"$ref": "#/$defs/none"}, "does not exist"),
        ({"items": {"$dynamicRef": "#x"}}, "dynamicRef"),
        ({"items": {"$id": "http://x/", "type": "string"}}, "has an \\$id"),
        ({"$ref": "#/$defs/d0", "$defs": {**LINKS, "d20": {}}}, "use fewer references"),
        ({"enum": list(range(20_000))}, "nodes"),
    ],
)
def test_endless_schemas_are_refused(schema: dict[str, Any], message: str) -> None:
    # THREATS 67
    with pytest.raises(LocalError, match=message):
        check_schema(schema)


def test_too_deep_a_schema_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(1_000):
        schema = {"items": schema}
    with pytest.raises(LocalError, match="levels"):
        check_schema(schema)


def test_schema_may_refer_to_itself_for_another_value() -> None:
    schema = {"type": "object", "properties": {"next": {"$ref": "#"}, "$ref": {"type": "string"}}}
    validator = Validator(schema)
    validator.check({"next": {"next": {}}})
    with pytest.raises(Mismatch):
        validator.check({"next": {"next": 1}})


def test_problems_have_paths_and_are_counted() -> None:
    need_module("jsonschema_rs")
    converter = Converter(ORDER)
    assert converter.decode(JSON, b'{"n": 1}') == {"n": 1}
    assert converter.decode(MSGPACK, MSGPACK.encode({"n": 1})) == {"n": 1}
    with pytest.raises(Mismatch) as error:
        converter.decode(JSON, b'{"a/b": [1, 2, 3, 4, 5, 6, 7, 8]}')
    assert len(error.value.problems) == 5
    assert error.value.total == 9
    paths = [path for path, _ in error.value.problems]
    assert "/a~1b/0" in paths
    with pytest.raises(Mismatch, match=r"^/n: .*required"):
        converter.decode(JSON, b"{}")


def test_error_does_not_repeat_values() -> None:
    need_module("jsonschema_rs")
    with pytest.raises(Mismatch) as error:
        Converter({"type": "integer"}).decode(JSON, b'"a secret"')
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "a{1000000}{1000000}", "("])
def test_patterns_run_in_linear_time_or_are_refused(pattern: str) -> None:
    # THREATS 67
    need_module("jsonschema_rs")
    with pytest.raises(LocalError, match="refused"):
        Validator({"type": "string", "pattern": pattern})


def test_a_catastrophic_pattern_does_no_harm() -> None:
    need_module("jsonschema_rs")
    with pytest.raises(Mismatch):
        Converter({"type": "string", "pattern": "^(a+)+$"}).decode(JSON, b'"' + b"a" * 100_000 + b'b"')


def test_bytes_are_a_type() -> None:
    need_module("jsonschema_rs")
    converter = Converter({"type": "object", "properties": {"b": {"type": "Uint8Array"}}})
    assert converter.decode(MSGPACK, MSGPACK.encode({"b": b"\xff"})) == {"b": b"\xff"}
    with pytest.raises(Mismatch):
        converter.decode(JSON, b'{"b": 1}')


def test_value_not_representable_in_json_is_a_mismatch() -> None:
    need_module("jsonschema_rs")
    with pytest.raises(Mismatch):
        Converter(ORDER).decode(MSGPACK, MSGPACK.encode({1: 2}))
