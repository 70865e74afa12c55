"""Conversations of the reference implementation, recorded on the wire and replayed with our client and our server.

The other side's messages are delivered as recorded. The verbs of our side are derived from the reference's messages,
and our messages must equal these, except for the ids of messages and the texts of errors.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.river.greeting import Greeting
from tests.river.peers import messages, recorded, transcript, transcripts
from weirpool.errors import ApplicationError, Canceled, Invalid, ProtocolError, SetupRejected
from weirpool.kinds import Kind
from weirpool.payload import Payload
from weirpool.river.accept import RiverDetector
from weirpool.river.identity import Identity
from weirpool.river.session import RiverSession
from weirpool.river.sessions import Sessions
from weirpool.river.states import CLOSED, DOWN
from weirpool.settings import Settings
from weirpool.wire.framing import framed
from weirpool.wire.river.codec import CODECS, PREFIX_BYTES
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value, encode_value

CALLS = ("add", "boom", "selfCancel", "slow", "bytes")
KINDS = {f"demo.{name}": Kind.CALL for name in CALLS} | {
    "demo.sum": Kind.UPLOAD,
    "demo.count": Kind.STREAM,
    "demo.echo": Kind.CHANNEL,
}
SETTINGS = Settings(heartbeats_until_dead=1_000_000, river_v1_1=True, session_grace=1e6)
TOKENS = {"bad": "REJECTED_BY_CUSTOM_HANDLER", "old": "REJECTED_UNSUPPORTED_CLIENT"}

BY_HAND = {name for name in transcripts() if "-raw-" in name}
"""Conversations with a hand-written client that violates the protocol."""
NOT_OURS = {
    "43-raw-text-frame.msgpack": "WebSocket's own tests: what is no binary frame never comes to a session",
    "45-raw-wrong-to.msgpack": "the reference lets a client in that calls it by another name; we refuse it",
    "48-raw-stream-errors.msgpack": "a subscription goes on after its client's ControlClose; ours ends and answers",
}
"""Conversations that our server does not replay; docs/deviations.md has the reasons."""
ACKS_LATER = {"22-transparent-reconnect.msgpack"}
"""Conversations in which the reference acknowledged single messages that arrived together."""


def comparable(message: Message, codec: str) -> dict[str, Any]:
    """Return the parts of a message that must be equal."""
    body = decode_value(message.payload, codec)
    if isinstance(body, dict):
        if body.get("ok") is False:
            body = {"code": body["payload"]["code"], "extras": body["payload"].get("extras")}
            if body["code"] == "INVALID_REQUEST":
                del body["extras"]
        elif body.get("type") == "HANDSHAKE_RESP":
            body["status"].pop("reason", None)
    control = isinstance(body, dict) and str(body.get("type", "")).startswith("HANDSHAKE")
    return {
        "from": message.from_,
        "to": message.to,
        "seq": message.seq,
        "ack": message.ack,
        # The id of a handshake's stream has no meaning.
        "stream": "" if control else message.stream_id,
        "flags": message.control_flags,
        "payload": body,
        "service": message.service_name,
        "procedure": message.procedure_name,
    }


class Replay:
    """One side of a recorded conversation, replaced by ours.

    Attributes:
        session: The session of the newest link.
        said: Its messages that were not checked yet.

        greetings: How many messages our side has sent that the reference does not send.

    """

    greetings = 0

    def __init__(self, name: str, ours: str) -> None:
        self.record = transcript(name)
        self.codec = self.record["codec"]
        self.ours = ours
        self.later = name in ACKS_LATER and ours == "s>c"
        self.session: Any = None
        self.said: list[Message] = []
        self.numbers: dict[str, int] = {}
        self.kinds: dict[str, Kind | None] = {}
        self.now = 0.0
        self.events: list[Any] = []
        self.link = -1

    def run(self) -> None:
        """Replay the conversation."""
        for index, event in enumerate(self.record["events"]):
            if event["dir"] == "app":
                self.happened(event)
            elif event["dir"] == "--" and "ws open" in event["note"]:
                self.link = event["conn"]
                self.linked()
            elif event["kind"] == "ws-close":
                if event["dir"] == "s>c" and event["conn"] == self.link:
                    self.closed(event, self.record["events"][index:])
            elif event["dir"] == self.ours:
                self.expect(CODECS[self.codec].decode(recorded(event)))
            elif event["dir"] in ("c>s", "s>c") and event.get("note") != "BLACKHOLED":
                self.feed(framed(recorded(event)))
        assert self.said == []

    def expect(self, message: Message) -> None:
        """Check that our side sends `message`, on its own or by a verb."""
        self.look()
        if not self.said:
            self.act(message)
            self.look()
        assert self.said, f"nothing was said where the reference said {comparable(message, self.codec)}"
        said, due = comparable(self.said.pop(0), self.codec), comparable(message, self.codec)
        if self.later:
            assert said.pop("ack") >= due.pop("ack")
        assert said == due

    def look(self) -> None:
        """Collect our side's messages."""
        if self.session is not None:
            self.said += messages(self.session.take_output(), self.codec)
            self.events += self.session.take_events()

    def happened(self, event: Any) -> None:
        """Record an event of the reference's user."""

    def linked(self) -> None:
        raise NotImplementedError

    def feed(self, data: bytes) -> None:
        raise NotImplementedError

    def closed(self, event: Any, rest: list[Any]) -> None:
        """Lose the link. Messages of the meantime are recorded on the next one."""
        if self.session is None:
            return
        self.look()
        self.session.link_down(self.now, None)
        for later in rest:
            if later["dir"] == self.ours and later["kind"] == "frame" and later["conn"] > event["conn"]:
                message = CODECS[self.codec].decode(recorded(later))
                made_now = (
                    message.ack == self.session.sequence.ack
                    and message.seq + self.greetings == self.session.sequence.seq
                )
                body = decode_value(message.payload, self.codec)
                if made_now and body.get("type") not in ("ACK", "HANDSHAKE_REQ", "HANDSHAKE_RESP"):
                    self.act(message)
        self.session.take_output()

    def act(self, message: Message) -> None:
        raise NotImplementedError

    def payload(self, value: object) -> Payload:
        return Payload(encode_value(value, self.codec))


