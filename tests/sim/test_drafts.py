"""Differences of the two drafts from RSocket 1.0, between two sessions, with the bytes cut in every way."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.pair import CUTS, Cut, Pair

V02 = "reactivesocket-0.2"
V00 = "reactivesocket-0.0"
DRAFTS = pytest.mark.parametrize("dialect", [V02, V00])
CUT = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)


def names(build: Build) -> tuple[Any, Any]:
    return build.module("weirpool.kinds").Kind, build.module("weirpool.payload").Payload


def sent(build: Build, data: bytes, dialect: str) -> list[dict[str, Any]]:
    """Return the frames that a side has sent, as text."""
    dump = build.module("weirpool.wire.rsocket.dump")
    prefix = 4 if dialect == V00 else 3
    return [dump.to_object(frame, dialect) for _, frame in dump.read_frames(data, dialect, prefix)]


def at_server(dialect: str, stream: int) -> int:
    """Return the server's id of a stream of the client."""
    return -stream if dialect == V00 else stream


@DRAFTS
@CUT
def test_calls_fires_and_streams(build: Build, dialect: str, cut: Cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut, dialect=dialect)
    call = pair.client.open(kind.CALL, "route", payload(b"question"))
    stream = pair.client.open(kind.STREAM, "numbers", payload(b""), 3)
    pair.client.open(kind.FIRE, "log", payload(b"x"))
    pair.drive()
    requests = pair.events("server", "Requested")
    assert [(each.kind, each.route) for each in requests] == [
        (kind.CALL, "route"),
        (kind.STREAM, "numbers"),
        (kind.FIRE, "log"),
    ]
    pair.server.send(at_server(dialect, call), payload(b"answer", b"extra"))
    for number in range(3):
        pair.server.send(at_server(dialect, stream), payload(b"%d" % number))
    assert pair.server.credit(at_server(dialect, stream)) == 0
    pair.client.request(stream, 2)
    pair.drive()
    pair.server.send(at_server(dialect, stream), payload(b"last"), True)
    pair.drive()
    assert pair.items("client", call) == [b"answer"]
    assert pair.items("client", stream) == [b"0", b"1", b"2", b"last"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@DRAFTS
@pytest.mark.parametrize("kind_name", ["CALL", "STREAM"])
def test_an_empty_item_is_an_item(build: Build, dialect: str, kind_name: str) -> None:
    kinds, payload = names(build)
    pair = Pair(build, dialect=dialect)
    stream = pair.client.open(kinds[kind_name], "s", payload(), 5)
    pair.drive()
    pair.server.send(at_server(dialect, stream), payload(), True)
    pair.drive()
    assert pair.items("client", stream) == [b""]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


@DRAFTS
def test_large_items_travel_in_fragments(build: Build, dialect: str) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=dialect, client={"fragment_bytes": 100}, server={"fragment_bytes": 100})
    call = pair.client.open(kind.CALL, "r", payload(b"q" * 1000))
    pair.drive()
    (request,) = pair.events("server", "Requested")
    assert request.payload.data == b"q" * 1000
    requests = [frame["type"] for frame in sent(build, pair.client_sent, dialect)]
    # ReactiveSocket 0.0, Fragmentation And Reassembly: only responses.
    assert requests == (["SETUP", "REQUEST_RESPONSE"] if dialect == V00 else requests)
    assert len(requests) == (2 if dialect == V00 else 12)
    pair.server.send(at_server(dialect, call), payload(b"a" * 1000, b"m" * 150))
    pair.drive()
    (item,) = pair.events("client", "ItemReceived")
    assert item.payload == payload(b"a" * 1000, b"m" * 150)


@DRAFTS
def test_errors_and_cancels_carry_metadata_to_the_application(build: Build, dialect: str) -> None:
    kind, payload = names(build)
    errors = build.module("weirpool.errors")
    pair = Pair(build, dialect=dialect)
    call = pair.client.open(kind.CALL, "r", payload())
    stream = pair.client.open(kind.STREAM, "r", payload(), 5)
    pair.drive()
    pair.server.fail(at_server(dialect, call), errors.ApplicationError(0x201, "boom", None, b"why"))
    pair.client.cancel(stream, b"enough")
    pair.drive()
    (failed,) = pair.events("client", "Failed")
    assert (failed.error.message, failed.error.metadata, failed.error.code) == ("boom", b"why", 0x201)
    (canceled,) = pair.events("server", "Canceled")
    assert (canceled.metadata, canceled.done) == (b"enough", True)


