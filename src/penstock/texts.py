"""Text for people: that of peers, escaped so that it is safe to print, and numbers of things."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["WORDING", "counted", "quoted", "shortened", "shown", "shown_json", "shown_line"]

_CONTROLS: Final = r"\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
_UNSAFE: Final = re.compile(rf"[\x00-\x08\x0b-\x1f{_CONTROLS}]")
"""Characters that control a terminal or hide a part of a line (THREATS 18).

Control characters except tab and line feed, line and paragraph separators, and characters that change the text
direction. Surrogates are included because no terminal's encoding supports them.
"""
WORDING: Final = rf"^[^\x00-\x1f{_CONTROLS}]*\Z"
"""A pattern for texts that are shown in a line as they are."""
LINE_CHARACTERS: Final = 60
"""Maximum characters of a peer's text in one line of a dump."""


def counted(number: int, what: str) -> str:
    """Return a number of things: "1 feed", "2 feeds"."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def shown(text: str) -> str:
    """Return `text` with unsafe characters escaped; tabs and line feeds are kept."""
    return _UNSAFE.sub(_escaped, text)


def shown_line(text: str) -> str:
    """Return `text` as part of one line: as `shown`, with tabs and line feeds escaped too."""
    return shown(text).replace("\n", "\\n").replace("\t", "\\t")


def shown_json(text: str) -> str:
    """Return the JSON `text` with unsafe characters escaped; its value is unchanged."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shortened(text: str) -> str:
    """Return the first `LINE_CHARACTERS` characters of `text` as part of one line."""
    return f"{shown_line(text[:LINE_CHARACTERS])}{'…' if len(text) > LINE_CHARACTERS else ''}"


def quoted(data: bytes) -> str:
    """Return the first characters of `data` in quotes, followed by its length in bytes."""
    text = data[: 4 * LINE_CHARACTERS].decode(errors="backslashreplace")
    return f'"{shortened(text)}"({len(data)})'


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
