"""A peer's text, made safe to print: the one escaper."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["shown", "shown_json"]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters except tab and line feed (THREATS 18)."""


def shown(text: str) -> str:
    """Return `text` with its control characters escaped; tabs and line feeds stay."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def shown_json(text: str) -> str:
    """Return valid JSON with its control characters escaped as JSON does; it stays the same value."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found.group()):04x}", text)