@CUT
@pytest.mark.parametrize("kind_name", ["CHANNEL", "UPLOAD"])
def test_requester_that_fails_cancels(build: Build, kind_name: str, cut: Cut) -> None:
    # ReactiveSocket 0.2, Request Channel: a requester ends it by COMPLETE or CANCEL, and no other frame.
    kinds, payload = names(build)
    pair = Pair(build, dialect=V02, cut=cut)
    stream = pair.client.open(kinds[kind_name], "r", payload(b"1"), 5)
    pair.drive()
    pair.server.request(stream, 5)
    pair.drive()
    pair.client.send(stream, payload(b"2"))
    pair.client.fail(stream, ValueError("the source failed"))
    pair.drive()
    assert [frame["type"] for frame in sent(build, pair.client_sent, V02)][-2:] == ["PAYLOAD", "CANCEL"]
    (canceled,) = pair.events("server", "Canceled")
    assert canceled.done
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_requester_cancels_what_it_must_not_receive(build: Build) -> None:
    kinds, payload = names(build)
    pair = Pair(build, dialect=V02, client={"max_metadata_bytes": 10})
    stream = pair.client.open(kinds.CHANNEL, "r", payload(b"1"), 5)
    pair.drive()
    pair.server.send(stream, payload(b"", b"m" * 11))
    pair.drive()
    assert [frame["type"] for frame in sent(build, pair.client_sent, V02)][-1] == "CANCEL"
    assert [type(event.error).__name__ for event in pair.events("client", "Failed")] == ["LimitExceeded"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_rsocket_1_0_has_no_room_for_that(build: Build) -> None:
    kind, payload = names(build)
    errors = build.module("weirpool.errors")
    pair = Pair(build)
    stream = pair.client.open(kind.STREAM, "r", payload(), 5)
    pair.drive()
    with pytest.raises(errors.LocalError, match="CANCEL cannot carry metadata"):
        pair.client.cancel(stream, b"enough")
    with pytest.raises(errors.LocalError, match="ERROR cannot carry metadata"):
        pair.server.fail(stream, errors.ApplicationError(0x201, "boom", None, b"why"))


# ReactiveSocket 0.2.


@CUT
def test_a_channel_ends_with_its_responder(build: Build, cut: Cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut, dialect=V02)
    stream = pair.client.open(kind.CHANNEL, "c", payload(b"first"), 10)
    pair.drive()
    pair.server.request(stream, 5)
    pair.drive()
    pair.client.send(stream, payload(b"second"))
    pair.server.send(stream, payload(b"answer"), True)
    assert pair.server.open_streams == 0
    pair.drive()
    assert pair.items("client", stream) == [b"answer"]
    (canceled,) = pair.events("client", "Canceled")
    assert canceled.done
    assert pair.client.open_streams == 0
    with pytest.raises(build.module("weirpool.errors").StreamClosed):
        pair.client.send(stream, payload(b"third"))


def test_a_channel_whose_responder_completes_alone(build: Build) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V02)
    stream = pair.client.open(kind.CHANNEL, "c", payload(b"first"), 10)
    pair.drive()
    pair.server.complete(stream)
    pair.drive()
    assert [type(event).__name__ for event in pair.client_events[-2:]] == ["Completed", "Canceled"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_a_requester_may_complete_its_half_first(build: Build) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V02)
    stream = pair.client.open(kind.CHANNEL, "c", payload(b"first"), 10, True)
    pair.drive()
    pair.server.send(stream, payload(b"a"))
    pair.server.send(stream, payload(b"b"), True)
    pair.drive()
    assert pair.items("client", stream) == [b"a", b"b"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_request_channel_frames_may_be_fragments(build: Build) -> None:
    pair = Pair(build, dialect=V02)
    for body in (
        "00000001 1d80 00000005 000001 6d 6162",
        "00000001 1c80 00000005 6364",
        "00000001 1c40 00000005 6566",
    ):
        octets = bytes.fromhex(body.replace(" ", ""))
        pair.server.receive(len(octets).to_bytes(3, "big") + octets, pair.now)
    request = pair.server.take_events()[-1]
    assert (request.payload.data, request.payload.metadata, request.done) == (b"abcdef", b"m", True)


@pytest.mark.parametrize("lenient", [False, True])
def test_items_without_flags_are_items_to_the_lenient(build: Build, lenient: bool) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V02, client={"lenient": lenient})
    stream = pair.client.open(kind.STREAM, "r", payload(), 5)
    pair.drive()
    # As a peer of 2016 sends it: see the vectors.
    pair.client.receive(bytes.fromhex("00000800000001280076300000080000000128007631000006000000012840"), pair.now)
    pair.drive()
    assert pair.items("client", stream) == ([b"v0", b"v1"] if lenient else [])
    assert len(pair.events("client", "Completed")) == 1


