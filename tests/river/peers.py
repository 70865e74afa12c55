"""A client's and a server's session, with links and a clock that the test controls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from weirpool.errors import ProtocolError
from weirpool.events import Event
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.connect import new_client
from weirpool.river.identity import Identity
from weirpool.river.session import RiverSession
from weirpool.river.sessions import Sessions
from weirpool.settings import Settings
from weirpool.wire.framing import deframer, framed
from weirpool.wire.river.codec import ACK, CODECS, PREFIX_BYTES
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value, encode_value

VECTORS = Path(__file__).parent.parent / "vectors" / "river"
RANDOM = bytes(range(16))
KINDS = {
    "demo.add": Kind.CALL,
    "demo.count": Kind.STREAM,
    "demo.sum": Kind.UPLOAD,
    "demo.echo": Kind.CHANNEL,
}


def messages(data: Iterable[bytes], codec: str = "json") -> list[Message]:
    """Return the messages in some output."""
    return [CODECS[codec].decode(piece[PREFIX_BYTES:]) for piece in split(data)]


def body_of(message: Message, codec: str = "json") -> Any:
    """Return the value of a message's payload."""
    return decode_value(message.payload, codec)


def is_greeting(message: Message) -> bool:
    """Return whether this is the heartbeat that a server sends after its first response."""
    return message.control_flags == ACK and message.seq == 0


class Raw:
    """A hand-written client, and a server's session.

    Attributes:
        session: The server's session; None before the first handshake.
        sent: The messages that the server has sent.
        farewell: The bytes that it sent with a rejection.

    """

    def __init__(self, codec: str = "json", settings: Settings | None = None, server: str = "SERVER") -> None:
        self.codec = codec
        self.settings = settings or Settings()
        self.sessions: Sessions[RiverSession] = Sessions(self.settings.all_sessions)
        self.identity = Identity(codec=codec, server=server)
        self.now = 100.0
        self.session: Any = None
        self.acceptor: Any = None
        self.seq = 0
        self.events: list[Event] = []
        self.link()

    def link(self) -> None:
        """Open another link."""
        self.acceptor = RiverDetector(self.settings, self.identity, self.sessions)
        self.acceptor.link_up(self.now)
        self.session = None

    def feed(self, data: bytes) -> list[Message]:
        """Deliver bytes with their length prefix; return the server's messages."""
        if self.session is None:
            try:
                self.session = self.acceptor.receive(data, self.now)
            except ProtocolError:
                return messages([self.acceptor.farewell], self.codec)
            if self.session is None:
                return []
            self.session.ask_kinds(KINDS.get)
        else:
            self.session.receive(data, self.now)
        return self.said()

    def said(self) -> list[Message]:
        """Return the server's new messages."""
        self.events += self.session.take_events()
        return messages(self.session.take_output(), self.codec)

    def say(self, stream: str, flags: int, payload: object, **fields: object) -> list[Message]:
        """Send a message, with the next number unless `seq` is given; return the server's messages."""
        fields.setdefault("seq", self.seq)
        self.seq = int(fields["seq"]) + 1  # type: ignore[call-overload]
        return self.feed(framed(self.encode({"streamId": stream, "controlFlags": flags, "payload": payload, **fields})))

    def encode(self, fields: dict[str, object]) -> bytes:
        # Messages after the handshake acknowledge the server's greeting.
        ack = int(self.session is not None)
        whole = {"id": "m", "from": "client-1", "to": "SERVER", "seq": 0, "ack": ack, **fields}
        return encode_value(whole, self.codec)

    def shake(
        self, session: str = "session-1", expected: object = 0, sent: object = 0, **more: object
    ) -> list[Message]:
        """Send a handshake; return the server's messages, without its greeting."""
        payload = {
            "type": "HANDSHAKE_REQ",
            "protocolVersion": "v2.0",
            "sessionId": session,
            "expectedSessionState": {"nextExpectedSeq": expected, "nextSentSeq": sent},
            **more,
        }
        fields: dict[str, object] = {"streamId": "hs", "controlFlags": 0, "payload": payload}
        return [message for message in self.feed(framed(self.encode(fields))) if not is_greeting(message)]


def shaken(codec: str) -> Raw:
    """Return a hand-written client whose handshake was accepted."""
    raw = Raw(codec)
    raw.shake()
    raw.events.clear()
    return raw


