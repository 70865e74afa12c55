from __future__ import annotations

from weirpool.schema.nodes import NONE, Array, Choice, Field, Record, Reference, Scalar, Struct, Tuple, Union
from weirpool.schema.typescript_types import TypescriptTypes, jsdoc, key, quoted

TEXT = Scalar("text")


def test_types() -> None:
    types = TypescriptTypes("string", extended=False)
    assert types.type_of(Array(Union((TEXT, NONE)))) == "(string | null)[]"
    assert types.type_of(Tuple((TEXT, Scalar("bytes")), 1)) == "[string, (string)?]"
    assert types.type_of(Record(Choice(("a", 1)))) == 'Record<string, "a" | 1>'
    assert types.type_of(Scalar("datetime", format="Date")) == "string"
    assert TypescriptTypes("Uint8Array", extended=True).type_of(Scalar("datetime", format="Date")) == "Date"


def test_interfaces() -> None:
    types = TypescriptTypes("string", extended=False)
    fields = [Field("a-b", TEXT, False, "A text.", ("x",)), Field("b", Choice(("c",), "C"), True)]
    types.type_of(Reference(Struct("A", "An object.", fields)))
    assert "\n".join("\n".join(block) for block in types.render()).splitlines() == [
        'export type C = "c";',
        "/** An object. */",
        "export interface A {",
        '  /** A text. By default "x". */',
        '  "a-b"?: string;',
        "  b: C;",
        "}",
    ]


def test_text_cannot_end_comments_or_literals() -> None:
    assert jsdoc("*/ alert(1) //") == ["/** * / alert(1) // */"]
    assert quoted('</script>\u2028"*/') == '"<\\/script>\\u2028\\"*\\/"'
    assert [key("a"), key("a b"), key("__proto__")] == ["a", '"a b"', '["__proto__"]']
