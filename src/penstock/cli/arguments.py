"""Arguments and options shared by several verbs, and functions that read their values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ..errors import LocalError
from .contexts import offered, resolved
from .routes import offered_routes

__all__ = ["Credit", "Route", "Url", "offering", "read_bytes"]


def offering(*words: str) -> Callable[[], list[str]]:
    """Return a completion callback for an option with these values."""
    # A lambda in an annotation could not see the names of its module.
    return lambda: list(words)


Url = Annotated[
    str,
    Argument(
        help="PROTOCOL+TRANSPORT://HOST:PORT: rsocket+tcp://localhost:7878; or @NAME of a saved context, which may be "
        "left out if it is the current one.",
        callback=resolved,
        is_eager=True,
        autocompletion=offered,
    ),
]
Route = Annotated[str, Argument(help="The name of a handler.", autocompletion=offered_routes)]
Credit = Annotated[int | None, Option("--credit", metavar="N", min=1, help="Maximum items in flight.")]


def read_bytes(value: str) -> bytes:
    """Return the value of an option as bytes: the text itself, the content of `@FILE`, or standard input for `-`."""
    if value == "-":
        return sys.stdin.buffer.read()
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_bytes()
        except OSError as error:
            raise LocalError(f"cannot read {value[1:]!r}: {error.strerror}") from error
    # The shell passes bytes. Python represents those that are not valid UTF-8 as surrogates.
    return value.encode(errors="surrogateescape")
