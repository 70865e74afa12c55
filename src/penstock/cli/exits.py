"""Exit codes, and one line for every error."""

from __future__ import annotations

from typing import Final

from ..errors import ApplicationError, JournalMismatch, LeaseMissing, LinkError, LocalError, PenstockError

__all__ = ["CANCELED", "FAILED", "NO_CONNECTION", "OK", "WRONG_USE", "exit_code"]

OK: Final = 0
FAILED: Final = 1
"""The other side said no, or what was given to us is broken."""
WRONG_USE: Final = 2
NO_CONNECTION: Final = 3
CANCELED: Final = 130
"""Ctrl-C, as shells have it: 128 and the signal's number."""


def exit_code(error: PenstockError) -> int:
    """Return the exit code that `error` ends the program with."""
    if isinstance(error, ApplicationError | LeaseMissing):
        return FAILED
    if isinstance(error, LocalError | JournalMismatch):
        return WRONG_USE
    return NO_CONNECTION if isinstance(error, LinkError) else FAILED
