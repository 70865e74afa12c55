"""`penstock encode`: frames to bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError
from .arguments import Dialect, Framing, prefix_bytes


def encode(
    source: Annotated[
        str, typer.Argument(metavar="JSON|FILE|-", help="JSON objects, a line each: given, in a file, or -.")
    ] = "-",
    dialect: Dialect = "rsocket-1.0",
    framing: Framing = "none",
) -> None:
    """Print frames as hex, one a line; the objects are those that decode prints.

    Example: penstock encode '{"type": "CANCEL", "stream_id": 1, "flags": []}'
    """
    from ..wire.reactivestreams.dump import DIALECT, Encoder

    prefix = prefix_bytes(framing)
    if dialect == DIALECT and prefix:
        raise LocalError(f"{DIALECT} has no length before its messages; leave --framing out")
    messages = Encoder()
    for number, line in enumerate(_text(source).splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            octets = messages.octets(fields) if dialect == DIALECT else _octets(fields, dialect, prefix)
            print(octets.hex())
        except ValueError as error:
            raise LocalError(f"line {number} is no JSON: {error}") from None
        except LocalError as error:
            raise LocalError(f"line {number}: {error}") from error


def _octets(fields: object, dialect: str, prefix: int) -> bytes:
    """Return the bytes of a frame, with its length before it where there is one."""
    from ..wire.framing import prefixed
    from ..wire.rsocket.dump import codec_of, from_object

    if not isinstance(fields, dict):
        raise LocalError("it is no JSON object")
    message = codec_of(dialect).encode(from_object(fields, dialect))
    return prefixed(message, prefix) if prefix else message


def _text(source: str) -> str:
    """Return the JSON that `source` names.

    Raises:
        LocalError: It is neither JSON nor a file, or no UTF-8.

    """
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode()
        if source.lstrip().startswith(("{", "[")):
            return source
        return Path(source).read_text("utf-8")
    except UnicodeDecodeError as error:
        raise LocalError(f"the JSON is no UTF-8: {error}") from None
    except OSError as error:
        raise LocalError(f"{source!r} is neither JSON nor a file to read: {error.strerror}") from error
