"""Whole sessions. The first two bytes of an input are protocol, side, resumption and leases, and the size of pieces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from tests.builds import Build, load
from tests.hostile.mutations import DIALECTS, recorded

from fuzz.outcomes import VECTORS, pieces

PROTOCOLS: Final = ("rsocket", "reactivesocket-0.2", "reactivesocket-0.0", "reactive-streams", "river")
LIMITS: Final = {"fragment_bytes": 64, "max_reassembly_bytes": 100_000, "max_frame_bytes": 4_000}
FIELDS: Final = (
    "stream_id",
    "kind",
    "route",
    "payload",
    "credit",
    "done",
    "run",
    "count",
    "metadata",
    "error",
    "requests",
)
LEASE: Final = (4, 60.0)
TIMERS: Final = 6


def seeds() -> Iterator[bytes]:
    """Yield what recorded clients and servers said."""
    build = load("plain")
    for number, dialect in enumerate(DIALECTS):
        for is_client, said in zip((False, True), recorded(build, dialect), strict=True):
            # Without leases, servers reject the recorded clients, which ask for some.
            for more in (0, 10, 20, 30):
                yield bytes((2 * number + is_client + more, 0)) + said[:3_500]
    raw = [bytes.fromhex(entry["hex"]) for entry in json.loads((VECTORS / "reactive-streams-0.json").read_text())]
    yield from (bytes((6 + side, 0)) + raw[side and 1] + message for message in raw for side in (0, 1))
    for path in sorted((VECTORS / "river").glob("*.json")):
        events = json.loads(path.read_text())["events"]
        for is_client, direction in enumerate(("c>s", "s>c")):
            said = [bytes.fromhex(event["hex"]) for event in events if event["dir"] == direction and "hex" in event]
            yield bytes((8 + is_client, 0)) + b"".join(len(each).to_bytes(4, "big") + each for each in said)[:3_500]


class Conversation:
    """A session that answers each event as a user would, and writes down what happens.

    Args:
        build: The build of the session.
        protocol: One of `PROTOCOLS`.
        is_client: Its side.
        resume: Whether it may be resumed, if its protocol can be.
        lease: Whether requests need leases, if its protocol has any.

    """

    def __init__(self, build: Build, protocol: str, is_client: bool, resume: bool, lease: bool) -> None:
        protocols = build.module("weirpool.protocols")
        self.errors: Any = build.module("weirpool.errors")
        self.payload: Any = build.module("weirpool.payload").Payload
        self.kinds: Any = build.module("weirpool.kinds").Kind
        settings = build.module("weirpool.settings").Settings(
            **LIMITS,
            resume=resume and protocol in PROTOCOLS[:2],
            lease=build.module("weirpool.leases").FixedLease(*LEASE) if lease and protocol in PROTOCOLS[:3] else False,
        )
        self.now = 100.0
        self.told: list[object] = []
        self.session: Any = None
        self.detector: Any = None
        if is_client:
            self.session = protocols.client_session(protocol, settings, random=bytes(range(32)))
            self.session.link_up(self.now)
            self._open()
            self._answer()
        else:
            self.detector = protocols.detectors(protocol, settings)()
            self.detector.link_up(self.now)

    def _open(self) -> None:
        for kind in (self.kinds.CALL, self.kinds.STREAM, self.kinds.CHANNEL):
            try:
                self.session.open(kind, "a.b", self.payload(b"q"), 3)
            except self.errors.WeirpoolError as error:
                self.told.append(repr(error))

    def receive(self, data: bytes) -> bool:
        """Receive a piece; return False if there is no session to receive more."""
        self.now += 0.01
        if self.session is not None:
            self.session.receive(data, self.now)
        else:
            try:
                self.session = self.detector.receive(data, self.now)
            except self.errors.ProtocolError as error:
                self.told += [repr(error), self.detector.farewell]
                return False
        self._answer()
        return True

    def finish(self) -> None:
        """Let time pass, and end the link."""
        if self.session is None:
            return
        for _ in range(TIMERS):
            self._expire()
        self.session.link_down(self.now, None)
        while self.session.next_timer() is not None:
            self._expire()
        self._answer()
        self.told.append((self.session.open_streams, self.session.link_wanted))

    def _expire(self) -> None:
        due = self.session.next_timer()
        if due is not None:
            self.now = max(self.now, due)
            self.session.handle_timer(self.now)
            self._answer()

    def _answer(self) -> None:
        for event in [] if self.session is None else self.session.take_events():
            self.told.append([type(event).__name__, *(_shown(getattr(event, name, None)) for name in FIELDS)])
            if type(event).__name__ == "Requested" and event.credit:
                self._respond(event)
            elif type(event).__name__ == "LeaseGranted":
                self._open()
        if self.session is not None:
            self.told.append(b"".join(self.session.take_output()))

    def _respond(self, event: Any) -> None:
        try:
            if not event.done:
                self.session.request(event.stream_id, 3)
            if self.session.credit(event.stream_id):
                self.session.send(event.stream_id, self.payload(event.payload.data, event.payload.metadata))
        except self.errors.WeirpoolError as error:
            # The same input may have ended the stream.
            self.told.append(repr(error))


def _shown(value: Any) -> object:
    """Return a field of an event in comparable form."""
    if value is None or isinstance(value, int | str | bytes):
        # Enumeration members are equal to their numbers.
        return value
    if isinstance(value, Exception):
        return repr(value)
    return [(item.data, item.metadata) for item in value.payloads()] if hasattr(value, "payloads") else repr(value)


def outcome(build: Build, data: bytes) -> object:
    """Return all events, outputs and errors."""
    options, size = (data[0], data[1]) if len(data) > 1 else (0, 0)
    which, resume, lease = options % 10, options // 10 % 2 == 1, options // 20 % 2 == 1
    # Sessions import lazily.
    with build.active():
        conversation = Conversation(build, PROTOCOLS[which // 2], bool(which % 2), resume, lease)
        if all(conversation.receive(piece) for piece in pieces(data[2:], size)):
            conversation.finish()
    return conversation.told
