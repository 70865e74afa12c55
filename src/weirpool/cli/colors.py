"""Colors for JSON on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TypeVar

from rich.console import Console
from rich.highlighter import JSONHighlighter
from rich.text import Text

__all__ = ["colored"]

T = TypeVar("T")


def colored(write: Callable[[T], bytes]) -> Callable[[T], bytes]:
    """Return a function that adds colors to the lines of `write` that are JSON objects or arrays.

    It returns `write` itself if the terminal has no colors, or the user wants none (NO_COLOR).
    """
    console = Console(file=sys.stdout, soft_wrap=True)
    if console.color_system is None or console.no_color:
        return write
    highlighter = JSONHighlighter()

    def written(item: T) -> bytes:
        line = write(item)
        if not _is_json(line):
            return line
        with console.capture() as capture:
            console.print(highlighter(Text(line.decode())), end="")
        return capture.get().encode()

    return written


def _is_json(line: bytes) -> bool:
    if line[:1] not in (b"{", b"["):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
