"""Restored sessions: the first events of their streams have an owner before the streams are adopted."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.aio.fakes import FakeLink
from tests.builds import Build

PLACES = {
    "rsocket": "rsocket+memory://publisher",
    "reactivesocket-0.2": "reactivesocket-0.2+memory://publisher",
    "river-json": "river+memory://publisher?codec=json",
    "river-msgpack": "river+memory://publisher?codec=msgpack",
}
ROUTE = "demo.numbers"
CREDIT = 3
ENDS = ["goes on", "completes", "fails"]


class Publisher:
    """A server's resumable session, and the bytes that its client gets in one read."""

    def __init__(self, build: Build, url: str) -> None:
        self.build = build
        self.url = url
        place = build.module("weirpool.urls").parse_url(url)
        protocols = build.module("weirpool.protocols")
        self.payload = build.module("weirpool.payload").Payload
        self.settings = build.module("weirpool.settings").Settings(resume=True)
        self.options = {"options": place.options} if place.protocol == "river" else {}
        self.accept = protocols.detectors(place.protocol, self.settings, **self.options)
        self.protocol = place.protocol
        self.session: Any = None
        self.acceptor: Any = None
        self.stream = 0
        self.secret = b""

    def link(self) -> None:
        """Lose the link and open another one."""
        if self.session is not None:
            self.session.link_down(0.0, None)
        self.acceptor = self.accept()
        self.acceptor.link_up(0.0)

    def answer(self, data: bytes) -> bytes:
        """Process a client's output; return the server's output."""
        if self.acceptor is None:
            self.session.receive(data, 0.0)
        else:
            self.session, self.acceptor = self.acceptor.receive(data, 0.0), None
            stream = self.build.module("weirpool.kinds").Kind.STREAM
            self.session.ask_kinds(lambda route: stream)
        for event in self.session.take_events():
            if type(event).__name__ == "Requested":
                self.stream = event.stream_id
        return b"".join(self.session.take_output())

    def refusal_or_answer(self, data: bytes) -> bytes:
        """Do the same for a client that may be rejected."""
        acceptor = self.acceptor
        try:
            return self.answer(data)
        except self.build.module("weirpool.errors").ProtocolError:
            return bytes(acceptor.farewell)

    def checkpoint(self, client: Any) -> tuple[bytes, int]:
        """Open the stream in a first process; return its checkpoint and the stream's id."""
        self.secret = client.secret
        self.link()
        client.link_up(0.0)
        kind = self.build.module("weirpool.kinds").Kind.STREAM
        self.drive(client)
        stream_id = client.open(kind, ROUTE, self.payload(), 1 + CREDIT)
        self.drive(client)
        # River does not restore a session without any received message.
        self.session.send(self.stream, self.payload(b"9"))
        client.receive(b"".join(self.session.take_output()), 0.0)
        client.take_events()
        checkpoint = client.checkpoint(stream_id, 0)
        client.commit()
        self.drive(client)
        return checkpoint, stream_id

    def drive(self, client: Any) -> None:
        while data := b"".join(client.take_output()):
            client.receive(self.answer(data), 0.0)
            client.take_events()

    def send(self, first: int, count: int) -> None:
        """Send numbers of one digit, which are valid in all codecs."""
        for number in range(first, first + count):
            self.session.send(self.stream, self.payload(b"%d" % number))

    def end(self, how: str) -> None:
        if how == "completes":
            self.session.complete(self.stream)
        elif how == "fails":
            self.session.fail(self.stream, self.build.module("weirpool.errors").ApplicationError(0x301, "no more"))


def resumed(publisher: Publisher, monkeypatch: pytest.MonkeyPatch, checkpoint: bytes) -> tuple[Any, list[FakeLink]]:
    """Return a connect function for `publisher`, whose output is read before the connection is reported."""
    build = publisher.build
    links: list[FakeLink] = []

    async def connect(url: Any, driver: Any, settings: Any, ssl: Any) -> None:
        link = FakeLink(driver)
        links.append(link)
        publisher.link()
        driver.link_made(link)
        driver.received(publisher.answer(b"".join(link.written)))

    monkeypatch.setattr(build.module("weirpool.aio.dialer").transports, "connect", connect)
    connecting = build.module("weirpool.aio.client").connect(
        publisher.url,
        settings=publisher.settings,
        checkpoint=checkpoint,
        secret=publisher.secret,
        reconnect=False,
    )
    return connecting, links


def first_process(publisher: Publisher) -> tuple[bytes, int]:
    protocols = publisher.build.module("weirpool.protocols")
    client = protocols.client_session(publisher.protocol, publisher.settings, random=b"t" * 16, **publisher.options)
    return publisher.checkpoint(client)


@pytest.mark.parametrize("place", PLACES)
def test_a_checkpoint_does_not_hold_its_secret(build: Build, place: str) -> None:
    publisher = Publisher(build, PLACES[place])
    checkpoint, _ = first_process(publisher)
    assert len(publisher.secret) >= 16
    assert publisher.secret not in checkpoint


