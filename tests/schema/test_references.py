from __future__ import annotations

from typing import Any

from weirpool.schema.budget import Budget
from weirpool.schema.references import References

ROOT: dict[str, Any] = {
    "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "string"}, "C": {"$ref": "#/$defs/C"}},
    "items": [{"$id": "Named", "type": "null"}],
}


def test_references_lead_to_pointers_and_names() -> None:
    references = References(Budget(1_000, "a test"))
    found = {name: references.target(name, ROOT) for name in ("#/$defs/A", "#/items/0", "Named", "B", "#")}
    assert found["#/$defs/A"] == found["B"] == {"type": "string"}
    assert found["#/items/0"] is found["Named"]
    assert found["#"] is ROOT
    assert [references.target(name, ROOT) for name in ("#/$defs/C", "#/items/9", "none")] == [None, None, None]


def test_names_are_those_of_definitions() -> None:
    assert [References.name(each) for each in ("#/$defs/a~1b", "Node", "T0", "#", "#/properties/a")] == [
        "a/b", "Node", "", "", "",
    ]  # fmt: skip


def test_keys_are_equal_for_equal_values() -> None:
    references = References(Budget(1_000, "a test"))

    def key(schema: dict[str, Any], text: str = "string") -> str:
        return references.key(schema, {"$defs": {"A": {"type": text}}})

    reference = {"properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["b", "a"]}
    assert key(reference) == key({**reference, "description": "x", "required": ["a", "b"]})
    assert key(reference) != key({**reference}, "number")
    assert key(reference) != key({**reference, "title": "Other"})
