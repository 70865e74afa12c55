"""`penstock decode`: bytes to frames."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import FrameError, LocalError, SessionError
from .arguments import RIVER, Codec, Dialect, Framing, prefix_bytes
from .exits import FAILED
from .output import complain

if TYPE_CHECKING:
    from ..wire.rsocket.frames import Frame

RIVER_2_0 = "river-2.0"
_HEX = re.compile(rb"[0-9a-fA-F\s]*")


def decode(
    source: Annotated[
        str, typer.Argument(metavar="HEX|FILE|-", help="Hex digits, a file of hex or bytes, or -.")
    ] = "-",
    dialect: Dialect = "rsocket-1.0",
    framing: Framing = "none",
    codec: Codec = "json",
) -> None:
    """Print the frames in some bytes, one JSON object each.

    Without --framing, each line of hex digits is a frame.

    Example: penstock decode --dialect rsocket-1.0 000000012400
    """
    if dialect == RIVER_2_0:
        _decode_river(source, framing, codec)
        return
    from ..wire.reactivestreams.dump import DIALECT
    from ..wire.rsocket.dump import read_frames

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
    from ..wire.reactivestreams.dump import DIALECT, read_messages, to_object

    if prefix:
        raise LocalError(f"{DIALECT} has no length before its messages; leave --framing out")
    try:
        for message in read_messages(octets):
            print(json.dumps(to_object(message)))
    except SessionError as error:
        complain(f"this is no {DIALECT} message: {error}")
        raise typer.Exit(FAILED) from None


def _decode_river(source: str, framing: str, codec: str) -> None:
    """Print River's messages; text that is no hex is a message of the JSON codec.

    Raises:
        LocalError: There is no such framing or codec.

    """
    from ..wire.river.codec import codec_of
    from ..wire.river.dump import read_messages

    codec_of(codec)
    if framing not in RIVER:
        raise LocalError(f"unknown framing {framing!r} of {RIVER_2_0}; known are {', '.join(RIVER)}")
    prefix = RIVER[framing]
    for number, data in enumerate(_pieces(_content(source), prefix), 1):
        try:
            for fields in read_messages(data, codec, prefix > 0):
                print(json.dumps(fields))
        except FrameError as error:
            complain(f"this is no {RIVER_2_0} message: message {number}, {error}")
            raise typer.Exit(FAILED) from None


def _show(length: int | None, frame: Frame, dialect: str) -> None:
    from ..wire.rsocket.dump import to_object

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
