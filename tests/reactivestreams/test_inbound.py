from __future__ import annotations

from typing import Any

import pytest

from tests.sim.reactive import Raw, make, opened
from weirpool import (
    LimitExceeded,
    Payload,
    ProtocolError,
    StreamClosed,
)
from weirpool.kinds import Kind
from weirpool.wire.reactivestreams.codec import Message, Type

# Ids.


def test_late_messages_end_with_subscribed() -> None:
    raw = Raw()
    stream = raw.open(5)
    raw.session.cancel(stream)
    again = raw.session.open(Kind.STREAM, "y", Payload(), 2)
    # The number on the wire is the same; the stream is another one.
    assert (stream, again) == (1, 2)
    # THREATS 70: dropped, and without using the new stream's credit.
    late = [Message(Type.ON_NEXT, 1, 0, b"late")] * 3
    raw.say(*late, Message(Type.ON_NEXT_PART, 1, 0, b"late"), Message(Type.ON_COMPLETE, 1))
    assert raw.events() == []
    raw.say(Message(Type.SUBSCRIBED, 1), Message(Type.ON_NEXT, 1, 0, b"new"))
    assert [(event.stream_id, event.payload.data) for event in raw.events()] == [(again, b"new")]


def test_element_size_applies_until_the_next_subscribed() -> None:
    raw = Raw()
    raw.open(5, size=4)
    raw.session.cancel(1)
    raw.session.open(Kind.STREAM, "y", Payload(), 2)
    raw.say(b"\x07\x01abcd", b"\x0a\x01\x02abcdefgh", Message(Type.SUBSCRIBED, 1))
    raw.say(Message(Type.ON_NEXT, 1, 0, b"new"))
    assert [event.payload.data for event in raw.events()] == [b"new"]


def test_number_is_free_after_its_own_subscribed() -> None:
    raw = Raw()
    raw.heard()
    raw.session.open(Kind.STREAM, "a", Payload(), 1)
    raw.session.cancel(1)
    raw.session.open(Kind.STREAM, "b", Payload(), 1)
    raw.say(Message(Type.SUBSCRIBED, 1))
    raw.session.open(Kind.STREAM, "c", Payload(), 1)
    assert [message.subscriber for message in raw.heard() if message.type == Type.SUBSCRIBE] == [1, 2, 1]


def test_handler_never_sends_to_the_next_stream_of_its_number() -> None:
    raw = Raw(False)
    subscribe = Message(Type.SUBSCRIBE, 5, 3, b"x")
    raw.say(subscribe, Message(Type.CANCEL, 5), subscribe)
    first, second = [event.stream_id for event in raw.events() if type(event).__name__ == "Requested"]
    with pytest.raises(StreamClosed):
        raw.session.send(first, Payload(b"late"))
    assert raw.session.send(second, Payload(b"x")) == 2


EARLY = {
    "onNext": b"\x07\x01\x01a",
    "onNext of two": b"\x07\x01\x01a\x07\x01\x01b",
    "onComplete": b"\x08\x01",
    "onError": b"\x09\x01\x04oops",
    "onNextPart": b"\x0b\x01\x00\x01a",
    "onNextLastPart": b"\x0c\x01\x00\x01a",
    "onNextMetadata": b"\x41\x01\x01m",
}
"""Messages that a publisher may not send for subscriber 1 before subscribed."""
early = pytest.mark.parametrize("data", EARLY.values(), ids=EARLY)


def unconfirmed(kind: Kind, is_client: bool = True) -> Raw:
    """Return a session with one subscription whose `subscribed` is pending."""
    raw = Raw(is_client, b"\x02\x00\x01\x01" if is_client else b"\x01\x00\x01\x01", extensions=("metadata",))
    assert raw.session.open(kind, "x", Payload(), 5) == 1
    raw.heard()
    raw.events()
    return raw


@early
@pytest.mark.parametrize("kind", [Kind.CALL, Kind.STREAM])
@pytest.mark.parametrize("is_client", [True, False], ids=["client", "server"])
def test_messages_before_the_first_subscribed_end_the_session(data: bytes, kind: Kind, is_client: bool) -> None:
    # THREATS 101: nothing is dropped silently, and no call waits forever.
    raw = unconfirmed(kind, is_client)
    raw.say(data)
    failed, closed = raw.ended(ProtocolError, "for subscriber 1 before subscribed, which must be first")
    assert (failed.stream_id, failed.error) == (1, closed.error)


def test_packed_elements_before_subscribed_end_the_session() -> None:
    # THREATS 101: their length is unknown.
    raw = unconfirmed(Kind.STREAM)
    raw.say(b"\x0a\x01\x02abcdefgh")
    raw.ended(ProtocolError, "no fixed size")


