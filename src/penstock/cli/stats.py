"""The line that --stats prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..aio.metrics import MetricsSnapshot

__all__ = ["summary"]


def summary(counted: MetricsSnapshot, seconds: float) -> str:
    """Return totals and rates as one line.

    Args:
        counted: The counters of all connections, at their end.
        seconds: The duration, including connecting.

    """
    requests = sum(counted.streams_opened.values())
    items = counted.received_items + counted.sent_items
    return (
        f"{requests:,} requests; items: {counted.received_items:,} received, {counted.sent_items:,} sent;"
        f" bytes: {counted.received_bytes:,} received, {counted.sent_bytes:,} sent;"
        f" {seconds:.3f} s, {items / max(seconds, 1e-6):,.0f} items/s"
    )
