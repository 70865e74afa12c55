from __future__ import annotations

from weirpool.schema.naming import Names
from weirpool.schema.nodes import NONE, Array, Choice, Field, Node, Reference, Scalar, Struct, Union
from weirpool.schema.python_types import PythonTypes
from weirpool.schema.shapes import Shapes

TEXT, NUMBER = Scalar("text"), Scalar("number")


def written(*fields: Field) -> list[str]:
    names = Names()
    types = PythonTypes(names, Shapes(names))
    types.type_of(Reference(Struct("A", fields=list(fields))), "A")
    return "\n".join("\n".join(block) for block in types.render()).splitlines()[1:]


def test_defaults_and_descriptions_are_kept() -> None:
    assert written(
        Field("a", TEXT, False, "Its name.", ("x",)),
        Field("b", NUMBER, False, default=(1,)),
        Field("c", Array(TEXT), False, default=([],)),
        Field("d", Union((TEXT, NONE)), False, default=(None,)),
        Field("class", TEXT, False, default=("y",)),
        Field("kind", Choice(("k",)), True),
        Field("e", Scalar("datetime"), False, default=("2026-01-01",)),
    ) == [
        '    a: str = "x"',
        '    """Its name."""',
        "    b: float = 1.0",
        "    c: list[str] = []",
        "    d: str | None = None",
        '    class_: str = msgspec.field(name="class", default="y")',
        '    kind: Literal["k"] = "k"',
        "    e: datetime.datetime | msgspec.UnsetType = msgspec.UNSET",
    ]


def test_unused_objects_are_not_declared() -> None:
    names = Names()
    shapes = Shapes(names)
    types = PythonTypes(names, shapes)
    one, other = (Reference(Struct(name, fields=[Field("x", TEXT, True)])) for name in "AB")
    nodes: list[Node] = [one, other]
    assert types.type_of(Union(tuple(nodes)), "Shop", "Init") == "Any"
    assert types.render() == []
    assert shapes.losses[0].place == "Shop.Init"
