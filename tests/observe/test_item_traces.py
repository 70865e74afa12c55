from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pyarrow as pa
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import weirpool
from weirpool import Metadata, Payload, Service, TraceContext
from weirpool.journal import ITEMS, Journal
from weirpool.journal.collect import Collector
from weirpool.observe.item_traces import MAX_LINKS, batch_span, batch_tracing, links, tracer_is_set_up


def carrying(span_id: int, trace_id: int = 0xA) -> bytes:
    """Return the metadata of an item that was sent in a span."""
    return Metadata(trace=TraceContext.from_w3c(trace_id, span_id, 1)).encode()


W3C = Metadata(entries=[("message/x.w3c.traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")]).encode()


@pytest.fixture
def spans() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def ids(metadata: list[bytes | None]) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in links(metadata)]


def test_links_are_those_of_the_items() -> None:
    plain = Metadata(entries=[("text/plain", b"x")]).encode()
    metadata = [None, carrying(1), plain, b"\xff broken", b"", carrying(2), carrying(1), W3C]
    assert ids(metadata) == [(0xA, 1), (0xA, 2), (int("a" * 32, 16), int("b" * 16, 16))]
    # Spark's rows have bytearrays.
    assert len(links([bytearray(carrying(1))])) == 1
    [link] = links([carrying(1)])
    assert link.context.is_remote
    assert link.context.trace_flags == 1


def test_links_are_limited() -> None:
    assert len(links(carrying(number) for number in range(1, 500))) == MAX_LINKS


def test_batch_of_a_micro_batch_is_one_span(spans: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    provider, exporter = spans
    with batch_span("report", [carrying(1), None, carrying(2)], provider) as span:
        span.set_attribute("rows", 3)
    [made] = exporter.get_finished_spans()
    assert (made.name, [link.context.span_id for link in made.links]) == ("report", [1, 2])


def test_batch_without_traces_has_no_span(spans: tuple[TracerProvider, InMemorySpanExporter]) -> None:
    provider, exporter = spans
    hook = batch_tracing("feed", provider)
    for metadata in (None, b"", b"plain"):
        hook(0, pa.record_batch([[b"x"], [metadata]], schema=ITEMS))
    assert exporter.get_finished_spans() == ()


async def test_traces_go_from_items_over_the_journal_to_a_reader(
    tmp_path: Path, spans: tuple[TracerProvider, InMemorySpanExporter]
) -> None:
    provider, exporter = spans
    service = Service()

    @service.stream("numbers")
    async def numbers(request: Payload) -> AsyncIterator[Payload]:
        for number in range(1, 4):
            yield Payload(b"%d" % number, carrying(number))

    async with weirpool.serve(service, "rsocket+memory://publisher"):
        hook = batch_tracing("feed", provider)
        await Collector("rsocket+memory://publisher", "numbers", tmp_path, on_batch=hook).run()
    [made] = exporter.get_finished_spans()
    assert made.name == "weirpool.append"
    assert made.attributes == {"weirpool.feed": "feed", "weirpool.position": 0, "messaging.batch.message_count": 3}
    assert [link.context.span_id for link in made.links] == [1, 2, 3]
    reader = Journal(tmp_path).reader("numbers")
    kept = [value for batch in reader.read(0, 3) for value in batch["metadata"].to_pylist()]
    assert ids(kept) == [(0xA, 1), (0xA, 2), (0xA, 3)]


def test_process_without_provider_has_no_tracer() -> None:
    assert not tracer_is_set_up()
