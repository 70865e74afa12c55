"""Texts of peers, escaped for where they come out: a terminal, JSON, a shell or a page; and numbers of things."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from .errors import LocalError

__all__ = [
    "WORDING",
    "concealed",
    "counted",
    "cut",
    "page_text",
    "quoted",
    "shell_line",
    "shell_word",
    "shortened",
    "shown",
    "shown_json",
    "shown_line",
]

_CONTROLS: Final = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_CONTROLS}]")
"""Characters that control a terminal or hide a part of a line (THREATS 18).

Control characters except tab and line feed, line and paragraph separators, and characters that change the text
direction. Surrogates are included because no terminal's encoding supports them.
"""
WORDING: Final = rf"^[^\x00-\x1f{_CONTROLS}]*\Z"
"""A pattern for texts that are shown in a line as they are."""
_PLAIN: Final = re.compile(r"(?a)[\w@+:,./-][\w@+:,./=-]*")
"""Words that every shell reads as themselves. zsh would expand an equals sign at the beginning."""
_PARTS: Final = re.compile(r"['\\]|[^'\\]+")
_APART: Final = {"'": '"\'"', "\\": "\\\\"}
"""What is written outside single quotes."""
LINE_CHARACTERS: Final = 60
"""Maximum characters of a peer's text in one line of a dump."""
CHARACTER_BYTES: Final = 4
"""The longest character in UTF-8."""


def concealed(value: object) -> str:
    """Return what stands for an object with secrets, as its `__repr__`: errors and logs show objects as they are."""
    return f"<{type(value).__name__}>"


def counted(number: int, what: str) -> str:
    """Return a number of things: "1 feed", "2 feeds"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def cut(text: bytes, size: int) -> bytes:
    """Return at most `size` bytes of `text`. If it is UTF-8, it is cut between two characters."""
    if len(text) <= size:
        return text
    # All bytes of a character but the first one begin with the bits 10.
    for end in range(size, max(size - CHARACTER_BYTES, -1), -1):
        if text[end] & 0xC0 != 0x80:
            return text[:end]
    return text[:size]


def shown(text: str) -> str:
    """Return `text` with unsafe characters escaped; tabs and line feeds are kept."""
    return _UNSAFE.sub(_escaped, text)


def shown_line(text: str) -> str:
    """Return `text` as part of one line: as `shown`, with tabs and line feeds escaped too."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def shown_json(text: str) -> str:
    """Return the JSON `text` with unsafe characters escaped; its value is unchanged."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def page_text(text: str) -> str:
    """Return `text` as the text of an element, or the value of an attribute in quotes, of an HTML page."""
    from html import escape

    return escape(shown_line(text))


def shell_word(text: str) -> str:
    r"""Return `text` as one word of a command to paste into bash, zsh or fish, without control characters.

    Quotes do not protect from those: a terminal and a line editor act on them before a shell reads the line. Characters
    that are not printable are written as their bytes in hex, ``$'\x03'``. fish does not run a command with them.

    Raises:
        LocalError: No command can have it as an argument.

    """
    if _PLAIN.fullmatch(text):
        return text
    if text.isprintable():
        # Between single quotes, fish reads a backslash before a quote or another backslash as an escape.
        return "".join(_APART.get(part) or f"'{part}'" for part in _PARTS.findall(text)) or "''"
    if "\0" in text:
        raise LocalError(f"{shortened(text)!r} has a NUL character, which no argument of a command can have")
    try:
        return f"$'{''.join(map(_in_hex, text))}'"
    except UnicodeEncodeError:
        raise LocalError(f"{shortened(text)!r} has half of a surrogate pair, which is not text") from None


def shell_line(words: Iterable[str]) -> str:
    """Return words as a command line; see :func:`shell_word`."""
    return " ".join(map(shell_word, words))


def shortened(text: str) -> str:
    """Return the first `LINE_CHARACTERS` characters of `text` as part of one line."""
    return f"{shown_line(text[:LINE_CHARACTERS])}{'…' if len(text) > LINE_CHARACTERS else ''}"


def quoted(data: bytes) -> str:
    """Return the first characters of `data` in quotes, followed by its length in bytes."""
    text = data[: 4 * LINE_CHARACTERS].decode(errors="backslashreplace")
    return f'"{shortened(text)}"({len(data)})'


def _in_hex(character: str) -> str:
    # A shell expands its history before it reads quotes.
    if character.isprintable() and character not in "'\\!":
        return character
    # Words of the user's own command line have surrogates for bytes that are not UTF-8.
    return "".join(f"\\x{byte:02x}" for byte in character.encode(errors="surrogateescape"))


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
