"""What the verbs print: items for people, or JSON for programs."""

from __future__ import annotations

import json
import re
import sys

from ..payload import Payload

__all__ = ["Printer", "complain", "shown"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Control characters but tab and line feed: a peer's bytes must not steer our terminal."""


def shown(text: str) -> str:
    """Return `text` with control characters as escapes, safe for a terminal."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match.group()):02x}", text)


def complain(message: str) -> None:
    """Print what went wrong to standard error, in one line; parts of it may be a peer's words."""
    print(f"penstock: {shown(message).replace(chr(10), ' ')}", file=sys.stderr)


class Printer:
    """Prints items to standard output, a line each.

    Args:
        as_json: One JSON object an item: `data` and `metadata` as text. What is no UTF-8 is null, and stands
            as hex under `data_hex` or `metadata_hex`. Else the data alone; as it is unless a terminal shows it.

    """

    def __init__(self, as_json: bool) -> None:
        self._json = as_json
        self._terminal = sys.stdout.isatty()

    def item(self, payload: Payload, flush: bool = True) -> None:
        """Print one item. Without `flush` it may stay in a buffer until one comes with it."""
        if self._json:
            line = _json_line(payload)
        elif self._terminal:
            line = shown(payload.data.decode("utf-8", "replace")).encode()
        else:
            line = payload.data
        out = sys.stdout.buffer
        out.write(line + b"\n")
        if flush:
            out.flush()


def _json_line(payload: Payload) -> bytes:
    fields = _text("data", payload.data) | _text("metadata", payload.metadata)
    text = json.dumps(fields, ensure_ascii=False)
    # JSON escapes the control characters below the space, but not those above it.
    return _CONTROL.sub(lambda match: f"\\u{ord(match.group()):04x}", text).encode()


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_hex": value.hex()}
