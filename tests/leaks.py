"""What a test must not leave to those after it: handlers of signals."""

from __future__ import annotations

import signal
from typing import Any, Final

__all__ = ["Handlers"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a run of the tests."""


class Handlers:
    """The handlers of signals before a test."""

    def __init__(self) -> None:
        self._before: dict[signal.Signals, Any] = {number: signal.getsignal(number) for number in SIGNALS}

    def left(self) -> list[str]:
        """Return the signals whose handlers a test has left changed, a sentence each, and put the handlers back."""
        found = []
        for number, handler in self._before.items():
            left = signal.getsignal(number)
            # Spark handles SIGINT as long as it runs, for all tests.
            if left != handler and not getattr(left, "__module__", "").startswith("pyspark"):
                found.append(f"{number.name} is handled by {left!r}")
                signal.signal(number, handler)
        return found
