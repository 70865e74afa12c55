"""One session that is told anything, in any dialect."""

from __future__ import annotations

from typing import Any

from tests.builds import Build

V1 = "rsocket-1.0"
V02 = "reactivesocket-0.2"
V00 = "reactivesocket-0.0"
DIALECTS = (V1, V02, V00)


class Target:
    """A session, set up unless it is to be told how, and the words of its hostile peer.

    Args:
        build: Ours.
        dialect: What both speak.
        side: Whose session it is: the server's, or the client's.
        set_up: Whether a server has heard SETUP.
        limits: Settings.

    Attributes:
        session: The session.
        frames: The module of frames, to make some.
        now: The time.

    """

    def __init__(
        self, build: Build, dialect: str = V1, side: str = "server", set_up: bool = True, **limits: Any
    ) -> None:
        self.build = build
        self.dialect = build.module("penstock.rsocket.dialect").DIALECTS[dialect]
        self.codec: Any = self.dialect.codec()
        self.frames: Any = build.module("penstock.wire.rsocket.frames")
        self.payload: Any = build.module("penstock.payload").Payload
        self.kinds: Any = build.module("penstock.kinds").Kind
        self.now = 1000.0
        self._process = build.module("penstock.core.fragments").PROCESS
        self._before = self._process.held
        settings = build.module("penstock.settings").Settings
        session = build.module("penstock.rsocket.session").RSocketSession
        made = settings(**{"metadata_mime": "text/plain", **limits})
        if side == "server":
            self.session: Any = session.server(made, self.dialect)
        else:
            self.session = session.client(made, self.payload(), self.dialect)
        self.session.link_up(self.now)
        if side == "server" and set_up:
            self.session.receive(self.setup(), self.now)
            self.session.take_events()
        self.session.take_output()

    def setup(self, **changes: Any) -> bytes:
        """Return a SETUP, of which some fields are changed."""
        major, minor = self.dialect.version
        frame = self.frames.SetupFrame(
            0,
            major=major,
            minor=minor,
            keepalive_ms=20_000,
            lifetime_ms=90_000,
            metadata_mime=b"text/plain",
            data_mime=b"text/plain",
        )
        for name, value in changes.items():
            setattr(frame, name, value)
        return bytes(self.codec.frame(frame))

    def prefixed(self, body: bytes) -> bytes:
        """Return a body with its length before it."""
        width = self.codec.prefix_bytes
        return (len(body) + (4 if width == 4 else 0)).to_bytes(width, "big") + body

    def frame(self, type: str, stream: int, flags: int = 0, **fields: Any) -> bytes:
        """Return a frame of a type that has no class of its own."""
        return bytes(self.codec.frame(self.frames.Frame(self.frames.FrameType[type], stream, flags, **fields)))

    def request(self, type: str, stream: int, n: int = 5, data: bytes = b"q", flags: int = 0) -> bytes:
        """Return a request."""
        return bytes(self.codec.request_frame(self.frames.FrameType[type], stream, flags, n, None, data))

    def item(self, stream: int, data: bytes = b"x", flags: int = 0x20) -> bytes:
        """Return an item, or what other flags make of it."""
        return bytes(self.codec.payload_frame(stream, flags, None, data))

    def request_n(self, stream: int, count: int) -> bytes:
        """Return a REQUEST_N."""
        return bytes(self.codec.request_n_frame(stream, count))

    def error(self, stream: int, data: bytes = b"no") -> bytes:
        """Return an ERROR on a stream."""
        return bytes(self.codec.frame(self.frames.ErrorFrame(stream, 0x201, data)))

    def say(self, *said: bytes) -> tuple[list[tuple[int, int]], list[str]]:
        """Say it all at once, and return stream and code of the errors that it answers, and the names of its events."""
        self.session.receive(b"".join(said), self.now)
        return self.told()

    def told(self) -> tuple[list[tuple[int, int]], list[str]]:
        """Return stream and code of the errors that it has sent meanwhile, and the names of its events."""
        sent = b"".join(self.session.take_output())
        read = self.build.module("penstock.wire.rsocket.dump").read_frames
        errors = [
            (frame.stream_id, frame.code)
            for _, frame in read(sent, self.dialect.name, self.codec.prefix_bytes)
            if hasattr(frame, "code")
        ]
        return errors, [type(event).__name__ for event in self.session.take_events()]

    def open(self, kind: str, credit: int = 5) -> int:
        """Let the session open a stream; return its number."""
        stream: int = self.session.open(self.kinds[kind], "r", self.payload(), credit)
        self.session.take_output()
        return stream

    def number(self, stream: int) -> int:
        """Return what the session calls a stream that its peer opened."""
        return -stream if self.dialect.own_ids else stream

    @property
    def held(self) -> int:
        """How many bytes its unfinished items count."""
        count: int = self._process.held - self._before
        return count

    @property
    def goodbye(self) -> list[tuple[int, int]]:
        """What it says when the peer has broken the protocol."""
        return [(0, 0x001 if self.dialect.own_ids else 0x101)]
