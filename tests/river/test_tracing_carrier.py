from __future__ import annotations

import pytest

from weirpool import Connection, Kind, Payload, Request
from weirpool.observe.carriers import AnyCarrier, Carrier
from weirpool.river.tracing import RiverCarrier

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}


def asked_river(metadata: bytes | None = None) -> Request:
    return Request(Kind.CALL, "r.s", Payload(b"data", metadata), Connection("river", "", True))


@pytest.mark.parametrize("carrier", [RiverCarrier(), AnyCarrier()])
def test_river_carries_the_trace_context(carrier: Carrier) -> None:
    asked = asked_river()
    carrier.write(asked, TRACE | {"baggage": "stays=behind"})
    assert asked.route_beside == "r.s" and asked.payload.data == b"data"
    arrived_there = Request(Kind.CALL, "r.s", asked.payload, Connection("river", "", False))
    assert carrier.read(arrived_there) == TRACE


@pytest.mark.parametrize("carrier", [RiverCarrier(), AnyCarrier()])
def test_river_carries_nothing_else(carrier: Carrier) -> None:
    for fields in (
        {},
        {"baggage": "a=b"},
        {"traceparent": "x" * 10_000},
        {"traceparent": "x", "tracestate": "y" * 10_000},
    ):
        asked = asked_river()
        carrier.write(asked, fields)
        assert asked.payload.metadata is None
    own = asked_river(b"own")
    carrier.write(own, TRACE)
    assert own.payload.metadata == b"own"
    assert carrier.read(asked_river()) == {}
