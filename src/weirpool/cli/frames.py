"""`weirpool decode` and `encode`: convert bytes to frames, and frames to bytes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from typer import Argument, Option

from ..errors import LocalError, SessionError
from ..protocols import VERSIONS, Dump, dump_of
from ..strict_json import strict_json
from .console import complain, say, say_json
from .exits import FAILED
from .values import offering

__all__ = ["check_codec", "decode", "encode", "prefix_bytes"]

_HEX = re.compile(rb"[0-9a-fA-F\s]*")


def _framings() -> list[str]:
    # Several protocols share the name of a framing.
    return list(dict.fromkeys(name for version in VERSIONS for name in dump_of(version).framings))


DEFAULT_DIALECT: Final = next(iter(VERSIONS))
Dialect = Annotated[str, Option("--dialect", help=f"One of {', '.join(VERSIONS)}.", autocompletion=offering(*VERSIONS))]
Framing = Annotated[
    str,
    Option(
        "--framing",
        help="Length prefix of each frame: none; u24 or u32-inclusive with RSocket, u32 with River.",
        autocompletion=_framings,
    ),
]
Codec = Annotated[str, Option("--codec", help="Codec of river-2.0: json or msgpack.")]


def decode(
    source: Annotated[str, Argument(metavar="HEX|FILE|-", help="Hex digits, a file of hex or bytes, or -.")] = "-",
    dialect: Dialect = DEFAULT_DIALECT,
    framing: Framing = "none",
    codec: Codec = "json",
) -> None:
    """Print the frames in the given bytes as JSON, one object per line.

    Without --framing, each line of hex digits is a frame.

    Example: weirpool decode --dialect rsocket-1.0 000000012400
    """
    dump = dump_of(dialect)
    prefix = prefix_bytes(dialect, dump, framing)
    check_codec(dump, codec)
    pieces = _pieces(_content(source), prefix)
    if not dump.self_contained:
        pieces = [b"".join(pieces)]
    for number, data in enumerate(pieces, 1):
        try:
            for fields in dump.frames(data, prefix, codec):
                say_json(fields)
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


def encode(
    source: Annotated[
        str, Argument(metavar="JSON|FILE|-", help="JSON objects, one per line: the text itself, a file, or -.")
    ] = "-",
    dialect: Dialect = DEFAULT_DIALECT,
    framing: Framing = "none",
    codec: Codec = "json",
) -> None:
    """Print frames as hex, one per line. The input is JSON as printed by decode.

    Example: weirpool encode '{"type": "CANCEL", "stream_id": 1, "flags": []}'
    """
    dump = dump_of(dialect)
    check_codec(dump, codec)
    encoder = dump.encoder(prefix_bytes(dialect, dump, framing), codec)
    for number, line in enumerate(_text(source).splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = strict_json(line)
            if not isinstance(fields, dict):
                raise LocalError("not a JSON object")
            say(encoder(fields).hex())
        except ValueError as error:
            raise LocalError(f"line {number} is not valid JSON: {error}") from None
        except LocalError as error:
            raise LocalError(f"line {number}: {error}") from error


def _text(source: str) -> str:
    """Return the JSON text of `source`."""
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode()
        if source.lstrip().startswith(("{", "[")):
            return source
        return Path(source).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise LocalError(f"the JSON is not valid UTF-8: {error}") from None
    except OSError as error:
        raise LocalError(f"{source!r} is neither JSON nor a readable file: {error.strerror}") from error


def prefix_bytes(dialect: str, dump: Dump, framing: str) -> int:
    """Return the size of the length prefix of each frame, in bytes."""
    if framing in dump.framings:
        return dump.framings[framing]
    if len(dump.framings) == 1:
        raise LocalError(f"a {dump.unit} of {dialect} has no length prefix; omit --framing")
    raise LocalError(f"unknown framing {framing!r} for {dialect}; use one of: {', '.join(dump.framings)}")


def check_codec(dump: Dump, codec: str) -> None:
    """Raise LocalError if the dialect has codecs and `codec` is not one of them."""
    if dump.codecs and codec not in dump.codecs:
        raise LocalError(f"unknown codec {codec!r}; use one of: {', '.join(dump.codecs)}")