class Server(Replay):
    """Our server."""

    greetings = 1

    def __init__(self, name: str) -> None:
        super().__init__(name, "s>c")
        self.validates = "50-" in name
        self.greeting = Greeting(self.codec)
        self.restart()

    def restart(self) -> None:
        self.sessions: Sessions[RiverSession] = Sessions(10)

    def happened(self, event: Any) -> None:
        if event["kind"] == "server.restarted":
            self.restart()

    def linked(self) -> None:
        self.look()
        self.session = None
        self.acceptor = RiverDetector(SETTINGS, Identity(self.codec, server="SERVER"), self.sessions)
        self.acceptor.link_up(self.now)

    def look(self) -> None:
        before = len(self.said)
        super().look()
        counted = [self.greeting.from_server(message) for message in self.said[before:]]
        self.said[before:] = [message for message in counted if message is not None]

    def feed(self, data: bytes) -> None:
        data = framed(self.greeting.to_server(data[PREFIX_BYTES:]))
        if self.session is not None:
            self.session.receive(data, self.now)
        else:
            try:
                self.session = self.acceptor.receive(data, self.now)
            except ProtocolError:
                self.said += messages([self.acceptor.farewell], self.codec)
                return
            self.session.ask_kinds(self.kind_of)
            self.validate()
        for event in self.session.take_events():
            self.events.append(event)
            if type(event).__name__ == "Requested" and event.kind.sends_items and not event.done:
                self.session.request(event.stream_id, 100)

    def kind_of(self, route: str) -> Kind | None:
        return KINDS.get(route)

    def validate(self) -> None:
        """Do the same as the reference's validator."""
        if not self.validates:
            return
        said = self.session.take_events()[0].payload.data
        token = decode_value(said, self.codec)["token"] if said else None
        if token != "good":
            code = "MALFORMED_HANDSHAKE_META"
            if isinstance(token, str):
                code = TOKENS.get(token, "REJECTED_BY_CUSTOM_HANDLER")
            self.session.take_output()
            self.session.close(self.now, SetupRejected("refused", code))

    def closed(self, event: Any, rest: list[Any]) -> None:
        if self.session is not None and "code 1000" in event["note"] and "BLACKHOLED" not in str(rest):
            by_rule = self.session._link.state == DOWN or self.session._state == CLOSED
            assert by_rule or self.record["scenario"][:2] in ("24", "25", "28", "29", "56")
        super().closed(event, rest)

    def act(self, message: Message) -> None:
        session = self.session
        stream = session._streams.named(message.stream_id)
        body = decode_value(message.payload, self.codec)
        if message.control_flags == 1:
            self.now = session.next_timer()
            session.handle_timer(self.now)
            return
        if body.get("type") == "REHANDSHAKE_REQ":
            session.rehandshake(self.now)
            return
        assert stream is not None
        if body.get("type") == "CLOSE":
            session.complete(stream.number)
        elif body["ok"]:
            session.send(stream.number, self.payload(body["payload"]), message.control_flags != 0)
        else:
            code, text = body["payload"]["code"], body["payload"]["message"]
            errors: dict[str, Exception] = {
                "UNCAUGHT_ERROR": KeyError("a secret"),
                "CANCEL": Canceled(message=text),
                "INVALID_REQUEST": Invalid(message=text),
            }
            extras = body["payload"].get("extras")
            data = None if extras is None else encode_value(extras, self.codec)
            session.fail(stream.number, errors.get(code) or ApplicationError(code, text, data))
        if message.control_flags & 8:
            # The handler has ended and reads no more items.
            session.cancel(stream.number)


