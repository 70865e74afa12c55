from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import weirpool
from tests.aio.serving import make_service
from tests.waiting import until
from weirpool import ApplicationError, Kind, Metrics, Next, Payload, Peer, Rejected, Request, Service
from weirpool.aio.durations import BOUNDS
from weirpool.observe.opentelemetry import _places, client_tracing, export, server_tracing

URL = "rsocket+memory://traced"


@dataclass
class Traced:
    """A client and its server, both traced, and the spans that have ended."""

    peer: Peer
    provider: TracerProvider
    exporter: InMemorySpanExporter
    service: Service

    async def spans(self, count: int = 2) -> list[ReadableSpan]:
        """Wait for this many spans, and return them, those of the client first."""
        await until(lambda: len(self.exporter.get_finished_spans()) >= count)
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.kind != SpanKind.CLIENT)


@asynccontextmanager
async def tracing(seen: list[object] | None = None, reached: asyncio.Event | None = None) -> AsyncIterator[Traced]:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = make_service([] if seen is None else seen, reached or asyncio.Event())
    service.intercept(server_tracing(provider))
    async with weirpool.serve(service, URL):
        async with weirpool.connect(URL, interceptors=[client_tracing(provider)]) as peer:
            yield Traced(peer, provider, exporter, service)


def attributes(span: ReadableSpan) -> Mapping[str, Any]:
    assert span.attributes is not None
    return span.attributes


def assert_one_trace(client: ReadableSpan, server: ReadableSpan) -> None:
    assert (client.kind, server.kind) == (SpanKind.CLIENT, SpanKind.SERVER)
    assert client.context is not None and server.context is not None and server.parent is not None
    assert server.context.trace_id == client.context.trace_id
    assert server.parent.span_id == client.context.span_id
    assert server.parent.is_remote


async def test_both_sides_of_a_call_belong_to_one_trace() -> None:
    async with tracing() as traced:
        with traced.provider.get_tracer("test").start_as_current_span("outside") as outside:
            assert (await traced.peer.call("echo", b"x", metadata=b"mine")).data == b"x"
        client, server, internal = await traced.spans(3)
    if server.kind != SpanKind.SERVER:
        server, internal = internal, server
    assert_one_trace(client, server)
    assert client.parent is not None and client.parent.span_id == outside.get_span_context().span_id
    assert (client.name, server.name) == ("echo", "echo")
    assert dict(attributes(client)) == {
        "rpc.system": "rsocket",
        "rpc.method": "echo",
        "weirpool.kind": "call",
        "network.peer.address": "traced",
        "server.address": "traced",
    }
    assert attributes(server)["rpc.method"] == "echo"
    assert (client.status.status_code, server.status.status_code) == (StatusCode.UNSET, StatusCode.UNSET)


@pytest.mark.parametrize(
    ("address", "is_client", "expected"),
    [
        (
            "tcp://127.0.0.1:7878",
            True,
            {"network.peer.address": "127.0.0.1", "network.peer.port": 7878}
            | {"server.address": "127.0.0.1", "server.port": 7878},
        ),
        ("wss://example.org:443/path", True, {"server.address": "example.org", "server.port": 443}),
        (
            "tls://[::1]:7",
            True,
            {"network.peer.address": "::1", "network.peer.port": 7, "server.address": "::1", "server.port": 7},
        ),
        ("unix:///run/x.sock", True, {"network.peer.address": "/run/x.sock", "server.address": "/run/x.sock"}),
        ("10.0.0.7", False, {"network.peer.address": "10.0.0.7"}),
        ("", False, {}),
        ("", True, {}),
    ],
)
def test_places_follow_the_semantic_conventions(address: str, is_client: bool, expected: dict[str, object]) -> None:
    assert _places(weirpool.Connection("rsocket", address, is_client)) == expected


