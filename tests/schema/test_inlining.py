from __future__ import annotations

from typing import Any

from weirpool.schema.inlining import inlined

LEAF = {"type": "object", "title": "Leaf", "properties": {"size": {"type": "integer", "title": "Size"}}}


def test_references_are_written_in_full_and_fields_have_no_title() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/Leaf"}, "$defs": {"Leaf": LEAF}}
    leaf = {"type": "object", "title": "Leaf", "properties": {"size": {"type": "integer"}}}
    assert inlined(schema) == {"type": "array", "items": leaf}


def test_recursive_types_stay_definitions() -> None:
    tree: dict[str, Any] = {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Tree"}}}
    assert inlined({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree, "Leaf": LEAF}}) == {
        "$ref": "#/$defs/Tree",
        "$defs": {"Tree": tree},
    }


def test_what_stands_beside_a_reference_is_kept() -> None:
    schema = {"properties": {"title": {"$ref": "#/$defs/Leaf", "description": "the first"}}, "$defs": {"Leaf": LEAF}}
    assert inlined(schema)["properties"]["title"]["description"] == "the first"


def test_reference_to_nothing_is_left_alone() -> None:
    assert inlined({"$ref": "#/$defs/None"}) == {"$ref": "#/$defs/None"}
