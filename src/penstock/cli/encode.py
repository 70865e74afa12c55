"""`penstock encode`: converts frames to bytes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import LocalError
from ..protocols import dump_of
from .arguments import DEFAULT_DIALECT, Codec, Dialect, Framing, check_codec, prefix_bytes


def encode(
    source: Annotated[
        str, typer.Argument(metavar="JSON|FILE|-", help="JSON objects, one per line: the text itself, a file, or -.")
    ] = "-",
    dialect: Dialect = DEFAULT_DIALECT,
    framing: Framing = "none",
    codec: Codec = "json",
) -> None:
    """Print frames as hex, one per line. The input is JSON as printed by decode.

    Example: penstock encode '{"type": "CANCEL", "stream_id": 1, "flags": []}'
    """
    dump = dump_of(dialect)
    check_codec(dump, codec)
    encoder = dump.encoder(prefix_bytes(dialect, dump, framing), codec)
    for number, line in enumerate(_text(source).splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
            if not isinstance(fields, dict):
                raise LocalError("not a JSON object")
            print(encoder(fields).hex())
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
