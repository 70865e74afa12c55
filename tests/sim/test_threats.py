"""Hostile input, frame by frame, and the safe answer to each."""

from __future__ import annotations

import pytest

from tests.sim.pair import Pair


def frame(body: str) -> bytes:
    octets = bytes.fromhex(body)
    return len(octets).to_bytes(3, "big") + octets


def errors_sent(build, sent: bytes) -> list[tuple[int, int]]:
    """Return stream and code of every ERROR in some output."""
    dump = build.module("weirpool.wire.rsocket.dump")
    frames = [frame for _, frame in dump.read_frames(sent, prefix=3)]
    return [(each.stream_id, each.code) for each in frames if type(each).__name__ == "ErrorFrame"]


def server(build, **settings):
    session = build.module("weirpool.rsocket.session").RSocketSession.server(
        build.module("weirpool.settings").Settings(**settings)
    )
    session.link_up(0.0)
    return session


SETUP = "00000000 0400 0001 0000 000001f4 0000ea60 03 6d2f78 03 642f79"


def set_up(build, **settings):
    session = server(build, **settings)
    session.receive(frame(SETUP), 0.0)
    session.take_output()
    session.take_events()
    return session


def feed(build, session, *bodies: str):
    for body in bodies:
        session.receive(frame(body), 1.0)
    events = [type(event).__name__ for event in session.take_events()]
    return errors_sent(build, b"".join(session.take_output())), events


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("00000001 1000 61", 0x001),  # THREATS 22: a request before SETUP
        ("00000000 0c80 0000000000000000", 0x001),  # THREATS 22: KEEPALIVE before SETUP
        ("00000005 0400 0001 0000 000001f4 0000ea60 03 6d2f78 03 642f79", 0x001),  # THREATS 24: SETUP on stream 5
        ("00000000 0400 0009 0009 000001f4 0000ea60 03 6d2f78 03 642f79", 0x001),  # THREATS 24: version 9.9
        ("00000000 0400 0001 0000 00000000 0000ea60 03 6d2f78 03 642f79", 0x001),  # THREATS 25: keepalive 0
        ("00000000 0400 0001 0000 000001f4 00000000 03 6d2f78 03 642f79", 0x001),  # THREATS 25: lifetime 0
        ("00000000 0480 0001 0000 000001f4 0000ea60 0001 74 03 6d2f78 03 642f79", 0x003),  # THREATS 26: R, no store
        ("00000000 0440 0001 0000 000001f4 0000ea60 03 6d2f78 03 642f79", 0x003),  # a lease that is not granted
        ("00000000 0400 0001", 0x001),  # THREATS 2: a SETUP that is cut
    ],
)
def test_bad_first_frames_are_answered_and_closed(build, body, code) -> None:
    session = server(build)
    errors, events = feed(build, session, body)
    assert errors == [(0, code)]
    assert events == ["Closed"]
    assert not session.link_wanted


@pytest.mark.parametrize(
    "body",
    [
        "00000003 2860 61",  # THREATS 42: PAYLOAD for no stream
        "00000003 2400",  # CANCEL for no stream
        "00000003 2000 00000001",  # REQUEST_N for no stream
        "00000003 2c00 00000201 61",  # ERROR for no stream
        "00000005 3100 6d64",  # THREATS 45: METADATA_PUSH on a stream
        SETUP,  # THREATS 23: a second SETUP
        "00000000 2c00 00000001 626164",  # a server ignores ERROR[INVALID_SETUP]
        "00000000 3800 0000000000000007",  # RESUME_OK out of the blue
        "00000002 1000 61",  # THREATS 34: the server's own parity
        "00000000 1000 61",  # a request on stream 0
        "00000001 4200",  # THREATS 13: an unknown type that may be ignored
    ],
)
def test_what_makes_no_sense_is_ignored(build, body) -> None:
    session = set_up(build)
    assert feed(build, session, body) == ([], [])
    assert session.link_wanted


@pytest.mark.parametrize(
    "body",
    [
        "80000001 1000 61",  # THREATS 12: the top bit of a stream id
        "00000001 4000",  # THREATS 13: an unknown type that must not be ignored
        "00000001 1100 000010 6162",  # metadata longer than the frame
    ],
)
def test_broken_frames_end_the_connection(build, body) -> None:
    session = set_up(build)
    errors, events = feed(build, session, body)
    assert errors == [(0, 0x101)]
    assert events == ["Closed"]


def test_a_request_on_a_live_stream_is_ignored(build) -> None:
    # THREATS 34
    session = set_up(build)
    errors, events = feed(build, session, "00000001 1000 61", "00000001 1000 62")
    assert (errors, events) == ([], ["Requested"])


def test_items_beyond_credit_reach_nobody(build) -> None:
    # THREATS 37
    session = set_up(build)
    feed(build, session, "00000001 1c00 00000005 61")
    session.request(1, 3)
    session.take_output()
    errors, events = feed(build, session, *["00000001 2820 62"] * 5)
    assert errors == [(1, 0x204)]
    assert events == ["ItemReceived", "ItemReceived", "Failed"]


