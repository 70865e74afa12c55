"""How processes may end. One that ends in another way has a defect, though it is started again."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any, Final

from penstock.cli.exits import CANCELED, NO_CONNECTION, OK

from .children import End

__all__ = ["unexpected"]

SPARK: Final = ("executor", "python", "driver")
RECOVERS_FOR: Final = 180.0
"""Seconds for which the death of one of Spark's processes may be why its query fails."""
STOPS: Final = (signal.SIGTERM, signal.SIGINT)
HANDLED: Final = (*STOPS, signal.SIGUSR1, signal.SIGUSR2)
"""What may also kill a process that does not see to them yet, or no longer."""


def unexpected(ends: Sequence[End], log: Sequence[dict[str, Any]]) -> list[str]:
    """Return the ends that nothing explains, a sentence each.

    Args:
        ends: Of all processes.
        log: The faults.

    """
    return [_told(end) for end in ends if not _is_fine(end, log)]


def _told(end: End) -> str:
    sent = ", ".join(signal.Signals(number).name for number in end.sent) or "nothing"
    return f"{end.name} ended with {end.code} after it was sent {sent}"


def _is_fine(end: End, log: Sequence[dict[str, Any]]) -> bool:
    if end.code == -signal.SIGKILL or (-end.code in HANDLED and -end.code in end.sent):
        return True
    if end.name == "query":
        times = [fault["at"] for fault in log if any(word in fault["kind"] for word in SPARK)]
        return end.code == OK or any(at <= end.at <= at + RECOVERS_FOR for at in times)
    if end.name.startswith("collector"):
        # A first try may find nobody; later on a collector waits.
        stopped = end.code == CANCELED and signal.SIGINT in end.sent
        return end.code in (OK, NO_CONNECTION) or stopped
    return end.code == OK and bool(set(STOPS) & set(end.sent))
