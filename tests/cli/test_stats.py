from __future__ import annotations

from penstock.aio.metrics import Metrics
from penstock.cli.stats import summary
from penstock.connection import Connection
from tests.cli.conftest import Penstock


def test_summary_tells_what_was_counted() -> None:
    metrics = Metrics()
    connection = Connection("rsocket", "", True)
    metrics.items_received(connection, 1_000)
    metrics.items_sent(connection, 2)
    metrics.received(connection, b"12345")
    expected = "0 requests; items: 1,000 received, 2 sent; bytes: 5 received, 0 sent; 2.000 s, 501 items/s"
    assert summary(metrics.snapshot(), 2.0) == expected


def test_it_is_told_at_the_end_and_also_of_what_failed(penstock: Penstock, server: str) -> None:
    result = penstock("stream", server, "count", "-d", "3", "--stats")
    assert result.lines == [b"0", b"1", b"2"]
    assert result.err.startswith("1 requests; items: 3 received, 0 sent; bytes: ")
    failed = penstock("call", server, "fail", "--stats")
    assert failed.code == 1
    stats, error = failed.err.splitlines()
    assert stats.startswith("1 requests; items: 0 received") and error == "penstock: [0x301] boom"
