"""Metrics and traces for OpenTelemetry: observable counters, and interceptors that create spans.

Only OpenTelemetry's API is used. Without an SDK in the process, these do nothing and cost little.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from ipaddress import ip_address
from traceback import format_tb
from typing import Any, Final

from .._build import pip_command
from ..aio.durations import BOUNDS
from ..aio.durations import Request as Ended
from ..aio.handlers import Interceptor, Next, Request
from ..aio.metrics import Metrics
from ..connection import Connection
from ..errors import ApplicationError
from ..kinds import Kind
from ..tap import Outcome
from ..texts import shown, shown_line
from . import COUNTERS, DURATIONS, HELD, INITIATORS, OTHER, PAYMENTS, REFUSALS
from .carriers import AnyCarrier, Carrier

try:
    from opentelemetry.context import Context
    from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation, get_meter
    from opentelemetry.propagate import get_global_textmap
    from opentelemetry.propagators.textmap import TextMapPropagator
    from opentelemetry.trace import (
        Span,
        SpanKind,
        Status,
        StatusCode,
        Tracer,
        TracerProvider,
        get_tracer,
        set_span_in_context,
        use_span,
    )
except ImportError as error:
    raise ModuleNotFoundError(
        f"OpenTelemetry needs the package opentelemetry-api; run: {pip_command('metrics')}", name=error.name
    ) from error

__all__ = ["client_tracing", "export", "server_tracing"]

SCOPE: Final = "weirpool"
"""The name of the tracer and the meter."""
SENDS_MANY: Final = (Kind.STREAM, Kind.CHANNEL)
MAX_CHARACTERS: Final = 1_000
"""Characters of an error's text."""
MAX_CODE_CHARACTERS: Final = 256
MAX_CALLS: Final = 32
"""The innermost calls of an error's stack trace."""

Callback = Callable[[CallbackOptions], Iterable[Observation]]


# Metrics.


def export(metrics: Metrics, meter_provider: MeterProvider | None = None) -> None:
    """Register `metrics` with OpenTelemetry: observable instruments, and histograms of durations.

    Args:
        metrics: The tap that counts. One is enough for all servers and clients of a process.
        meter_provider: The provider; the global one by default.

    """
    meter = get_meter(SCOPE, meter_provider=meter_provider)
    for field, unit, text in COUNTERS:
        name = f"weirpool.{field.replace('_', '.')}"
        meter.create_observable_counter(name, [_reading(metrics, field)], unit, text)
    meter.create_observable_up_down_counter(
        "weirpool.connections", [_reading(metrics, "connections")], "{connection}", "Open connections"
    )
    for field, unit, text in HELD:
        meter.create_observable_gauge(f"weirpool.ledger.{field.replace('_', '.')}", [_held(metrics, field)], unit, text)
    meter.create_observable_counter(
        "weirpool.ledger.payments", [lambda options: _payments(metrics)], "{release}", PAYMENTS
    )
    meter.create_observable_counter("weirpool.refusals", [lambda options: _refusals(metrics)], "{client}", REFUSALS)
    meter.create_observable_counter(
        "weirpool.streams.opened", [lambda options: _opened(metrics)], "{stream}", "Requests sent or received"
    )
    meter.create_observable_counter(
        "weirpool.streams.ended", [lambda options: _ended(metrics)], "{stream}", "Streams ended"
    )
    metrics.durations.recorders.append(_recorder(meter))


def _reading(metrics: Metrics, field: str) -> Callback:
    return lambda options: [Observation(getattr(metrics.snapshot(), field))]


def _held(metrics: Metrics, field: str) -> Callback:
    return lambda options: [Observation(getattr(metrics.snapshot().ledger, field))]


def _opened(metrics: Metrics) -> Iterator[Observation]:
    for (kind, ours), count in metrics.snapshot().streams_opened.items():
        yield Observation(count, _labels(kind, ours))


def _ended(metrics: Metrics) -> Iterator[Observation]:
    for (kind, ours, outcome), count in metrics.snapshot().streams_ended.items():
        yield Observation(count, _labels(kind, ours) | {"outcome": outcome.value})


def _payments(metrics: Metrics) -> Iterator[Observation]:
    for limit, count in metrics.snapshot().ledger.payments_by_limit.items():
        yield Observation(count, {"limit": limit})


def _refusals(metrics: Metrics) -> Iterator[Observation]:
    for cause, count in metrics.snapshot().refusals.items():
        yield Observation(count, {"cause": cause.value})


def _recorder(meter: Meter) -> Callable[[Connection, Ended, float], None]:
    """Return a function that records the duration of a request, as the semantic conventions define it."""
    sent, received = (
        meter.create_histogram(
            f"rpc.{side}.call.duration", "s", DURATIONS[ours], explicit_bucket_boundaries_advisory=BOUNDS
        )
        for side, ours in (("client", True), ("server", False))
    )

    def record(connection: Connection, request: Ended, seconds: float) -> None:
        attributes: dict[str, str | int] = {
            "rpc.system.name": connection.protocol,
            "weirpool.kind": request.kind.name.lower(),
        }
        if request.outcome is not Outcome.COMPLETED:
            attributes["error.type"] = request.outcome.value
        if request.ours:
            places = _places(connection)
            attributes |= {name: places[name] for name in ("server.address", "server.port") if name in places}
        else:
            attributes["rpc.method"] = OTHER if request.route is None else request.route
        (sent if request.ours else received).record(seconds, attributes)

    return record


def _labels(kind: Kind, ours: bool) -> dict[str, str]:
    return {"kind": kind.name.lower(), "initiator": INITIATORS[ours]}


# Traces.


