"""The expected ends of processes. Any other end is a defect, even if the process is restarted."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any, Final

from weirpool.cli.exits import CANCELED, NO_CONNECTION, OK

from .children import End

__all__ = ["unexpected"]

SPARK: Final = ("executor", "python", "driver")
RECOVERS_FOR: Final = 180.0
"""Seconds after the death of a Spark process in which the query may fail because of it."""
STOPS: Final = (signal.SIGTERM, signal.SIGINT)
HANDLED: Final = (*STOPS, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that may kill a process before it handles them, or while it ends."""


def unexpected(ends: Sequence[End], log: Sequence[dict[str, Any]]) -> list[str]:
    """Return a message for each unexpected end.

    Args:
        ends: The ends of all processes.
        log: The faults.

    """
    return [_message(end) for end in ends if not _is_fine(end, log)]


def _message(end: End) -> str:
    sent = ", ".join(signal.Signals(number).name for number in end.sent) or "no signal"
    return f"{end.name} ended with {end.code} after {sent}"


def _is_fine(end: End, log: Sequence[dict[str, Any]]) -> bool:
    if end.code == -signal.SIGKILL or (-end.code in HANDLED and -end.code in end.sent):
        return True
    if end.name == "query":
        times = [fault["at"] for fault in log if any(word in fault["kind"] for word in SPARK)]
        return end.code == OK or any(at <= end.at <= at + RECOVERS_FOR for at in times)
    if end.name.startswith("collector"):
        # The first attempt to connect may fail; later a collector waits for its publisher.
        stopped = end.code == CANCELED and signal.SIGINT in end.sent
        return end.code in (OK, NO_CONNECTION) or stopped
    return end.code == OK and bool(set(STOPS) & set(end.sent))
