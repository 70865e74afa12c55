from __future__ import annotations

import tracemalloc

import pytest

from tests.sim.pair import Cut
from tests.sim.reactive import CUT, Raw, make, opened
from weirpool import (
    ApplicationError,
    LocalError,
    Payload,
    PayloadRun,
    ProtocolError,
)
from weirpool.kinds import Kind
from weirpool.wire.reactivestreams.codec import Message, Type

# Large and small items.


def test_other_items_are_sent_between_parts() -> None:
    pair = make(server={"fragment_bytes": 1000})
    big, there = opened(pair)
    ticks, other = opened(pair)
    data = bytes(range(256)) * 20
    run = PayloadRun.of([Payload(b"small"), Payload(data), Payload(b"after")])
    sent = 0
    turns = 0
    while sent < 3:
        sent += pair.server.send_run(there, run, sent)
        # A large item counts when its last part was sent, so that no sender waits for credit within it.
        assert pair.server.credit(there) == 10 - sent
        pair.server.send(other, Payload(b"tick %d" % turns)) if turns < 10 else None
        turns += 1
        pair.drive()
    pair.server.complete(there)
    pair.drive()
    assert turns == 1 + 6 + 1
    assert pair.items("client", big) == [b"small", data, b"after"]
    order = [event.stream_id for event in pair.client_events if type(event).__name__ in ("ItemReceived", "RunReceived")]
    assert order == [big, ticks, *[ticks] * 5, big, ticks, big, ticks]


@CUT
def test_parts_are_joined(cut: Cut) -> None:
    pair = make(cut, server={"fragment_bytes": 64})
    stream, there = opened(pair)
    items = [bytes(range(200)), b"", bytes(64), bytes(65)]
    for item in items:
        pair.server.send(there, Payload(item))
    run = PayloadRun.of([Payload(bytes(1000))])
    assert pair.server.send_run(there, run) == 0
    # The rest of an item is sent before the end.
    pair.server.complete(there)
    pair.drive()
    assert pair.items("client", stream) == [*items, bytes(1000)]
    assert pair.events("client", "Completed")


@CUT
def test_items_of_one_size_are_packed(cut: Cut) -> None:
    pair = make(cut, server={"element_sizes": (("ticks", 8),)})
    stream, there = opened(pair, 1000)
    before = len(pair.server_sent)
    run = PayloadRun.of([Payload(b"%08d" % number) for number in range(1000)])
    assert pair.server.send_run(there, run) == 1000
    pair.drive()
    assert len(pair.server_sent) - before == 8 * 1000 + 4
    assert pair.items("client", stream) == [b"%08d" % number for number in range(1000)]
    pair.client.request(stream, 4)
    pair.drive()
    before = len(pair.server_sent)
    pair.server.send(there, Payload(b"one more"))
    pair.drive()
    assert len(pair.server_sent) - before == 8 + 2
    short = PayloadRun.of([Payload(b"12345678"), Payload(b"short")])
    for wrong in (lambda: pair.server.send(there, Payload(b"short")), lambda: pair.server.send_run(there, short)):
        with pytest.raises(LocalError, match=r"has 5 bytes, but Settings\.element_sizes"):
            wrong()
    assert pair.server.take_output() == []


@CUT
def test_items_of_one_size_that_are_sent_singly_are_packed(cut: Cut) -> None:
    pair = make(cut, server={"element_sizes": (("ticks", 8),)})
    stream, there = opened(pair, 20_000)
    before = len(pair.server_sent)
    items = [b"%08d" % number for number in range(10_000)]
    for item in items:
        pair.server.send(there, Payload(item))
    pair.drive()
    # Runs of at most 60,000 bytes, with a type, an id and a count of two bytes each.
    assert len(pair.server_sent) - before == 8 * 10_000 + 2 * 4
    assert pair.items("client", stream) == items
    assert pair.server.credit(there) == 10_000


