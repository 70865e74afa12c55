"""Subscriptions as River's document says: either side ends one with ControlClose, and the other side answers it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import weirpool
from tests.river.peers import RANDOM, Duo, body_of, messages, shaken
from weirpool import Payload, Service, Settings
from weirpool.events import Canceled, Completed, Failed
from weirpool.kinds import Kind
from weirpool.river.connect import new_client
from weirpool.river.identity import Identity
from weirpool.wire.framing import framed
from weirpool.wire.river.values import encode_value

CLOSE = {"type": "CLOSE"}
COUNT = {"serviceName": "demo", "procedureName": "count"}
ECHO = {"serviceName": "demo", "procedureName": "echo"}
DOCUMENT = Settings(close_subscriptions=True)


class Literal:
    """A client's session, and a server that follows the document to the letter.

    A stream has two halves. A subscription continues until one side closes its half; then the server closes the other.

    Attributes:
        heard: The flags and bodies of the client's messages, but for the handshake.
        halves: Of each stream, the open halves.

    """

    def __init__(self, codec: str, settings: Settings) -> None:
        self.codec = codec
        self.client = new_client(settings, Identity(codec, "client-1"), b"", RANDOM)
        self.client.link_up(0.0)
        self.heard: list[tuple[int, Any]] = []
        self.halves: dict[str, set[str]] = {}
        self.events: list[Any] = []
        self.seq = 0
        (request,) = messages(self.client.take_output(), codec)
        status = {"ok": True, "sessionId": body_of(request, codec)["sessionId"]}
        self.say("hs", 0, {"type": "HANDSHAKE_RESP", "status": status}, numbered=False)
        assert self.heard == []

    def say(self, stream: str, flags: int, payload: object, numbered: bool = True) -> None:
        """Send a message, and read what the client answers."""
        whole = {"id": "m", "from": "SERVER", "to": "client-1", "seq": self.seq, "ack": 0}
        whole |= {"streamId": stream, "controlFlags": flags, "payload": payload}
        self.seq += numbered
        if flags & 12:
            self.halves[stream].discard("server")
        self.client.receive(framed(encode_value(whole, self.codec)), 0.0)
        self.listen()

    def listen(self) -> None:
        """Read what the client has sent, and end streams as the document says."""
        self.events += self.client.take_events()
        for message in messages(self.client.take_output(), self.codec):
            flags, stream = message.control_flags, message.stream_id
            self.heard.append((flags, body_of(message, self.codec)))
            if flags & 2:
                self.halves[stream] = {"client", "server"}
            if flags & 8:
                self.halves[stream].discard("client")
                if "server" in self.halves[stream]:
                    # What it had queued before it read the ControlClose, and its answer.
                    self.say(stream, 0, {"ok": True, "payload": "queued"})
                    self.say(stream, 8, CLOSE)

    def subscribe(self, credit: int = 10) -> int:
        number = self.client.open(Kind.STREAM, "demo.count", Payload(encode_value({}, self.codec)), credit, True)
        self.listen()
        return number

    @property
    def items(self) -> list[bytes]:
        return [event.payload.data for event in self.events if type(event).__name__ == "ItemReceived"]


@pytest.fixture(params=["json", "msgpack"])
def codec(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def item(value: object) -> dict[str, object]:
    return {"ok": True, "payload": value}


def test_client_ends_a_subscription_with_control_close(codec: str) -> None:
    server = Literal(codec, DOCUMENT)
    number = server.subscribe()
    (stream,) = server.halves
    server.say(stream, 0, item(1))
    assert (server.heard, server.halves[stream], len(server.items)) == ([(2, {})], {"client", "server"}, 1)
    server.client.cancel(number)
    server.listen()
    # What is still sent is discarded, and nothing answers the server's ControlClose.
    assert server.heard == [(2, {}), (8, CLOSE)] and server.halves[stream] == set()
    assert (len(server.items), server.client.open_streams) == (1, 0)


def test_reference_opens_with_the_closed_bit_and_a_literal_server_ends_early(codec: str) -> None:
    server = Literal(codec, Settings())
    number = server.subscribe()
    assert server.heard == [(10, {})] and server.halves == {next(iter(server.halves)): set()}
    assert [type(event) for event in server.events[-2:]][1] is Completed
    assert number not in server.client.streams()


@pytest.mark.parametrize("credit", [1, 10])
@pytest.mark.parametrize("last", [True, False])
def test_client_answers_the_control_close_of_a_server(codec: str, last: bool, credit: int) -> None:
    server = Literal(codec, DOCUMENT)
    number = server.subscribe(credit)
    (stream,) = server.halves
    server.say(stream, 0, item(1))
    server.say(stream, 8 if last else 0, item(2))
    if not last:
        server.say(stream, 8, CLOSE)
    # Also if items are held, because the consumer is slow.
    assert server.heard == [(2, {}), (8, CLOSE)]
    server.client.request(number, 1)
    server.listen()
    assert (len(server.items), server.client.open_streams, len(server.heard)) == (2, 0, 2)
    server.client.cancel(number)
    server.listen()
    assert len(server.heard) == 2


@pytest.mark.parametrize(("flags", "answer"), [(0, 4), (4, None), (8, 8)])
def test_errors_end_both_halves(codec: str, flags: int, answer: int | None) -> None:
    server = Literal(codec, DOCUMENT)
    server.subscribe()
    (stream,) = server.halves
    server.say(stream, flags, {"ok": False, "payload": {"code": "BOOM", "message": "boom"}})
    assert [each for each, _ in server.heard[1:]] == ([] if answer is None else [answer])
    assert isinstance(server.events[-1], Failed) and server.client.open_streams == 0


def test_abrupt_end_of_a_subscription_is_a_cancellation(codec: str) -> None:
    server = Literal(codec, DOCUMENT)
    server.client.fail(server.subscribe(), ValueError("the consumer failed"))
    server.listen()
    assert [flags for flags, _ in server.heard] == [2, 4] and server.client.open_streams == 0


def test_server_ends_a_subscription_whose_client_closes_it(codec: str) -> None:
    raw = shaken(codec)
    raw.say("a", 2, {}, **COUNT)
    raw.session.send(1, Payload(encode_value(1, codec)))
    said = raw.say("a", 8, CLOSE)
    assert [(each.control_flags, body_of(each, codec)) for each in said] == [(0, item(1)), (8, CLOSE)]
    assert isinstance(raw.events[-1], Canceled) and raw.session.open_streams == 0
    # THREATS 63: a second one has no effect.
    assert raw.say("a", 8, CLOSE) == [] and raw.say("a", 4, {}) == []


def test_closes_that_cross_are_not_answered_again(codec: str) -> None:
    raw = shaken(codec)
    raw.say("a", 2, {}, **COUNT)
    raw.session.complete(1)
    (end,) = raw.said()
    assert (end.control_flags, raw.session.open_streams) == (8, 0)
    assert raw.say("a", 8, CLOSE) == []


def test_closed_bit_of_the_first_message_ends_no_subscription(codec: str) -> None:
    # The reference sends it, and expects items.
    raw = shaken(codec)
    raw.say("a", 10, {}, **COUNT)
    raw.session.send(1, Payload(encode_value(1, codec)))
    assert [each.control_flags for each in raw.said()] == [0]
    raw.say("b", 2, {}, **ECHO)
    assert raw.say("b", 8, CLOSE) == [] and raw.session.open_streams == 2


@pytest.mark.parametrize("lost", ["", "before", "after"])
def test_both_sides_agree_over_links_that_are_lost(codec: str, lost: str) -> None:
    duo = Duo(codec, close_subscriptions=True)
    number = duo.client.open(Kind.STREAM, "demo.count", duo.payload({}), 10, True)
    duo.drive()
    duo.server.send(1, duo.payload(1))
    duo.drive()
    duo.lose = lambda message, direction: lost if message.control_flags & 8 else ""
    duo.client.cancel(number)
    duo.drive()
    duo.lose = lambda message, direction: ""
    if lost:
        duo.link()
    assert duo.items("client", number) == [1] and len(duo.of("server", "Canceled")) == 1
    assert duo.client.open_streams == duo.server.open_streams == 0


async def test_handler_stops_when_its_subscriber_has_enough() -> None:
    service, ended = Service(), asyncio.Event()

    @service.stream("demo.count")
    async def count(request: Payload) -> AsyncIterator[Payload]:
        try:
            while True:
                yield request
                await asyncio.sleep(0)
        finally:
            ended.set()

    async with (
        weirpool.serve(service, "river+tcp://127.0.0.1:0") as server,
        weirpool.connect(server.urls[0], settings=DOCUMENT) as peer,
    ):
        for _ in range(2):
            async with peer.stream("demo.count", b"{}") as stream:
                items = aiter(stream)
                assert [(await anext(items)).data for _ in range(3)] == [b"{}"] * 3
            await ended.wait()
            ended.clear()