@pytest.mark.parametrize("place", PLACES)
def test_only_the_private_part_of_a_checkpoint_holds_requests(build: Build, place: str) -> None:
    # THREATS 100
    publisher = Publisher(build, PLACES[place])
    checkpoints = build.module("weirpool.checkpoints")
    kind, payload = build.module("weirpool.kinds").Kind.STREAM, publisher.payload
    setup = b'{"token":"of the set-up"}' if "json" in place else b"\xb4of the set-up, whole"
    client = build.module("weirpool.protocols").client_session(
        publisher.protocol, publisher.settings, setup=payload(setup), random=b"t" * 16, **publisher.options
    )
    publisher.link()
    client.link_up(0.0)
    publisher.drive(client)
    # This one has arrived, which this side does not know.
    data = b'"password"' if "json" in place else b"\xa8password"
    stream_id = client.open(kind, ROUTE, payload(data), 5)
    unheard = b"".join(client.take_output())
    checkpoint = client.checkpoint(stream_id, 7)
    client.commit()
    public, private = checkpoints.split(checkpoint)
    assert (b"password" in public, b"password" in private) == (False, True)
    assert b"set-up" not in checkpoint
    publisher.answer(unheard)
    # Credit that was requested later is not secret.
    again, same = checkpoints.split(client.checkpoint(stream_id, 9))
    assert same == private
    assert again != public


@pytest.mark.parametrize("kept", [True, False], ids=["with its private part", "without"])
@pytest.mark.parametrize("place", PLACES)
def test_a_request_that_was_lost_comes_again_or_the_session_ends(build: Build, place: str, kept: bool) -> None:
    publisher = Publisher(build, PLACES[place])
    protocols, checkpoints = build.module("weirpool.protocols"), build.module("weirpool.checkpoints")
    client = protocols.client_session(publisher.protocol, publisher.settings, random=b"t" * 16, **publisher.options)
    publisher.link()
    client.link_up(0.0)
    publisher.drive(client)
    stream_id = client.open(build.module("weirpool.kinds").Kind.STREAM, ROUTE, publisher.payload(), 5)
    checkpoint = client.checkpoint(stream_id, 0)
    if not kept:
        checkpoint = checkpoints.join(checkpoints.split(checkpoint)[0], b"")
    # The killed process sent neither the request nor anything after it.
    again = protocols.client_session(
        publisher.protocol,
        publisher.settings,
        random=b"u" * 16,
        checkpoint=checkpoint,
        secret=client.secret,
        **publisher.options,
    )
    publisher.link()
    again.link_up(0.0)
    events = []
    while data := b"".join(again.take_output()):
        again.receive(publisher.refusal_or_answer(data), 0.0)
        events += again.take_events()
    assert (publisher.stream != 0) == kept
    rejected = [event.error for event in events if type(event).__name__ == "Closed"]
    assert [type(error).__name__ for error in rejected] == ([] if kept else ["ResumeRejected"])


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("place", PLACES)
async def test_items_and_end_in_the_first_read_are_kept_until_adoption(
    build: Build, place: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # THREATS 96
    publisher = Publisher(build, PLACES[place])
    checkpoint, stream_id = first_process(publisher)
    # The whole credit is used while no process runs.
    publisher.send(0, CREDIT)
    publisher.end(how)
    connecting, links = resumed(publisher, monkeypatch, checkpoint)
    peer = await connecting
    stream = peer.adopt()
    assert stream is not None
    assert stream.stream_id == stream_id
    assert stream.over == (how in ("completes", "fails"))
    assert taken(publisher, stream) == [b"0", b"1", b"2"]
    if how == "goes on":
        stream.grant(2)
        await asyncio.sleep(0)
        [link] = links
        sent = b"".join(link.written[1:])
        publisher.answer(sent)
        publisher.send(CREDIT, 2)
        link.receiver.received(b"".join(publisher.session.take_output()))
        assert taken(publisher, stream) == [b"3", b"4"]
    elif how == "completes":
        assert not await stream.arrival()
    elif how == "fails":
        with pytest.raises(publisher.build.module("weirpool.errors").ApplicationError, match="no more"):
            await stream.arrival()
    # Each stream has one owner.
    assert peer.adopt() is None
    peer.detach()


def taken(publisher: Publisher, stream: Any) -> list[bytes]:
    """Return the items that have arrived, as a collector takes them."""
    builder = publisher.build.module("weirpool.wire.columns").ColumnBuilder()
    stream.take(builder)
    return builder.finish()["data"].to_pylist() if len(builder) else []


@pytest.mark.parametrize("place", PLACES)
async def test_a_session_that_ends_before_adoption_fails_its_stream(
    build: Build, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher(build, PLACES[place])
    checkpoint, _ = first_process(publisher)
    publisher.send(0, CREDIT)
    connecting, links = resumed(publisher, monkeypatch, checkpoint)
    peer = await connecting
    [link] = links
    # A frame or a message that is always invalid.
    link.receiver.received(b"\x00\x00\x00\x01\x00" * 100)
    assert peer.closed
    stream = peer.adopt()
    assert taken(publisher, stream) == [b"0", b"1", b"2"]
    with pytest.raises(publisher.build.module("weirpool.errors").WeirpoolError):
        await stream.arrival()


@pytest.mark.parametrize("place", PLACES)
async def test_a_stream_that_nobody_adopts_holds_what_was_granted_at_most(
    build: Build, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    publisher = Publisher(build, PLACES[place])
    checkpoint, _ = first_process(publisher)
    publisher.send(0, CREDIT)
    connecting, links = resumed(publisher, monkeypatch, checkpoint)
    peer = await connecting
    [link] = links
    if publisher.protocol == "river":
        # River has no credit: the session holds unrequested items, up to max_held_bytes.
        publisher.send(CREDIT, 5)
    else:
        with pytest.raises(publisher.build.module("weirpool.errors").CreditExceeded):
            publisher.send(CREDIT, 1)
    link.receiver.received(b"".join(publisher.session.take_output()))
    stream = peer.adopt()
    assert taken(publisher, stream) == [b"0", b"1", b"2"]
    assert not stream.ready
    peer.detach()
