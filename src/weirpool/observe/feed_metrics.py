"""Metrics of feeds and their readers for Prometheus, in its text format."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from .._build import pip_command
from ..feeds.status import Document, FeedState, FeedStatus

try:
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ModuleNotFoundError(
        f"Prometheus needs the package prometheus-client; run: {pip_command('metrics')}", name=error.name
    ) from error

__all__ = ["exposition"]

COUNTERS: Final = (
    # The field of a status, the name, and a description. Prometheus adds `_total` to the name.
    ("rows", "rows", "Rows collected"),
    ("bytes", "bytes", "Bytes of data and metadata collected"),
    ("gaps", "gaps", "Gaps recorded, which are losses"),
    ("reconnects", "reconnects", "Connections lost, refused or not made"),
    ("restarts", "restarts", "Errors that ended the collection, which was started again"),
    ("sync_seconds", "sync_seconds", "Time that writes to the journal took"),
)
GAUGES: Final = (
    ("position", "position", "Position of the log's next row"),
    ("credit", "credit", "Items requested that have not arrived"),
    ("budget", "budget_bytes", "Bytes that readers may leave unread"),
    ("budget_free", "budget_free_bytes", "Bytes left of the budget"),
)


def exposition(document: Document) -> bytes:
    """Return all metrics of feeds and readers as Prometheus scrapes them."""
    registry = CollectorRegistry()
    registry.register(_Feeds(document))
    return generate_latest(registry)


class _Feeds(Collector):
    """The metrics of one document."""

    def __init__(self, document: Document) -> None:
        self._document = document

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics."""
        feeds = self._document.feeds
        yield GaugeMetricFamily("weirpool_feeds_healthy", "Whether all event loops run", self._document.healthy)
        yield from _states(feeds)
        for field, name, text in COUNTERS:
            counter = CounterMetricFamily(f"weirpool_feed_{name}", text, labels=["feed"])
            for feed in feeds:
                counter.add_metric([feed.name], getattr(feed, field))
            yield counter
        for field, name, text in GAUGES:
            gauge = GaugeMetricFamily(f"weirpool_feed_{name}", text, labels=["feed"])
            for feed in feeds:
                value = getattr(feed, field)
                if value is not None:
                    gauge.add_metric([feed.name], value)
            yield gauge
        yield from _lags(feeds)


def _states(feeds: list[FeedStatus]) -> Iterator[Metric]:
    # A series for each other state, with 0, would nearly double the size of a scrape.
    state = GaugeMetricFamily("weirpool_feed_state", "1, with the state of the feed", labels=["feed", "state"])
    count = GaugeMetricFamily("weirpool_feeds", "Feeds in a state", labels=["state"])
    for each in FeedState:
        count.add_metric([each.value], sum(feed.state is each for feed in feeds))
    for feed in feeds:
        state.add_metric([feed.name, feed.state.value], 1)
    yield from (count, state)


def _lags(feeds: list[FeedStatus]) -> Iterator[Metric]:
    labels = ["feed", "reader"]
    rows = GaugeMetricFamily("weirpool_reader_lag_rows", "Rows that a reader has not committed", labels=labels)
    seconds = GaugeMetricFamily("weirpool_reader_lag_seconds", "Age of the first of these rows", labels=labels)
    for feed in feeds:
        for reader, lag in feed.readers.items():
            rows.add_metric([feed.name, reader], lag.rows)
            if lag.seconds is not None:
                seconds.add_metric([feed.name, reader], lag.seconds)
    yield from (rows, seconds)
