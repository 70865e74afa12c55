"""Histograms of how long requests take."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Final, NamedTuple

from ..connection import Connection
from ..kinds import Kind
from ..tap import Outcome

__all__ = ["BOUNDS", "Durations", "Histogram", "Request"]

BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)
"""The upper bounds of the buckets in seconds, as OpenTelemetry's semantic conventions advise for durations of calls."""


class Request(NamedTuple):
    """What the requests of one histogram have in common.

    Attributes:
        kind: The kind of interaction; an UPLOAD from the peer counts as a CHANNEL.
        ours: True if this side was the requester.
        route: The route of the handler; None for requests of this side, and for those without a handler.
        outcome: How they ended.

    """

    kind: Kind
    ours: bool
    route: str | None
    outcome: Outcome


class Histogram(NamedTuple):
    """How many requests have taken how long.

    Attributes:
        counts: The number of requests in each bucket: one for each of `BOUNDS`, which belongs to its bucket, and one
            for those that have taken longer.
        total: The sum of all durations in seconds.

    """

    counts: tuple[int, ...]
    total: float


class Durations:
    """The histograms of a :class:`~weirpool.Metrics`, one for each kind of request, route and outcome.

    Attributes:
        recorders: Called with each request and its duration: the connection, the request and the seconds.

    """

    def __init__(self) -> None:
        self.recorders: list[Callable[[Connection, Request, float], None]] = []
        # For each request the buckets, and the sum as the last one.
        self._buckets: dict[Request, list[float]] = {}

    def add(self, connection: Connection, request: Request, seconds: float) -> None:
        """Count a request."""
        buckets = self._buckets.get(request)
        if buckets is None:
            buckets = self._buckets[request] = [0] * (len(BOUNDS) + 2)
        buckets[bisect_left(BOUNDS, seconds)] += 1
        buckets[-1] += seconds
        for record in self.recorders:
            record(connection, request, seconds)

    def snapshot(self) -> dict[Request, Histogram]:
        """Return the current histograms. Any thread may call this."""
        # Copied at once, because another thread may change them.
        found = {request: buckets.copy() for request, buckets in self._buckets.copy().items()}
        return {request: Histogram(tuple(map(int, each[:-1])), each[-1]) for request, each in found.items()}
