"""The values of arguments and options: how they are read, and which ones a shell offers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import typer

from .. import units
from ..errors import LocalError

__all__ = ["duration", "offering", "read_bytes"]


def duration(least: float = 0.0) -> Callable[[str], float]:
    """Return a parser for an option that is a duration in seconds of at least `least`; see `units.seconds`."""

    def parse(given: str) -> float:
        try:
            return units.seconds(given, least)
        except ValueError as error:
            raise typer.BadParameter(f"{given!r} is not valid; {error}") from None

    return parse


def offering(*words: str) -> Callable[[], list[str]]:
    """Return a completion callback for an option with these values."""
    # A lambda in an annotation could not see the names of its module.
    return lambda: list(words)


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
