"""Arguments and options shared by several verbs, and functions that read their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Final

import typer

from ..errors import LocalError
from ..protocols import VERSIONS, Dump, dump_of

__all__ = [
    "DEFAULT_DIALECT",
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
    "check_codec",
    "offering",
    "prefix_bytes",
    "read_bytes",
]


def offering(*words: str) -> Callable[[], list[str]]:
    """Return a completion callback for an option with these values."""
    # A lambda in an annotation could not see the names of its module.
    return lambda: list(words)


Url = Annotated[
    str,
    typer.Argument(help="PROTOCOL+TRANSPORT://HOST:PORT: rsocket+tcp://localhost:7878, reactivesocket-0.0+ws://…"),
]
Route = Annotated[str, typer.Argument(help="The name of a handler.")]
Lines = Annotated[str, typer.Argument(help="The items, one per line: the text itself, @FILE, or - for standard input.")]
Interval = Annotated[
    float, typer.Option("--interval", metavar="SECONDS", min=0, help="Pause between items or repetitions, in seconds.")
]
Repeat = Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Repeat N times, sequentially.")]
Take = Annotated[int | None, typer.Option("--take", metavar="N", min=1, help="Stop after N items.")]
Credit = Annotated[int | None, typer.Option("--credit", metavar="N", min=1, help="Maximum items in flight.")]

Codec = Annotated[str, typer.Option("--codec", help="Codec of river-2.0: json or msgpack.")]


def _framings() -> list[str]:
    # Several protocols share the name of a framing.
    return list(dict.fromkeys(name for version in VERSIONS for name in dump_of(version).framings))


DEFAULT_DIALECT: Final = next(iter(VERSIONS))
Dialect = Annotated[
    str, typer.Option("--dialect", help=f"One of {', '.join(VERSIONS)}.", autocompletion=offering(*VERSIONS))
]
Framing = Annotated[
    str,
    typer.Option(
        "--framing",
        help="Length prefix of each frame: none; u24 or u32-inclusive with RSocket, u32 with River.",
        autocompletion=_framings,
    ),
]


def prefix_bytes(dialect: str, dump: Dump, framing: str) -> int:
    """Return the size of the length prefix of each frame, in bytes.

    Raises:
        LocalError: The dialect does not have this framing.

    """
    if framing in dump.framings:
        return dump.framings[framing]
    if len(dump.framings) == 1:
        raise LocalError(f"a {dump.unit} of {dialect} has no length prefix; omit --framing")
    raise LocalError(f"unknown framing {framing!r} for {dialect}; use one of: {', '.join(dump.framings)}")


def check_codec(dump: Dump, codec: str) -> None:
    """Raise LocalError if the dialect has codecs and `codec` is not one of them."""
    if dump.codecs and codec not in dump.codecs:
        raise LocalError(f"unknown codec {codec!r}; use one of: {', '.join(dump.codecs)}")


def read_bytes(value: str) -> bytes:
    """Return the value of an option as bytes: the text itself, the content of `@FILE`, or standard input for `-`.

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
    # The shell passes bytes. Python represents those that are not valid UTF-8 as surrogates.
    return value.encode(errors="surrogateescape")
