"""Counting what happens on connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import product

from ..connection import Connection
from ..errors import LimitExceeded, PeerClosed
from ..kinds import Kind
from ..tap import Outcome, Tap

__all__ = ["Metrics", "MetricsSnapshot"]


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """What :class:`Metrics` had counted at one moment.

    Attributes:
        connections_opened: Connections that were established.
        connections_closed: How many of them are over.
        connections_failed: How many of those neither side ended: a link broke, or the protocol or a limit was.
        connections_resumed: How often one went on over another link.
        connections_refused: Links that a server closed before any connection came of them.
        limits_exceeded: Connections that were ended because the peer ran into a limit.
        received_bytes: What links brought.
        sent_bytes: What links were given.
        received_items: Items that came; requests are none.
        sent_items: Items that were sent; requests are none.
        streams_opened: By kind, and whether we are the requester.
        streams_ended: By kind, whether we are the requester, and how they ended.

    """

    connections_opened: int
    connections_closed: int
    connections_failed: int
    connections_resumed: int
    connections_refused: int
    limits_exceeded: int
    received_bytes: int
    sent_bytes: int
    received_items: int
    sent_items: int
    streams_opened: Mapping[tuple[Kind, bool], int]
    streams_ended: Mapping[tuple[Kind, bool, Outcome], int]

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return self.connections_opened - self.connections_closed

    def streams(self, kind: Kind, ours: bool) -> int:
        """Return how many streams of a kind are open.

        Args:
            kind: What travels each way.
            ours: Those in which we are the requester, or the others.

        """
        return self.streams_opened[kind, ours] - sum(self.streams_ended[kind, ours, outcome] for outcome in Outcome)


class Metrics(Tap):
    """A tap that counts, for all connections it is given to. Its counters are plain integers that only grow.

    :mod:`penstock.observe` shows them to Prometheus and OpenTelemetry. Any thread may take a snapshot.
    """

    def __init__(self) -> None:
        # All entries are there from the start: another thread may copy a table while this one counts.
        names = [field.name for field in fields(MetricsSnapshot) if not field.name.startswith("streams_")]
        self._counts = dict.fromkeys(names, 0)
        self._streams_opened = dict.fromkeys(product(Kind, (True, False)), 0)
        self._streams_ended = dict.fromkeys(product(Kind, (True, False), Outcome), 0)

    def snapshot(self) -> MetricsSnapshot:
        """Return what has been counted so far."""
        # Ends are read before beginnings: what happens meanwhile must not make a number negative.
        ended, closed = self._streams_ended.copy(), self._counts["connections_closed"]
        counts = self._counts | {"connections_closed": closed}
        return MetricsSnapshot(**counts, streams_opened=self._streams_opened.copy(), streams_ended=ended)

    # What the connections tell.

    def opened(self, connection: Connection) -> None:
        """Count it."""
        self._counts["connections_opened"] += 1

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """Count it, and why."""
        self._counts["connections_closed"] += 1
        self._counts["connections_failed"] += error is not None and not isinstance(error, PeerClosed)
        self._counts["limits_exceeded"] += isinstance(error, LimitExceeded)

    def resumed(self, connection: Connection) -> None:
        """Count it."""
        self._counts["connections_resumed"] += 1

    def refused(self, address: str, reason: str) -> None:
        """Count it."""
        self._counts["connections_refused"] += 1

    def received(self, connection: Connection, data: bytes) -> None:
        """Count the bytes."""
        self._counts["received_bytes"] += len(data)

    def sent(self, connection: Connection, data: bytes) -> None:
        """Count the bytes."""
        self._counts["sent_bytes"] += len(data)

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """Count it by its kind."""
        self._streams_opened[kind, ours] += 1

    def stream_ended(self, connection: Connection, kind: Kind, ours: bool, outcome: Outcome) -> None:
        """Count it by its kind and outcome."""
        self._streams_ended[kind, ours, outcome] += 1

    def items_received(self, connection: Connection, count: int) -> None:
        """Count them."""
        self._counts["received_items"] += count

    def items_sent(self, connection: Connection, count: int) -> None:
        """Count them."""
        self._counts["sent_items"] += count
