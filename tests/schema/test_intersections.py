from __future__ import annotations

from typing import Any

import pytest

from penstock.schema.intersections import merged

A = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
B = {"type": "object", "properties": {"b": {"type": "number"}}}


def test_objects_become_one_object() -> None:
    inner = {"allOf": [{"$ref": "A"}, B], "unevaluatedProperties": False}
    whole = merged({"allOf": [inner], "title": "Both"}, {"A": A}.get)
    assert whole == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
        "required": ["a"],
        "title": "Both",
    }


@pytest.mark.parametrize("parts", [[A, {"type": "string"}], [{"$ref": "none"}], [A, {"anyOf": [B]}], [True]])
def test_other_parts_are_nothing(parts: list[Any]) -> None:
    assert merged({"allOf": parts}, {}.get) == {}
