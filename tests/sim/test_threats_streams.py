"""Hostile streams and credits, and the safe answer to them, in every dialect."""

from __future__ import annotations

import pytest

from tests.builds import Build
from tests.sim.target import DIALECTS, V00, V02, V1, Target

ALL = pytest.mark.parametrize("dialect", DIALECTS)
COUNTED = pytest.mark.parametrize("dialect", (V1, V02))
MOST = 2**31 - 1
COMPLETE = 0x40
FOLLOWS = 0x80
NEXT = 0x20


@COUNTED
def test_the_servers_own_numbers_are_ignored(build: Build, dialect: str) -> None:
    # THREATS 34
    target = Target(build, dialect)
    # In ReactiveSocket 0.2, the first request decides which numbers are the server's.
    assert target.say(target.request("REQUEST_RESPONSE", 1)) == ([], ["Requested"])
    for stream in (0, 2, 2**31 - 2):
        assert target.say(target.request("REQUEST_RESPONSE", stream)) == ([], [])
    lenient = Target(build, dialect, client_ids="even")
    assert lenient.say(lenient.request("REQUEST_RESPONSE", 2)) == ([], ["Requested"])


@ALL
def test_a_number_in_use_is_ignored_and_one_from_before_is_taken(build: Build, dialect: str) -> None:
    # THREATS 34
    target = Target(build, dialect)
    assert target.say(target.request("REQUEST_STREAM", 9, n=3)) == ([], ["Requested"])
    assert target.say(target.request("REQUEST_STREAM", 9, n=500)) == ([], [])
    assert target.session.credit(target.number(9)) == 3
    assert target.say(target.request("REQUEST_RESPONSE", 7)) == ([], ["Requested"])


@COUNTED
def test_numbers_begin_anew_and_never_hit_a_live_stream(build: Build, dialect: str) -> None:
    # THREATS 35
    target = Target(build, dialect, "client")
    resume = build.module("weirpool.rsocket.resume")
    first = resume.StreamState(1, int(target.kinds.STREAM), 1, 2, 5, 0)
    checkpoint = resume.Checkpoint(resume.VERSION, 0, 0, [], MOST, [first], [])
    settings = build.module("weirpool.settings").Settings(resume=True)
    made = type(target.session).restore(settings, resume.encode_checkpoint(checkpoint), b"t" * 16, target.dialect)
    made.link_up(target.now)
    made.receive(target.codec.frame(target.frames.ResumeOkFrame(0)), target.now)
    target.session = made
    assert target.session.streams() == [1]
    assert [target.open("STREAM") for _ in range(3)] == [MOST, 3, 5]
    assert target.say(target.item(1), target.item(MOST))[1].count("ItemReceived") == 2


@ALL
def test_any_number_of_streams_may_be_canceled_as_soon_as_opened(build: Build, dialect: str) -> None:
    # THREATS 36, 105: what counts is the handlers that still run.
    target = Target(build, dialect)
    for stream in range(1, 10_001, 2):
        cancel = target.codec.cancel_frame(stream)
        assert target.say(target.request("REQUEST_RESPONSE", stream), cancel) == ([], ["Requested", "Canceled"])
    assert target.session.link_wanted and target.session.open_streams == 0


@COUNTED
def test_a_requester_gets_nothing_through_beyond_credit(build: Build, dialect: str) -> None:
    # THREATS 37
    target = Target(build, dialect)
    target.say(target.request("REQUEST_CHANNEL", 1))
    target.session.request(1, 6)
    target.session.take_output()
    target.session.receive(target.item(1) * 49_929, target.now)
    items = [event for event in target.session.take_events() if type(event).__name__ == "RunReceived"]
    assert sum(len(event.run) for event in items) == 5
    assert target.session.open_streams == 0


