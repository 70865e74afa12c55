"""`penstock decode`: bytes to frames."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FrameError, LocalError, SessionError
from .arguments import Dialect, Framing, prefix_bytes
from .exits import FAILED
from .output import complain

if TYPE_CHECKING:
    from ..wire.frames import Frame

_HEX = re.compile(rb"[0-9a-fA-F\s]*")


def decode(
    source: Annotated[
        str, typer.Argument(metavar="HEX|FILE|-", help="Hex digits, a file of hex or bytes, or -.")
    ] = "-",
    dialect: Dialect = "rsocket-1.0",
    framing: Framing = "none",
) -> None:
    """Print the frames in some bytes, one JSON object each.

    Without --framing, each line of hex digits is a frame.

    Example: penstock decode --dialect rsocket-1.0 000000012400
    """
    from ..wire.dump import read_frames
    from ..wire.dump_reactivestreams import DIALECT

    prefix = prefix_bytes(framing)
    if dialect == DIALECT:
        _decode_messages(b"".join(_pieces(_content(source), prefix)), prefix)
        return
    pieces = _pieces(_content(source), prefix)
    for number, data in enumerate(pieces, 1):
        try:
            for length, frame in read_frames(data, dialect, prefix):
                _show(length, frame, dialect)
        except FrameError as error:
            where = f"line {number}, " if len(pieces) > 1 else ""
            complain(f"this is no {dialect} frame: {where}{error}")
            raise typer.Exit(FAILED) from None


def _decode_messages(octets: bytes, prefix: int) -> None:
    """Print the messages of a protocol that delimits nothing: what one means may hang on those before it."""
    from ..wire.dump_reactivestreams import DIALECT, read_messages, to_object

    if prefix:
        raise LocalError(f"{DIALECT} has no length before its messages; leave --framing out")
    try:
        for message in read_messages(octets):
            print(json.dumps(to_object(message)))
    except SessionError as error:
        complain(f"this is no {DIALECT} message: {error}")
        raise typer.Exit(FAILED) from None


def _show(length: int | None, frame: Frame, dialect: str) -> None:
    from ..wire.dump import to_object

    fields = to_object(frame, dialect)
    print(json.dumps(fields if length is None else {"length": length, **fields}))


def _content(source: str) -> bytes:
    """Return what `source` names: hex digits, or bytes as they are.

    Raises:
        LocalError: It is neither hex nor a file.

    """
    if source == "-":
        return sys.stdin.buffer.read()
    digits = source.encode(errors="surrogateescape")
    if _HEX.fullmatch(digits):
        return digits
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise LocalError(f"{source!r} is neither hex digits nor a file to read: {error.strerror}") from error


def _pieces(content: bytes, prefix: int) -> list[bytes]:
    """Return the bytes to decode: all at once, or frame by frame where only lines tell where one ends.

    Raises:
        LocalError: There is half a byte.

    """
    if not _HEX.fullmatch(content):
        return [content]
    lines = [line for line in content.splitlines() if line.strip()] if prefix == 0 else []
    try:
        return [bytes.fromhex(line.decode()) for line in lines or [content]]
    except ValueError:
        raise LocalError("the hex digits are not in pairs: half a byte is missing") from None
