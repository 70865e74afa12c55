"""Arguments and options that several verbs share, and how their values are read."""

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


def _framings() -> list[str]:
    # The same name may stand for several protocols.
    return list(dict.fromkeys(name for version in VERSIONS for name in dump_of(version).framings))


DEFAULT_DIALECT: Final = next(iter(VERSIONS))
Dialect = Annotated[
    str, typer.Option("--dialect", help=f"One of {', '.join(VERSIONS)}.", autocompletion=offering(*VERSIONS))
]
Framing = Annotated[
    str,
    typer.Option(
        "--framing",
        help="Length before each frame: none; with RSocket's family u24 or u32-inclusive, with River u32.",
        autocompletion=_framings,
    ),
]


def prefix_bytes(dialect: str, dump: Dump, framing: str) -> int:
    """Return the bytes of the length before each frame.

    Raises:
        LocalError: The dialect has no such framing.

    """
    if framing in dump.framings:
        return dump.framings[framing]
    if len(dump.framings) == 1:
        raise LocalError(f"{dialect} has no length before its {dump.unit}s; leave --framing out")
    raise LocalError(f"unknown framing {framing!r} of {dialect}; known are {', '.join(dump.framings)}")


def check_codec(dump: Dump, codec: str) -> None:
    """Raise LocalError if the dialect has codecs, and this is none of them."""
    if dump.codecs and codec not in dump.codecs:
        raise LocalError(f"unknown codec {codec!r}; known are: {', '.join(dump.codecs)}")


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