@ALL
def test_a_responder_gets_nothing_through_beyond_credit(build: Build, dialect: str) -> None:
    # THREATS 37
    target = Target(build, dialect, "client")
    stream = target.open("STREAM", 5)
    target.session.receive(b"".join(target.item(stream) for _ in range(5_000)), target.now)
    received = 0
    for event in target.session.take_events():
        received += len(event.run) if type(event).__name__ == "RunReceived" else 0
        received += type(event).__name__ == "ItemReceived"
    assert received == 5
    assert target.session.open_streams == 0
    cancel = target.codec.cancel_frame(stream)
    assert b"".join(target.session.take_output()) == cancel


@ALL
def test_request_n_of_nothing_ends_its_stream_alone(build: Build, dialect: str) -> None:
    # THREATS 38
    target = Target(build, dialect)
    code = 0x204
    target.say(target.request("REQUEST_STREAM", 1))
    assert target.say(target.request_n(1, 0)) == ([(1, code)], ["Failed"])
    assert target.say(target.request("REQUEST_STREAM", 3, n=0)) == ([(3, code)], [])
    assert target.session.link_wanted


def with_n(target: Target, frame: bytes, value: str) -> bytes:
    """Return a frame of RSocket 1.0 or ReactiveSocket 0.2 with these four bytes as its request-n."""
    return frame[:9] + bytes.fromhex(value) + frame[13:]


def test_the_reserved_bit_of_a_request_n_is_ignored(build: Build) -> None:
    # THREATS 38: RSocket 1.0 reserves it, and the other bits count.
    target = Target(build, V1)
    opening = with_n(target, target.request("REQUEST_STREAM", 1), "80000001")
    assert target.say(opening) == ([], ["Requested"])
    assert target.say(with_n(target, target.request_n(1, 1), "80000007")) == ([], ["CreditGranted"])
    assert target.session.credit(1) == 8


@pytest.mark.parametrize("value", ["ffffffff", "80000000", "80000007", "00000000"])
def test_a_request_n_of_less_than_1_ends_its_stream(build: Build, value: str) -> None:
    # THREATS 38; ReactiveSocket 0.2, REQUEST_N Frame: a signed integer, which MUST be > 0.
    target = Target(build, V02)
    target.say(target.request("REQUEST_STREAM", 1, n=1))
    assert target.say(with_n(target, target.request_n(1, 7), value)) == ([(1, 0x204)], ["Failed"])
    for number, type in enumerate(("REQUEST_STREAM", "REQUEST_CHANNEL")):
        stream = 3 + 2 * number
        opening = with_n(target, target.request(type, stream), value)
        assert target.say(opening) == ([(stream, 0x204)], [])
    assert target.session.link_wanted


@ALL
def test_credit_saturates(build: Build, dialect: str) -> None:
    # THREATS 39
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1, n=MOST))
    target.say(*[target.request_n(1, MOST)] * 1000)
    assert target.session.credit(target.number(1)) == MOST
    assert target.session.send(target.number(1), target.payload(b"x")) == MOST - 1


STRAYS = ("item", "end", "cancel", "request-n", "error", "fragment")


def stray(target: Target, name: str, stream: int) -> bytes:
    made = {
        "item": lambda: target.item(stream),
        "end": lambda: target.item(stream, b"", COMPLETE),
        "cancel": lambda: bytes(target.codec.cancel_frame(stream)),
        "request-n": lambda: target.request_n(stream, 5),
        "error": lambda: target.error(stream),
        "fragment": lambda: target.item(stream, b"x", NEXT | FOLLOWS),
    }
    return made[name]()


@ALL
@pytest.mark.parametrize("name", STRAYS)
@pytest.mark.parametrize("side", ["server", "client"])
def test_frames_for_no_stream_are_ignored(build: Build, dialect: str, name: str, side: str) -> None:
    # THREATS 42
    target = Target(build, dialect, side)
    used = target.open("CALL") if side == "client" else 1
    if side == "client":
        target.say(target.item(used, flags=NEXT | COMPLETE))
    else:
        target.say(target.request("REQUEST_RESPONSE", used), target.codec.cancel_frame(used))
    # A stream that has ended, and one that never existed.
    for stream in (used, 77):
        assert target.say(stray(target, name, stream) * 500) == ([], [])
    assert target.session.ignored == 1_000


