"""What a peer has written, for people to read."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["shown"]

_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def shown(text: str) -> str:
    """Return `text` with escapes for control characters but tabs and line feeds (THREATS 18): it steers no terminal."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)
