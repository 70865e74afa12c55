"""Arguments and options that several verbs share, and how their values are read."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import LocalError

__all__ = [
    "PREFIXES",
    "RIVER",
    "Codec",
    "Credit",
    "Dialect",
    "Framing",
    "Interval",
    "Lines",
    "Repeat",
    "Route",
    "Take",
    "Url",
    "offering",
    "prefix_bytes",
    "read_bytes",
]


def offering(*words: str) -> Callable[[], list[str]]:
    """Return what tells shells the values of an option. A lambda in an annotation would not know its module's names."""
    return lambda: list(words)


Url = Annotated[
    str,
    typer.Argument(help="PROTOCOL+TRANSPORT://HOST:PORT: rsocket+tcp://localhost:7878, reactivesocket-0.0+ws://…"),
]
Route = Annotated[str, typer.Argument(help="The handler on the other side.")]
Lines = Annotated[str, typer.Argument(help="The items, a line each: themselves, @FILE, or - for standard input.")]
Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0, help="Wait so long between one and the next.")
]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Do it so often, one after another.")]
Take = Annotated[int | None, typer.Option("--take", min=1, help="Stop after so many items.")]
Credit = Annotated[int | None, typer.Option("--credit", min=1, help="Items that may be under way.")]

Codec = Annotated[str, typer.Option("--codec", help="With river-2.0: json or msgpack.")]

PREFIXES: Final = {"none": 0, "u24": 3, "u32-inclusive": 4}
RIVER: Final = {"none": 0, "u32": 4}
"""Bytes of the length, by the name of the framing."""


def _dialects() -> list[str]:
    from ..wire.rsocket.dump import DIALECTS

    return list(DIALECTS)


Dialect = Annotated[
    str,
    typer.Option("--dialect", help="rsocket-1.0, reactivesocket-0.2 or reactivesocket-0.0.", autocompletion=_dialects),
]
Framing = Annotated[
    str,
    typer.Option(
        "--framing",
        help="Length before each frame: u24, u32-inclusive or none.",
        autocompletion=offering(*PREFIXES),
    ),
]


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
