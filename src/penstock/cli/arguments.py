"""Arguments and options that several verbs share, and how their values are read."""

from __future__ import annotations

import ssl as tls
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError

__all__ = [
    "PREFIXES",
    "CaFile",
    "Credit",
    "Data",
    "Framing",
    "Insecure",
    "Json",
    "Metadata",
    "Route",
    "Take",
    "Timeout",
    "Url",
    "read_bytes",
    "read_lines",
    "tls_context",
]

Url = Annotated[str, typer.Argument(help="Where to: rsocket+tcp://HOST:PORT, +tls, or rsocket+unix:///PATH.")]
Route = Annotated[str, typer.Argument(help="The handler on the other side.")]
Data = Annotated[str, typer.Option("--data", "-d", help="The request's data; @FILE reads a file, - standard input.")]
Metadata = Annotated[str | None, typer.Option("--metadata", "-m", help="Metadata beside the route; as --data.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object an item.")]
Take = Annotated[int | None, typer.Option("--take", min=1, help="Stop after so many items.")]
Credit = Annotated[int | None, typer.Option("--credit", min=1, help="Items that may be under way.")]
Timeout = Annotated[float | None, typer.Option("--timeout", min=0, help="Seconds to wait for all of it.")]
CaFile = Annotated[str | None, typer.Option("--cafile", help="With +tls: trust the certificates in this file.")]
Insecure = Annotated[bool, typer.Option("--insecure", help="With +tls: trust any certificate. For tests alone.")]
Framing = Annotated[str, typer.Option("--framing", help="Length before each frame: u24, u32-inclusive or none.")]

PREFIXES = {"none": 0, "u24": 3, "u32-inclusive": 4}
"""Bytes of the length, by the name of the framing."""


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
    return value.encode()


def read_lines(value: str) -> list[bytes]:
    """Return the lines that an option stands for; see :func:`read_bytes`."""
    return read_bytes(value).splitlines()


def tls_context(cafile: str | None, insecure: bool) -> tls.SSLContext | None:
    """Return what decides whom to trust; None for the system's certificate authorities.

    Raises:
        LocalError: The file holds no certificates.

    """
    if cafile is None and not insecure:
        return None
    try:
        context = tls.create_default_context(cafile=cafile)
    except OSError as error:
        raise LocalError(f"cannot read certificates from {cafile!r}: {error.strerror or error}") from error
    if insecure:
        context.check_hostname = False
        context.verify_mode = tls.CERT_NONE
    return context
