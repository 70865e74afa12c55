from __future__ import annotations

import ast
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weirpool.schema.naming import MAX_CHARACTERS, USED, Names, camel, docstring, literal


@pytest.mark.parametrize(
    ("wanted", "given_"),
    [
        ("price", "price"),
        ("everyMs", "everyMs"),
        ("class", "class_"),
        ("None", "None_"),
        ("list", "list_"),
        ("__proto__", "proto"),
        ("a b", "a_b"),
        ("1st", "field_1st"),
        ("", "field"),
        ("é", "field"),
        ("a\nimport os", "a_import_os"),
    ],
)
def test_words_become_identifiers(wanted: str, given_: str) -> None:
    assert Names().give(wanted, "field") == given_


@given(st.lists(st.text() | st.sampled_from(["a", "A", "class", "x" * 50, "x" * 51]), max_size=20))
def test_names_are_identifiers_and_differ(words: list[str]) -> None:
    names = Names()
    found = [names.give(word, "field") for word in words]
    assert len(set(found)) == len(found)
    for name in found:
        assert name.isidentifier() and name.isascii() and not name.startswith("_")
        assert not keyword.iskeyword(name) and name not in USED
        assert len(name) <= MAX_CHARACTERS + len("_99")


def test_inner_scope_avoids_names_of_the_outer_scope() -> None:
    outer = Names()
    outer.give("Quote", "Type")
    assert Names(outer).give("Quote", "field") == "Quote_2"
    assert outer.give("price", "field") == Names(outer).give("other", "price").replace("other", "price")


def test_camel() -> None:
    assert camel("quotes", "latest_one", "Init") == "QuotesLatestOneInit"
    assert camel("a-b c", "1") == "ABC1"


@given(st.text())
def test_literals_evaluate_to_their_values(text: str) -> None:
    written = literal(text)
    assert written.isascii() and "\n" not in written
    assert ast.literal_eval(written) == text
    assert written.count('"') == 2


def test_other_literals() -> None:
    assert [literal(None), literal(-3)] == ["None", "-3"]


@given(st.text() | st.text(alphabet='"\\\n a\u202e'))
def test_text_cannot_end_a_docstring(text: str) -> None:
    lines = docstring(text, "    ")
    source = "\n".join(["def f():", *lines, "    return 1"])
    tree = ast.parse(source)
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    assert len(tree.body) == 1
    assert len(function.body) == (2 if lines else 1)
    assert all(character.isprintable() or character == "\n" for character in source)
