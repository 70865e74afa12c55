"""The exit codes of the command line."""

from __future__ import annotations

from typing import Final

from ..errors import ApplicationError, JournalMismatch, LeaseMissing, LinkError, LocalError, WeirpoolError

__all__ = ["CANCELED", "FAILED", "NO_CONNECTION", "OK", "WRONG_USE", "exit_code"]

OK: Final = 0
FAILED: Final = 1
"""The peer reported an error, or the input is invalid."""
WRONG_USE: Final = 2
NO_CONNECTION: Final = 3
CANCELED: Final = 130
"""Stopped by Ctrl-C: 128 plus the number of the signal, as in shells."""


def exit_code(error: WeirpoolError) -> int:
    """Return the exit code for an error."""
    if isinstance(error, ApplicationError | LeaseMissing):
        # River v2.0, Reserved Error Codes: UNEXPECTED_DISCONNECT is one of these. Ours has a cause.
        return NO_CONNECTION if isinstance(error.__cause__, LinkError) else FAILED
    if isinstance(error, LocalError | JournalMismatch):
        return WRONG_USE
    return NO_CONNECTION if isinstance(error, LinkError) else FAILED
