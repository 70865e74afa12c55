from __future__ import annotations

from weirpool.schema.nodes import Choice, Field, Reference, Scalar, Struct


def test_equal_types_are_equal_and_objects_are_themselves() -> None:
    assert Scalar("text", (("maxLength", 1),)) == Scalar("text", (("maxLength", 1),))
    one = Struct("A", fields=[Field("kind", Choice(("a",)), True)], tag="kind")
    assert Reference(one) == Reference(one)
    assert Reference(one) != Reference(Struct("A"))
    assert one.tag_value() == "a"
