"""Asks before something is lost: the options --dry-run and --yes, and the question on a terminal.

A verb that is told to delete asks on a terminal, and does it elsewhere. A file that exists was not mentioned, so it is
replaced only after a question, or with --yes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ..errors import LocalError
from ..texts import shown_line
from .console import ask, complain
from .exits import FAILED

__all__ = ["DryRun", "Yes", "allow_replacing", "confirm"]

DryRun = Annotated[bool, Option("--dry-run", help="Show what would be done, and change nothing.")]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]


def confirm(question: str, yes: bool) -> None:
    """Ask whether to go on, and end the command if the answer is not yes; without a terminal, or with `yes`, go on."""
    if not yes and _on_terminal() and not _agreed(question):
        complain("nothing was changed")
        raise typer.Exit(FAILED)


def allow_replacing(
    path: str | os.PathLike[str], yes: bool, is_ours: Callable[[Path], bool] = lambda path: False
) -> None:
    """Check that a file may be written: it does not exist, or somebody agrees to replace it.

    Devices and pipes are always written to. `is_ours` returns True for a file that may be replaced in any case.

    Raises:
        LocalError: It exists, and there is no terminal to ask on.

    """
    file = Path(path)
    if yes or not file.is_file() or is_ours(file):
        return
    if not _on_terminal():
        raise LocalError(f"{str(file)!r} exists; choose another name, or replace it with --yes")
    confirm(f"{shown_line(str(file))} exists. Replace it?", yes)


def _on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _agreed(question: str) -> bool:
    ask(f"{question} [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")
