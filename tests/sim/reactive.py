"""Two sessions of reactive-streams-io, or one session and a scripted peer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builds import available, load
from tests.sim.pair import CUTS, Cut, Pair, whole
from weirpool import (
    Payload,
    Settings,
)
from weirpool.kinds import Kind
from weirpool.reactivestreams.session import ReactiveStreamsSession
from weirpool.wire.reactivestreams.codec import Items, Message, Type, encode
from weirpool.wire.reactivestreams.decoder import Decoder

CUT = pytest.mark.parametrize("cut", CUTS.values(), ids=CUTS)


def make(cut: Cut = whole, **options: Any) -> Pair:
    return Pair(load(available()[0]), cut=cut, dialect="reactive-streams-0", **options)


def opened(pair: Pair, demand: int = 10, kind: Kind = Kind.STREAM, data: bytes = b"") -> tuple[int, int]:
    """Open a stream of the client and return its id on both sides."""
    stream = pair.client.open(kind, "ticks", Payload(data), demand)
    pair.drive()
    return stream, pair.events("server", "Requested")[-1].stream_id


class Raw:
    """One session with a scripted peer, after both hellos."""

    def __init__(self, is_client: bool = True, hello: bytes | None = None, **settings: Any) -> None:
        make = ReactiveStreamsSession.client if is_client else None
        self.session: Any = (
            make(Settings(**settings), Payload()) if make else ReactiveStreamsSession.server(Settings(**settings))
        )
        self.session.link_up(0.0)
        self.say(hello if hello is not None else bytes.fromhex("020000" if is_client else "010000"))
        if hello is None:
            self.heard()
            self.session.take_events()

    def say(self, *messages: bytes | Message, size: int = 0) -> None:
        for message in messages:
            self.session.receive(message if isinstance(message, bytes) else encode(message, size), 1.0)

    def heard(self) -> list[Message]:
        decoder = Decoder(runs=False)
        found: list[Message] = []
        for chunk in self.session.take_output():
            decoder.feed(chunk)
            while (message := decoder.next()) is not None:
                assert not isinstance(message, Items)
                found.append(message)
        return found

    def open(self, demand: int = 10, kind: Kind = Kind.STREAM, size: int = 0) -> int:
        stream: int = self.session.open(kind, "x", Payload(), demand)
        self.say(Message(Type.SUBSCRIBED, stream, size))
        self.heard()
        return stream

    def events(self) -> list[Any]:
        return list(self.session.take_events())

    def ended(self, error: type[Exception], what: str) -> list[Any]:
        """Check that the session sent goodbye with this reason; return the events."""
        *_, last = self.heard()
        events = self.events()
        closed = events[-1]
        assert last.type == Type.GOODBYE
        assert isinstance(closed.error, error)
        assert what in str(closed.error)
        assert str(closed.error).encode()[:1000] == last.data
        assert not self.session.link_wanted
        assert self.session.next_timer() is None
        self.say(b"\x0d\x00" * 1000)
        # THREATS 73.
        assert self.heard() == []
        return events