@early
def test_cancel_does_not_allow_messages_before_subscribed(data: bytes) -> None:
    # THREATS 101
    raw = unconfirmed(Kind.STREAM)
    raw.session.cancel(1)
    raw.heard()
    raw.say(data)
    raw.ended(ProtocolError, "before subscribed")


@early
@pytest.mark.parametrize("end", [b"\x08\x01", b"\x09\x01\x00"], ids=["completed", "failed"])
def test_ended_publisher_may_not_precede_the_next_subscribed(data: bytes, end: bytes) -> None:
    # THREATS 101: a server that sends onError without subscribed, from its second response on.
    raw = unconfirmed(Kind.CALL)
    raw.say(b"\x06\x01\x00", end)
    assert raw.session.open(Kind.CALL, "y", Payload()) == 2
    raw.events()
    raw.heard()
    raw.say(data)
    raw.ended(ProtocolError, "before subscribed")


def test_end_of_a_canceled_publisher_is_its_last_message() -> None:
    # THREATS 101: a call is canceled with its item, and its onComplete crosses the cancel.
    raw = unconfirmed(Kind.CALL)
    raw.say(b"\x06\x01\x00", b"\x07\x01\x01a")
    assert raw.session.open(Kind.CALL, "y", Payload()) == 2
    raw.say(b"\x07\x01\x01b", b"\x08\x01")
    assert [type(event).__name__ for event in raw.events()] == ["ItemReceived"]
    raw.heard()
    raw.say(b"\x09\x01\x04oops")
    raw.ended(ProtocolError, "onError for subscriber 1 before subscribed")


@early
def test_late_messages_of_a_canceled_publisher_are_dropped(data: bytes) -> None:
    # THREATS 70
    raw = unconfirmed(Kind.STREAM)
    raw.say(b"\x06\x01\x00")
    raw.session.cancel(1)
    assert raw.session.open(Kind.STREAM, "y", Payload(), 5) == 2
    raw.say(data)
    # No late messages follow subscribed.
    raw.say(b"\x06\x01\x00", b"\x07\x01\x01z")
    assert [event.payload.data for event in raw.events()] == [b"z"]
    assert raw.session.link_wanted


def test_messages_after_an_early_cancel_are_dropped() -> None:
    # THREATS 70
    raw = unconfirmed(Kind.STREAM)
    raw.session.cancel(1)
    raw.say(b"\x06\x01\x00")
    assert raw.session.open(Kind.STREAM, "y", Payload(), 5) == 2
    raw.say(b"\x07\x01\x01a", b"\x08\x01")
    assert raw.events() == [] and raw.session.link_wanted


# Hostile peers.


@pytest.mark.parametrize(
    ("messages", "error", "what"),
    [
        # THREATS 52.
        ([Message(Type.ON_NEXT_PART, 1, each, b"x") for each in range(65)], LimitExceeded, "max_open_elements (64)"),
        ([Message(Type.ON_NEXT_PART, 1, 1, b"")] * 18, LimitExceeded, "max_empty_fragments"),
        ([Message(Type.ON_NEXT_PART, 1, 1, bytes(400))] * 3, LimitExceeded, "max_payload_bytes"),
        ([Message(Type.ON_NEXT_PART, 1, 1), Message(Type.ON_COMPLETE, 1)], ProtocolError, "before the last part"),
        # THREATS 69.
        ([Message(Type.SUBSCRIBED, 1)], ProtocolError, "unexpected subscribed for"),
        ([Message(Type.SUBSCRIBED, 77, 8)], ProtocolError, "unexpected subscribed for"),
        # THREATS 70.
        ([Message(Type.SUBSCRIBE, 5, 1, b"x")] * 2, ProtocolError, "reused while its subscription is open"),
        ([Message(Type.ON_NEXT, 9, 0, b"x")], ProtocolError, "subscriber 9 has never existed"),
        ([Message(Type.ON_COMPLETE, 0)], ProtocolError, "subscriber 0 has never existed"),
        ([Message(Type.ON_NEXT_METADATA, 1, 0, b"m")], ProtocolError, "its extension is not enabled"),
    ],
)  # fmt: skip
def test_hostile_messages_end_the_session(messages: list[Message], error: type[Exception], what: str) -> None:
    raw = Raw(max_payload_bytes=1000)
    raw.open(1000)
    raw.say(*messages)
    raw.ended(error, what)


