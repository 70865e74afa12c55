"""One subscribing session of reactive-streams-io and a scripted publisher, in either build."""

from __future__ import annotations

from typing import Any

from tests.builds import Build


class Subscriber:
    """A session with a scripted peer, after both hellos.

    Args:
        build: The build of the session.
        is_client: Whether the session is a client's.
        limits: Settings.

    """

    def __init__(self, build: Build, is_client: bool = True, **limits: Any) -> None:
        self.build = build
        self.wire: Any = build.module("weirpool.wire.reactivestreams.codec")
        self.errors: Any = build.module("weirpool.errors")
        self.payload: Any = build.module("weirpool.payload").Payload
        settings = build.module("weirpool.settings").Settings(**limits)
        session = build.module("weirpool.reactivestreams.session").ReactiveStreamsSession
        self.session: Any = session.client(settings, self.payload()) if is_client else session.server(settings)
        self.session.link_up(0.0)
        self.session.receive(bytes.fromhex("020000" if is_client else "010000"), 1.0)
        self.session.take_events()

    def subscribe(self, demand: int = 10) -> int:
        """Open a stream and deliver its `subscribed`."""
        kind = self.build.module("weirpool.kinds").Kind.STREAM
        stream: int = self.session.open(kind, "x", self.payload(), demand)
        self.session.receive(bytes([6, stream, 0]), 1.0)
        self.session.take_output()
        return stream

    def part(self, stream: int, element: int, data: bytes, last: bool = False) -> bytes:
        """Return a part of an element."""
        types = self.wire.Type
        type = types.ON_NEXT_LAST_PART if last else types.ON_NEXT_PART
        return bytes(self.wire.encode(self.wire.Message(type, stream, element, data)))

    def say(self, *said: bytes, now: float = 1.0) -> None:
        """Deliver it from the peer, in one read."""
        self.session.receive(b"".join(said), now)

    @property
    def held(self) -> int:
        """Return the counted size of its incomplete elements."""
        count: int = self.session.account.incomplete
        return count

    def events(self) -> list[Any]:
        return list(self.session.take_events())

    def ended(self, what: str) -> None:
        """Check that a limit ended the session, that goodbye names it, and that nothing is held."""
        *_, failed, closed = self.events()
        assert [type(failed).__name__, type(closed).__name__] == ["Failed", "Closed"]
        assert isinstance(closed.error, self.errors.LimitExceeded)
        assert what in str(closed.error)
        goodbye = self.wire.encode(self.wire.Message(self.wire.Type.GOODBYE, 0, 0, str(closed.error).encode()))
        assert b"".join(self.session.take_output()) == goodbye
        assert (self.held, self.session.link_wanted, self.session.next_timer()) == (0, False, None)
