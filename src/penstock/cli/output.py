"""What the verbs print: items for people, or JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final

import typer

from ..errors import LocalError
from ..payload import Payload
from ..texts import shown, shown_json
from .arguments import offering
from .bodies import Bodies, bodies_of

__all__ = ["FORMATS", "OutputOptions", "Printer", "complain"]


def complain(message: str) -> None:
    """Print what went wrong to standard error, in one line; parts of it may be a peer's words."""
    print(f"penstock: {shown(message).replace(chr(10), ' ')}", file=sys.stderr)


class Printer:
    """Prints items to standard output.

    Args:
        format: One of `FORMATS`.
        bodies: Turns what came into what people read.

    Raises:
        LocalError: It is none of these.

    """

    def __init__(self, format: str = "text", bodies: Bodies | None = None) -> None:
        if format not in FORMATS:
            raise LocalError(f"unknown format {format!r}; known are {', '.join(FORMATS)}")
        self._bodies = bodies or Bodies(None)
        # As it is, unless a terminal shows it.
        self._written = _safe_line if format == "text" and sys.stdout.isatty() else FORMATS[format]

    def item(self, payload: Payload, flush: bool = True) -> None:
        """Print one item. Without `flush` it may stay in a buffer until one comes with it."""
        out = sys.stdout.buffer
        out.write(self._written(self._bodies.incoming(payload)))
        if flush:
            out.flush()


def _text_line(payload: Payload) -> bytes:
    return payload.data + b"\n"


def _safe_line(payload: Payload) -> bytes:
    return shown(payload.data.decode("utf-8", "replace")).encode() + b"\n"


def _hex_line(payload: Payload) -> bytes:
    return payload.data.hex().encode() + b"\n"


def _raw(payload: Payload) -> bytes:
    return payload.data


def _nothing(payload: Payload) -> bytes:
    return b""


def _json_line(payload: Payload) -> bytes:
    fields = _text("data", payload.data) | _text("metadata", payload.metadata)
    return shown_json(json.dumps(fields, ensure_ascii=False)).encode() + b"\n"


def _text(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name: None, f"{name}_hex": value.hex()}


FORMATS: Final[Mapping[str, Callable[[Payload], bytes]]] = {
    "text": _text_line,
    "json": _json_line,
    "hex": _hex_line,
    "raw": _raw,
    "none": _nothing,
}
"""How an item is written, by the name of the format.

text: the data, and a line's end. json: an object of `data` and `metadata` as text; what is no UTF-8 is null, and stands
as hex under `data_hex` or `metadata_hex`. hex: the data in hex, and a line's end. raw: the data alone. none: nothing.
"""


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """How items are printed."""

    format: Annotated[
        str,
        typer.Option(
            "--format", help=f"How items are printed: {', '.join(FORMATS)}.", autocompletion=offering(*FORMATS)
        ),
    ] = "text"
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False

    def printer(self, url: str = "") -> Printer:
        """Return what prints the items that come from `url`, or bytes as they are.

        Raises:
            LocalError: There is no such format.
            UrlError: The URL names nothing that we know.

        """
        return Printer("json" if self.json else self.format, bodies_of(url) if url else None)
