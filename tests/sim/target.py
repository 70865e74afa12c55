"""One session with a scripted peer, in any dialect."""

from __future__ import annotations

from typing import Any

from tests.builds import Build

V1 = "rsocket-1.0"
V02 = "reactivesocket-0.2"
V00 = "reactivesocket-0.0"
DIALECTS = (V1, V02, V00)


class Target:
    """A session, set up unless the test does that, and the frames of its hostile peer.

    Args:
        build: The build of the session.
        dialect: The dialect of both sides.
        side: The side of the session: "server" or "client".
        set_up: Whether a server has received SETUP.
        limits: Settings.

    Attributes:
        session: The session.
        frames: The module of frame classes.
        now: The time.

    """

    def __init__(
        self, build: Build, dialect: str = V1, side: str = "server", set_up: bool = True, **limits: Any
    ) -> None:
        self.build = build
        self.dialect = build.module("weirpool.rsocket.dialect").DIALECTS[dialect]
        self.codec: Any = self.dialect.codec()
        self.frames: Any = build.module("weirpool.wire.rsocket.frames")
        self.payload: Any = build.module("weirpool.payload").Payload
        self.kinds: Any = build.module("weirpool.kinds").Kind
        self.now = 1000.0
        settings = build.module("weirpool.settings").Settings
        session = build.module("weirpool.rsocket.session").RSocketSession
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
        """Return a SETUP with some fields changed."""
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
        """Return a body with its length prefix."""
        width = self.codec.prefix_bytes
        return (len(body) + (4 if width == 4 else 0)).to_bytes(width, "big") + body

    def frame(self, type: str, stream: int, flags: int = 0, **fields: Any) -> bytes:
        """Return a frame of a type without a class."""
        return bytes(self.codec.frame(self.frames.Frame(self.frames.FrameType[type], stream, flags, **fields)))

    def request(self, type: str, stream: int, n: int = 5, data: bytes = b"q", flags: int = 0) -> bytes:
        """Return a request."""
        return bytes(self.codec.request_frame(self.frames.FrameType[type], stream, flags, n, None, data))

    def item(self, stream: int, data: bytes = b"x", flags: int = 0x20) -> bytes:
        """Return a PAYLOAD with these flags."""
        return bytes(self.codec.payload_frame(stream, flags, None, data))

    def request_n(self, stream: int, count: int) -> bytes:
        """Return a REQUEST_N."""
        return bytes(self.codec.request_n_frame(stream, count))

    def error(self, stream: int, data: bytes = b"no") -> bytes:
        """Return an ERROR on a stream."""
        return bytes(self.codec.frame(self.frames.ErrorFrame(stream, 0x201, data)))

    def say(self, *said: bytes) -> tuple[list[tuple[int, int]], list[str]]:
        """Deliver the frames in one read; return stream and code of its errors, and the names of its events."""
        self.session.receive(b"".join(said), self.now)
        return self.told()

    def told(self) -> tuple[list[tuple[int, int]], list[str]]:
        """Return stream and code of its new errors, and the names of its new events."""
        sent = b"".join(self.session.take_output())
        read = self.build.module("weirpool.wire.rsocket.dump").read_frames
        errors = [
            (frame.stream_id, frame.code)
            for _, frame in read(sent, self.dialect.name, self.codec.prefix_bytes)
            if hasattr(frame, "code")
        ]
        return errors, [type(event).__name__ for event in self.session.take_events()]

    def open(self, kind: str, credit: int = 5) -> int:
        """Open a stream of the session; return its id."""
        stream: int = self.session.open(self.kinds[kind], "r", self.payload(), credit)
        self.session.take_output()
        return stream

    def number(self, stream: int) -> int:
        """Return the session's id of a stream that its peer opened."""
        return -stream if self.dialect.own_ids else stream

    @property
    def held(self) -> int:
        """Return the counted size of its incomplete items."""
        count: int = self.session.account.incomplete
        return count

    @property
    def goodbye(self) -> list[tuple[int, int]]:
        """Return its error for a protocol violation of the peer."""
        return [(0, 0x001 if self.dialect.own_ids else 0x101)]
