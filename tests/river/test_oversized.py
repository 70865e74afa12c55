"""Messages that a peer rejects as too large. THREATS 92."""

from __future__ import annotations

import pytest

from tests.river.peers import Duo, shaken
from weirpool.errors import Invalid, LimitExceeded, LinkLost, LocalError, SetupRejected
from weirpool.kinds import Kind
from weirpool.river.link import TOO_BIG
from weirpool.wire.framing import framed
from weirpool.wire.river.codec import PREFIX_BYTES

LIMIT = 50_000
LARGE = "x" * 100_000
CODECS = pytest.mark.parametrize("codec", ["json", "msgpack"])


class Refusing(Duo):
    """A client and a server over WebSockets, of which one side closes with 1009 after a message that is too large."""

    def __init__(self, codec: str, direction: str) -> None:
        self.direction = direction
        self.refused = 0
        super().__init__(codec)

    def _bring(self, pieces: list[bytes], direction: str) -> bool:
        for index, piece in enumerate(pieces):
            if direction == self.direction and len(piece) - PREFIX_BYTES > LIMIT:
                super()._bring(pieces[:index], direction)
                self.refused += 1
                sender = self.client if direction == "c>s" else self.server
                sender.link_down(self.now, LinkLost("the peer closed the WebSocket with 1009: ''", TOO_BIG))
                return False
        return super()._bring(pieces, direction)

    def reconnect(self) -> None:
        while not self.linked:
            self.link()


def began(codec: str, direction: str) -> tuple[Refusing, int, int]:
    """Return both sides with an open call, and its numbers on the client and on the server."""
    duo = Refusing(codec, direction)
    other = duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    return duo, other, duo.of("server", "Requested")[0].stream_id


def answered(duo: Refusing, other: int, theirs: int) -> None:
    """Check that the call is answered in the same session."""
    duo.server.send(theirs, duo.payload("fine"))
    duo.drive()
    assert duo.items("client", other) == ["fine"]
    assert not duo.of("client", "Closed") and not duo.of("server", "Closed")
    assert len(duo.sessions) == 1


@CODECS
def test_only_a_request_that_is_too_large_fails(codec: str) -> None:
    duo, other, theirs = began(codec, "c>s")
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE))
    behind = duo.client.open(Kind.CALL, "demo.add", duo.payload("small"))
    duo.drive()
    duo.reconnect()
    [failed] = duo.of("client", "Failed")
    assert (failed.stream_id, type(failed.error)) == (number, Invalid)
    assert "SERVER rejected a message of 1001" in str(failed.error) and "1009" in str(failed.error)
    assert duo.refused == 1 and duo.links == 2
    # Later messages have arrived, and this one has not.
    assert len(duo.of("server", "Requested")) == 2
    duo.server.send(duo.of("server", "Requested")[1].stream_id, duo.payload("too"))
    answered(duo, other, theirs)
    assert duo.items("client", behind) == ["too"]
    assert duo.client.sequence.unacked_bytes < LIMIT
    # The limit is known now.
    with pytest.raises(LocalError, match="SERVER rejected one of"):
        duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE + "more"))
    duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE[:1_000]))
    duo.drive()
    assert len(duo.of("server", "Requested")) == 3


@CODECS
def test_item_too_large_for_the_server_cancels_its_stream(codec: str) -> None:
    duo, other, theirs = began(codec, "c>s")
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 5)
    duo.drive()
    duo.client.send(number, duo.payload(LARGE))
    duo.drive()
    duo.reconnect()
    assert [event.stream_id for event in duo.of("client", "Failed")] == [number]
    [canceled] = duo.of("server", "Canceled")
    assert canceled.stream_id == duo.of("server", "Requested")[1].stream_id
    answered(duo, other, theirs)


@CODECS
def test_response_that_is_too_large_fails_its_call(codec: str) -> None:
    duo, other, theirs = began(codec, "s>c")
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload(2))
    duo.drive()
    duo.server.send(duo.of("server", "Requested")[1].stream_id, duo.payload(LARGE))
    duo.drive()
    duo.reconnect()
    [failed] = duo.of("client", "Failed")
    assert failed.stream_id == number and "rejected a message of 1001" in str(failed.error)
    answered(duo, other, theirs)


