"""Schemas with shared definitions: one per type, each with a name of its own."""

from __future__ import annotations

import msgspec

from weirpool.reflection.definitions import Definitions, used

from .quotes import Node, Order, Quote, Symbol


class Other(msgspec.Struct):
    next: Other | None = None


def test_a_type_that_is_used_twice_is_written_once() -> None:
    definitions = Definitions()
    assert definitions.add(Quote) == definitions.add(Quote) == {"$ref": "#/$defs/Quote"}
    assert list(definitions.table) == ["Quote"]


def test_different_types_of_one_name_have_different_names() -> None:
    definitions = Definitions()
    other = msgspec.defstruct("Quote", [("bid", float)])
    recursive = msgspec.defstruct("Node", [("next", "Node | None", None)], namespace={"__module__": __name__})
    assert definitions.add(Quote) != definitions.add(other)
    assert definitions.add(Node) == {"$ref": "#/$defs/Node"} and isinstance(recursive, type)
    own = {"$ref": "#/$defs/Node", "$defs": {"Node": {"type": "object", "properties": {"a": {"$ref": "#/$defs/Node"}}}}}
    assert definitions.add(own) == {"$ref": "#/$defs/Node2"}
    assert definitions.table["Node2"]["properties"] == {"a": {"$ref": "#/$defs/Node2"}}
    assert definitions.add(own) == {"$ref": "#/$defs/Node2"}


def test_a_recursive_type_is_the_same_beside_others() -> None:
    definitions = Definitions()
    both = msgspec.defstruct("Both", [("node", Node), ("other", Other)])
    for wanted in (both, Node, Other, list[Node]):
        definitions.add(wanted)
    assert set(definitions.table) == {"Both", "Node", "Other"}


def test_every_reference_has_its_target() -> None:
    definitions = Definitions()
    for each in (Order, Node, list[Symbol], dict[str, Quote] | None):
        definitions.add(each)
    names = {reference.rpartition("/")[2] for reference in references(definitions.table)}
    assert names <= definitions.table.keys()


def references(node: object) -> list[str]:
    """Return all references in a schema."""
    if isinstance(node, list):
        return [each for part in node for each in references(part)]
    if not isinstance(node, dict):
        return []
    own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
    return own + [each for part in node.values() for each in references(part)]


def test_bytes_are_base64_and_values_are_left_alone() -> None:
    definitions = Definitions()
    assert definitions.add(bytes) == {"type": "string", "contentEncoding": "base64"}
    given = {"type": "object", "default": {"title": "T", "properties": {}}, "enum": [{"type": "Uint8Array"}]}
    assert definitions.add(given) == given


def test_a_property_called_title_is_a_property() -> None:
    definitions = Definitions()
    book = msgspec.defstruct("Book", [("title", str), ("description", str)])
    definitions.add(book)
    assert definitions.table["Book"]["properties"] == {"title": {"type": "string"}, "description": {"type": "string"}}


def test_what_has_no_schema_is_unknown() -> None:
    assert Definitions().add(None) is None
    assert Definitions().add(object()) is None


def test_used_follows_references() -> None:
    table = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}, "C": {}}
    assert used({"items": [{"$ref": "#/$defs/A"}]}, table) == {"A": table["A"], "B": table["B"]}
