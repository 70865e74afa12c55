from __future__ import annotations

import pytest

from weirpool import Connection, Kind, Payload, Request
from weirpool.rsocket.extensions.metadata import Router, composite, entries
from weirpool.rsocket.extensions.mimes import COMPOSITE, OCTET_STREAM, ROUTING, TRACING
from weirpool.rsocket.extensions.tracing import MAX_FIELD_BYTES, MAX_FIELDS, CompositeCarrier

TRACE = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=b"}


def request(route: str, metadata: bytes | None, mime: str = "", protocol: str = "rsocket") -> Request:
    connection = Connection(protocol, "", True, metadata_mime=mime)
    return Request(Kind.CALL, route, Payload(b"data", metadata), connection)


def arrived(metadata: bytes | None, mime: str = COMPOSITE) -> Request:
    return Request(Kind.CALL, "r", Payload(b"", metadata), Connection("rsocket", "", False, metadata_mime=mime))


@pytest.mark.parametrize("metadata", [None, b"", b"own"])
def test_fields_are_added_to_route_and_metadata(metadata: bytes | None) -> None:
    carrier, asked = CompositeCarrier(), request("some.route", metadata)
    carrier.write(asked, TRACE)
    assert (asked.route, asked.route_beside, asked.payload.data) == ("some.route", "", b"data")
    sent = asked.payload.metadata
    assert sent is not None
    assert Router().route(sent) == "some.route"
    found = dict(entries(sent))
    assert found["message/x.w3c.traceparent"] == TRACE["traceparent"].encode()
    assert found.get(OCTET_STREAM) == metadata
    assert carrier.read(arrived(sent)) == TRACE


def test_fields_are_added_to_composite_metadata() -> None:
    own = composite([(ROUTING, b"\x01r"), ("text/plain", b"own")])
    asked = request("r", own)
    asked.routed = True
    CompositeCarrier().write(asked, TRACE)
    assert [mime for mime, _ in entries(asked.payload.metadata or b"")][:2] == [ROUTING, "text/plain"]
    nameless = request("", None)
    CompositeCarrier().write(nameless, TRACE)
    assert CompositeCarrier().read(arrived(nameless.payload.metadata)) == TRACE


@pytest.mark.parametrize(("mime", "protocol"), [("text/plain", "rsocket"), ("", "river")])
def test_fields_are_omitted_without_composite_metadata(mime: str, protocol: str) -> None:
    asked = request("r", b"own", mime, protocol)
    CompositeCarrier().write(asked, TRACE)
    assert (asked.payload, asked.routed) == (Payload(b"data", b"own"), False)


def test_empty_fields_change_nothing() -> None:
    asked = request("r", None)
    CompositeCarrier().write(asked, {})
    assert (asked.payload.metadata, asked.routed) == (None, False)


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        b"",
        composite([(ROUTING, b"\x01r")]),
        composite([("message/x.w3c.traceparent", b"x")])[:-1],
        composite([("message/x.w3c.baggage", bytes(MAX_FIELD_BYTES + 1))]),
        b"\xff\xff\xff",
    ],
)
def test_other_and_malformed_metadata_has_no_fields(metadata: bytes | None) -> None:
    assert CompositeCarrier().read(arrived(metadata)) == {}


def test_other_types_of_metadata_have_no_fields() -> None:
    assert CompositeCarrier().read(arrived(composite([("message/x.w3c.a", b"b")]), "text/plain")) == {}


def test_number_of_fields_is_limited() -> None:
    many = composite([(f"message/x.w3c.f{number}", b"v") for number in range(100)])
    assert len(CompositeCarrier().read(arrived(many))) == MAX_FIELDS
    twice = composite([("message/x.w3c.a", b"first"), ("message/x.w3c.a", b"second")])
    assert CompositeCarrier().read(arrived(twice)) == {"a": "first"}


def test_prefix_determines_the_names_of_entries() -> None:
    carrier, asked = CompositeCarrier("application/x-"), request("r", None)
    carrier.write(asked, {"b3": "1"})
    assert ("application/x-b3", b"1") in entries(asked.payload.metadata or b"")


TRACE_IDS = "a8" + "0af7651916cd43dd8448eb211c80319c" + "b7ad6b7169203331"
"""The same trace, as the extension Tracing (Zipkin) encodes it."""


@pytest.mark.parametrize("prefix", ["message/x.w3c.", ""])
def test_fields_of_micrometer_and_of_rsocket_are_read(prefix: str) -> None:
    # THREATS 103. Micrometer and Spring use the name of a header as its MIME type.
    fields = composite([("text/plain", b"own"), *((prefix + name, value.encode()) for name, value in TRACE.items())])
    assert CompositeCarrier().read(arrived(fields)) == TRACE
    assert CompositeCarrier("").read(arrived(fields)) == TRACE


def test_trace_of_zipkin_is_read_unless_there_is_another() -> None:
    zipkin = (TRACING, bytes.fromhex(TRACE_IDS))
    assert CompositeCarrier().read(arrived(composite([zipkin]))) == {"traceparent": TRACE["traceparent"]}
    other = ("traceparent", b"00-00000000000000000000000000000001-0000000000000002-00")
    assert CompositeCarrier().read(arrived(composite([zipkin, other]))) == {"traceparent": other[1].decode()}
    narrow = (TRACING, bytes.fromhex("90" + "00" * 7 + "01" + "00" * 7 + "02"))
    assert CompositeCarrier().read(arrived(composite([narrow]))) == {"traceparent": other[1].decode()}


@pytest.mark.parametrize("content", ["", "80", "20", "a8" + "00" * 24])
def test_trace_of_zipkin_without_valid_ids_is_ignored(content: str) -> None:
    assert CompositeCarrier().read(arrived(composite([(TRACING, bytes.fromhex(content))]))) == {}


@pytest.mark.parametrize(
    ("carrier", "entry"),
    [
        (CompositeCarrier(""), ("traceparent", TRACE["traceparent"].encode())),
        (CompositeCarrier(zipkin=True), (TRACING, bytes.fromhex(TRACE_IDS))),
    ],
)
def test_form_that_is_written_is_chosen(carrier: CompositeCarrier, entry: tuple[str, bytes]) -> None:
    asked = request("r", None)
    carrier.write(asked, TRACE)
    assert entry in entries(asked.payload.metadata or b"")
    assert CompositeCarrier().read(arrived(asked.payload.metadata))["traceparent"] == TRACE["traceparent"]


@pytest.mark.parametrize("parent", ["", "x", "00-" + "0" * 32 + "-" + "0" * 16 + "-01", "01-" + "1" * 32])
def test_invalid_trace_is_not_written_for_zipkin(parent: str) -> None:
    asked = request("r", None)
    CompositeCarrier(zipkin=True).write(asked, {"traceparent": parent})
    assert asked.payload.metadata is None
