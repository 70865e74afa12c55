"""What the verbs print: items for people, or JSON for programs."""

from __future__ import annotations

import json
import re
import sys

from ..payload import Payload

__all__ = ["Printer", "shown"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and line feed: a peer's bytes must not steer our terminal."""


def shown(text: str) -> str:
    """Return `text` with control characters as escapes, safe for a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


class Printer:
    """Prints items to standard output, a line each.

    Args:
        as_json: One JSON object an item: `data` and `metadata` as text, or as hex under `data_hex` and
            `metadata_hex` where they are no UTF-8. Else the data alone; as it is unless a terminal shows it.

    """

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._terminal = sys.stdout.isatty()

    def item(self, payload: Payload) -> None:
        """Print one item."""
        if self._json:
            fields = _text("data", payload.data) | _text("metadata", payload.metadata)
            line = json.dumps(fields, ensure_ascii=False).encode()
        elif self._terminal:
            line = shown(payload.data.decode("utf-8", "replace")).encode()
        else:
            line = payload.data
        out = sys.stdout.buffer
        out.write(line + b"\n")
        out.flush()


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {f"{name}_hex": value.hex()}
