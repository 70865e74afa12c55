"""A tap that counts the events of connections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import product
from typing import Any

from ..connection import Connection
from ..errors import LimitExceeded, PeerClosed, SetupRejected
from ..kinds import Kind
from ..ledger import LEDGER, LedgerSnapshot
from ..tap import Outcome, Refusal, RefusalCause, Tap
from .durations import Durations, Histogram, Request
from .tapping import cause_of

__all__ = ["Metrics", "MetricsSnapshot"]


@dataclass(frozen=True, slots=True)
class MetricsSnapshot:
    """The counters of a :class:`~weirpool.Metrics` at one moment.

    Attributes:
        connections_opened: Connections established.
        connections_closed: Connections closed.
        connections_failed: Connections closed by an error: a broken link, a protocol violation, or an exceeded limit.
        connections_resumed: Links over which a connection was resumed.
        connections_refused: Links closed before a connection was established.
        limits_exceeded: Connections ended because the peer exceeded a limit.
        received_bytes: Bytes received over links.
        sent_bytes: Bytes sent over links.
        received_items: Items received, without requests.
        sent_items: Items sent, without requests.
        requests_queued: Requests of this side that had to wait: for other calls to end, for a lease, or for the link.
        requests_repeated: Calls of this side that the peer had no place for, and that were sent again.
        requests_refused: Requests of peers that this side has refused, because of a limit or because there was no lease
            for them.
        streams_opened: Streams opened, by kind and whether this side is the requester.
        streams_ended: Streams ended, by kind, whether this side is the requester, and outcome.
        refusals: Clients that a server has refused, by cause: the refused links, and the connections that the acceptor
            or the limit of a principal has rejected.
        durations: Histograms of how long requests have taken. Their routes are those of handlers, of which a service
            has a fixed number.
        ledger: The bytes that the process holds for all its peers.

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
    requests_queued: int
    requests_repeated: int
    requests_refused: int
    streams_opened: Mapping[tuple[Kind, bool], int]
    streams_ended: Mapping[tuple[Kind, bool, Outcome], int]
    refusals: Mapping[RefusalCause, int]
    durations: Mapping[Request, Histogram]
    ledger: LedgerSnapshot = field(default_factory=LEDGER.snapshot, compare=False)

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return self.connections_opened - self.connections_closed

    def streams(self, kind: Kind, ours: bool) -> int:
        """Return the number of open streams.

        Args:
            kind: The kind of interaction.
            ours: Whether to count streams that this side opened, or those of the peer.

        """
        return self.streams_opened[kind, ours] - sum(self.streams_ended[kind, ours, outcome] for outcome in Outcome)


class Metrics(Tap):
    """A tap that counts events of all connections that it is installed on. Counters are integers that only grow.

    :mod:`weirpool.observe` exports them to Prometheus and OpenTelemetry. Any thread may take a snapshot.

    Attributes:
        durations: How long requests have taken.

    """

    def __init__(self) -> None:
        # All entries exist from the start, because another thread may copy a table while this one counts.
        names = [each.name for each in fields(MetricsSnapshot) if each.type == "int"]
        self._counts = dict.fromkeys(names, 0)
        self._streams_opened = dict.fromkeys(product(Kind, (True, False)), 0)
        self._streams_ended = dict.fromkeys(product(Kind, (True, False), Outcome), 0)
        self._refusals = dict.fromkeys(RefusalCause, 0)
        self.durations = Durations()

    def snapshot(self) -> MetricsSnapshot:
        """Return the current values of all counters."""
        # Ends are read before beginnings, so that concurrent events do not make a difference negative.
        ended, closed = self._streams_ended.copy(), self._counts["connections_closed"]
        counts: dict[str, Any] = self._counts | {"connections_closed": closed}
        opened = self._streams_opened.copy()
        return MetricsSnapshot(
            **counts,
            streams_opened=opened,
            streams_ended=ended,
            refusals=self._refusals.copy(),
            durations=self.durations.snapshot(),
            ledger=LEDGER.snapshot(),
        )

    # Methods of Tap.

    def opened(self, connection: Connection) -> None:
        """Count a connection."""
        self._counts["connections_opened"] += 1

    def closed(self, connection: Connection, error: Exception | None) -> None:
        """Count a closed connection, and its error."""
        self._counts["connections_closed"] += 1
        self._counts["connections_failed"] += error is not None and not isinstance(error, PeerClosed)
        self._counts["limits_exceeded"] += isinstance(error, LimitExceeded)
        if isinstance(error, SetupRejected) and not connection.is_client:
            self._refusals[cause_of(error)] += 1

    def resumed(self, connection: Connection) -> None:
        """Count a resumption."""
        self._counts["connections_resumed"] += 1

    def refused(self, address: str, reason: Refusal) -> None:
        """Count a refused link, and the cause."""
        self._counts["connections_refused"] += 1
        self._refusals[reason.cause] += 1

    def received(self, connection: Connection, data: bytes) -> None:
        """Count bytes."""
        self._counts["received_bytes"] += len(data)

    def sent(self, connection: Connection, data: bytes) -> None:
        """Count bytes."""
        self._counts["sent_bytes"] += len(data)

    def request_queued(self, connection: Connection) -> None:
        """Count a request that has to wait."""
        self._counts["requests_queued"] += 1

    def request_repeated(self, connection: Connection) -> None:
        """Count a call that is sent again."""
        self._counts["requests_repeated"] += 1

    def requests_refused(self, connection: Connection, count: int) -> None:
        """Count requests that were refused."""
        self._counts["requests_refused"] += count

    def stream_opened(self, connection: Connection, kind: Kind, ours: bool) -> None:
        """Count a stream by its kind."""
        self._streams_opened[kind, ours] += 1

    def stream_ended(self, connection: Connection, kind: Kind, ours: bool, outcome: Outcome) -> None:
        """Count a stream by its kind and outcome."""
        self._streams_ended[kind, ours, outcome] += 1

    def request_ended(
        self, connection: Connection, kind: Kind, ours: bool, route: str | None, seconds: float, outcome: Outcome
    ) -> None:
        """Count a request by its duration."""
        self.durations.add(connection, Request(kind, ours, route, outcome), seconds)

    def items_received(self, connection: Connection, count: int) -> None:
        """Count items."""
        self._counts["received_items"] += count

    def items_sent(self, connection: Connection, count: int) -> None:
        """Count items."""
        self._counts["sent_items"] += count
