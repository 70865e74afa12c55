"""Prints lines, of which any part may be text of a peer. Needs no package, so that a missing one can be reported."""

from __future__ import annotations

import json
import logging
import sys
import traceback
from types import TracebackType
from typing import Any, Final

from ..errors import LocalError
from ..observe.logs import JsonLines, TextLines
from ..texts import shown, shown_json, shown_line

__all__ = [
    "COLLECTING",
    "LOGS",
    "SERVING",
    "ask",
    "complain",
    "escape_everything",
    "note",
    "say",
    "say_json",
    "start_logging",
]

LOGS: Final = ("text", "json")
"""The forms of logs."""
SERVING: Final = (logging.INFO, "%(levelname)s %(name)s: %(message)s")
COLLECTING: Final = (logging.WARNING, "weirpool: %(message)s")


def say(line: str) -> None:
    """Print a line to standard output."""
    print(shown_line(line), flush=True)


def say_json(value: Any, indent: int | None = None, *, flush: bool = True) -> None:
    """Print a value as JSON to standard output. Without `flush`, it may stay in a buffer until the next flush."""
    print(shown_json(json.dumps(value, ensure_ascii=False, indent=indent)), flush=flush)


def note(line: str) -> None:
    """Print a line to standard error: something other than the result."""
    print(shown_line(line), file=sys.stderr, flush=True)


def ask(question: str) -> None:
    """Print a question, which may have lines before it, to standard error."""
    print(shown(question), end="", file=sys.stderr, flush=True)


def complain(message: str) -> None:
    """Print an error to standard error, as one line."""
    print(f"weirpool: {shown(message).replace(chr(10), ' ')}", file=sys.stderr)


def start_logging(of: tuple[int, str], form: str = "text", handler: logging.Handler | None = None) -> None:
    """Write logs to standard error.

    Args:
        of: The lowest level that is written, and the layout of a line of text.
        form: text, or json for a JSON object in each line.
        handler: What writes the lines.

    Raises:
        LocalError: There is no such form.

    """
    if form not in LOGS:
        raise LocalError(f"--log {form!r} is not known; use text or json")
    level, layout = of
    writer = logging.StreamHandler() if handler is None else handler
    writer.setFormatter(JsonLines() if form == "json" else TextLines(layout))
    logging.basicConfig(level=level, handlers=[writer])


def escape_everything() -> None:
    """Escape texts also where Python itself prints them: warnings without a handler, and the traceback of a bug."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(TextLines())
    sys.excepthook = _print_traceback


def _print_traceback(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    print(shown("".join(traceback.format_exception(kind, error, trace))), end="", file=sys.stderr)
