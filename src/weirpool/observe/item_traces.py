"""Traces of collected items: from the spans that sent them, over the batch on disk, to a batch in Spark.

An item may carry the context of a trace in its metadata, in the forms that `CompositeCarrier` reads. A batch has many
items of many traces, so its span is not their child: it links to them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from .._build import pip_command
from ..protocols import item_fields

try:
    from opentelemetry.propagate import get_global_textmap
    from opentelemetry.trace import (
        Link,
        ProxyTracerProvider,
        Span,
        SpanKind,
        Tracer,
        TracerProvider,
        get_current_span,
        get_tracer,
        get_tracer_provider,
    )
except ImportError as error:
    raise ModuleNotFoundError(
        f"OpenTelemetry needs the package opentelemetry-api; run: {pip_command('metrics')}", name=error.name
    ) from error

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MAX_LINKS", "batch_span", "batch_tracing", "links", "tracer_is_set_up"]

SCOPE: Final = "weirpool"
MAX_LINKS: Final = 128
"""Links of one span at most, which is what OpenTelemetry's SDK keeps by default."""
MAX_SCANNED: Final = 512
"""Items of a batch whose metadata is searched for traces: a batch of many rows must not hold the event loop up."""


def links(metadata: Iterable[bytes | None], limit: int = MAX_LINKS) -> list[Link]:
    """Return links to the spans in the metadata of items, each span once, in order.

    Args:
        metadata: The metadata of items, such as the column `metadata` of rows of a journal. Metadata without a trace
            is skipped.
        limit: The maximum number of links.

    """
    return list(islice(_links(metadata), limit))


@contextmanager
def batch_span(
    name: str, metadata: Iterable[bytes | None], tracer_provider: TracerProvider | None = None
) -> Iterator[Span]:
    """Run a block in a span that links to the spans of items. In Spark, use it in `foreachBatch`.

    Args:
        name: The name of the span.
        metadata: As for :func:`links`.
        tracer_provider: The provider; the global one by default.

    Yields:
        The span, which is the current one.

    """
    tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
    with tracer.start_as_current_span(name, kind=SpanKind.CONSUMER, links=links(metadata)) as span:
        yield span


def batch_tracing(feed: str, tracer_provider: TracerProvider | None = None) -> Callable[[int, pa.RecordBatch], None]:
    """Return a hook for `Collector(on_batch=...)` that creates a span for each batch whose items carry traces.

    Args:
        feed: The name of the feed, which becomes an attribute.
        tracer_provider: The provider; the global one by default.

    """
    tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)

    def on_batch(first: int, batch: pa.RecordBatch) -> None:
        column = batch["metadata"]
        if column.null_count < len(column):
            _record(tracer, feed, first, batch.num_rows, links(column.slice(0, MAX_SCANNED).to_pylist()))

    return on_batch


def tracer_is_set_up() -> bool:
    """Return True if this process has a tracer provider that is not the empty one of the API."""
    return not isinstance(get_tracer_provider(), ProxyTracerProvider)


def _record(tracer: Tracer, feed: str, first: int, rows: int, found: list[Link]) -> None:
    if found:
        attributes: dict[str, str | int] = {
            "weirpool.feed": feed,
            "weirpool.position": first,
            "messaging.batch.message_count": rows,
        }
        now = time.time_ns()
        span = tracer.start_span(
            "weirpool.append", kind=SpanKind.CONSUMER, attributes=attributes, links=found, start_time=now
        )
        span.end(now)


def _links(metadata: Iterable[bytes | None]) -> Iterator[Link]:
    propagator, read = get_global_textmap(), item_fields()
    seen: set[tuple[int, int]] = set()
    for each in metadata:
        # Spark's rows have bytearrays.
        fields = None if each is None else read(bytes(each))
        if fields:
            context = get_current_span(propagator.extract(fields)).get_span_context()
            if context.is_valid and (context.trace_id, context.span_id) not in seen:
                seen.add((context.trace_id, context.span_id))
                yield Link(context)