class Client(Replay):
    """Our client."""

    def __init__(self, name: str) -> None:
        super().__init__(name, "c>s")

    def linked(self) -> None:
        self.look()
        first = next(
            (
                CODECS[self.codec].decode(recorded(event))
                for event in self.record["events"]
                if event["conn"] == self.link and event["dir"] == "c>s" and event["kind"] == "frame"
            ),
            None,
        )
        if first is None:
            self.session = None
            return
        asked = decode_value(first.payload, self.codec)
        if self.session is None or self.session.session_id != asked["sessionId"]:
            metadata = encode_value(asked["metadata"], self.codec) if "metadata" in asked else b""
            self.session = _Named(
                SETTINGS, self.codec, True, first.from_, first.to, asked["sessionId"], "ours-", metadata
            )
            self.numbers = {}
        self.session.link_up(self.now)

    def feed(self, data: bytes) -> None:
        if self.session is not None:
            self.session.receive(data, self.now)

    def act(self, message: Message) -> None:
        session = self.session
        name = message.stream_id
        body = decode_value(message.payload, self.codec)
        flags = message.control_flags
        if flags & 2:
            route = f"{message.service_name}.{message.procedure_name}"
            # A half-open request may also be an upload, which begins in the same way.
            kind = (KINDS.get(route) or Kind.CALL) if flags & 8 else Kind.CHANNEL
            session.name = name
            self.numbers[name] = session.open(kind, route, self.payload(body), 1000)
        elif flags & 4:
            session.cancel(self.numbers[name])
        elif body.get("type") == "CLOSE":
            session.complete(self.numbers[name])
        else:
            session.send(self.numbers[name], self.payload(body))


class _Named(RiverSession):
    """A client whose streams have the names that were recorded."""

    name = ""

    def _new_id(self) -> str:
        name, self.name = self.name, ""
        return name or super()._new_id()


@pytest.mark.parametrize("name", [name for name in transcripts() if name not in NOT_OURS])
def test_our_server_answers_as_the_reference_does(name: str) -> None:
    Server(name).run()


@pytest.mark.parametrize("name", sorted(set(transcripts()) - BY_HAND))
def test_our_client_asks_as_the_reference_does(name: str) -> None:
    Client(name).run()
