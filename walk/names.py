"""Finds files above the waist that name a protocol in their code."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator

from .sources import Source

__all__ = ["above_the_waist", "protocols_named"]

BELOW = ("core", "reactivestreams", "river", "rsocket", "wire")
"""Folders at the waist and below."""
MAY_NAME = {
    "__init__": "lists the public names and their modules",
    "dialects": "the registry of protocols, until protocols.py is",
    "errors": "describes what went wrong",
    "protocols": "the registry of protocols",
    "settings": "has settings of single protocols",
}
PROTOCOL = re.compile(
    r"(?i:rsocket|reactive-?_?socket|reactive[-_]?streams)|(?<![A-Za-z])river|(?<![A-Z])River|(?<![A-Za-z])RIVER"
)
"""A protocol's name, also within others such as `RSocketSession`, but not in `driver`."""
HELP = frozenset({"epilog", "help", "rich_help_panel", "short_help"})
"""Arguments that contain help texts."""


def above_the_waist(source: Source) -> bool:
    """Return True if a file must not name a protocol."""
    folder, _, rest = source.path.partition("/")
    return folder not in BELOW if rest else source.module not in {*MAY_NAME, ""}


def protocols_named(sources: Iterable[Source]) -> list[str]:
    """Return the files above the waist that name a protocol, each with the first such line."""
    return [f"{source.path}:{line}" for source in sources if above_the_waist(source) and (line := _first(source))]


def _first(source: Source) -> int:
    """Return the first line whose code names a protocol, or 0."""
    words = _words(source.tree) if source.is_python else _cython_words(source.text)
    return min((line for line, word in words if PROTOCOL.search(word)), default=0)


def _words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield all identifiers and strings with their lines, except docstrings and help texts."""
    waiting: list[ast.AST] = [tree]
    line = 0
    while waiting:
        node = waiting.pop()
        line = getattr(node, "lineno", line)
        yield from ((line, word) for word in _words_of(node))
        waiting.extend(child for child in ast.iter_child_nodes(node) if not _is_prose(child))


def _is_prose(node: ast.AST) -> bool:
    """Return True for a docstring or a help text."""
    if isinstance(node, ast.keyword):
        return node.arg in HELP
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.JoinedStr)


def _words_of(node: ast.AST) -> Iterator[str]:
    """Yield the identifiers and strings in the node itself."""
    for _, value in ast.iter_fields(node):
        for word in value if isinstance(value, list) else [value]:
            if isinstance(word, str):
                yield word
            elif isinstance(word, bytes):
                yield word.decode("latin-1")


def _cython_words(text: str) -> Iterator[tuple[int, str]]:
    """Yield all identifiers and strings of Cython with their lines, except strings in triple quotes."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_word = token.type == tokenize.NAME or (token.type == tokenize.STRING and '"""' not in token.string)
        if is_word:
            yield token.start[0], token.string
