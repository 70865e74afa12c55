from __future__ import annotations

import asyncio
import subprocess
import sys
import urllib.request
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import ConnectError, Metrics, Refusal, RefusalCause, Rejected
from weirpool.aio.durations import BOUNDS
from weirpool.observe import COUNTERS
from weirpool.observe.prometheus import MetricsCollector, export, listening

URL = "rsocket+memory://prometheus"


def values(text: str) -> dict[tuple[str, ...], float]:
    """Return each sample by its name and the values of its labels, but those of histograms."""
    families = [family for family in text_string_to_metric_families(text) if family.type != "histogram"]
    samples = [one for family in families for one in family.samples]
    names = ("kind", "initiator", "outcome", "cause", "limit")
    assert {label for one in samples for label in one.labels} == set(names)
    return {(one.name, *(one.labels[name] for name in names if name in one.labels)): one.value for one in samples}


async def traffic(metrics: Metrics) -> None:
    async with weirpool.serve(make_service([], asyncio.Event()), URL, taps=[metrics]) as server:
        async with weirpool.connect(URL) as peer:
            await peer.call("echo", bytes(1000))
            with pytest.raises(Rejected):
                await peer.call("nobody")
            async with peer.stream("count", b"7") as items:
                assert len([item async for item in items]) == 7
        await until(lambda: server.connections == 0)


async def test_scraped_values_equal_the_counters() -> None:
    metrics, registry = Metrics(), CollectorRegistry()
    export(metrics, registry)
    before = values(generate_latest(registry).decode())
    assert {value for name, value in before.items() if "_ledger_" not in name[0]} == {0.0}
    await traffic(metrics)
    after = values(generate_latest(registry).decode())
    assert before.keys() == after.keys()
    snapshot = metrics.snapshot()
    assert after["weirpool_connections",] == 0
    assert after["weirpool_connections_opened_total",] == after["weirpool_connections_closed_total",] == 1
    assert after["weirpool_sent_items_total",] == 8
    assert after["weirpool_ledger_held_bytes",] == snapshot.ledger.held_bytes
    payments = {name[1]: value for name, value in after.items() if name[0] == "weirpool_ledger_payments_total"}
    assert payments == snapshot.ledger.payments_by_limit
    assert sum(payments.values()) == snapshot.ledger.payments
    assert after["weirpool_received_bytes_total",] == snapshot.received_bytes > 1000
    assert after["weirpool_streams_opened_total", "call", "remote"] == 2
    assert after["weirpool_streams_ended_total", "call", "remote", "completed"] == 1
    assert after["weirpool_streams_ended_total", "call", "remote", "rejected"] == 1
    assert after["weirpool_streams_ended_total", "stream", "remote", "completed"] == 1
    assert after["weirpool_streams", "call", "remote"] == 0
    assert sum(value for name, value in after.items() if name[0] == "weirpool_streams_ended_total") == 3
    for field, _, _ in COUNTERS:
        assert after[f"weirpool_{field}_total",] == getattr(snapshot, field)


async def test_durations_are_histograms() -> None:
    # THREATS 103: the route of a stranger is no label.
    metrics, registry = Metrics(), CollectorRegistry()
    export(metrics, registry)
    await traffic(metrics)
    families = text_string_to_metric_families(generate_latest(registry).decode())
    found = {family.name: family.samples for family in families if family.type == "histogram"}
    assert set(found) == {"weirpool_client_duration_seconds", "weirpool_server_duration_seconds"}
    received = found["weirpool_server_duration_seconds"]
    totals = {tuple(one.labels.values()): one.value for one in received if one.name.endswith("_count")}
    assert totals == {
        ("call", "completed", "echo"): 1,
        ("call", "rejected", "_OTHER"): 1,
        ("stream", "completed", "count"): 1,
    }
    bounds = [one.labels["le"] for one in received if one.labels["route"] == "echo" and "le" in one.labels]
    assert [float(bound) for bound in bounds] == [*BOUNDS, float("inf")]
    [histogram] = [each for request, each in metrics.snapshot().durations.items() if request.route == "count"]
    buckets = [one.value for one in received if one.labels["route"] == "count" and "le" in one.labels]
    assert buckets == [sum(histogram.counts[: place + 1]) for place in range(len(histogram.counts))]
    assert [one.value for one in received if one.labels["route"] == "count" and one.name.endswith("_sum")] == [
        histogram.total
    ]


def test_one_registry_shows_one_metrics() -> None:
    registry = CollectorRegistry()
    collector = export(Metrics(), registry)
    with pytest.raises(ValueError, match="Duplicated"):
        export(Metrics(), registry)
    registry.unregister(collector)
    export(Metrics(), registry)


def test_the_default_is_the_registry_of_the_process() -> None:
    from prometheus_client import REGISTRY

    collector = export(Metrics())
    try:
        assert b"weirpool_connections_opened_total 0.0" in generate_latest(REGISTRY)
    finally:
        REGISTRY.unregister(collector)


def test_families_have_a_text() -> None:
    families: Iterable[object] = MetricsCollector(Metrics()).collect()
    assert all(getattr(family, "documentation", "") for family in families)


def test_scrapes_are_answered_over_http() -> None:
    metrics = Metrics()
    metrics.refused("", Refusal(RefusalCause.LOST, "gone"))
    with listening(metrics, "127.0.0.1", 0) as url:
        with urllib.request.urlopen(url, timeout=60) as answer:
            text = answer.read().decode()
        assert values(text)["weirpool_connections_refused_total",] == 1
        assert values(text)["weirpool_refusals_total", "lost"] == 1
        port = int(url.split(":")[2].partition("/")[0])
        with pytest.raises(ConnectError, match="for metrics"), listening(metrics, "127.0.0.1", port):
            pass


def test_missing_package_error_names_the_extra() -> None:
    code = "import sys; sys.modules['prometheus_client'] = None; import weirpool.observe.prometheus"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "ModuleNotFoundError: Prometheus needs the package prometheus-client" in result.stderr
    assert "weirpool[metrics]" in result.stderr