async def test_routes_of_strangers_are_no_names() -> None:
    # THREATS 103
    async with tracing() as traced:
        async with weirpool.connect(URL) as stranger:
            for number in range(500):
                with pytest.raises(weirpool.Rejected):
                    await stranger.call(f"random-{number}")
            for number in range(3):
                with pytest.raises(weirpool.Rejected):
                    async with stranger.stream(f"random-{number}") as items:
                        await anext(aiter(items))
        spans = await traced.spans(503)
    assert {span.name for span in spans} == {"call", "stream"}
    assert {attributes(span)["rpc.method"] for span in spans} == {"_OTHER"}


@pytest.mark.parametrize("kind", [kind.name for kind in Kind])
async def test_every_kind_is_traced(kind: str) -> None:
    async with tracing() as traced:
        peer = traced.peer
        items = 0
        if kind == "CALL":
            await peer.call("echo")
        elif kind == "FIRE":
            await peer.fire("log", b"x")
        elif kind == "UPLOAD":
            assert (await peer.upload("sum", b"", [b"1", b"2"])).data == b"3"
        elif kind == "STREAM":
            items = len([item async for item in peer.stream("count", b"5")])
        else:
            async with peer.channel("double", b"", [b"1", b"2"]) as stream:
                items = len([item async for item in stream])
        client, server = await traced.spans()
    assert_one_trace(client, server)
    assert attributes(client)["weirpool.kind"] == attributes(server)["weirpool.kind"] == kind.lower()
    if items:
        assert attributes(client)["weirpool.items"] == attributes(server)["weirpool.items"] == items


async def test_spans_of_handlers_are_children_of_the_request() -> None:
    async with tracing() as traced:
        tracer = traced.provider.get_tracer("test")

        @traced.service.call("inner")
        async def inner(request: Payload) -> None:
            with tracer.start_as_current_span("work"):
                await asyncio.sleep(0)

        @traced.service.stream("inner")
        async def inner_items(request: Payload) -> AsyncIterator[bytes]:
            for _ in range(2):
                with tracer.start_as_current_span("work"):
                    await asyncio.sleep(0)
                yield b"x"

        await traced.peer.call("inner")
        async for _ in traced.peer.stream("inner"):
            # The span of a stream is not current while an item is used.
            assert not trace.get_current_span().get_span_context().is_valid
        spans = await traced.spans(7)
    servers = {span.context.span_id: span for span in spans if span.kind == SpanKind.SERVER and span.context}
    parents = [span.parent.span_id for span in spans if span.name == "work" and span.parent]
    assert len(parents) == 3
    assert set(parents) == set(servers)


async def test_errors_are_recorded_on_both_sides() -> None:
    async with tracing() as traced:
        with pytest.raises(ApplicationError):
            await traced.peer.call("fail")
        client, server = await traced.spans()
        for span in (client, server):
            assert span.status.status_code == StatusCode.ERROR
            assert attributes(span)["error.type"] == "ApplicationError"
            assert attributes(span)["rpc.response.status_code"] == "769"
        traced.exporter.clear()
        with pytest.raises(Rejected):
            async for _ in traced.peer.stream("nobody"):
                pass
        client, server = await traced.spans()
        assert_one_trace(client, server)
        assert {attributes(span)["error.type"] for span in (client, server)} == {"Rejected"}


async def test_handler_bug_is_recorded_only_on_the_server(caplog: pytest.LogCaptureFixture) -> None:
    async with tracing() as traced:
        with pytest.raises(ApplicationError):
            await traced.peer.call("bug")
        client, server = await traced.spans()
    assert [event.name for event in server.events] == ["exception"]
    assert (attributes(server)["error.type"], attributes(client)["error.type"]) == ("KeyError", "ApplicationError")
    assert list(client.events) == []


