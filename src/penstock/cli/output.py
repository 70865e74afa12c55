"""Prints items, as text or JSON, and errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from typer import Option

from ..errors import LocalError
from ..payload import Payload
from ..texts import shown, shown_json
from .arguments import offering
from .bodies import Bodies, bodies_of

__all__ = ["FORMATS", "OutputOptions", "Printer", "complain", "text_fields"]


def complain(message: str) -> None:
    """Print an error to standard error as one line. It may contain text from the peer."""
    print(f"penstock: {shown(message).replace(chr(10), ' ')}", file=sys.stderr)


class Printer:
    """Prints items to standard output.

    Args:
        format: One of `FORMATS`.
        bodies: Converts received data to the form to print.

    """

    def __init__(self, format: str = "text", bodies: Bodies | None = None) -> None:
        if format not in FORMATS:
            raise LocalError(f"unknown format {format!r}; use one of: {', '.join(FORMATS)}")
        self._bodies = bodies or Bodies(None)
        # Text is written unchanged, except to a terminal.
        self._written = _safe_line if format == "text" and sys.stdout.isatty() else FORMATS[format]

    def item(self, payload: Payload, flush: bool = True) -> None:
        """Print one item. Without `flush`, it may stay in a buffer until the next flush."""
        out = sys.stdout.buffer
        out.write(self._written(self._bodies.incoming(payload)))
        if flush:
            out.flush()


def _safe_line(payload: Payload) -> bytes:
    return shown(payload.data.decode("utf-8", "replace")).encode() + b"\n"


def _json_line(payload: Payload) -> bytes:
    fields = text_fields("data", payload.data) | text_fields("metadata", payload.metadata)
    return shown_json(json.dumps(fields, ensure_ascii=False)).encode() + b"\n"


def text_fields(name: str, value: bytes | None) -> dict[str, str | None]:
    """Return the fields of bytes in JSON: text, or null and hex for bytes that are not valid UTF-8."""
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_hex": value.hex()}


FORMATS: Final[Mapping[str, Callable[[Payload], bytes]]] = {
    "text": lambda payload: payload.data + b"\n",
    "json": _json_line,
    "hex": lambda payload: payload.data.hex().encode() + b"\n",
    "raw": lambda payload: payload.data,
    "none": lambda payload: b"",
}
"""The function that writes an item in each format.

text: the data and a line break. json: an object with `data` and `metadata` as text. Bytes that are not valid UTF-8 are
null, and are written as hex under `data_hex` or `metadata_hex`. hex: the data as hex and a line break. raw: only the
data. none: nothing.
"""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How items are printed."""

    format: Annotated[
        str,
        Option("--format", help=f"Output format of items: {', '.join(FORMATS)}.", autocompletion=offering(*FORMATS)),
    ] = "text"
    json: Annotated[bool, Option("--json", help="The same as --format json.")] = False

    def printer(self, url: str = "", mime: str | None = None) -> Printer:
        """Return a printer of items received from `url`. Without a URL, data is not converted; see :func:`bodies_of`.

        Raises:
            UrlError: `url` is not valid, or names an unknown protocol or transport.

        """
        return Printer("json" if self.json else self.format, bodies_of(url, mime) if url else None)
