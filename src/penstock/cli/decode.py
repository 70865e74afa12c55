"""`penstock decode`: bytes to frames."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import FrameError, LocalError
from .arguments import PREFIXES, Framing
from .exits import FAILED

__all__ = ["decode", "prefix_bytes"]

_HEX = re.compile(rb"[0-9a-fA-F\s]*")


def decode(
    source: Annotated[str, typer.Argument(metavar="HEX|FILE|-", help="Hex digits, a file of hex or bytes, or -.")],
    dialect: Annotated[str, typer.Option("--dialect", help="The protocol version.")] = "rsocket-1.0",
    framing: Framing = "none",
) -> None:
    """Print the frames in some bytes, one JSON object each.

    Example: penstock decode --dialect rsocket-1.0 000000012400
    """
    from ..wire.dump import read_frames, to_object

    data = _octets(source)
    prefix = prefix_bytes(framing)
    try:
        for length, frame in read_frames(data, dialect, prefix):
            fields = to_object(frame, dialect)
            if length is not None:
                fields = {"length": length, **fields}
            print(json.dumps(fields))
    except FrameError as error:
        print(f"penstock: no {dialect} frame: {error}", file=sys.stderr)
        raise typer.Exit(FAILED) from None


def prefix_bytes(framing: str) -> int:
    """Return the bytes of the length before each frame.

    Raises:
        LocalError: There is no such framing.

    """
    if framing not in PREFIXES:
        raise LocalError(f"unknown framing {framing!r}; known are {', '.join(PREFIXES)}")
    return PREFIXES[framing]


def _octets(source: str) -> bytes:
    """Return the bytes that `source` names, of hex digits or as they are.

    Raises:
        LocalError: It is neither hex nor a file.

    """
    if source == "-":
        data = sys.stdin.buffer.read()
    elif _HEX.fullmatch(source.encode()):
        data = source.encode()
    else:
        try:
            data = Path(source).read_bytes()
        except OSError as error:
            raise LocalError(f"{source!r} is neither hex digits nor a file to read: {error.strerror}") from error
    if not _HEX.fullmatch(data):
        return data
    try:
        return bytes.fromhex(data.decode())
    except ValueError:
        raise LocalError("the hex digits are of odd number: half a byte is missing") from None