async def test_canceled_request_ends_without_an_error() -> None:
    reached, seen = asyncio.Event(), []
    async with tracing(seen, reached) as traced:
        call = asyncio.create_task(traced.peer.call("never"))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        async with traced.peer.stream("acount", b"1000000", credit=2) as items:
            async for _ in items:
                break
        spans = await traced.spans(4)
        traced.exporter.clear()
        async with traced.peer.stream("acount", b"1000000", credit=2):
            """Leave at once: a server that sees both in one read begins nothing."""
        spans += [span for span in await traced.spans(1) if span.kind == SpanKind.CLIENT]
    assert {span.status.status_code for span in spans} == {StatusCode.UNSET}
    assert {event.name for span in spans for event in span.events} == {"canceled"}
    assert [len(span.events) for span in spans] == [1] * 5


async def test_span_ends_when_an_interceptor_drops_the_stream() -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))

    async def drop(request: Request, after: Next) -> Any:
        await after(request)

        async def nothing() -> AsyncIterator[Payload]:
            for payload in ():
                yield payload

        return nothing()

    service = make_service([], asyncio.Event())
    async with weirpool.serve(service, URL):
        async with weirpool.connect(URL, interceptors=[drop, client_tracing(provider)]) as peer:
            assert [item async for item in peer.stream("count", b"3")] == []
    assert len(exporter.get_finished_spans()) == 1


async def test_the_carrier_is_chosen() -> None:
    carried: dict[str, str] = {}

    class Elsewhere:
        def write(self, request: Request, fields: Mapping[str, str]) -> None:
            carried.update(fields)

        def read(self, request: Request) -> Mapping[str, str]:
            return carried

    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = make_service([], asyncio.Event())
    service.intercept(server_tracing(provider, carrier=Elsewhere()))
    async with weirpool.serve(service, URL):
        async with weirpool.connect(URL, interceptors=[client_tracing(provider, carrier=Elsewhere())]) as peer:
            answer = await peer.call("echo", b"x")
    server, client = exporter.get_finished_spans()
    assert_one_trace(client, server)
    assert "traceparent" in carried
    assert b"traceparent" not in (answer.metadata or b"")


async def test_without_an_sdk_everything_works_as_before() -> None:
    service = make_service([], asyncio.Event())
    service.intercept(server_tracing())
    async with weirpool.serve(service, URL), weirpool.connect(URL, interceptors=[client_tracing()]) as peer:
        assert (await peer.call("echo", b"x")).data == b"x"
        assert len([item async for item in peer.stream("count", b"3")]) == 3


async def test_counters_are_observed() -> None:
    metrics, reader = Metrics(), InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    export(metrics, provider)
    async with weirpool.serve(make_service([], asyncio.Event()), URL, taps=[metrics]), weirpool.connect(URL) as peer:
        await peer.call("echo", b"x")
        data, sent = reader.get_metrics_data(), metrics.snapshot().sent_bytes
    assert data is not None
    found = {
        (metric.name, *(point.attributes or {}).values()): point.value  # type: ignore[union-attr]
        for metric in data.resource_metrics[0].scope_metrics[0].metrics
        for point in metric.data.data_points
        if not metric.name.startswith("rpc.")
    }
    assert found["weirpool.connections",] == found["weirpool.connections.opened",] == 1
    assert found["weirpool.connections.closed",] == 0
    ledger = metrics.snapshot().ledger
    assert found["weirpool.ledger.payments", "unread_timeout"] == ledger.payments_by_limit["unread_timeout"]
    assert found["weirpool.refusals", "client_limit"] == 0
    assert found["weirpool.ledger.peak.bytes",] == ledger.peak_bytes
    assert found["weirpool.sent.items",] == 1
    assert found["weirpool.sent.bytes",] == sent > 0
    assert found["weirpool.streams.opened", "call", "remote"] == 1
    assert found["weirpool.streams.ended", "call", "remote", "completed"] == 1
    assert sum(value for name, value in found.items() if name[0] == "weirpool.streams.ended") == 1
    provider.shutdown()


