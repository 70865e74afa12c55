from __future__ import annotations

import json
from typing import Any

import pytest

from tests.river.peers import Duo, Raw, messages
from weirpool.errors import LocalError
from weirpool.events import Requested
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.tracing import MAX_CHARACTERS, tracing_of

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TRACE = {"traceparent": PARENT, "tracestate": "a=b"}
ADD = {"serviceName": "demo", "procedureName": "add"}


@pytest.mark.parametrize("codec", ["json", "msgpack"])
@pytest.mark.parametrize("kind", [Kind.CALL, Kind.STREAM, Kind.UPLOAD, Kind.CHANNEL])
def test_request_carries_its_trace_context(codec: str, kind: Kind) -> None:
    duo = Duo(codec)
    route = {Kind.CALL: "demo.add", Kind.STREAM: "demo.count", Kind.UPLOAD: "demo.sum", Kind.CHANNEL: "demo.echo"}[kind]
    duo.client.open(kind, route, Payload(duo.payload({}).data, json.dumps(TRACE).encode()), 1)
    duo.drive()
    (asked,) = duo.of("server", "Requested")
    assert json.loads(asked.payload.metadata) == TRACE
    # Responses do not carry it.
    duo.server.send(asked.stream_id, asked.payload, True)
    duo.drive()
    (item,) = duo.of("client", "ItemReceived")
    assert item.payload.metadata is None


def test_trace_context_is_encoded_as_in_the_reference() -> None:
    duo = Duo()
    duo.linked = False
    duo.client.open(Kind.CALL, "demo.add", Payload(b"{}", b'{"traceparent":"x"}'), 1)
    duo.client.open(Kind.CALL, "demo.add", Payload(b"{}"), 1)
    first, second = messages(duo.client.take_output())
    assert first.tracing == {"traceparent": "x", "tracestate": ""}
    assert second.tracing is None


@pytest.mark.parametrize(
    ("tracing", "expected"),
    [
        (TRACE, TRACE),
        ({"traceparent": PARENT, "more": [1]}, {"traceparent": PARENT, "tracestate": ""}),
        # A reference client without a tracer.
        ({"traceparent": "", "tracestate": ""}, None),
        ({}, None),
        ({"traceparent": 5, "tracestate": ""}, None),
        ({"traceparent": PARENT, "tracestate": None}, None),
        ({"traceparent": "x" * (MAX_CHARACTERS + 1)}, None),
        ({"traceparent": {"__proto__": 1}}, None),
    ],
)
def test_invalid_trace_context_is_dropped(tracing: dict[str, Any], expected: object) -> None:
    raw = Raw()
    raw.shake()
    raw.say("a", 10, {}, tracing=tracing, **ADD)
    asked = raw.events[-1]
    assert isinstance(asked, Requested)
    found = asked.payload.metadata
    assert (None if found is None else json.loads(found)) == expected


@pytest.mark.parametrize(
    "metadata", [b"", b"mine", b"{}", b'{"traceparent":5}', b'{"traceparent":"x","n":1}', b'{"traceparent":"\xff"}']
)
def test_other_metadata_is_rejected(metadata: bytes) -> None:
    with pytest.raises(LocalError, match="put it into the item"):
        tracing_of(metadata)
    with pytest.raises(LocalError, match="put it into the item"):
        Duo().client.open(Kind.CALL, "demo.add", Payload(b"{}", metadata), 1)


def test_trace_context_has_a_limit() -> None:
    assert tracing_of(None) is None
    with pytest.raises(LocalError, match="longer"):
        tracing_of(json.dumps({"traceparent": "x" * (MAX_CHARACTERS + 1)}).encode())
