"""A line of progress on standard error."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from ..texts import shown_line
from .console import note

__all__ = ["StandardError", "progress_line"]


@contextmanager
def progress_line() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows a line in place of the one before. Elsewhere than on a terminal, it prints each."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield note
        return
    with console.status("starting") as status:
        yield lambda line: status.update(Text(shown_line(line)))


class StandardError(logging.StreamHandler):  # type: ignore[type-arg]  # it is generic for type checkers only
    """Writes log lines to what is standard error at that time: above a line of progress, if there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record."""
        self.stream = sys.stderr
        super().emit(record)
