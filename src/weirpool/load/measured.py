"""What a round of load has measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from .histogram import Histogram

__all__ = ["NANOSECONDS", "PERCENTILES", "Measured", "Series"]

PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)
MAX_CODES: Final = 50
"""Different errors that are counted separately."""
OTHERS: Final = "others"
MAX_TEXT: Final = 200
"""Characters of an error's text that are kept."""
MAX_POINTS: Final = 120
"""Points of a series. A longer run has longer intervals."""
NANOSECONDS: Final = 1e9


class Series:
    """Counts of completed requests over time, in a bounded number of intervals of equal length.

    Attributes:
        seconds: The length of an interval.
        counts: The requests of each interval.

    """

    def __init__(self) -> None:
        self.seconds = 0.1
        self.counts: list[int] = []

    def add(self, elapsed: float) -> None:
        """Count a request that was completed `elapsed` seconds after the start."""
        place = int(elapsed / self.seconds)
        while place >= MAX_POINTS:
            self.seconds *= 2
            pairs = [*self.counts, 0] if len(self.counts) % 2 else self.counts
            self.counts = [pairs[n] + pairs[n + 1] for n in range(0, len(pairs), 2)]
            place = int(elapsed / self.seconds)
        if place >= len(self.counts):
            self.counts += [0] * (place + 1 - len(self.counts))
        self.counts[place] += 1


@dataclass
class Measured:
    """The results of one round.

    Attributes:
        in_flight: The maximum number of requests in flight.
        connections: The number of connections.
        rate: The requested rate in requests per second; None: as fast as possible.
        seconds: The duration, without the warm-up.
        requests: Completed requests, without those that failed.
        items: Items that were sent or received, beyond the requests themselves.
        bytes: Data that was sent and received.
        errors: Failed requests by code.
        texts: The text of the first error with each code.
        unfinished: Requests that were due and had not ended at the end.
        latency: Nanoseconds from the moment at which each request was due to its completion.
        first_item: Of streams and channels: nanoseconds until the first item.
        series: Completed requests over time.
        complete: False if the round was interrupted.

    """

    in_flight: int
    connections: int
    rate: float | None = None
    seconds: float = 0.0
    requests: int = 0
    items: int = 0
    bytes: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    texts: dict[str, str] = field(default_factory=dict)
    unfinished: int = 0
    latency: Histogram = field(default_factory=Histogram)
    first_item: Histogram = field(default_factory=Histogram)
    series: Series = field(default_factory=Series)
    complete: bool = False

    @property
    def failed(self) -> int:
        """The number of failed requests."""
        return self.errors.total()

    def fail(self, code: str, text: str = "") -> None:
        """Count a failed request."""
        if code not in self.errors and len(self.errors) >= MAX_CODES:
            code, text = OTHERS, ""
        self.errors[code] += 1
        self.texts.setdefault(code, text[:MAX_TEXT])

    def per_second(self, count: int) -> float:
        """Return `count` per second of the round."""
        return count / self.seconds if self.seconds > 0 else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the results as values of JSON; latencies are in seconds."""
        return {
            "in_flight": self.in_flight,
            "connections": self.connections,
            "rate": self.rate,
            "seconds": round(self.seconds, 6),
            "complete": self.complete,
            "requests": self.requests,
            "items": self.items,
            "bytes": self.bytes,
            "failed": self.failed,
            "unfinished": self.unfinished,
            "errors": dict(self.errors.most_common()),
            "texts": self.texts,
            "requests_per_second": round(self.per_second(self.requests), 3),
            "items_per_second": round(self.per_second(self.items), 3),
            "bytes_per_second": round(self.per_second(self.bytes), 3),
            "latency": _latencies(self.latency),
            "first_item": _latencies(self.first_item) if self.first_item.count else None,
        }


def _latencies(counted: Histogram) -> dict[str, float]:
    found = {f"p{percent:g}": counted.percentile(percent) / NANOSECONDS for percent in PERCENTILES}
    return {"mean": counted.mean / NANOSECONDS, **found, "max": counted.largest / NANOSECONDS}
