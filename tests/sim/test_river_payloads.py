"""An invalid payload or a message that is too long ends only its stream. THREATS 92, 93."""

from __future__ import annotations

from typing import Any

import pytest

from tests.river.peers import Duo
from weirpool.errors import Invalid, LimitExceeded, ProtocolError
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.wire.river.values import encode_value

FILL = "@" * 300
# Replacements for a string of 300 characters.
FAULTS = {
    ("json", "a bad byte"): b'"' + b"\xff" * 300 + b'"',
    ("json", "a surrogate in UTF-8"): b'"' + b"\xed\xa0\x80" * 100 + b'"',
    ("json", "a bad escape"): b'"\\x' + b"@" * 298 + b'"',
    ("json", "half an escape"): b'"' + b"@" * 296 + b'\\u12"',
    ("json", "a control character"): b'"\x01' + b"@" * 299 + b'"',
    ("json", "depth"): b"[" * 151 + b"]" * 151,
    ("json", "no value"): b'{"a":}' + b" " * 296,
    ("msgpack", "a bad byte"): b"\xda\x01\x2c" + b"\xff" * 300,
    ("msgpack", "depth"): b"\x91" * 302 + b"\xc0",
    ("msgpack", "a bad integer"): b"\xc8\x01\x2b\x00" + b"\x93" * 299,
    ("msgpack", "a bad timestamp"): b"\xc8\x01\x2b\xff" + b"\xff" * 299,
}
MENDED = {
    ("json", "a lone surrogate"): b'"' + b"@" * 294 + b'\\ud83d"',
    ("json", "a lone low surrogate"): b'"\\uDE00' + b"@" * 294 + b'"',
    ("json", "no base64"): b'{"$t":"' + b"!" * 293 + b'"}',
    ("json", "no digits"): b'{"$b":"' + b"!" * 293 + b'"}',
    ("msgpack", "an unknown extension"): b"\xc8\x01\x2b\x07" + b"\xff" * 299,
}
POSITIONS = ("request", "item to the server", "answer", "item to the client")


class Tampered(Duo):
    """A client and a server between which one string is replaced by other bytes of the same length."""

    def __init__(self, codec: str, instead: bytes) -> None:
        self.instead = instead
        self.replaced = 0
        super().__init__(codec)

    def _arrive(self, piece: bytes, direction: str) -> None:
        wanted = encode_value(FILL, self.codec)
        assert len(wanted) == len(self.instead)
        self.replaced += piece.count(wanted)
        super()._arrive(piece.replace(wanted, self.instead), direction)


def play(duo: Duo, position: str) -> int:
    """Deliver a message with the string as `where` says; return its stream's number on the client."""
    fill = duo.payload(FILL)
    if position == "request":
        number = duo.client.open(Kind.CALL, "demo.add", fill)
    elif position == "item to the server":
        number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 10)
        duo.drive()
        duo.server.request(duo.of("server", "Requested")[-1].stream_id, 10)
        duo.client.send(number, fill)
    else:
        kind, route = (Kind.CALL, "demo.add") if position == "answer" else (Kind.CHANNEL, "demo.echo")
        number = duo.client.open(kind, route, duo.payload({}), 10)
        duo.drive()
        duo.server.send(duo.of("server", "Requested")[-1].stream_id, fill)
    duo.drive()
    return number


