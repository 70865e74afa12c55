"""Metrics for Prometheus: the counters of a :class:`penstock.Metrics`, read when they are scraped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from ..aio.metrics import Metrics, MetricsSnapshot
from ..errors import ConnectError
from ..kinds import Kind
from ..tap import Outcome

try:
    from prometheus_client import REGISTRY, CollectorRegistry, start_http_server
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ModuleNotFoundError(
        "Prometheus needs the package prometheus-client, which the extra penstock[metrics] brings", name=error.name
    ) from error

__all__ = ["COUNTERS", "MetricsCollector", "export", "listening"]

COUNTERS: Final = (
    # The metric, the field of a snapshot, and what it is.
    ("penstock_connections_opened", "connections_opened", "Connections that were established"),
    ("penstock_connections_closed", "connections_closed", "Connections that are over"),
    ("penstock_connections_failed", "connections_failed", "Connections that neither side ended in order"),
    ("penstock_connections_resumed", "connections_resumed", "Times that a connection went on over another link"),
    ("penstock_connections_refused", "connections_refused", "Links closed before a connection came of them"),
    ("penstock_limits_exceeded", "limits_exceeded", "Connections ended because the peer ran into a limit"),
    ("penstock_received_bytes", "received_bytes", "Bytes that links brought"),
    ("penstock_sent_bytes", "sent_bytes", "Bytes that links were given"),
    ("penstock_received_items", "received_items", "Items that came; requests are none"),
    ("penstock_sent_items", "sent_items", "Items that were sent; requests are none"),
)
"""Prometheus adds `_total` to their names."""

INITIATORS: Final = ((True, "local"), (False, "remote"))
"""Who asked: this side, or the peer."""


def export(metrics: Metrics, registry: CollectorRegistry = REGISTRY) -> MetricsCollector:
    """Show `metrics` to whoever scrapes `registry`.

    Args:
        metrics: The tap that counts. One is enough for all servers and clients of a process.
        registry: prometheus_client's own, unless another one is given.

    Returns:
        What was registered; `registry.unregister` takes it back.

    Raises:
        ValueError: The registry shows others of these already.

    """
    collector = MetricsCollector(metrics)
    registry.register(collector)
    return collector


@contextmanager
def listening(metrics: Metrics, host: str, port: int) -> Iterator[str]:
    """Answer scrapes of `metrics` over HTTP, in a thread, while the block lasts.

    Args:
        metrics: The tap that counts.
        host: Which address to listen on.
        port: Which port; 0 lets the system choose one.

    Yields:
        The URL to scrape.

    Raises:
        ConnectError: The place cannot be bound.

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
    """Reads the counters of `metrics` when it is asked, and not before."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def describe(self) -> Iterable[Metric]:
        """Yield them for their names, by which a registry refuses to show two of a kind."""
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics as they are now."""
        now = self._metrics.snapshot()
        yield GaugeMetricFamily("penstock_connections", "Connections that there are", now.connections)
        for name, field, text in COUNTERS:
            yield CounterMetricFamily(name, text, getattr(now, field))
        yield from _streams(now)


def _streams(now: MetricsSnapshot) -> Iterable[Metric]:
    labels = ["kind", "initiator"]
    there = GaugeMetricFamily("penstock_streams", "Streams that are open", labels=labels)
    opened = CounterMetricFamily("penstock_streams_opened", "Requests that were sent, or came", labels=labels)
    ended = CounterMetricFamily("penstock_streams_ended", "Streams that are over", labels=[*labels, "outcome"])
    for kind in Kind:
        for ours, initiator in INITIATORS:
            values = [kind.name.lower(), initiator]
            there.add_metric(values, now.streams(kind, ours))
            opened.add_metric(values, now.streams_opened[kind, ours])
            for outcome in Outcome:
                ended.add_metric([*values, outcome.value], now.streams_ended[kind, ours, outcome])
    yield from (there, opened, ended)