def test_an_answer_that_says_complete_and_not_next_is_an_answer(build: Build) -> None:
    # THREATS 43
    kind, payload = names(build)
    pair = Pair(build, dialect=V02)
    stream = pair.client.open(kind.CALL, "r", payload())
    pair.drive()
    pair.client.receive(bytes.fromhex("0000150000000129400000024d4d6563686f3a68656c6c6f"), pair.now)
    pair.drive()
    assert pair.items("client", stream) == [b"echo:hello"]


@pytest.mark.parametrize("dialect", [V02, "rsocket-1.0"])
def test_clients_of_other_years_have_even_ids(build: Build, dialect: str) -> None:
    # THREATS 34
    kind, payload = names(build)
    even = {"client_ids": "even"}
    pair = Pair(build, dialect=dialect, client=even, server=even)
    ours = [pair.client.open(kind.FIRE, "r", payload()) for _ in range(3)]
    theirs = [pair.server.open(kind.FIRE, "r", payload()) for _ in range(2)]
    pair.drive()
    assert (ours, theirs) == ([2, 4, 6], [1, 3])
    assert len(pair.events("server", "Requested")) == 3
    assert len(pair.events("client", "Requested")) == 2


@pytest.mark.parametrize(("dialect", "strict"), [(V02, True), ("rsocket-1.0", False)])
def test_the_strict_flag_reaches_the_acceptor(build: Build, dialect: str, strict: bool) -> None:
    frames = build.module("weirpool.wire.rsocket.frames")
    pair = Pair(build, dialect=dialect)
    server = type(pair.server).server(build.module("weirpool.settings").Settings(), pair.server_dialect)
    server.link_up(1.0)
    setup = frames.SetupFrame(
        frames.STRICT, *pair.server_dialect.version, 500, 60_000, None, b"x/unknown", b"text/plain"
    )
    server.receive(pair.server_dialect.codec().frame(setup), 1.0)
    (established,) = server.take_events()
    assert (established.strict, established.understood) == (strict, False)


# ReactiveSocket 0.0.


def test_both_sides_may_use_one_number(build: Build) -> None:
    kind, payload = names(build)
    # A server of 2015 counts as its client does.
    pair = Pair(build, dialect=V00, server={"client_ids": "even"})
    ours = pair.client.open(kind.CALL, "there", payload(b"?"))
    theirs = pair.server.open(kind.CALL, "back", payload(b"!"))
    assert ours == theirs == 1
    pair.drive()
    (at_server_side,) = pair.events("server", "Requested")
    (at_client_side,) = pair.events("client", "Requested")
    pair.server.send(at_server_side.stream_id, payload(b"from server"))
    pair.client.send(at_client_side.stream_id, payload(b"from client"))
    pair.drive()
    assert pair.items("client", ours) == [b"from server"]
    assert pair.items("server", theirs) == [b"from client"]
    assert (pair.client.open_streams, pair.server.open_streams) == (0, 0)


def test_an_endless_stream_is_a_subscription(build: Build) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V00)
    stream = pair.client.open(kind.STREAM, "live", payload(), 3, True, True)
    pair.drive()
    assert [frame["type"] for frame in sent(build, pair.client_sent, V00)] == ["SETUP", "REQUEST_SUB"]
    (request,) = pair.events("server", "Requested")
    assert (request.kind, request.credit) == (kind.STREAM, 3)
    pair.server.send(-stream, payload(b"a"))
    pair.server.complete(-stream)
    pair.drive()
    assert pair.items("client", stream) == [b"a"]
    assert pair.client.open_streams == 0


def test_what_cannot_travel_is_refused_before_anything_is_sent(build: Build) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V00)
    before = pair.client_sent
    for unsupported in (kind.CHANNEL, kind.UPLOAD):
        with pytest.raises(build.module("weirpool.errors").UnsupportedKind):
            pair.client.open(unsupported, "r", payload(), 1)
    pair.drive()
    assert (pair.client_sent, pair.client.open_streams) == (before, 0)


