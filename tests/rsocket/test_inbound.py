from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build


class Receiving:
    """The inbound side of a client's session, and its events."""

    def __init__(self, build: Build, **limits: Any) -> None:
        self.frames = build.module("weirpool.wire.rsocket.frames")
        self.kind = build.module("weirpool.kinds").Kind
        self.errors = build.module("weirpool.errors")
        self.payload = build.module("weirpool.payload")
        settings = build.module("weirpool.settings").Settings(**limits)
        dialect = build.module("weirpool.rsocket.dialect").RSOCKET_1_0
        life = build.module("weirpool.rsocket.lifecycle").Lifecycle(settings, dialect, True, None, None)
        self.outbound, self.streams = life.outbound, life.streams
        self.events: list[Any] = life.events
        self.strays = build.module("weirpool.rsocket.strays").Strays(life)
        self.inbound = build.module("weirpool.rsocket.inbound").Inbound(life, self.strays)

    def stream(self, kind: str, granted: int) -> int:
        stream = self.streams.open_ours(self.kind[kind])
        stream.granted = granted
        stream_id: int = stream.id
        return stream_id

    def item(self, stream_id: int, flags: int, data: bytes = b"") -> None:
        self.inbound.frame(self.frames.Frame(self.frames.FrameType.PAYLOAD, stream_id, flags, 0, None, data), 0.0)

    def run(self, stream_id: int, *items: bytes) -> None:
        self.inbound.run(stream_id, self.payload.PayloadRun.of([self.payload.Payload(item) for item in items]), 0.0)

    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


@pytest.fixture
def receiving(build: Build) -> Receiving:
    return Receiving(build)


NEXT, COMPLETE, FOLLOWS = 0x20, 0x40, 0x80


def test_items_use_up_the_demand(receiving: Receiving) -> None:
    stream = receiving.stream("STREAM", 5)
    receiving.item(stream, NEXT, b"1")
    receiving.run(stream, b"2", b"3")
    assert receiving.names() == ["ItemReceived", "RunReceived"]
    assert receiving.streams.get(stream).granted == 2


def test_run_of_exactly_the_demand_is_accepted(receiving: Receiving) -> None:
    stream = receiving.stream("STREAM", 2)
    receiving.run(stream, b"1", b"2")
    assert receiving.names() == ["RunReceived"]
    receiving.item(stream, COMPLETE)
    assert receiving.names() == ["RunReceived", "Completed"]
    assert receiving.streams.get(stream) is None


def test_item_beyond_the_demand_fails_the_stream(receiving: Receiving) -> None:
    # THREATS 37
    stream = receiving.stream("STREAM", 1)
    receiving.run(stream, b"1", b"2")
    assert receiving.names() == ["RunReceived", "Failed"]
    assert [item.data for item in receiving.events[0].run] == [b"1"]
    assert receiving.streams.get(stream) is None


def test_run_on_a_call_delivers_only_its_first_item(receiving: Receiving) -> None:
    # THREATS 43
    stream = receiving.stream("CALL", 1)
    receiving.run(stream, b"1", b"2")
    assert [(event.payload.data, event.done) for event in receiving.events] == [(b"1", True)]


def test_fragments_are_reassembled(receiving: Receiving) -> None:
    stream = receiving.stream("STREAM", 2)
    receiving.item(stream, NEXT | FOLLOWS, b"a")
    receiving.run(stream, b"b")  # a fragment without FOLLOWS is the last one
    receiving.item(stream, NEXT | FOLLOWS, b"c")
    receiving.item(stream, NEXT | COMPLETE, b"d")
    assert [(event.payload.data, event.done) for event in receiving.events] == [(b"ab", False), (b"cd", True)]


def test_complete_overrides_follows(receiving: Receiving) -> None:
    stream = receiving.stream("STREAM", 2)
    receiving.item(stream, NEXT | COMPLETE | FOLLOWS, b"a")
    assert [(event.payload.data, event.done) for event in receiving.events] == [(b"a", True)]