async def test_durations_follow_the_semantic_conventions() -> None:
    metrics, reader = Metrics(), InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    export(metrics, provider)
    where = "rsocket+tcp://127.0.0.1:0"
    async with weirpool.serve(make_service([], asyncio.Event()), where, taps=[metrics]) as server:
        port = int(server.urls[0].rpartition(":")[2])
        async with weirpool.connect(server.urls[0], taps=[metrics]) as peer:
            await peer.call("echo", b"x")
            for number in range(20):
                with pytest.raises(Rejected):
                    await peer.call(f"random-{number}")
        await until(lambda: server.connections == 0)
    data = reader.get_metrics_data()
    assert data is not None
    named = {metric.name: metric for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    system = {"rpc.system.name": "rsocket", "weirpool.kind": "call"}
    place = {"server.address": "127.0.0.1", "server.port": port}
    for name, each, other in (
        ("rpc.server.call.duration", {"rpc.method": "echo"}, {"rpc.method": "_OTHER"}),
        ("rpc.client.call.duration", place, place),
    ):
        assert named[name].unit == "s"
        points: list[Any] = list(named[name].data.data_points)
        assert sorted(((point.count, dict(point.attributes)) for point in points), key=lambda pair: pair[0]) == [
            (1, system | each),
            # THREATS 103
            (20, system | other | {"error.type": "rejected"}),
        ]
        assert {point.explicit_bounds for point in points} == {BOUNDS}
    provider.shutdown()


def test_missing_package_error_names_the_extra() -> None:
    code = "import sys; sys.modules['opentelemetry'] = None; import weirpool.observe.opentelemetry"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "ModuleNotFoundError: OpenTelemetry needs the package opentelemetry-api" in result.stderr
    assert "weirpool[metrics]" in result.stderr


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("kind", ["call", "stream", "upload", "channel"])
async def test_river_belongs_to_one_trace_too(kind: str, codec: str) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    service = Service(interceptors=[server_tracing(provider)])
    value = b"1" if codec == "json" else b"\x01"

    @service.call("demo.call")
    def call(request: Payload) -> Payload:
        return request

    @service.stream("demo.stream")
    def stream(request: Payload) -> list[Payload]:
        return [request]

    @service.upload("demo.upload")
    async def upload(request: Payload, items: weirpool.Items) -> Payload:
        [last] = [item async for item in items]
        return last

    @service.channel("demo.channel")
    async def channel(request: Payload, items: weirpool.Items) -> AsyncIterator[Payload]:
        async for item in items:
            yield item

    url = f"river+memory://traced?codec={codec}"
    async with weirpool.serve(service, url):
        async with weirpool.connect(url, interceptors=[client_tracing(provider)]) as peer:
            if kind == "call":
                answers = [await peer.call("demo.call", value)]
            elif kind == "upload":
                answers = [await peer.upload("demo.upload", value, [value])]
            elif kind == "stream":
                async with peer.stream("demo.stream", value) as items:
                    answers = [item async for item in items]
            else:
                async with peer.channel("demo.channel", value, [value]) as items:
                    answers = [item async for item in items]
            assert [answer.data for answer in answers] == [value]
            traced = Traced(peer, provider, exporter, service)
            client, server = await traced.spans()
    assert_one_trace(client, server)
    assert attributes(client)["rpc.system"] == "river"


async def test_event_of_an_error_has_neither_its_causes_nor_more_than_a_screen() -> None:
    async with tracing() as traced:

        def dive(depth: int) -> None:
            if depth:
                dive(depth - 1)
            raise ValueError("\x1b[2J" + "x" * 100_000)

        @traced.service.call("fails")
        def fails(request: Payload) -> bytes:
            try:
                raise OSError("postgres://user:Zq7-MARKER@host")
            except OSError:
                dive(200)
            return b""

        with pytest.raises(ApplicationError):
            await traced.peer.call("fails")
        client, server = await traced.spans()
    for span in (client, server):
        assert "Zq7-MARKER" not in span.to_json()
    [event] = server.events
    assert event.attributes is not None
    assert "in dive" in str(event.attributes["exception.stacktrace"])
    for text in map(str, event.attributes.values()):
        assert len(text) < 20_000
        assert "\x1b" not in text
