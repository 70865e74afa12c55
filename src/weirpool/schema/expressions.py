"""Whether the regular expressions of schemas can be run on texts of a peer, by engines that backtrack."""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

__all__ = ["MAX_CHARACTERS", "is_safe", "parsed"]

MAX_CHARACTERS: Final = 1_000
FEW: Final = 8
"""Repetitions that multiply the time by no more than people notice."""
MAX_LARGE: Final = 8
"""Large repetitions: each may multiply the time by the length of the text."""
OTHER: Final = "\x80"
"""Stands for all characters beyond ASCII."""
ALL: Final = frozenset(map(chr, range(0x80))) | {OTHER}
CATEGORIES: Final = {
    "CATEGORY_DIGIT": frozenset(string.digits) | {OTHER},
    "CATEGORY_SPACE": frozenset(string.whitespace) | {OTHER},
    "CATEGORY_WORD": frozenset(string.ascii_letters + string.digits + "_") | {OTHER},
}
REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT")

Part = tuple[Any, Any]
Characters = frozenset[str]


@lru_cache(maxsize=1_024)
def parsed(pattern: str) -> Any:
    """Return the parts of a regular expression.

    Raises:
        ValueError: Python cannot read it, or it is too long.

    """
    if len(pattern) > MAX_CHARACTERS:
        raise ValueError(f"it has more than {MAX_CHARACTERS} characters")
    # It has no public name. The libraries that make texts of expressions use it as well.
    parser: Any = import_module("re._parser")
    try:
        with warnings.catch_warnings():
            # What a newer version of Python will read in another way.
            warnings.simplefilter("ignore")
            return parser.parse(pattern)
    except (OverflowError, RecursionError, re.error) as error:
        raise ValueError(str(error)) from None


def is_safe(parts: Sequence[Part]) -> bool:
    """Return True if an expression, of which these are the parts, does not take exponential time in any text.

    A repetition within a repetition may match a text in very many ways. It cannot if each round of the outer one begins
    or ends with a character that the rest of it does not match. Where this is not known, the answer is False.
    """
    return _is_safe(parts) and sum(high > FEW for _, (_, high, _) in _repeats(parts)) <= MAX_LARGE


def _is_safe(parts: Sequence[Part]) -> bool:
    for _, (_, high, body) in _repeats(parts):
        if high > FEW and _may_vary(body) and not _is_delimited(body):
            return False
    return True


def _repeats(parts: Sequence[Part]) -> Iterator[Part]:
    """Yield all repetitions, also those within others. Possessive ones do not backtrack."""
    for part in parts:
        if str(part[0]) in REPEATS:
            yield part
        for inner in _inner(part):
            yield from _repeats(inner)


def _inner(part: Part) -> list[Sequence[Part]]:
    """Return the sequences within a part."""
    operation, value = str(part[0]), part[1]
    if operation in REPEATS:
        return [value[2]]
    if operation == "SUBPATTERN":
        return [value[-1]]
    if operation == "BRANCH":
        return list(value[1])
    if operation in ("ASSERT", "ASSERT_NOT"):
        return [value[1]]
    return [each for each in value[1:] if each] if operation == "GROUPREF_EXISTS" else []


def _may_vary(parts: Sequence[Part]) -> bool:
    """Return True if a sequence can match texts of different lengths, or one text in several ways."""
    for part in parts:
        operation, value = str(part[0]), part[1]
        if operation in REPEATS and value[0] != value[1]:
            return True
        if operation == "BRANCH" and not _are_apart(value[1]):
            return True
        if operation in ("GROUPREF", "GROUPREF_EXISTS") or any(map(_may_vary, _inner(part))):
            return True
    return False


def _are_apart(branches: Sequence[Sequence[Part]]) -> bool:
    """Return True if the first character chooses between alternatives."""
    seen: set[str] = set()
    for branch in branches:
        first = _single(branch[0]) if branch else None
        if first is None or not seen.isdisjoint(first):
            return False
        seen |= first
    return True


def _is_delimited(body: Sequence[Part]) -> bool:
    """Return True if a round begins or ends with a character that is nowhere else in it."""
    parts = [part for part in body if str(part[0]) != "AT"]
    while len(parts) == 1 and str(parts[0][0]) == "SUBPATTERN":
        parts = [part for part in parts[0][1][-1] if str(part[0]) != "AT"]
    for edge, rest in ((parts[:1], parts[1:]), (parts[-1:], parts[:-1])):
        single = _single(edge[0]) if edge else None
        if single is not None and single.isdisjoint(frozenset[str]().union(*map(_characters, rest))):
            return _is_safe(rest)
    return False


def _single(part: Part) -> Characters | None:
    """Return the characters of a part that matches exactly one; None for another one."""
    return _characters(part) if str(part[0]) in ("LITERAL", "NOT_LITERAL", "ANY", "IN") else None


def _characters(part: Part) -> Characters:
    """Return the characters that may be in what a part matches."""
    operation, value = str(part[0]), part[1]
    match operation:
        case "LITERAL":
            return _range(value, value)
        case "NOT_LITERAL":
            return ALL - (_range(value, value) - {OTHER})
        case "IN":
            return _class(value)
        case "AT" | "ASSERT" | "ASSERT_NOT":
            return frozenset()
    inner = _inner(part)
    return frozenset[str]().union(*(_characters(each) for one in inner for each in one)) if inner else ALL


def _class(choices: Sequence[Part]) -> Characters:
    found: Characters = frozenset()
    negated = False
    for operation, value in choices:
        match str(operation):
            case "NEGATE":
                negated = True
            case "LITERAL":
                found |= _range(value, value)
            case "RANGE":
                found |= _range(*value)
            case _:
                name = str(value)
                positive = CATEGORIES.get(name.replace("NOT_", ""), ALL)
                found |= (ALL - positive) | {OTHER} if "NOT_" in name else positive
    return (ALL - found) | {OTHER} if negated else found


def _range(first: int, last: int) -> Characters:
    return frozenset(map(chr, range(first, min(last, 0x7F) + 1))) | ({OTHER} if last > 0x7F else frozenset())
