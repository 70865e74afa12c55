"""`penstock decode`: converts bytes to frames."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError, SessionError
from ..protocols import dump_of
from .arguments import DEFAULT_DIALECT, Codec, Dialect, Framing, check_codec, prefix_bytes
from .exits import FAILED
from .output import complain

_HEX = re.compile(rb"[0-9a-fA-F\s]*")


def decode(
    source: Annotated[
        str, typer.Argument(metavar="HEX|FILE|-", help="Hex digits, a file of hex or bytes, or -.")
    ] = "-",
    dialect: Dialect = DEFAULT_DIALECT,
    framing: Framing = "none",
    codec: Codec = "json",
) -> None:
    """Print the frames in the given bytes as JSON, one object per line.

    Without --framing, each line of hex digits is a frame.

    Example: penstock decode --dialect rsocket-1.0 000000012400
    """
    dump = dump_of(dialect)
    prefix = prefix_bytes(dialect, dump, framing)
    check_codec(dump, codec)
    pieces = _pieces(_content(source), prefix)
    if not dump.apart:
        pieces = [b"".join(pieces)]
    for number, data in enumerate(pieces, 1):
        try:
            for fields in dump.frames(data, prefix, codec):
                print(json.dumps(fields))
        except SessionError as error:
            where = f"line {number}, " if len(pieces) > 1 else ""
            complain(f"not a valid {dialect} {dump.unit}: {where}{error}")
            raise typer.Exit(FAILED) from None


def _content(source: str) -> bytes:
    """Return the content of `source`, as hex digits or bytes."""
    if source == "-":
        return sys.stdin.buffer.read()
    digits = source.encode(errors="surrogateescape")
    if _HEX.fullmatch(digits):
        return digits
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise LocalError(f"{source!r} is neither hex digits nor a readable file: {error.strerror}") from error


def _pieces(content: bytes, prefix: int) -> list[bytes]:
    """Return the bytes to decode: one frame per line of hex if frames have no length prefix, otherwise all at once."""
    if not _HEX.fullmatch(content):
        return [content]
    lines = [line for line in content.splitlines() if line.strip()] if prefix == 0 else []
    try:
        return [bytes.fromhex(line.decode()) for line in lines or [content]]
    except ValueError:
        raise LocalError("odd number of hex digits; each byte needs two") from None
