"""Names in generated code: converts arbitrary names of a schema to identifiers and literals."""

from __future__ import annotations

import hashlib
import keyword
import re
import textwrap
from typing import Final

__all__ = ["MAX_CHARACTERS", "Names", "camel", "docstring", "literal"]

MAX_CHARACTERS: Final = 32
"""Longer identifiers are shortened and distinguished by a hash, because lines have a maximum length."""
DOC_CHARACTERS: Final = 2_000
DOC_WIDTH: Final = 100

USED: Final = frozenset(
    "Any AsyncIterable Iterable Literal Peer TypeAlias TypedError TypedStream Union annotations bool bytes dict float"
    " init int items list msgspec self str typed".split()
)
"""Names with a meaning in generated code."""

_WORD: Final = re.compile(r"[A-Za-z0-9]+")


class Names:
    """Unique identifiers of one scope.

    Args:
        outer: The enclosing scope, whose names are not reused.

    """

    def __init__(self, outer: Names | None = None) -> None:
        self._taken: set[str] = set()
        self._outer: frozenset[str] | set[str] = USED if outer is None else outer._taken

    def give(self, wanted: str, otherwise: str) -> str:
        """Return an identifier similar to `wanted`, or `otherwise` if it has no valid characters.

        It is ASCII, starts with a letter (two underscores would be mangled or have a meaning), and is not a keyword.
        """
        plain = re.sub(r"[^A-Za-z0-9_]", "_", wanted).strip("_")
        if not plain[:1].isalpha():
            plain = f"{otherwise}_{plain}" if plain else otherwise
        if len(plain) > MAX_CHARACTERS:
            plain = f"{plain[: MAX_CHARACTERS - 9]}_{hashlib.sha256(wanted.encode('utf-8', 'replace')).hexdigest()[:8]}"
        name = f"{plain}_" if keyword.iskeyword(plain) or plain in USED else plain
        number = 2
        while name in self._taken or name in self._outer:
            name = f"{plain}_{number}"
            number += 1
        self._taken.add(name)
        return name


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


def docstring(text: str, indent: str) -> list[str]:
    """Return the lines of a docstring with `text`, which cannot end the docstring early."""
    shown = "".join(character if character.isprintable() else " " for character in text[:DOC_CHARACTERS])
    words = " ".join(shown.replace("\\", "\\\\").replace('"', "'").split())
    lines = textwrap.wrap(words, DOC_WIDTH, break_on_hyphens=False)
    if len(lines) <= 1:
        return [f'{indent}"""{words}"""'] if lines else []
    return [f'{indent}"""{lines[0]}', *(f"{indent}{line}" for line in lines[1:]), f'{indent}"""']
