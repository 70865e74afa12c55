"""Lays out generated Python as formatters do: on one line, or one part per line."""

from __future__ import annotations

from typing import Final

__all__ = ["LINE", "alias", "call", "listed", "split"]

LINE: Final = 120
BRACKETS: Final = {"[": "]", "(": ")"}


def call(head: str, arguments: list[str], tail: str, indent: str) -> list[str]:
    """Return a call on one line, or if that is too long, with one line per argument.

    Args:
        head: The text before the parenthesis, including its indent.
        arguments: The arguments.
        tail: The text after the parenthesis.
        indent: The indent of the line.

    """
    return listed(head, arguments, tail, indent, "()")


def listed(head: str, parts: list[str], tail: str, indent: str, brackets: str) -> list[str]:
    """Return items within brackets, as :func:`call` does."""
    opening, closing = brackets[0], brackets[1]
    line = f"{head}{opening}{', '.join(parts)}{closing}{tail}"
    if len(line) <= LINE:
        return [line]
    inner = [line for part in parts for line in _part(part, f"{indent}    ")]
    return [f"{head}{opening}", *inner, f"{indent}{closing}{tail}"]


def _part(part: str, indent: str) -> list[str]:
    """Return one of several parts, itself on several lines if it is too long for one."""
    if len(indent) + len(part) < LINE or part[-1:] not in "])":
        return [f"{indent}{part},"]
    start = next(at for at, character in enumerate(part) if character in BRACKETS)
    return listed(f"{indent}{part[:start]}", split(part[start + 1 : -1], ", "), ",", indent, part[start] + part[-1])


def alias(name: str, expression: str) -> list[str]:
    """Return the lines that give a type a name."""
    line = f"{name}: TypeAlias = {expression}"
    if len(line) <= LINE:
        return [line]
    members = split(expression, " | ")
    if len(members) > 1:
        return listed(f"{name}: TypeAlias = Union", members, "", "", "[]")
    head, _, rest = expression.partition("[")
    return listed(f"{name}: TypeAlias = {head}", split(rest[:-1], ", "), "", "", "[]")


def split(text: str, between: str) -> list[str]:
    """Split an expression at its outermost level; literals contain no quotes other than their own."""
    parts, depth, quoted, start = [], 0, False, 0
    for at, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif not quoted and character in "[]()":
            depth += 1 if character in "[(" else -1
        elif not quoted and not depth and text.startswith(between, at):
            parts.append(text[start:at])
            start = at + len(between)
    return [*parts, text[start:]]