@CODECS
def test_item_too_large_for_the_client_ends_the_handler(codec: str) -> None:
    duo, other, theirs = began(codec, "s>c")
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 5)
    duo.drive()
    stream = duo.of("server", "Requested")[1].stream_id
    for value in ("first", LARGE, "late"):
        duo.server.send(stream, duo.payload(value))
    duo.drive()
    duo.reconnect()
    assert duo.items("client", number) == ["first"]
    assert [event.stream_id for event in duo.of("client", "Failed")] == [number]
    assert [event.stream_id for event in duo.of("server", "Canceled")] == [stream]
    answered(duo, other, theirs)


def test_several_large_messages_fail_one_after_another() -> None:
    duo, other, theirs = began("json", "c>s")
    numbers = [duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE[: 60_000 + 10_000 * n])) for n in range(4)]
    numbers.append(duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE[:90_000])))
    duo.drive()
    duo.reconnect()
    assert sorted(event.stream_id for event in duo.of("client", "Failed")) == numbers
    answered(duo, other, theirs)


def test_close_without_a_large_message_is_a_lost_link() -> None:
    duo, other, theirs = began("json", "c>s")
    duo.client.open(Kind.CALL, "demo.add", duo.payload("small"))
    duo.client.link_down(duo.now, LinkLost("closed", TOO_BIG))
    duo.linked = False
    duo.server.link_down(duo.now, None)
    duo.reconnect()
    assert duo.of("client", "Failed") == [] and len(duo.of("server", "Requested")) == 2
    answered(duo, other, theirs)


def test_handshake_that_is_too_large_ends_the_session() -> None:
    class Silent(Duo):
        def _arrive(self, piece: bytes, direction: str) -> None:
            pass

    duo = Silent()
    duo.client.link_down(duo.now, LinkLost("closed", TOO_BIG))
    duo.listen()
    [closed] = duo.of("client", "Closed")
    assert isinstance(closed.error, SetupRejected) and "1009" in str(closed.error)


def test_link_that_exceeds_a_limit_ends_the_session() -> None:
    duo, _, _ = began("json", "c>s")
    error = LimitExceeded("a message has at most 5 bytes here")
    duo.client.link_down(duo.now, error)
    duo.listen()
    assert duo.of("client", "Closed")[0].error is error
    assert "at most 5 bytes" in str(duo.of("client", "Failed")[0].error)


@CODECS
def test_large_message_of_an_unknown_stream_ends_the_session(codec: str) -> None:
    raw = shaken(codec)
    junk = b"{" + bytes(20_000_000)
    raw.feed(framed(junk))
    [closed] = [event for event in raw.events if type(event).__name__ == "Closed"]
    assert isinstance(closed.error, LimitExceeded)
    assert "20000001 bytes" in str(closed.error) and "max_frame_bytes (16777215)" in str(closed.error)


def test_own_limit_applies_to_sent_messages() -> None:
    duo = Duo("json", {"max_frame_bytes": 5_000, "fragment_bytes": 1_000})
    with pytest.raises(LocalError, match=r"exceeds the client's max_frame_bytes \(5000\)"):
        duo.client.open(Kind.CALL, "demo.add", duo.payload(LARGE))


def test_response_above_the_servers_limit_fails_its_call() -> None:
    duo = Duo("json", {}, max_frame_bytes=5_000, fragment_bytes=1_000)
    number = duo.client.open(Kind.CALL, "demo.add", duo.payload(1))
    duo.drive()
    stream = duo.of("server", "Requested")[0].stream_id
    with pytest.raises(LocalError) as failed:
        duo.server.send(stream, duo.payload(LARGE))
    duo.server.fail(stream, failed.value)
    duo.drive()
    [event] = duo.of("client", "Failed")
    assert event.stream_id == number and event.error.code == "UNCAUGHT_ERROR"
    assert "exceeds the server's max_frame_bytes (5000)" in event.error.message
