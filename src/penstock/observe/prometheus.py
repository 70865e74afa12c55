"""Metrics for Prometheus: the counters of a :class:`penstock.Metrics`, read when they are scraped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from ..aio.metrics import Metrics, MetricsSnapshot
from ..errors import ConnectError
from ..kinds import Kind
from ..tap import Outcome
from . import COUNTERS, HELD, INITIATORS, PAYMENTS

try:
    from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ModuleNotFoundError(
        "Prometheus needs the package prometheus-client; install penstock[metrics]", name=error.name
    ) from error

__all__ = ["MetricsCollector", "export", "listening"]


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
        server, thread = start_http_server(port, host, registry)
    except OSError as error:
        raise ConnectError(f"cannot listen on {host}:{port} for metrics: {error.strerror or error}") from error
    try:
        place = f"[{host}]" if ":" in host else host
        yield f"http://{place}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


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
        yield GaugeMetricFamily("penstock_connections", "Open connections", now.connections)
        for field, _, text in COUNTERS:
            # Prometheus adds `_total` to the name.
            yield CounterMetricFamily(f"penstock_{field}", text, getattr(now, field))
        for field, _, text in HELD:
            yield GaugeMetricFamily(f"penstock_ledger_{field}", text, getattr(now.ledger, field))
        yield CounterMetricFamily("penstock_ledger_payments", PAYMENTS, now.ledger.payments)
        yield from _streams(now)


def _streams(now: MetricsSnapshot) -> Iterable[Metric]:
    labels = ["kind", "initiator"]
    current = GaugeMetricFamily("penstock_streams", "Open streams", labels=labels)
    opened = CounterMetricFamily("penstock_streams_opened", "Requests sent or received", labels=labels)
    ended = CounterMetricFamily("penstock_streams_ended", "Streams ended", labels=[*labels, "outcome"])
    for kind in Kind:
        for ours in (True, False):
            values = [kind.name.lower(), INITIATORS[ours]]
            current.add_metric(values, now.streams(kind, ours))
            opened.add_metric(values, now.streams_opened[kind, ours])
            for outcome in Outcome:
                ended.add_metric([*values, outcome.value], now.streams_ended[kind, ours, outcome])
    yield from (current, opened, ended)
