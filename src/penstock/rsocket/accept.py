"""The first bytes of a new link: is this RSocket at all?"""

from __future__ import annotations

from typing import Final, cast

from ..errors import FrameError, ProtocolError, ResumeRejected
from ..session import Session
from ..settings import Settings
from ..wire.frames import ErrorFrame, FrameType, ResumeFrame
from .codes import Code
from .connection import Connection
from .dialect import RSOCKET_1_0
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["RSocketAcceptor"]

HEAD_BYTES: Final = 9
"""The length prefix and the header: enough to tell."""

TYPES: Final = frozenset(FrameType)

FOREIGN: Final = (
    (b"\x16\x03", "a TLS ClientHello; connect with +tcp, or serve with +tls"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "HTTP/2"),
    (b"SSH-", "SSH"),
)
"""What else people point at a port, so that the log can say it."""


class RSocketAcceptor:
    """Waits for enough bytes to tell RSocket from anything else, and a new session from an old one.

    Args:
        settings: Limits and timeouts.
        store: The server's sessions that may be resumed; None: it resumes none.

    """

    def __init__(self, settings: Settings, store: SessionStore[Connection] | None = None) -> None:
        self._settings = settings
        self._store = store
        self._head = b""
        self._since = 0.0
        self.farewell = b""

    def link_up(self, now: float) -> None:
        """A link was accepted: the peer must say who it is before `next_timer`."""
        self._since = now

    def next_timer(self) -> float | None:
        """Return when the peer must have said who it is."""
        return self._since + self._settings.first_frame_timeout

    def receive(self, data: bytes, now: float) -> Session | None:
        """Take what the link brought. See :meth:`penstock.session.Acceptor.receive`.

        Raises:
            ProtocolError: These bytes are no RSocket; close the link and answer nothing.

        """
        self._head += data
        if len(self._head) < HEAD_BYTES:
            return None
        self._check(self._head)
        if self._head[7] >> 2 == FrameType.RESUME:
            return self._resume(now)
        session = RSocketSession.server(self._settings, RSOCKET_1_0, self._store)
        session.link_up(self._since)
        session.receive(self._head, now)
        self._head = b""
        return session

    def _resume(self, now: float) -> Session | None:
        """Return the session that the first frame, RESUME, asks for; None until the frame is whole."""
        codec = RSOCKET_1_0.codec()
        end = RSOCKET_1_0.prefix_bytes + int.from_bytes(self._head[: RSOCKET_1_0.prefix_bytes], "big")
        if len(self._head) < end:
            return None
        try:
            frame = codec.decode(self._head, RSOCKET_1_0.prefix_bytes, end)
            if not isinstance(frame, ResumeFrame) or frame.stream_id != 0:
                raise ResumeRejected("RESUME belongs on stream 0")
            if self._store is None:
                # RSocket 1.0, Resuming Operation: a server that cannot resume MUST say so.
                raise ResumeRejected("this server does not resume sessions")
            session = self._store.get(frame.token)
            session.resume(frame, now)
        except (FrameError, ResumeRejected) as error:
            self.farewell = codec.frame(ErrorFrame(0, Code.REJECTED_RESUME, str(error).encode()))
            raise ProtocolError(f"RESUME refused: {error}") from error
        session.receive(self._head[end:], now)
        self._head = b""
        return cast(RSocketSession, session)

    def _check(self, head: bytes) -> None:
        for start, name in FOREIGN:
            if head.startswith(start):
                raise ProtocolError(f"the first bytes are {name}, not RSocket")
        length = int.from_bytes(head[:3], "big")
        stream_id = int.from_bytes(head[3:7], "big")
        type = head[7] >> 2
        if length < RSOCKET_1_0.min_frame_bytes or stream_id >> 31 or type not in TYPES:
            raise ProtocolError(f"the first bytes are {head[:9].hex()}, not RSocket")
        limit = self._settings.max_setup_frame_bytes
        if length > limit:
            raise ProtocolError(
                f"the first bytes are {head[:9].hex()}: not RSocket, or its first frame of {length} bytes "
                f"exceeds max_setup_frame_bytes ({limit})"
            )