def test_pack_keeps_the_order_of_all_messages() -> None:
    pair = make(server={"element_sizes": (("ticks", 8),), "fragment_bytes": 64})
    first, there = opened(pair, 10)
    second, other = opened(pair, 10)
    for number in range(3):
        pair.server.send(there, Payload(b"%08d" % number))
    pair.server.send(other, Payload(b"another1"))
    pair.server.send(other, Payload(b"another2"))
    pair.server.send_run(there, PayloadRun.of([Payload(b"a run of")]))
    pair.server.send(there, Payload(b"the last"))
    pair.server.complete(there)
    pair.server.fail(other, ApplicationError(message="no more"))
    sent = pair.server.take_output()
    assert b"".join(sent) == (
        b"\x0a%c\x03000000000000000100000002" % first
        + b"\x0a%c\x02another1another2" % second
        + b"\x07%ca run of\x07%cthe last\x08%c" % (first, first, first)
        + b"\x09%c\x07no more" % second
    )
    assert pair.server.take_output() == []


def test_large_item_is_not_copied_as_a_whole() -> None:
    pair = make()
    _, there = opened(pair, 10)
    item = Payload(bytes(32 << 20))
    tracemalloc.start()
    try:
        assert pair.server.send_run(there, PayloadRun.of([item])) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Only a part of it is.
    assert peak < 2 << 20


def test_large_item_of_a_fixed_size_is_sent_in_parts() -> None:
    pair = make(server={"element_sizes": (("ticks", 200),), "fragment_bytes": 64})
    stream, there = opened(pair, 5)
    pair.server.send(there, Payload(bytes(200)))
    pair.drive()
    assert pair.items("client", stream) == [bytes(200)]


# Metadata.

BOTH = {"client": {"extensions": ("metadata",)}, "server": {"extensions": ("metadata",), "fragment_bytes": 64}}


@CUT
def test_metadata_is_sent_if_both_sides_agree(cut: Cut) -> None:
    pair = make(cut, **BOTH)
    stream = pair.client.open(Kind.STREAM, "ticks", Payload(b"q", b"about it"), 10)
    pair.drive()
    (request,) = pair.events("server", "Requested")
    assert request.payload == Payload(b"q", b"about it")
    items = [Payload(b"a", b"m"), Payload(b"b"), Payload(bytes(200), b""), Payload(b"c", b"n"), Payload(b"d")]
    sent = 0
    while sent < len(items):
        sent += pair.server.send_run(request.stream_id, PayloadRun.of(items), sent)
    pair.drive()
    got = [
        payload
        for event in pair.client_events
        for payload in ([event.payload] if hasattr(event, "payload") else getattr(event, "run", ()))
        if event.stream_id == stream
    ]
    assert got == items


@pytest.mark.parametrize("side", ["client", "server", None])
def test_metadata_is_rejected_without_the_extension(side: str | None) -> None:
    pair = make(**({side: {"extensions": ("metadata",)}} if side else {}))
    with pytest.raises(LocalError, match=r"Settings\.extensions"):
        pair.client.open(Kind.STREAM, "ticks", Payload(b"q", b""), 10)
    _stream, there = opened(pair)
    with pytest.raises(LocalError, match=r"Settings\.extensions"):
        pair.server.send(there, Payload(b"q", b""))
    assert pair.server.credit(there) == 10


@pytest.mark.parametrize(
    "second",
    [
        Message(Type.SUBSCRIBE_METADATA, 1, 0, b"again"),
        Message(Type.SUBSCRIBE, 2, 1, b"x"),
        b"\x07\x01\x00\x07\x01\x00",
        Message(Type.CANCEL, 1),
    ],
)
def test_metadata_must_directly_precede_its_subscribe(second: bytes | Message) -> None:
    raw = Raw(False, b"\x01\x00\x01\x01", extensions=("metadata",))
    raw.say(Message(Type.SUBSCRIBE_METADATA, 1, 0, b"m"), second)
    raw.ended(ProtocolError, "subscribeMetadata was followed by")


def test_element_has_metadata_once() -> None:
    raw = Raw(True, b"\x02\x00\x01\x01", extensions=("metadata",))
    raw.open()
    raw.say(*[Message(Type.ON_NEXT_METADATA, 1, 0, b"m")] * 2)
    raw.ended(ProtocolError, "metadata twice")
