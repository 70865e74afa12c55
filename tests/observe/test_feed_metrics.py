from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from weirpool.feeds.status import Document, FeedState, FeedStatus, Lag
from weirpool.observe.feed_metrics import exposition


def values(*feeds: FeedStatus, healthy: bool = True) -> dict[tuple[str, ...], float]:
    """Return the samples of a scrape, by name and values of labels."""
    document = Document.of(list(feeds), time=0.0, healthy=healthy, ready=True)
    families = text_string_to_metric_families(exposition(document).decode())
    return {(sample.name, *sample.labels.values()): sample.value for family in families for sample in family.samples}


def test_feed_has_counters_gauges_and_lags() -> None:
    feed = FeedStatus(
        name='f"\n',
        url="u",
        route="r",
        journal="j",
        source="s",
        state=FeedState.LIVE,
        rows=5,
        bytes=7,
        gaps=1,
        budget_free=9,
        credit=3,
        sync_seconds=0.5,
        readers={"report": Lag(3, 2, 1.5)},
    )
    found = values(feed)
    name = 'f"\n'
    assert found["weirpool_feed_rows_total", name] == 5
    assert found["weirpool_feed_bytes_total", name] == 7
    assert found["weirpool_feed_gaps_total", name] == 1
    assert found["weirpool_feed_credit", name] == 3
    assert found["weirpool_feed_budget_free_bytes", name] == 9
    assert found["weirpool_feed_sync_seconds_total", name] == 0.5
    assert found["weirpool_feed_state", name, "live"] == 1
    assert ("weirpool_feed_state", name, "refused") not in found
    assert found["weirpool_feeds", "live"] == 1
    assert found["weirpool_reader_lag_rows", name, "report"] == 2
    assert found["weirpool_reader_lag_seconds", name, "report"] == 1.5
    assert found["weirpool_feeds_healthy",] == 1


def test_feed_without_log_has_no_budget() -> None:
    found = values(FeedStatus.refused("bad", "why"), healthy=False)
    assert ("weirpool_feed_budget_free_bytes", "bad") not in found
    assert found["weirpool_feeds_healthy",] == 0