def test_excess_items_end_only_their_stream() -> None:
    # THREATS 37.
    for data in (b"\x07\x01\x01a" * 5, *[b"\x07\x01\x01a"] * 1):
        raw = Raw()
        raw.open(3)
        for _ in range(5 if len(data) < 9 else 1):
            raw.say(data)
        *items, failed = raw.events()
        assert [event.payload.data for event in items] == [b"a"] * 3
        assert "more items arrived than were requested" in str(failed.error)
        assert [message.type for message in raw.heard()] == [Type.CANCEL]
        assert raw.session.link_wanted
    raw = Raw()
    raw.open(0)
    raw.say(Message(Type.ON_NEXT_LAST_PART, 1, 0, b"x"))
    assert "more items" in str(raw.events()[-1].error)


def test_excess_packed_elements_end_the_session() -> None:
    # THREATS 69.
    raw = Raw()
    raw.open(3, size=4)
    raw.say(b"\x0a\x01\x04" + bytes(16))
    raw.ended(ProtocolError, "has 4 elements, but only 3 were requested")


def test_parts_of_a_wrong_size_end_the_session() -> None:
    raw = Raw()
    raw.open(3, size=4)
    raw.say(Message(Type.ON_NEXT_PART, 1, 0, b"abc"), Message(Type.ON_NEXT_LAST_PART, 1, 0, b"de"))
    raw.ended(ProtocolError, "has 5 bytes instead of 4")


def test_parts_are_measured_with_the_last_one() -> None:
    # docs/reference/rs-0.md, Streams 8.
    raw = Raw()
    raw.open(3, size=4)
    raw.say(Message(Type.ON_NEXT_PART, 1, 0, bytes(9)), Message(Type.ON_NEXT_PART, 1, 0, bytes(9)))
    assert raw.events() == [] and raw.session.link_wanted
    raw.say(Message(Type.ON_NEXT_LAST_PART, 1, 0, b"x"))
    raw.ended(ProtocolError, "has 19 bytes instead of 4")


def test_element_size_above_the_limit_is_rejected() -> None:
    # docs/reference/rs-0.md, Limits.
    raw = Raw()
    assert raw.session.open(Kind.STREAM, "x", Payload(), 5) == 1
    limit = (1 << 24) - 1
    raw.say(Message(Type.SUBSCRIBED, 1, limit))
    assert raw.session.link_wanted
    assert raw.session.open(Kind.STREAM, "y", Payload(), 5) == 2
    raw.say(Message(Type.SUBSCRIBED, 2, limit + 1))
    raw.ended(LimitExceeded, "is 16777216 bytes; the maximum is 16777215")


def test_single_last_part_is_an_item() -> None:
    # THREATS 52.
    raw = Raw()
    raw.open(3)
    raw.say(Message(Type.ON_NEXT_LAST_PART, 1, 7, b"whole"), Message(Type.ON_NEXT_PART, 1, 8, b"x"))
    assert [event.payload.data for event in raw.events()] == [b"whole"]
    raw.session.cancel(1)
    raw.say(Message(Type.ON_NEXT_PART, 1, 8, b"x"), Message(Type.ON_NEXT_LAST_PART, 1, 8, b"x"))
    assert raw.events() == [] and raw.session.link_wanted
    assert raw.session.next_timer() is None


def test_incomplete_item_ends_the_session_in_time() -> None:
    raw = Raw(reassembly_timeout=60.0)
    raw.open(3)
    raw.say(Message(Type.ON_NEXT_PART, 1, 8, b"x"))
    assert raw.session.next_timer() == 61.0
    raw.session.handle_timer(61.0)
    raw.ended(LimitExceeded, "not complete within 60 s")


@pytest.mark.parametrize(
    ("publisher", "settings", "why"),
    [
        (b"x", {"max_streams": 1}, "max_streams (1)"),
        (b"x", {"max_open_rate": 1}, "max_open_rate"),
        (b"x?!", {}, "not valid base64url"),
    ],
)
def test_subscription_is_rejected_after_subscribed(publisher: bytes, settings: dict[str, Any], why: str) -> None:
    raw = Raw(False, **settings)
    raw.say(*[Message(Type.SUBSCRIBE, each, 1, b"x") for each in range(1 if "max_streams" in settings else 2)])
    raw.heard()
    raw.events()
    raw.say(Message(Type.SUBSCRIBE, 50, 1, publisher))
    subscribed, failed = raw.heard()
    assert (subscribed.type, failed.type) == (Type.SUBSCRIBED, Type.ON_ERROR)
    assert why in failed.data.decode()
    assert raw.events() == [] and raw.session.link_wanted


def test_calls_by_the_hundred_are_ordinary() -> None:
    pair = make()
    for _ in range(100):
        stream, there = opened(pair, 0, Kind.CALL)
        pair.server.send(there, Payload(b"x"), True)
        pair.drive()
    assert pair.client.link_wanted and pair.server.link_wanted
    assert stream == 100
