"""The values of arguments and options: how they are read, and which ones a shell offers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import typer

from .. import units
from ..errors import LocalError

__all__ = ["ASKED", "completable", "duration", "offering", "read_bytes"]

ASKED: Final = "_WEIRPOOL_COMPLETE"
"""The variable in which a shell's script asks for candidates, by typer's convention."""
_OFFERED: Final = re.compile(r"(?!-)(?:[\w@+/.-]|\{\w+\})+")
"""What bash, zsh and fish read as one word, and complete as one: bash divides words at colons and equals signs."""
_OFFERED_POWERSHELL: Final = re.compile(r"(?!-)[\w+/.-]+")
"""The same for PowerShell, where braces and an at sign have a meaning."""


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


def completable(words: Iterable[str]) -> list[str]:
    """Return the words that the shell, which has asked for candidates, reads as themselves.

    Scripts of completion insert them into the command line as they are, and some evaluate them before.

    Args:
        words: Texts, which may be those of a peer.

    """
    plain = _OFFERED_POWERSHELL if os.environ.get(ASKED, "").endswith(("powershell", "pwsh")) else _OFFERED
    return [word for word in words if plain.fullmatch(word)]


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
