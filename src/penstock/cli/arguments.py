"""Arguments and options that several verbs share, and how their values are read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import LocalError

__all__ = [
    "PREFIXES",
    "RIVER",
    "CaFile",
    "Codec",
    "Credit",
    "Data",
    "Dialect",
    "Framing",
    "Insecure",
    "Json",
    "Lines",
    "Metadata",
    "Retry",
    "Route",
    "Take",
    "Timeout",
    "Url",
    "prefix_bytes",
    "read_bytes",
]

Url = Annotated[str, typer.Argument(help="Where to: rsocket+tcp://HOST:PORT, rsocket+tls://… or rsocket+unix:///PATH.")]
Route = Annotated[str, typer.Argument(help="The handler on the other side.")]
Data = Annotated[str, typer.Option("--data", "-d", help="The request's data; @FILE reads a file, - standard input.")]
Lines = Annotated[str, typer.Argument(help="The items, a line each: themselves, @FILE, or - for standard input.")]
Metadata = Annotated[str | None, typer.Option("--metadata", "-m", help="Metadata beside the route; as --data.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object an item.")]
Take = Annotated[int | None, typer.Option("--take", min=1, help="Stop after so many items.")]
Credit = Annotated[int | None, typer.Option("--credit", min=1, help="Items that may be under way.")]
Retry = Annotated[int, typer.Option("--retry", metavar="N", min=0, help="Try so often again when nobody answers.")]
Timeout = Annotated[float | None, typer.Option("--timeout", min=0, help="Seconds that all of it may take.")]
CaFile = Annotated[str | None, typer.Option("--cafile", help="With +tls: trust the certificates in this file.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="With +tls: trust any certificate. For tests alone.")]
Dialect = Annotated[str, typer.Option("--dialect", help="The protocol version.")]
Codec = Annotated[str, typer.Option("--codec", help="With river-2.0: json or msgpack.")]
Framing = Annotated[str, typer.Option("--framing", help="Length before each frame: u24, u32, u32-inclusive or none.")]

PREFIXES: Final = {"none": 0, "u24": 3, "u32-inclusive": 4}
RIVER: Final = {"none": 0, "u32": 4}
"""Bytes of the length, by the name of the framing."""


def prefix_bytes(framing: str) -> int:
    """Return the bytes of the length before each frame.

    Raises:
        LocalError: There is no such framing.

    """
    if framing not in PREFIXES:
        raise LocalError(f"unknown framing {framing!r}; known are {', '.join(PREFIXES)}")
    return PREFIXES[framing]


def read_bytes(value: str) -> bytes:
    """Return the bytes that an option stands for: itself, `@FILE`, or `-` for standard input.

    Raises:
        LocalError: The file cannot be read.

    """
    if value == "-":
        return sys.stdin.buffer.read()
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_bytes()
        except OSError as error:
            raise LocalError(f"cannot read {value[1:]!r}: {error.strerror}") from error
    # What the shell passed is bytes; Python keeps those that are no UTF-8 as surrogates.
    return value.encode(errors="surrogateescape")
