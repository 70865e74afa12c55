"""Prints items, as text or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

from typer import Option

from ..errors import FrameError, LocalError
from ..payload import Payload
from ..protocols import is_composite
from ..texts import shown, shown_json
from ..urls import parse_url
from .bodies import Bodies, bodies_of
from .colors import colored
from .values import offering

if TYPE_CHECKING:
    from .connect_options import SessionOptions

__all__ = ["FORMATS", "OutputOptions", "Printer", "json_line", "text_fields"]


class Printer:
    """Prints items to standard output. On a terminal, JSON has colors, unless NO_COLOR is set.

    Args:
        format: One of `FORMATS`.
        bodies: Converts received data to the form to print.
        composite: Metadata is composite, of which JSON also shows the entries.

    """

    def __init__(self, format: str = "text", bodies: Bodies | None = None, composite: bool = False) -> None:
        if format not in FORMATS:
            raise LocalError(f"unknown format {format!r}; use one of: {', '.join(FORMATS)}")
        self._bodies = bodies or Bodies(None)
        self._written = FORMATS[format]
        if format == "json" and composite:
            self._written = _composite_json_line
        if format in ("text", "json") and sys.stdout.isatty():
            # Text is written unchanged, except to a terminal.
            self._written = colored(_safe_line if format == "text" else self._written)

    def item(self, payload: Payload, flush: bool = True) -> None:
        """Print one item. Without `flush`, it may stay in a buffer until the next flush."""
        out = sys.stdout.buffer
        out.write(self._written(self._bodies.incoming(payload)))
        if flush:
            out.flush()


def _safe_line(payload: Payload) -> bytes:
    return shown(payload.data.decode("utf-8", "replace")).encode() + b"\n"


def _json_line(payload: Payload) -> bytes:
    return json_line(text_fields("data", payload.data) | text_fields("metadata", payload.metadata))


def _composite_json_line(payload: Payload) -> bytes:
    fields = text_fields("data", payload.data) | text_fields("metadata", payload.metadata)
    return json_line(fields | composite_fields(payload.metadata))


def json_line(fields: Mapping[str, object]) -> bytes:
    """Return an object as a line of JSON that is safe to print."""
    return shown_json(json.dumps(fields, ensure_ascii=False)).encode() + b"\n"


def composite_fields(metadata: bytes | None) -> dict[str, Any]:
    """Return the field `entries` of an item in JSON: what composite metadata consists of; nothing if it has none."""
    from .. import Metadata

    if not metadata:
        return {}
    try:
        found = Metadata.decode(metadata)
    except FrameError:
        return {}
    routing = Metadata(tags=found.tags).entries
    return {
        "entries": [
            {"mime": entry.mime, "tags": list(found.tags)}
            if entry in routing
            else {"mime": entry.mime} | text_fields("content", entry.content)
            for entry in found.entries
        ]
    }


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
null, and are written as hex under `data_hex` or `metadata_hex`; `entries` are those of composite metadata. hex: the
data as hex and a line break. raw: only the data. none: nothing.
"""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How items are printed."""

    format: Annotated[
        str,
        Option("--format", help=f"Output format of items: {', '.join(FORMATS)}.", autocompletion=offering(*FORMATS)),
    ] = "text"
    json: Annotated[bool, Option("--json", help="The same as --format json.")] = False

    def printer(self, url: str = "", options: SessionOptions | None = None) -> Printer:
        """Return a printer of items received from `url` with `options`. Without a URL, data is not converted.

        See :func:`bodies_of`.

        Raises:
            UrlError: `url` is not valid, or names an unknown protocol or transport.

        """
        if options is None:
            return Printer("json" if self.json else self.format, bodies_of(url) if url else None)
        composite = is_composite(parse_url(url).protocol, options.settings(url))
        return Printer("json" if self.json else self.format, bodies_of(url, options.data_mime), composite)