def test_a_run_beyond_credit_is_cut_at_it(build) -> None:
    # THREATS 37
    session = set_up(build)
    feed(build, session, "00000001 1c00 00000005 61")
    session.request(1, 6)
    session.take_output()
    session.receive(frame("00000001 2820 62") * 1000, 1.0)
    events = session.take_events()
    assert [type(event).__name__ for event in events] == ["RunReceived", "Failed"]
    assert len(events[0].run) == 5


def test_request_n_of_nothing_fails_the_stream(build) -> None:
    # THREATS 38
    session = set_up(build)
    errors, _ = feed(build, session, "00000001 1800 00000001 61", "00000001 2000 00000000")
    assert errors == [(1, 0x204)]
    assert feed(build, session, "00000003 1800 00000000 61")[0] == [(3, 0x204)]


def test_request_n_saturates(build) -> None:
    # THREATS 39
    session = set_up(build)
    feed(build, session, "00000001 1800 7fffffff 61", *["00000001 2000 7fffffff"] * 1000)
    assert session.credit(1) == 2**31 - 1


def test_too_many_streams_are_rejected(build) -> None:
    session = set_up(build, max_streams=3)
    errors, events = feed(build, session, *[f"{2 * n + 1:08x} 1000 61" for n in range(5)])
    assert errors == [(7, 0x202), (9, 0x202)]
    assert events == ["Requested"] * 3


def test_ordinary_cancellations_have_no_limit(build) -> None:
    # THREATS 36, 105
    session = set_up(build)
    for number in range(5_000):
        assert feed(build, session, f"{2 * number + 1:08x} 1000 61", f"{2 * number + 1:08x} 2400") == (
            [],
            ["Requested", "Canceled"],
        )
    assert session.link_wanted and session.open_streams == 0


def test_strays_are_ignored_in_any_number(build) -> None:
    # THREATS 42: the documents say that they MUST be ignored; reading them is charged as work.
    session = set_up(build)
    session.receive(frame("00000003 2820 61") * 150_000, 1.0)
    assert session.link_wanted and session.ignored == 150_000
    assert session.take_events() == [] and session.take_output() == []


def test_a_second_end_is_ignored(build) -> None:
    # THREATS 44
    session = set_up(build)
    body = ("00000001 1c00 00000005 61", "00000001 2840", "00000001 2840", "00000001 2820 62", "00000001 2400")
    errors, events = feed(build, session, *body)
    assert (errors, events) == ([], ["Requested", "Completed", "Canceled"])


def test_a_call_is_over_with_its_first_item(build) -> None:
    # THREATS 43
    kind, payload = build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload
    pair = Pair(build)
    stream = pair.client.open(kind.CALL, "x", payload())
    pair.client.take_output()
    pair.client.receive(frame("00000001 2820 61"), 1.0)
    established, item = pair.client.take_events()
    assert type(established).__name__ == "Established"
    assert (item.payload.data, item.done, stream, pair.client.open_streams) == (b"a", True, 1, 0)


def test_fragments_without_end_are_given_up(build) -> None:
    # THREATS 47, 48, 49
    session = set_up(build, max_fragments=5)
    errors, events = feed(build, session, "00000001 1080 61", *["00000001 28a0 62"] * 6)
    assert (errors, events) == ([(1, 0x202)], [])
    session = set_up(build, reassembly_timeout=5.0)
    feed(build, session, "00000001 1080 61")
    session.handle_timer(session.next_timer())
    session.handle_timer(7.0)
    assert errors_sent(build, b"".join(session.take_output())) == [(1, 0x202)]


def test_a_cancel_drops_what_is_half_received(build) -> None:
    # THREATS 50
    session = set_up(build)
    assert feed(build, session, "00000001 1080 61", "00000001 2400", "00000001 2820 62") == ([], [])


def test_keepalive_with_too_much_data_ends_the_connection(build) -> None:
    # THREATS 53
    session = set_up(build, max_keepalive_bytes=10)
    assert feed(build, session, "00000000 0c80 0000000000000000" + "61" * 10)[0] == []
    assert feed(build, session, "00000000 0c80 0000000000000000" + "61" * 11)[0] == [(0, 0x101)]


def test_lying_composite_metadata_fails_its_request_alone(build) -> None:
    # THREATS 21
    session = server(build, max_metadata_entries=4)
    mime = b"message/x.rsocket.composite-metadata.v0".hex()
    session.receive(frame(f"00000000 0400 0001 0000 000001f4 0000ea60 27 {mime} 03 642f79"), 0.0)
    session.take_events()
    lying = "00000001 1100 000005 fe 0000ff 61"
    many = "00000003 1100 000014 " + "86000000" * 5
    assert feed(build, session, lying, many) == ([(1, 0x204), (3, 0x204)], [])
    assert session.link_wanted


def test_a_large_frame_is_refused_before_it_is_there(build) -> None:
    # THREATS 3: before the set-up, the limit is one mebibyte.
    session = server(build)
    session.receive(bytes.fromhex("ffffff00000000"), 0.0)
    assert not session.link_wanted


def test_silence_before_the_first_frame_ends_the_connection(build) -> None:
    # THREATS 1
    session = server(build, first_frame_timeout=5.0)
    session.receive(b"\0", 4.0)
    session.handle_timer(5.0)
    assert not session.link_wanted
