"""Handshakes of clients that resume, of new clients, and of clients that are rejected."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

import weirpool
from tests.river.peers import Duo, Raw, body_of, is_greeting
from tests.waiting import until
from weirpool import Payload, Reconnect, ResumeRejected, Service, Settings, Setup, SetupRejected, handshake
from weirpool.events import Closed, Requested
from weirpool.kinds import Kind
from weirpool.wire.river.codec import CODECS
from weirpool.wire.river.message import Message
from weirpool.wire.river.values import decode_value, encode_value

ADD = {"serviceName": "demo", "procedureName": "add"}
CODES = ["json", "msgpack"]


def answered(codec: str = "json") -> Raw:
    """Return a client whose server expects 2, has sent 4 with its greeting, and keeps those from 2 on."""
    raw = Raw(codec)
    raw.shake()
    raw.say("a", 10, {}, **ADD)
    raw.session.fail(1, KeyError())
    raw.say("b", 10, {}, ack=2, **ADD)
    for _ in range(2):
        raw.session._outbound.send_message(raw.session._codec.encoded("more"), 0, raw.session._codec.null)
    raw.said()
    sequence = raw.session.sequence
    assert (sequence.ack, sequence.first, sequence.seq) == (2, 2, 4)
    return raw


@pytest.mark.parametrize("codec", CODES)
@pytest.mark.parametrize(("expected", "sent"), list(itertools.product(range(7), range(5))))
def test_every_state_that_a_client_may_come_back_with(codec: str, expected: int, sent: int) -> None:
    raw = answered(codec)
    session = raw.session
    raw.link()
    answer, *again = raw.shake(expected=expected, sent=sent)
    status = body_of(answer, codec)["status"]
    # The numbers of one side are ahead of what the other side has sent.
    if sent > 2 or not 2 <= expected <= 4:
        assert status["code"] == "SESSION_STATE_MISMATCH" and again == [] and raw.session is None
        # The session waits for a matching client.
        assert len(raw.sessions) == 1
        raw.link()
        answer, *again = raw.shake(expected=2, sent=2)
        status = body_of(answer, codec)["status"]
    assert status == {"ok": True, "sessionId": "session-1"} and raw.session is session
    # All unacknowledged messages are sent again; the client drops those that it has.
    assert [message.seq for message in again] == [2, 3]


@pytest.mark.parametrize(("expected", "sent"), list(itertools.product(range(3), range(3))))
def test_a_session_that_nobody_knows_begins_at_nothing(expected: int, sent: int) -> None:
    raw = Raw()
    (answer,) = raw.shake(expected=expected, sent=sent)
    status = body_of(answer)["status"]
    assert status["ok"] is (expected == sent == 0)
    assert status.get("code", "SESSION_STATE_MISMATCH") == "SESSION_STATE_MISMATCH"
    assert len(raw.sessions) == int(status["ok"])


@pytest.mark.parametrize("codec", CODES)
@pytest.mark.parametrize(("there", "back"), list(itertools.product(range(4), range(4))))
def test_a_client_says_where_it_would_go_on(codec: str, there: int, back: int) -> None:
    """Both sides have sent three messages, of which the server received `there` and the client `back`.

    Before that, each side has sent a heartbeat.
    """
    duo = Duo(codec, heartbeat_interval=100.0)
    number = duo.client.open(Kind.CHANNEL, "demo.echo", duo.payload({}), 10)
    duo.drive()

    def at_most(direction: str, most: int) -> None:
        """Deliver this many messages and lose the others."""
        source = duo.client if direction == "c>s" else duo.server
        pieces = list(source.take_output())
        stream = b"".join(pieces)
        for _ in range(most):
            size = 4 + int.from_bytes(stream[:4], "big")
            (duo.server if direction == "c>s" else duo.client).receive(stream[:size], duo.now)
            stream = stream[size:]

    for item in range(3):
        duo.client.send(number, duo.payload(item))
        duo.server.send(1, duo.payload(item))
    duo.server.request(1, 10)
    at_most("c>s", there)
    at_most("s>c", back)
    assert (duo.server.sequence.ack, duo.client.sequence.ack) == (2 + there, 1 + back)
    duo.cut()
    duo.client.link_up(duo.now)
    (shake,) = [body_of(each, codec) for each in _messages(duo)]
    assert shake["expectedSessionState"] == {"nextExpectedSeq": 1 + back, "nextSentSeq": duo.client.sequence.first}
    assert duo.client.sequence.first <= 2 + there
    duo.cut()
    duo.link()
    assert duo.linked and not duo.of("client", "Closed") and not duo.of("server", "Closed")
    assert duo.items("server", 1) == duo.items("client", number) == [0, 1, 2]


def _messages(duo: Duo) -> list[Message]:
    data = b"".join(duo.client.take_output())
    found = []
    while data:
        size = int.from_bytes(data[:4], "big")
        found.append(CODECS[duo.codec].decode(data[4 : 4 + size]))
        data = data[4 + size :]
    return found


# Rejected clients.


class Token(msgspec.Struct):
    token: str


class Hand:
    """A hand-written client on a real socket."""

    def __init__(self, port: int, name: str) -> None:
        self.port = port
        self.name = name

    async def connect(self) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)

    def say(self, stream: str, flags: int, payload: object, seq: int = 0, **fields: object) -> None:
        # Messages after the handshake acknowledge the server's greeting.
        ack = int(stream != "hs")
        whole = {"id": "m", "from": self.name, "to": "S", "seq": seq, "ack": ack, "streamId": stream}
        data = encode_value(whole | {"controlFlags": flags, "payload": payload} | fields, "json")
        self.writer.write(len(data).to_bytes(4, "big") + data)

    def shake(self, session: str, **metadata: object) -> None:
        state = {"nextExpectedSeq": 0, "nextSentSeq": 0}
        payload = {"type": "HANDSHAKE_REQ", "protocolVersion": "v2.0", "sessionId": session, **metadata}
        self.say("hs", 0, payload | {"expectedSessionState": state})

    async def heard(self) -> Any:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        message = CODECS["json"].decode(await self.reader.readexactly(size))
        return await self.heard() if is_greeting(message) else decode_value(message.payload, "json")

    async def close(self) -> None:
        self.writer.close()
        await asyncio.wait([asyncio.ensure_future(self.writer.wait_closed())])


def service(seen: list[bytes]) -> Service:
    made = Service()

    @made.call("demo.add")
    def add(request: Payload) -> Payload:
        seen.append(request.data)
        return request

    return made


def port_of(server: weirpool.Server) -> int:
    return int(server.urls[0].partition("?")[0].rpartition(":")[2])


async def test_what_is_said_before_the_validator_has_ended_is_not_handled() -> None:
    seen: list[bytes] = []
    asked, decided = asyncio.Event(), asyncio.Event()

    async def decide(token: Token, setup: Setup) -> None:
        if token.token == "good":
            return
        asked.set()
        await decided.wait()
        raise SetupRejected("no")

    url = "river+tcp://127.0.0.1:0"
    async with weirpool.serve(service(seen), url, acceptor=handshake(Token, decide)) as server:
        client = f"river+tcp://127.0.0.1:{port_of(server)}?client=victim"
        async with weirpool.connect(client, setup=b'{"token":"good"}', confirm=True) as peer:
            assert (await peer.call("demo.add", b"0")).data == b"0"
            evil = Hand(port_of(server), "victim")
            await evil.connect()
            evil.shake("guess", metadata={"token": "bad"})
            await asked.wait()
            for seq in range(100):
                evil.say(f"s{seq}", 10, {"evil": seq}, seq, **ADD)
            await evil.writer.drain()
            # It is not handled, and does not end the session of the client whose id it uses.
            assert (await peer.call("demo.add", b"1")).data == b"1"
            decided.set()
            assert (await evil.heard())["status"]["code"] == "REJECTED_BY_CUSTOM_HANDLER"
            assert await evil.reader.read() == b""
            await evil.close()
            assert (await peer.call("demo.add", b"2")).data == b"2"
    assert seen == [b"0", b"1", b"2"]


@pytest.mark.parametrize("last", ["one", "two"])
async def test_a_client_that_comes_back_while_the_validator_thinks_is_asked_about_what_it_said_last(last: str) -> None:
    seen: list[str] = []
    decided = asyncio.Event()

    async def decide(token: Token, setup: Setup) -> str:
        seen.append(token.token)
        await decided.wait()
        return token.token

    settings = Settings(heartbeat_interval=60.0)
    acceptor = handshake(Token, decide)
    async with weirpool.serve(service([]), "river+tcp://127.0.0.1:0", acceptor=acceptor, settings=settings) as server:
        first, second = Hand(port_of(server), "c"), Hand(port_of(server), "c")
        await first.connect()
        first.shake("s", metadata={"token": "one"})
        await until(lambda: seen == ["one"])
        await second.connect()
        second.shake("s", metadata={"token": last})
        # It replaces the first link, on which nothing was sent.
        assert await first.reader.read() == b""
        decided.set()
        assert (await second.heard())["status"]["ok"]
        # It is sent only one request.
        assert seen == (["one"] if last == "one" else ["one", "two"])
        second.say("x", 10, {}, **ADD)
        assert (await second.heard()) == {"ok": True, "payload": {}}
        await first.close()
        await second.close()


async def test_connections_of_one_address_have_a_limit() -> None:
    # THREATS 94
    settings = Settings(max_connections_per_address=2, session_grace=60.0, heartbeat_interval=60.0)
    async with weirpool.serve(service([]), "river+tcp://127.0.0.1:0", settings=settings) as server:
        hands = [Hand(port_of(server), f"c{number}") for number in range(3)]
        for hand in hands[:2]:
            await hand.connect()
            hand.shake(f"session {hand.name}")
            assert (await hand.heard())["status"]["ok"]
        await hands[2].connect()
        hands[2].shake("session c2")
        status = (await hands[2].heard())["status"]
        assert status["code"] == "SESSION_STATE_MISMATCH" and "max_connections_per_address (2)" in status["reason"]
        assert await hands[2].reader.read() == b""
        assert server.connections == 2
        # A session that waits for its client does not count.
        await hands[0].close()
        await hands[2].close()
        await until(lambda: any(driver.link is None for driver in server._drivers.values()))
        await hands[2].connect()
        hands[2].shake("session c2")
        assert (await hands[2].heard())["status"]["ok"]
        assert server.connections == 3
        for hand in hands[1:]:
            await hand.close()


def test_a_refused_handshake_costs_no_session() -> None:
    raw = Raw(settings=Settings(max_sessions=1))
    for _ in range(10):
        raw.link()
        assert body_of(raw.shake(protocolVersion="v3")[0])["status"]["ok"] is False
        raw.link()
        raw.shake()
        raw.session.close(raw.now, SetupRejected("no", "REJECTED_UNSUPPORTED_CLIENT"))
        raw.said()
        assert isinstance(raw.events[-1], Closed) and len(raw.sessions) == 0
    assert not any(isinstance(event, Requested) for event in raw.events)


# Clients that are rejected.


@asynccontextmanager
async def refusing(statuses: Iterator[dict[str, object]]) -> AsyncIterator[tuple[str, list[dict[str, Any]]]]:
    """Serve by hand: answer each handshake with the next status; yield the URL and the handshakes."""
    shakes: list[dict[str, Any]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            message = CODECS["json"].decode(
                await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))
            )
            shake = decode_value(message.payload, "json")
            shakes.append(shake)
            status = next(statuses)
            if status["ok"]:
                status = status | {"sessionId": shake["sessionId"]}
            payload = {"type": "HANDSHAKE_RESP", "status": status}
            whole = {"id": "m", "from": "SERVER", "to": message.from_, "seq": 0, "ack": 0, "streamId": "x"}
            data = encode_value(whole | {"controlFlags": 0, "payload": payload}, "json")
            writer.write(len(data).to_bytes(4, "big") + data)
            if status["ok"]:
                await reader.read()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"river+tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}", shakes


FATAL = [
    "MALFORMED_HANDSHAKE", "MALFORMED_HANDSHAKE_META", "PROTOCOL_VERSION_MISMATCH", "REJECTED_BY_CUSTOM_HANDLER",
    "REJECTED_UNSUPPORTED_CLIENT", "SOMETHING_NEW",
]  # fmt: skip
AGAIN = Reconnect(first_delay=0.001, longest_delay=0.01)


@pytest.mark.parametrize("code", [*FATAL, None])
async def test_what_is_fatal_is_not_tried_again(code: str | None) -> None:
    status: dict[str, object] = {"ok": False, "reason": "because"} | ({} if code is None else {"code": code})
    async with refusing(itertools.repeat(status)) as (url, shakes):
        with pytest.raises(SetupRejected, match="because") as refused:
            await weirpool.connect(url, confirm=True)
        assert refused.value.code == code
        with pytest.raises(SetupRejected, match="because"):
            await weirpool.connect(url, confirm=True, reconnect=AGAIN)
        async with weirpool.connect(url, reconnect=AGAIN) as peer:
            with pytest.raises(SetupRejected, match="because"):
                await peer.call("demo.add")
            await until(lambda: peer.closed)
        assert len(shakes) == 3


async def test_a_session_that_the_server_does_not_know_is_followed_by_another() -> None:
    mismatch = {"ok": False, "reason": "no such session", "code": "SESSION_STATE_MISMATCH"}
    statuses = itertools.chain([mismatch, mismatch], itertools.repeat({"ok": True}))
    async with refusing(statuses) as (url, shakes):
        with pytest.raises(ResumeRejected, match="no such session"):
            await weirpool.connect(url, confirm=True)
        async with weirpool.connect(url, reconnect=AGAIN):
            await until(lambda: len(shakes) == 3)
        assert len({shake["sessionId"] for shake in shakes}) == 3
        assert all(shake["expectedSessionState"] == {"nextExpectedSeq": 0, "nextSentSeq": 0} for shake in shakes)