def check_the_session(duo: Duo, other: int, theirs: int) -> None:
    """Check that an earlier call is answered over the same link, and that everything is acknowledged."""
    assert duo.linked and duo.links == 1
    duo.server.send(theirs, duo.payload("fine"))
    duo.drive()
    assert duo.items("client", other) == ["fine"]
    duo.advance(3.0)
    assert duo.linked and duo.links == 1
    assert duo.client.sequence.first >= duo.client.sequence.seq - 1
    assert not duo.of("client", "Closed") and not duo.of("server", "Closed")


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("codec", "what"), FAULTS)
def test_a_bad_payload_costs_its_stream_alone(codec: str, what: str, position: str) -> None:
    # THREATS 93
    duo = Tampered(codec, FAULTS[codec, what])
    other = duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    theirs = duo.of("server", "Requested")[0].stream_id
    number = play(duo, position)
    assert duo.replaced == 1
    [failed] = duo.of("client", "Failed")
    assert failed.stream_id == number
    if position in POSITIONS[:2]:
        assert type(failed.error) is Invalid and "the payload is n" in failed.error.message
        assert not [item for item in duo.of("server", "ItemReceived") if b"@" in item.payload.data]
        assert len(duo.of("server", "Requested")) == (1 if position == "request" else 2)
    else:
        assert type(failed.error) is ProtocolError and "the payload is n" in str(failed.error)
        assert duo.of("client", "ItemReceived") == []
    if position not in ("request", "answer"):
        assert duo.of("server", "Canceled")[-1].done
    check_the_session(duo, other, theirs)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize(("codec", "what"), MENDED)
def test_what_the_reference_takes_arrives(codec: str, what: str, position: str) -> None:
    # THREATS 93
    duo = Tampered(codec, MENDED[codec, what])
    other = duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    theirs = duo.of("server", "Requested")[0].stream_id
    play(duo, position)
    assert duo.replaced == 1 and duo.of("client", "Failed") == []
    side = "server" if position in POSITIONS[:2] else "client"
    name = "Requested" if position == "request" else "ItemReceived"
    data = duo.of(side, name)[-1].payload.data
    expected = MENDED[codec, what].replace(b"\\ud83d", b"\\ufffd").replace(b"\\uDE00", b"\\ufffd")
    assert data == expected
    check_the_session(duo, other, theirs)


def test_a_mended_string_can_be_sent_back() -> None:
    duo = Tampered("json", MENDED["json", "a lone surrogate"])
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload(FILL))
    duo.drive()
    request = duo.of("server", "Requested")[0]
    duo.server.send(request.stream_id, Payload(request.payload.data))
    duo.drive()
    assert duo.items("client", number) == ["@" * 294 + "\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize(("codec", "bad"), [("json", b'"seq":-'), ("msgpack", b"\xa3seq\xff")])
def test_an_envelope_that_is_none_still_ends_the_session(codec: str, bad: bytes) -> None:
    class Broken(Duo):
        def _arrive(self, piece: bytes, direction: str) -> None:
            # The first message has the number 0.
            good = b'"seq":0' if codec == "json" else b"\xa3seq\x00"
            super()._arrive(
                piece.replace(good, bad) if self.acceptor is None and direction == "c>s" else piece, direction
            )

    duo = Broken(codec)
    duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    [closed] = duo.of("server", "Closed")
    assert type(closed.error).__mro__[1] is ProtocolError


LIMIT = 40_000


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("codec", ["json", "msgpack"])
def test_a_message_that_is_too_long_costs_its_stream_alone(codec: str, position: str) -> None:
    # THREATS 92
    limits: dict[str, Any] = {"max_frame_bytes": LIMIT, "fragment_bytes": 1_000}
    to_server = position in POSITIONS[:2]
    duo = Duo(codec, {} if to_server else limits, **(limits if to_server else {}))
    other = duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    theirs = duo.of("server", "Requested")[0].stream_id
    number = play_long(duo, position)
    [failed] = duo.of("client", "Failed")
    assert failed.stream_id == number
    assert type(failed.error) is (Invalid if to_server else LimitExceeded)
    side = "server" if to_server else "client"
    assert f"exceeds the {side}'s max_frame_bytes ({LIMIT})" in str(failed.error)
    assert "a message of 1001" in str(failed.error)
    check_the_session(duo, other, theirs)


def play_long(duo: Duo, position: str) -> int:
    global FILL
    short, FILL = FILL, "x" * 100_000
    try:
        return play(duo, position)
    finally:
        FILL = short
