from __future__ import annotations

import pytest

from weirpool import Kind, LocalError, Payload, Service


def test_routes_are_listed_by_kind() -> None:
    service = Service()
    service.call("b")(lambda request: b"")
    service.call("a")(lambda request: b"")
    service.fire("a")(lambda request: None)
    assert service.routes() == [(Kind.CALL, "a"), (Kind.CALL, "b"), (Kind.FIRE, "a")]


def test_route_can_be_registered_once() -> None:
    service = Service()
    service.call("a")(lambda request: b"")
    with pytest.raises(LocalError, match="already registered"):
        service.call("a")(lambda request: b"")
    service.upload("u")(lambda request, items: b"")
    with pytest.raises(LocalError, match="already registered"):
        service.channel("u")(lambda request, items: [])


def test_wrong_functions_are_refused_when_they_are_registered() -> None:
    service = Service()
    with pytest.raises(LocalError, match=r"must accept \(request\), or nothing"):
        service.call("a")(lambda request, other: b"")
    with pytest.raises(LocalError, match=r"must accept \(request, items\), or only items"):
        service.upload("a")(lambda: b"")
    with pytest.raises(LocalError, match=r"must accept \(request, items\), or only items"):
        service.channel("a")(lambda request: [])
    with pytest.raises(LocalError, match="yields items"):

        @service.call("b")
        def generator(request: Payload):
            yield b""


def test_upload_handler_answers_channels() -> None:
    service = Service()
    service.upload("u")(lambda request, items: b"")
    assert service.find(Kind.CHANNEL, "u") is not None
    assert service.find(Kind.CHANNEL, "x") is None


def test_find_uses_call_handlers_for_streams_when_needed() -> None:
    service = Service()
    service.call("c")(lambda request: b"")
    service.call("both")(lambda request: b"")
    service.stream("both")(lambda request: [])
    assert service.find(Kind.STREAM, "c") is None
    found = [service.find(Kind.STREAM, route, calls_by_streams=True) for route in ("c", "both", "x")]
    assert [handler and handler.kind for handler in found] == [Kind.CALL, Kind.STREAM, None]
    assert service.find(Kind.FIRE, "c", calls_by_streams=True) is None


def test_a_service_has_one_push_handler() -> None:
    service = Service()
    seen: list[bytes] = []
    service.push(seen.append)
    service.pushed(b"m")
    assert seen == [b"m"]
    with pytest.raises(LocalError, match="already"):
        service.push(seen.append)


def test_the_kind_of_a_route_is_that_of_its_handler() -> None:
    service = Service()
    service.stream("s")(lambda request: [])
    service.upload("u")(lambda request, items: b"")
    service.fire("f")(lambda request: None)
    assert [service.kind_of(route) for route in "sufx"] == [Kind.STREAM, Kind.UPLOAD, None, None]
