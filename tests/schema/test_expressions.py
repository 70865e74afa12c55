"""Expressions that take exponential time are found, and usual ones are not suspected."""

from __future__ import annotations

import re
import time

import pytest

from weirpool.schema.expressions import MAX_CHARACTERS, is_safe, parsed

USUAL = [
    "^[A-Z]{1,5}$", "^[a-z0-9]+(?:-[a-z0-9]+)*$", r"^\d{4}-\d{2}-\d{2}$", r"^([0-9]{1,3}\.){3}[0-9]{1,3}$",
    r"^[^@\s]+@[^@\s]+\.[^@\s]+$", "^(a|b|cd)*$", r"^(\.\w+)+$", "^([a-z]+,)*$", "^(?:[A-Z][a-z]*)+$", "", "x", "^.*$",
    r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?$", "^(?:ab?)*$", "^#([0-9a-f]{3}){1,2}$", r"^(/[^/]+)*$", "^(?>a+)+$", "^(?:a++)+$",
    "^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", "^(?:[\u0430-\u044f]+ )*$", "^(?:[^\u0430]\u0430)*$",
]  # fmt: skip
SLOW = [
    "(a+)+$", "^(a*)*$", "^(a|aa)+$", "^(.*a){20}$", r"^(\w+\s?)*$", "^(?:a?){30}a{30}$", "^((a+)+)+$",
    "^(a{1,99}){1,99}$", "^(x+x+)+y", "^(.*)*$", "a*" * 30 + "$", "^(?:(?:a|b)*)*$", "^([^a]|b)*$",
]  # fmt: skip


@pytest.mark.parametrize("pattern", USUAL)
def test_usual_expressions_are_safe(pattern: str) -> None:
    assert is_safe(parsed(pattern))


@pytest.mark.parametrize("pattern", SLOW)
def test_slow_expressions_are_found(pattern: str) -> None:
    assert not is_safe(parsed(pattern))


def test_what_is_safe_ends_soon() -> None:
    begun = time.process_time()
    for pattern in USUAL:
        for text in ("a" * 300, "ab" * 150, "a-" * 150, "a." * 150, "1" * 300, "/" * 300, "a " * 150):
            re.search(pattern, text + "!\n!")
    assert time.process_time() - begun < 5


@pytest.mark.parametrize(
    "pattern", ["(", "(?a)(?u)", "(" * 900, "a{5000000000}", "a" * (MAX_CHARACTERS + 1), "(?<n>a)", r"\p{L}", "[z-a]"]
)
def test_what_python_cannot_read_is_no_expression(pattern: str) -> None:
    with pytest.raises(ValueError):
        parsed(pattern)


def test_an_expression_of_a_later_python_is_no_warning() -> None:
    assert is_safe(parsed("[[a]"))
