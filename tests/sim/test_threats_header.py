"""Hostile headers and metadata, and the safe answer to them, in every dialect."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import Build
from tests.sim.target import DIALECTS, V00, V02, V1, Target

ALL = pytest.mark.parametrize("dialect", DIALECTS)
COUNTED = pytest.mark.parametrize("dialect", (V1, V02))


def body(target: Target, frame: bytes) -> bytearray:
    return bytearray(frame[target.codec.prefix_bytes :])


@COUNTED
def test_the_top_bit_of_a_stream_id_ends_the_session(build: Build, dialect: str) -> None:
    # THREATS 12
    target = Target(build, dialect)
    octets = body(target, target.request("REQUEST_RESPONSE", 1))
    octets[0] |= 0x80
    assert target.say(target.prefixed(bytes(octets))) == (target.goodbye, ["Closed"])


LONG_IDS = pytest.mark.parametrize("stream", [2**63 - 1, 2**63, 2**63 + 1, 2**64 - 1])


@LONG_IDS
@pytest.mark.parametrize("request_type", ["REQUEST_RESPONSE", "REQUEST_FNF", "REQUEST_STREAM", "REQUEST_SUB"])
@pytest.mark.parametrize("side", ["server", "client"])
def test_streams_of_the_first_draft_have_64_bits(build: Build, stream: int, request_type: str, side: str) -> None:
    # THREATS 12; ReactiveSocket 0.0, Frame Header Format. Both sides are requesters.
    target = Target(build, V00, side)
    target.session.receive(target.request(request_type, stream, n=2), target.now)
    requested = target.session.take_events()[-1]
    assert (type(requested).__name__, requested.stream_id) == ("Requested", -stream)
    if request_type == "REQUEST_FNF":
        return
    if request_type != "REQUEST_RESPONSE":
        target.session.send(-stream, target.payload(b"a"))
        assert target.say(target.request_n(stream, 5)) == ([], ["CreditGranted"])
        assert target.session.credit(-stream) == 6
    target.session.send(-stream, target.payload(b"b"), True)
    *_, last = frames_of(target)
    assert (last.stream_id, last.data) == (stream, b"b")
    assert target.session.open_streams == 0


@LONG_IDS
def test_streams_with_64_bits_end_in_every_way(build: Build, stream: int) -> None:
    # THREATS 12
    target = Target(build, V00)
    call = target.request("REQUEST_STREAM", stream)
    assert target.say(call, target.codec.cancel_frame(stream)) == ([], ["Requested", "Canceled"])
    target.say(call)
    target.session.fail(-stream, build.module("weirpool.errors").ApplicationError(0x201, "no"))
    assert target.told() == ([(stream, 0x201)], [])
    target.say(call)
    target.session.push(b"m", -stream)
    target.session.complete(-stream)
    pushed, completed = frames_of(target)
    assert (pushed.stream_id, pushed.metadata, completed.stream_id) == (stream, b"m", stream)


@LONG_IDS
def test_items_for_no_stream_may_have_64_bits(build: Build, stream: int) -> None:
    # A client of Weirpool does not use such ids, so nobody waits for these items.
    target = Target(build, V00, "client")
    opened = target.open("STREAM", 9)
    assert target.say(target.item(stream) * 3, target.error(stream)) == ([], ["Established"])
    assert target.say(target.item(opened)) == ([], ["ItemReceived"])


def frames_of(target: Target) -> list[Any]:
    """Return the frames that the session of ReactiveSocket 0.0 has sent."""
    read = target.build.module("weirpool.wire.rsocket.dump").read_frames
    return [frame for _, frame in read(b"".join(target.session.take_output()), V00, 4)]


@pytest.mark.parametrize("side", ["server", "client"])
def test_the_reserved_bit_of_a_length_is_ignored(build: Build, side: str) -> None:
    # ReactiveSocket 0.0, Frame Header Format.
    target = Target(build, V00, side)
    stream = target.open("STREAM", 9) if side == "client" else 1
    frames = [target.item(stream)] * 4 if side == "client" else [target.request("REQUEST_STREAM", 1)]
    errors, events = target.say(*(bytes((frame[0] | 0x80,)) + frame[1:] for frame in frames))
    assert (errors, events[-1]) == ([], "RunReceived" if side == "client" else "Requested")


def unknown(dialect: str, ignorable: bool) -> bytes:
    if dialect == V00:
        return bytes((0, 0x80 if ignorable else 0, 0x77, 0x77)) + bytes(7) + b"\x01" + b"body"
    return b"\x00\x00\x00\x01" + bytes((0x20 << 2 | 2 * ignorable, 0)) + b"body"


@ALL
def test_unknown_types_are_ignored_where_they_say_so(build: Build, dialect: str) -> None:
    # THREATS 13
    target = Target(build, dialect)
    call = target.request("REQUEST_RESPONSE", 3)
    assert target.say(target.prefixed(unknown(dialect, True)), call) == ([], ["Requested"])
    assert target.say(target.prefixed(unknown(dialect, False)), call)[0] == target.goodbye
    assert not target.session.link_wanted


@ALL
@pytest.mark.parametrize("stream", [0, 1])
def test_extensions_are_ignored_where_they_say_so(build: Build, dialect: str, stream: int) -> None:
    # THREATS 13
    target = Target(build, dialect)
    call = target.request("REQUEST_RESPONSE", 3)
    ignorable = target.codec.frame(target.frames.ExtFrame(stream, 1, b"body", target.frames.IGNORE))
    assert target.say(ignorable, call) == ([], ["Requested"])
    assert target.say(target.codec.frame(target.frames.ExtFrame(stream, 1, b"body")), call)[0] == target.goodbye
    assert not target.session.link_wanted


@ALL
def test_large_extensions_are_ignored(build: Build, dialect: str) -> None:
    # THREATS 14: with IGNORE set, the documents allow any number of them.
    target = Target(build, dialect)
    ext = target.codec.frame(target.frames.ExtFrame(0, 1, bytes(1_000_000), target.frames.IGNORE))
    for _ in range(20):
        assert target.say(ext) == ([], [])
    assert (target.session.ignored, target.held) == (20, 0)


@ALL
def test_metadata_that_runs_past_its_frame(build: Build, dialect: str) -> None:
    # THREATS 15, 16
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1))
    lies = [b"\xff\xff\xff", b"\x00\x00\x09", b"\x00"]
    if dialect == V00:
        # It counts itself, and follows a type byte.
        lies = [b"\x00\xff\xff\xff", b"\x00\x00\x00\x09", *(bytes((0, 0, 0, size)) for size in range(4)), b"\x00\x00"]
    for lie in lies:
        octets = body(target, target.request("REQUEST_RESPONSE", 3, data=lie))
        octets[1 if dialect == V00 else 4] |= 0x40 if dialect == V00 else 0x01
        if dialect == V1:
            # Only frames with the IGNORE flag are ignored.
            assert Target(build, dialect).say(target.prefixed(bytes(octets))) == (target.goodbye, ["Closed"])
            octets[4] |= 0x02
        assert target.say(target.prefixed(bytes(octets))) == ([], [])
    # It is ignored, as often as it is sent.
    assert target.session.credit(target.number(1)) == 5
    assert target.say(target.request("REQUEST_RESPONSE", 3)) == ([], ["Requested"])
    assert target.say(*[target.prefixed(bytes(octets))] * 200) == ([], [])
    assert target.session.ignored == 200 + len(lies)


@COUNTED
def test_a_metadata_flag_where_there_is_none_is_ignored(build: Build, dialect: str) -> None:
    # THREATS 17
    target = Target(build, dialect)
    target.say(target.request("REQUEST_STREAM", 1, n=1))
    octets = body(target, target.request_n(1, 0x010203))
    octets[4] |= 0x01
    assert target.say(target.prefixed(bytes(octets))) == ([], ["CreditGranted"])
    assert target.session.credit(1) == 1 + 0x010203
    octets = body(target, target.codec.frame(target.frames.KeepaliveFrame(0x80, 0, b"\x00\x00\xffdata")))
    octets[4] |= 0x01
    target.session.receive(target.prefixed(bytes(octets)), target.now)
    (echo,) = target.session.take_output()
    assert echo.endswith(b"\x00\x00\xffdata")


@ALL
def test_the_text_of_an_error_is_shown_safely_and_kept_raw(build: Build, dialect: str) -> None:
    # THREATS 18
    target = Target(build, dialect, "client")
    stream = target.open("CALL")
    raw = b"\xff\xfe\x1b[31mred"
    target.session.receive(target.error(stream, raw), target.now)
    failed = target.session.take_events()[-1]
    assert failed.error.data == raw
    assert "\ufffd" in failed.error.message
    assert "\x1b" not in str(failed.error)


@ALL
def test_the_text_of_a_last_word_is_shown_safely(build: Build, dialect: str) -> None:
    # THREATS 18
    target = Target(build, dialect, "client")
    error = target.frames.ErrorFrame(0, 0x001, b"\xff\x1b[31mred\r\nforged line")
    if dialect == V00:
        error.type = int(target.frames.FrameType.SETUP_ERROR)
    target.session.receive(target.codec.frame(error), target.now)
    closed = target.session.take_events()[-1]
    assert type(closed.error).__name__ == "SetupRejected"
    assert not set(str(closed.error)) & set("\x1b\r\n")


@ALL
def test_reserved_flags_mean_nothing(build: Build, dialect: str) -> None:
    # THREATS 19
    target = Target(build, dialect)
    octets = body(target, target.request("REQUEST_STREAM", 1, data=b"data"))
    if dialect == V00:
        octets[1] |= 0x3F
    else:
        octets[5] |= 0x7F
    target.session.receive(target.prefixed(bytes(octets)), target.now)
    (request,) = target.session.take_events()
    assert (request.payload.data, request.payload.metadata, request.credit) == (b"data", None, 5)


@ALL
def test_a_mime_type_of_255_bytes_is_just_long(build: Build, dialect: str) -> None:
    # THREATS 20
    target = Target(build, dialect, set_up=False)
    mime = b"m" * 255
    target.session.receive(target.setup(metadata_mime=mime, data_mime=mime, data=b"d"), target.now)
    (established,) = target.session.take_events()
    assert (established.metadata_mime, established.data_mime) == (mime.decode(), mime.decode())
    assert established.payload.data == b"d"
    # It is mandatory.
    target = Target(build, dialect, set_up=False)
    cut = body(target, target.setup(metadata_mime=mime, data_mime=b"", data=b""))[:-100]
    assert target.say(target.prefixed(bytes(cut))) == ([(0, 0x001)], ["Closed"])


@ALL
@pytest.mark.parametrize("count", [4, 1_000_000])
def test_composite_metadata_of_empty_entries_fails_its_request_alone(build: Build, dialect: str, count: int) -> None:
    # THREATS 21
    composite = b"message/x.rsocket.composite-metadata.v0"
    target = Target(build, dialect, set_up=False, max_metadata_entries=3, max_metadata_bytes=8_000_000)
    target.say(target.setup(metadata_mime=composite))
    entries = b"\x85\x00\x00\x00" * count
    request = target.codec.request_frame(target.frames.FrameType.REQUEST_RESPONSE, 1, 0, 0, entries, b"")
    code = 0x204
    assert target.say(request) == ([(1, code)], [])
    assert target.session.link_wanted
