"""Metrics for Prometheus: the counters of a :class:`weirpool.Metrics`, read when they are scraped."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from typing import Final

from .._build import pip_command
from ..aio.durations import BOUNDS, Request
from ..aio.metrics import Metrics, MetricsSnapshot
from ..errors import ConnectError
from ..kinds import Kind
from ..tap import Outcome
from . import COUNTERS, DURATIONS, HELD, INITIATORS, OTHER, PAYMENTS, REFUSALS
from .http import BoundedServer

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.exposition import MetricsHandler
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ModuleNotFoundError(
        f"Prometheus needs the package prometheus-client; run: {pip_command('metrics')}", name=error.name
    ) from error

__all__ = ["MetricsCollector", "export", "listening"]

POLL_SECONDS: Final = 0.1
"""How soon the server notices that it is to stop."""


def export(metrics: Metrics, registry: CollectorRegistry = REGISTRY) -> MetricsCollector:
    """Register `metrics` with `registry`.

    Args:
        metrics: The tap that counts. One is enough for all servers and clients of a process.
        registry: The registry; that of prometheus_client by default.

    Returns:
        The registered collector, for `registry.unregister`.

    Raises:
        ValueError: The registry already has metrics of these names.

    """
    collector = MetricsCollector(metrics)
    registry.register(collector)
    return collector


@contextmanager
def listening(metrics: Metrics, host: str, port: int) -> Iterator[str]:
    """Serve `metrics` over HTTP in a thread while the block lasts.

    Args:
        metrics: The tap that counts.
        host: The address to listen on.
        port: The port; 0 lets the system choose one.

    Yields:
        The URL to scrape.

    Raises:
        ConnectError: The address is not available.

    """
    registry = CollectorRegistry()
    export(metrics, registry)
    try:
        server = BoundedServer(host, port, MetricsHandler.factory(registry))
    except OSError as error:
        raise ConnectError(f"cannot listen on {host}:{port} for metrics: {error.strerror or error}") from error
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), name="weirpool metrics", daemon=True)
    thread.start()
    try:
        place = f"[{host}]" if ":" in host else host
        yield f"http://{place}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class MetricsCollector(Collector):
    """Reads the counters of `metrics` on demand."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Return the metrics, for a registry to check that their names are unique."""
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics with their current values."""
        now = self._metrics.snapshot()
        yield GaugeMetricFamily("weirpool_connections", "Open connections", now.connections)
        for field, _, text in COUNTERS:
            # Prometheus adds `_total` to the name.
            yield CounterMetricFamily(f"weirpool_{field}", text, getattr(now, field))
        for field, _, text in HELD:
            yield GaugeMetricFamily(f"weirpool_ledger_{field}", text, getattr(now.ledger, field))
        payments = CounterMetricFamily("weirpool_ledger_payments", PAYMENTS, labels=["limit"])
        for limit, count in now.ledger.payments_by_limit.items():
            payments.add_metric([limit], count)
        refusals = CounterMetricFamily("weirpool_refusals", REFUSALS, labels=["cause"])
        for cause, count in now.refusals.items():
            refusals.add_metric([cause.value], count)
        yield from (payments, refusals)
        yield from _streams(now)
        yield from _durations(now)


def _streams(now: MetricsSnapshot) -> Iterable[Metric]:
    labels = ["kind", "initiator"]
    current = GaugeMetricFamily("weirpool_streams", "Open streams", labels=labels)
    opened = CounterMetricFamily("weirpool_streams_opened", "Requests sent or received", labels=labels)
    ended = CounterMetricFamily("weirpool_streams_ended", "Streams ended", labels=[*labels, "outcome"])
    for kind in Kind:
        for ours in (True, False):
            values = [kind.name.lower(), INITIATORS[ours]]
            current.add_metric(values, now.streams(kind, ours))
            opened.add_metric(values, now.streams_opened[kind, ours])
            for outcome in Outcome:
                ended.add_metric([*values, outcome.value], now.streams_ended[kind, ours, outcome])
    yield from (current, opened, ended)


def _durations(now: MetricsSnapshot) -> Iterable[Metric]:
    labels = ["kind", "outcome"]
    sent = HistogramMetricFamily("weirpool_client_duration_seconds", DURATIONS[True], labels=labels)
    received = HistogramMetricFamily("weirpool_server_duration_seconds", DURATIONS[False], labels=[*labels, "route"])
    for request, (counts, total) in now.durations.items():
        buckets = list(zip((*map(str, BOUNDS), "+Inf"), accumulate(counts), strict=True))
        family = sent if request.ours else received
        family.add_metric(_values(request), buckets, total)
    yield from (sent, received)


def _values(request: Request) -> list[str]:
    """Return the values of a histogram's labels."""
    values = [request.kind.name.lower(), request.outcome.value]
    return values if request.ours else [*values, OTHER if request.route is None else request.route]
