"""Names in generated code: converts arbitrary names of a schema to identifiers and literals."""

from __future__ import annotations

import hashlib
import keyword
import re
import textwrap
from typing import Final

__all__ = ["MAX_CHARACTERS", "Names", "camel", "comment", "docstring", "literal", "paragraphs"]

MAX_CHARACTERS: Final = 32
"""Longer identifiers are shortened and distinguished by a hash, because lines have a maximum length."""
DOC_CHARACTERS: Final = 2_000
DOC_WIDTH: Final = 100

USED: Final = frozenset(
    "Annotated Any AsyncIterable Decimal Iterable Literal Peer TypeAlias TypedError TypedStream UUID Union annotations"
    " bool bytes datetime dict float init int items list msgspec self str tuple typed".split()
)
"""Names with a meaning in generated code."""

_WORD: Final = re.compile(r"[A-Za-z0-9]+")


class Names:
    """Unique identifiers of one scope.

    Args:
        outer: The enclosing scope, whose names are not reused.
        used: Names with a meaning in the language.

    """

    def __init__(self, outer: Names | None = None, used: frozenset[str] = USED) -> None:
        self._taken: set[str] = set()
        # The number to try next for each name that was taken: counting from 2 each time would be quadratic.
        self._next: dict[str, int] = {}
        self._used: frozenset[str] = used if outer is None else outer._used
        self._keywords = keyword.iskeyword if self._used is USED else frozenset[str]().__contains__
        self._outer: frozenset[str] | set[str] = used if outer is None else outer._taken

    def give(self, wanted: str, otherwise: str) -> str:
        """Return an identifier similar to `wanted`, or `otherwise` if it has no valid characters.

        It is ASCII, starts with a letter (two underscores would be mangled or have a meaning), and is not a keyword.
        """
        return self.first([wanted], otherwise)

    def first(self, wanted: list[str], otherwise: str) -> str:
        """Return the first of several identifiers that is not taken, or the last one with a number."""
        for each in wanted[:-1]:
            plain = self._plain(each, otherwise)
            if plain not in self._taken and plain not in self._outer:
                self._taken.add(plain)
                return plain
        plain = self._plain(wanted[-1], otherwise)
        name, number = plain, self._next.get(plain, 2)
        while name in self._taken or name in self._outer:
            name = f"{plain.rstrip('_')}_{number}"
            number += 1
        self._next[plain] = number
        self._taken.add(name)
        return name

    def _plain(self, wanted: str, otherwise: str) -> str:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted).strip("_")
        if not plain[:1].isalpha():
            plain = f"{otherwise}_{plain}" if plain else otherwise
        if len(plain) > MAX_CHARACTERS:
            plain = f"{plain[: MAX_CHARACTERS - 9]}_{hashlib.sha256(wanted.encode('utf-8', 'replace')).hexdigest()[:8]}"
        return f"{plain}_" if self._keywords(plain) or plain in self._used else plain


def camel(*words: str) -> str:
    """Return words joined as a class name: `quotes`, `latest_one` become `QuotesLatestOne`."""
    return "".join(part[:1].upper() + part[1:] for word in words for part in _WORD.findall(word))


def literal(value: str | int | None) -> str:
    """Return an ASCII Python literal without significant quotes or backslashes."""
    if not isinstance(value, str):
        return repr(value)
    return f'"{"".join(_escaped(character) for character in value)}"'


def _escaped(character: str) -> str:
    code = ord(character)
    if 0x20 <= code < 0x7F and character not in '"\\':
        return character
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def comment(text: str) -> str:
    """Return a text on one line, without characters that have an effect."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown[:DOC_WIDTH].split())


def docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring with the paragraphs of `text`, which cannot end the docstring early."""
    lines = [line.replace("\\", "\\\\").replace('"', "'") for line in paragraphs(text)]
    if len(lines) <= 1:
        return [f'{indent}"""{line}"""' for line in lines]
    inner = [f"{indent}{line}" if line else "" for line in lines[1:]]
    return [f'{indent}"""{lines[0]}', *inner, f'{indent}"""']


def paragraphs(text: str) -> list[str]:
    """Return a text as lines of limited length, with an empty line between paragraphs."""
    found = [lines for each in text[:DOC_CHARACTERS].split("\n\n") if (lines := _wrapped(each))]
    return [line for number, each in enumerate(found) for line in ([""] if number else []) + each]


def _wrapped(text: str) -> list[str]:
    shown = "".join(character if character.isprintable() else " " for character in text)
    return textwrap.wrap(" ".join(shown.split()), DOC_WIDTH, break_on_hyphens=False)
