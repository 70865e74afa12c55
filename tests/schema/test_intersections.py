from __future__ import annotations

from typing import Any

import pytest

from weirpool import LocalError
from weirpool.schema.budget import Budget
from weirpool.schema.intersections import merged

A = {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}}
B = {"type": "object", "properties": {"b": {"type": "number"}}}


def test_objects_become_one_object() -> None:
    inner = {"allOf": [{"$ref": "A"}, B], "unevaluatedProperties": False}
    whole = merged({"allOf": [inner], "title": "Both"}, {"A": A}.get, Budget(100, "a test"))
    assert whole == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "number"}},
        "required": ["a"],
        "title": "Both",
    }


@pytest.mark.parametrize("parts", [[A, {"type": "string"}], [{"$ref": "none"}], [A, {"anyOf": [B]}], [True]])
def test_other_parts_are_nothing(parts: list[Any]) -> None:
    assert merged({"allOf": parts}, {}.get, Budget(100, "a test")) == {}


def test_parts_that_multiply_are_refused() -> None:
    layers: dict[str, Any] = {f"L{level}": {"allOf": [{"$ref": f"L{level + 1}"}] * 10} for level in range(9)}
    with pytest.raises(LocalError, match="a test takes more than 100 steps"):
        merged(layers["L0"], (layers | {"L9": A}).get, Budget(100, "a test"))