class Duo:
    """A client's and a server's session.

    Attributes:
        client, server: The sessions; the server's is None before the first handshake.
        client_events, server_events: Their events, in order.
        lose: Called with each message and its direction. "before" loses it and later ones, with the link;
            "after" delivers it and loses later ones; "twice" delivers it twice; "" delivers it.

    """

    def __init__(self, codec: str = "json", client: dict[str, Any] | None = None, **server: Any) -> None:
        self.codec = codec
        self.now = 1000.0
        self.server_settings = Settings(**server)
        self.sessions: Sessions[RiverSession] = Sessions(100)
        self.client = new_client(
            Settings(**(server if client is None else client)), Identity(codec, "client-1"), b"", RANDOM
        )
        self.server: Any = None
        self.acceptor: RiverDetector | None = None
        self.client_events: list[Any] = []
        self.server_events: list[Any] = []
        self.lose: Callable[[Message, str], str] = lambda message, direction: ""
        self.links = 0
        self.linked = False
        self.link()

    def link(self) -> None:
        """Open a link and call `drive`."""
        self.links += 1
        self.linked = True
        self.acceptor = RiverDetector(self.server_settings, Identity(self.codec, server="SERVER"), self.sessions)
        self.acceptor.link_up(self.now)
        self.client.link_up(self.now)
        self.drive()

    def cut(self) -> None:
        """Cut the link. Messages in transit are lost."""
        self.linked = False
        for session in (self.client, self.server):
            if session is not None:
                session.link_down(self.now, None)
                session.take_output()
        self.listen()

    def listen(self) -> None:
        self.client_events += self.client.take_events()
        if self.server is not None:
            self.server_events += self.server.take_events()

    def drive(self) -> None:
        """Move messages and events until nothing moves, or the link is lost."""
        moved = True
        while moved and self.linked:
            self.listen()
            there = list(split(self.client.take_output()))
            back = list(split(self.server.take_output())) if self.server is not None else []
            moved = bool(there or back)
            if not (self._bring(there, "c>s") and self._bring(back, "s>c")):
                self.cut()
        self.listen()

    def _bring(self, pieces: list[bytes], direction: str) -> bool:
        for piece in pieces:
            trouble = self.lose(CODECS[self.codec].decode(piece[4:]), direction)
            if trouble == "before":
                return False
            for _ in range(2 if trouble == "twice" else 1):
                self._arrive(piece, direction)
            if trouble == "after":
                return False
        return True

    def _arrive(self, piece: bytes, direction: str) -> None:
        if direction == "s>c":
            self.client.receive(piece, self.now)
        elif self.acceptor is None:
            self.server.receive(piece, self.now)
        else:
            self.server = self.acceptor.receive(piece, self.now)
            self.server.ask_kinds(KINDS.get)
            self.acceptor = None

    def advance(self, seconds: float) -> None:
        """Advance the time and run all timers in between."""
        end = self.now + seconds
        while True:
            sessions = [session for session in (self.client, self.server) if session is not None]
            due = [when for session in sessions if (when := session.next_timer()) is not None]
            if not due or min(due) > end:
                break
            self.now = max(self.now, min(due))
            for session in sessions:
                session.handle_timer(self.now)
            self.drive()
        self.now = end

    def of(self, side: str, name: str) -> list[Any]:
        """Return a side's events of that class."""
        return [event for event in getattr(self, f"{side}_events") if type(event).__name__ == name]

    def items(self, side: str, number: int) -> list[Any]:
        """Return the values of all items that a side received on a stream."""
        return [
            decode_value(event.payload.data, self.codec)
            for event in getattr(self, f"{side}_events")
            if type(event).__name__ == "ItemReceived" and event.stream_id == number
        ]

    def payload(self, value: object) -> Payload:
        """Return a payload of that value."""
        return Payload(encode_value(value, self.codec))


def client(settings: Settings | None = None) -> RiverSession:
    """Return a client that waits for the response to its handshake."""
    session = new_client(settings or Settings(), Identity("json", "client-1"), b'{"token": 1}', RANDOM)
    session.link_up(0.0)
    return session


def answer(session: RiverSession, status: object, **fields: object) -> list[object]:
    """Answer the handshake of `session`; return its events."""
    message = {"id": "m", "from": "SERVER", "to": "client-1", "seq": 0, "ack": 0, "streamId": "x", "controlFlags": 0}
    body = {"payload": {"type": "HANDSHAKE_RESP", "status": status}}
    session.receive(framed(encode_value(message | body | fields, "json")), 0.0)
    return list(session.take_events())


def split(output: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the messages in some output, each with its length prefix."""
    found = deframer(1 << 24)
    for piece in output:
        found.feed(piece)
    while found.next():
        yield framed(found.buffer[found.start : found.end])


def transcripts() -> list[str]:
    """Return the names of the recorded conversations."""
    return sorted(path.stem for path in VECTORS.glob("*.json"))


def transcript(name: str) -> Any:
    """Return a recorded conversation."""
    return json.loads((VECTORS / f"{name}.json").read_text())


def recorded(event: Any) -> bytes:
    """Return the bytes of a message in a recorded conversation."""
    return bytes.fromhex(event["hex"]) if "hex" in event else event["utf8"].encode()


__all__ = [
    "KINDS",
    "RANDOM",
    "Duo",
    "Raw",
    "answer",
    "body_of",
    "client",
    "is_greeting",
    "messages",
    "msgspec",
    "recorded",
    "shaken",
    "split",
    "transcript",
    "transcripts",
]