def client_tracing(
    tracer_provider: TracerProvider | None = None,
    propagator: TextMapPropagator | None = None,
    carrier: Carrier | None = None,
) -> Interceptor:
    """Return an interceptor for `connect` that creates a span for each request.

    The span of a stream ends with its items. Each item is counted, so ``batches()`` is as slow as single items.

    Args:
        tracer_provider: The provider; the global one by default.
        propagator: Defines the fields that carry the trace to the peer. The default is the global one: W3C trace
            context and baggage, unless OTEL_PROPAGATORS is set.
        carrier: Writes the fields to a request. By default they are entries of composite metadata, or River's field
            for traces.

    """
    tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
    where = carrier or AnyCarrier()

    async def trace(request: Request, after: Next) -> Any:
        span = _begin(tracer, SpanKind.CLIENT, request, None)
        fields: dict[str, str] = {}
        (propagator or get_global_textmap()).inject(fields, set_span_in_context(span))
        where.write(request, fields)
        return await _traced(span, request, after)

    return trace


def server_tracing(
    tracer_provider: TracerProvider | None = None,
    propagator: TextMapPropagator | None = None,
    carrier: Carrier | None = None,
) -> Interceptor:
    """Return an interceptor for a service that creates a span for the handling of each request.

    It is a child of the client's span if the request carries one, and the current span while the handler runs.

    Args:
        tracer_provider: As for :func:`client_tracing`.
        propagator: As for :func:`client_tracing`.
        carrier: Reads the fields from a request; the default is that of :func:`client_tracing`.

    """
    tracer = get_tracer(SCOPE, tracer_provider=tracer_provider)
    where = carrier or AnyCarrier()

    async def trace(request: Request, after: Next) -> Any:
        parent = (propagator or get_global_textmap()).extract(where.read(request))
        return await _traced(_begin(tracer, SpanKind.SERVER, request, parent), request, after)

    return trace


def _begin(tracer: Tracer, kind: SpanKind, request: Request, parent: Context | None) -> Span:
    connection = request.connection
    name = request.kind.name.lower()
    # THREATS 103: strangers choose the routes of requests without a handler, so they share one name.
    attributes: dict[str, str | int] = {
        "rpc.system": connection.protocol,
        "rpc.method": request.pattern if request.handled else OTHER,
        "weirpool.kind": name,
        **_places(connection),
    }
    return tracer.start_span((request.pattern if request.handled else "") or name, parent, kind, attributes)


def _places(connection: Connection) -> dict[str, str | int]:
    """Return the attributes of the semantic conventions for the ends of a connection, as far as they are known."""
    transport, _, rest = connection.address.rpartition("://")
    if not connection.is_client:
        return {"network.peer.address": rest} if rest else {}
    if transport in ("unix", "memory"):
        return {"network.peer.address": rest, "server.address": rest}
    host, _, port = rest.partition("/")[0].rpartition(":")
    host = host.strip("[]")
    if not port.isdecimal():
        return {"server.address": rest} if rest else {}
    # A name is not the address that was connected to.
    peer: dict[str, str | int] = {"network.peer.address": host, "network.peer.port": int(port)}
    return {"server.address": host, "server.port": int(port), **(peer if _is_address(host) else {})}


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


async def _traced(span: Span, request: Request, after: Next) -> Any:
    """Handle a request within `span`, and end the span; for streams after the last item."""
    try:
        with use_span(span, False, False, False):
            result = await after(request)
        if request.kind in SENDS_MANY:
            return _TracedItems(span, result)
    except BaseException as error:
        _end(span, error)
        raise
    _end(span)
    return result


class _TracedItems(AsyncIterator[Any]):
    """The items of a stream. Its span is current while an item is produced, but not while it is used."""

    def __init__(self, span: Span, items: AsyncIterable[Any]) -> None:
        self._span = span
        self._iterator = aiter(items)
        self._count = 0

    async def __anext__(self) -> Any:
        try:
            with use_span(self._span, False, False, False):
                item = await anext(self._iterator)
        except StopAsyncIteration:
            self._end(None)
            raise
        except BaseException as error:
            self._end(error)
            raise
        self._count += 1
        return item

    async def aclose(self) -> None:
        """Cancel the stream."""
        self._end(CancelledError())
        close = getattr(self._iterator, "aclose", None)
        if close is not None:
            await close()

    def __del__(self) -> None:
        # Another interceptor may have dropped the stream without reading it.
        self._end(CancelledError())

    def _end(self, error: BaseException | None) -> None:
        if self._span.is_recording():
            self._span.set_attribute("weirpool.items", self._count)
            _end(self._span, error)


def _described(error: Exception) -> dict[str, str]:
    """Return the attributes of an exception's event: with the calls, but without the texts of the errors before it.

    Errors of other libraries that led to it may name addresses with passwords, and texts of peers.
    """
    return {
        "exception.message": shown(str(error)[:MAX_CHARACTERS]),
        "exception.stacktrace": shown("".join(format_tb(error.__traceback__, -MAX_CALLS))),
    }


def _end(span: Span, error: BaseException | None = None) -> None:
    """End a span with the outcome of its request. A canceled request has not failed."""
    if isinstance(error, Exception):
        span.set_attribute("error.type", type(error).__qualname__)
        # A peer may have sent both, at any length.
        span.set_status(Status(StatusCode.ERROR, shown(str(error)[:MAX_CHARACTERS])))
        if isinstance(error, ApplicationError):
            span.set_attribute("rpc.response.status_code", shown_line(str(error.code)[:MAX_CODE_CHARACTERS]))
        else:
            span.record_exception(error, _described(error))
    elif error is not None:
        span.add_event("canceled")
    span.end()
