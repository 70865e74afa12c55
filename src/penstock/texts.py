"""A peer's text, made safe to print: the one escaper."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["quoted", "shortened", "shown", "shown_json", "shown_line"]

_STEERING: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that steer a terminal or hide what a line says (THREATS 18).

Control characters except tab and line feed, the separators of lines and paragraphs, and those that change the
direction of writing. Surrogates are in it because no terminal's encoding can hold them.
"""
LINE_CHARACTERS: Final = 60
"""How much of a peer's text one line of a dump shows."""


def shown(text: str) -> str:
    """Return `text` with escapes for characters that steer a terminal; tabs and line feeds stay."""
    return _STEERING.sub(_escaped, text)


def shown_line(text: str) -> str:
    """Return `text` as part of one line: like `shown`, with escapes for tabs and line feeds, too."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def shown_json(text: str) -> str:
    """Return valid JSON without characters that steer a terminal; it stays the same value."""
    return _STEERING.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shortened(text: str) -> str:
    """Return the beginning of `text` as part of one line."""
    return f"{shown_line(text[:LINE_CHARACTERS])}{'…' if len(text) > LINE_CHARACTERS else ''}"


def quoted(data: bytes) -> str:
    """Return the beginning of `data` as a text in quotes, and its length in bytes."""
    text = data[: 4 * LINE_CHARACTERS].decode(errors="backslashreplace")
    return f'"{shortened(text)}"({len(data)})'


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