@CUT
def test_pushed_metadata_keeps_its_place_among_the_items(build: Build, cut: Cut) -> None:
    kind, payload = names(build)
    pair = Pair(build, cut=cut, dialect=V00)
    stream = pair.client.open(kind.STREAM, "s", payload(), 9)
    pair.drive()
    pair.server.send(-stream, payload(b"1"))
    pair.server.push(b"between", -stream)
    pair.server.send(-stream, payload(b"2"))
    pair.client.push(b"to the handler", stream)
    pair.client.push(b"to all")
    pair.drive()
    last = [type(event).__name__ for event in pair.client_events[-3:]]
    assert last == ["ItemReceived", "MetadataPushed", "ItemReceived"]
    pushed = pair.events("server", "MetadataPushed")
    assert [(event.stream_id, event.metadata) for event in pushed] == [(-stream, b"to the handler"), (0, b"to all")]


def test_others_push_to_connections_alone(build: Build) -> None:
    kind, payload = names(build)
    pair = Pair(build, dialect=V02)
    stream = pair.client.open(kind.STREAM, "s", payload(), 9)
    with pytest.raises(build.module("weirpool.errors").UnsupportedKind):
        pair.client.push(b"m", stream)


@pytest.mark.parametrize(
    ("first", "code"),
    [
        # THREATS 22: a request before SETUP.
        ("00000015 00000011 0000000000000001 68656c6c6f", 0x0001),
        # A lease that is never granted.
        ("00000014 00200001 0000000000000000 00 00 0000", 0x0100),
    ],
)
def test_a_set_up_that_is_refused_is_answered_in_its_own_words(build: Build, first: str, code: int) -> None:
    pair = Pair(build, dialect=V00)
    server = type(pair.server).server(build.module("weirpool.settings").Settings(), pair.server_dialect)
    server.link_up(1.0)
    server.receive(bytes.fromhex(first.replace(" ", "")), 1.0)
    (answer,) = sent(build, b"".join(server.take_output()), V00)
    assert (answer["type"], answer["code"]) == ("SETUP_ERROR", code)
    assert not server.link_wanted


def test_a_refused_client_learns_why(build: Build) -> None:
    pair = Pair(build, dialect=V00)
    error = build.module("weirpool.errors").SetupRejected("not you", 0x003)
    pair.server.close(pair.now, error)
    pair.drive()
    (closed,) = pair.events("client", "Closed")
    assert type(closed.error).__name__ == "SetupRejected"
    assert (closed.error.code, "not you" in str(closed.error)) == (0x003, True)


@pytest.mark.parametrize(("timeout", "ends"), [(0.0, False), (30.0, True)])
def test_silence_ends_a_session_if_that_is_wanted(build: Build, timeout: float, ends: bool) -> None:
    pair = Pair(build, dialect=V00, server={"idle_timeout": timeout})
    pair.advance(1000)
    assert bool(pair.events("server", "Closed")) is ends
    assert all(frame["type"] != "KEEPALIVE" for frame in sent(build, pair.client_sent, V00))


def test_frames_that_are_wrong_in_their_metadata_are_ignored(build: Build) -> None:
    # THREATS 15, 16
    for dialect, body in ((V02, "000009 00000001 1100 000010"), (V00, "00000014 00400011 0000000000000001 00000003")):
        pair = Pair(build, dialect=dialect)
        pair.server.receive(bytes.fromhex(body.replace(" ", "")), pair.now)
        call = pair.client.open(*([names(build)[0].CALL, "r", names(build)[1](b"still here")]))
        pair.drive()
        (request,) = pair.events("server", "Requested")
        assert (request.payload.data, call) == (b"still here", 1)


# THREATS 33, 39.
def test_numbers_of_64_bits_are_cut_to_what_is_counted(build: Build) -> None:
    _, payload = names(build)
    pair = Pair(build, dialect=V00)
    most = "ff" * 8
    pair.server.receive(bytes.fromhex("00000018" + "00000013" + "0000000000000001" + most), pair.now)
    for _ in range(3):
        pair.server.receive(bytes.fromhex("00000018" + "00000015" + "0000000000000001" + most), pair.now)
    pair.drive()
    assert pair.server.credit(-1) == 2**31 - 1
    assert pair.server.send(-1, payload(b"x")) == 2**31 - 2