@ALL
def test_an_answer_to_a_call_is_its_only_one(build: Build, dialect: str) -> None:
    # THREATS 43: without COMPLETE; later frames have no stream.
    target = Target(build, dialect, "client")
    call = target.open("CALL")
    errors, events = target.say(target.item(call), target.item(call), target.item(call, flags=COMPLETE))
    assert (errors, [each for each in events if each != "Established"]) == ([], ["ItemReceived"])
    assert target.session.open_streams == 0


@ALL
def test_complete_with_data_is_an_item_and_the_end(build: Build, dialect: str) -> None:
    # THREATS 43: with COMPLETE, FOLLOWS has no meaning.
    for flags in (COMPLETE, COMPLETE | FOLLOWS, COMPLETE | FOLLOWS | NEXT):
        target = Target(build, dialect, "client")
        stream = target.open("STREAM")
        target.session.receive(target.item(stream, b"last", flags), target.now)
        event = target.session.take_events()[-1]
        assert (type(event).__name__, event.payload.data, event.done) == ("ItemReceived", b"last", True)
        assert (target.session.open_streams, target.held) == (0, 0)


@ALL
@pytest.mark.parametrize("first", ["complete", "item and complete", "error"])
@pytest.mark.parametrize("second", ["complete", "item", "error", "cancel"])
def test_there_is_one_end_whatever_follows_it(build: Build, dialect: str, first: str, second: str) -> None:
    # THREATS 44
    target = Target(build, dialect, "client")
    stream = target.open("STREAM")
    said = {
        "complete": target.item(stream, b"", COMPLETE),
        "item and complete": target.item(stream, b"x", NEXT | COMPLETE),
        "item": target.item(stream),
        "error": target.error(stream),
        "cancel": bytes(target.codec.cancel_frame(stream)),
    }
    errors, events = target.say(said[first], *[said[second]] * 3)
    assert errors == []
    end = {"complete": "Completed", "item and complete": "ItemReceived", "error": "Failed"}[first]
    assert [each for each in events if each != "Established"] == [end]


@ALL
def test_a_cancel_that_crosses_the_end_is_nothing(build: Build, dialect: str) -> None:
    # THREATS 44
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1))
    target.session.complete(target.number(1))
    target.session.take_output()
    assert target.say(target.codec.cancel_frame(1), target.codec.cancel_frame(1)) == ([], [])
    target = Target(build, dialect, "client")
    stream = target.open("STREAM")
    target.session.cancel(stream)
    target.session.take_output()
    errors, events = target.say(target.item(stream, b"", COMPLETE), target.error(stream))
    assert (errors, set(events) - {"Established"}) == ([], set())


@ALL
def test_metadata_that_is_pushed_on_a_stream(build: Build, dialect: str) -> None:
    # THREATS 45: the first draft has that, the others ignore it.
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1))
    push = target.frame("METADATA_PUSH", 1, metadata=b"m")
    assert target.say(push) == ([], ["MetadataPushed"] if dialect == V00 else [])
    # On an unknown stream, it is a stray frame.
    elsewhere = target.frame("METADATA_PUSH", 5, metadata=b"m")
    assert target.say(elsewhere * 10) == ([], [])


@pytest.mark.parametrize("dialect", (V02, V00))
def test_push_without_metadata_is_ignored(build: Build, dialect: str) -> None:
    # THREATS 45
    target = Target(build, dialect)
    empty = target.frame("METADATA_PUSH", 0)
    assert target.say(empty, target.frame("METADATA_PUSH", 0, metadata=b"m")) == ([], ["MetadataPushed"])
    assert target.say(empty, empty) == ([], [])


def test_push_of_a_peer_that_does_not_set_the_flag_is_delivered(build: Build) -> None:
    target = Target(build, V1)
    target.session.receive(target.prefixed(b"\0\0\0\0" + bytes((0x0C << 2, 0)) + b"pushed"), target.now)
    (pushed,) = target.session.take_events()
    assert pushed.metadata == b"pushed"
