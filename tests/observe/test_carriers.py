from __future__ import annotations

from weirpool import Connection, Kind, Payload, Request
from weirpool.observe.carriers import AnyCarrier
from weirpool.river.tracing import RiverCarrier
from weirpool.rsocket.extensions.mimes import COMPOSITE

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}


def request(route: str, metadata: bytes | None, mime: str = "", protocol: str = "rsocket") -> Request:
    connection = Connection(protocol, "", True, metadata_mime=mime)
    return Request(Kind.CALL, route, Payload(b"data", metadata), connection)


def arrived(metadata: bytes | None, mime: str = COMPOSITE) -> Request:
    return Request(Kind.CALL, "r", Payload(b"", metadata), Connection("rsocket", "", False, metadata_mime=mime))


def test_carrier_ignores_other_protocols() -> None:
    asked = request("r", None)
    RiverCarrier().write(asked, TRACE)
    assert asked.payload.metadata is None
    AnyCarrier().write(asked, TRACE)
    sent = asked.payload.metadata
    assert RiverCarrier().read(arrived(sent)) == {} and AnyCarrier().read(arrived(sent)) == TRACE
