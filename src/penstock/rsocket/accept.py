"""Detects RSocket on a new link of a server."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Final

from ..errors import FrameError, ProtocolError, ResumeRejected
from ..session import SLICE, Detector, ServerStart, Session
from ..settings import Settings
from ..wire.rsocket.frames import ErrorFrame, ResumeFrame
from .codes import Code
from .detect import detect, is_resume
from .dialect import DIALECTS, RSOCKET_1_0
from .handshake import MAX_TOKEN_BYTES
from .resume import SessionStore
from .session import RSocketSession

__all__ = ["RSocketDetector", "detectors"]

RESUME_BYTES: Final = MAX_TOKEN_BYTES + 64
"""The largest RESUME that is collected: its token and its other fields."""


class RSocketDetector(Detector):
    """Waits for enough bytes to identify the dialect, and whether the session is new or resumed.

    Args:
        settings: Limits and timeouts.
        store: The server's sessions that can be resumed; None: the server does not resume sessions.
        served: Names of the dialects that the server speaks.
        begin: Creates a session from the settings, the dialect and the store.

    """

    def __init__(
        self,
        settings: Settings,
        store: SessionStore[RSocketSession] | None = None,
        served: Container[str] = frozenset(DIALECTS),
        begin: Callable[..., RSocketSession] = RSocketSession.server,
    ) -> None:
        super().__init__(settings.first_frame_timeout)
        self._settings = settings
        self._store = store
        self._served = served
        self._begin = begin
        self._head = b""

    @property
    def held(self) -> int:
        """The bytes of an incomplete RESUME, or of less than a frame's header."""
        return len(self._head)

    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session of the link. See :meth:`penstock.session.Detector.receive`.

        Raises ProtocolError if the bytes are not RSocket, or if RESUME is rejected.
        """
        self._head += data
        dialect = detect(self._head, self._settings, self._served)
        if dialect is None:
            return None
        if self._settings.length_counts_itself:
            dialect = dialect.counting_itself()
        elif dialect.keepalive and is_resume(self._head):
            return self._resume(now)
        session = self._begin(self._settings, dialect, self._store if dialect.keepalive else None)
        session.identity = self.identity
        session.link_up(self._since)
        self.more = session.receive(self._head, now, SLICE)
        self._head = b""
        return session

    def _resume(self, now: float) -> Session | None:
        """Return the session that the first frame, RESUME, names; None until the frame is whole."""
        # RESUME and its responses are the same in all dialects that have them.
        codec = RSOCKET_1_0.codec()
        if self.locked_out:
            self.was_locked_out = True
            raise ProtocolError(f"RESUME refused: {self.locked_out}")
        end = codec.prefix_bytes + int.from_bytes(self._head[: codec.prefix_bytes], "big")
        if len(self._head) < min(end, RESUME_BYTES):
            return None
        try:
            if end > RESUME_BYTES:
                raise ResumeRejected(f"RESUME has {end} bytes; at most {RESUME_BYTES} are accepted")
            frame = codec.decode(self._head, codec.prefix_bytes, end)
            if not isinstance(frame, ResumeFrame) or frame.stream_id != 0:
                raise ResumeRejected("RESUME must be on stream 0")
            if self._store is None:
                # RSocket 1.0, Resuming Operation: a server that cannot resume MUST reject it.
                raise ResumeRejected("this server does not resume sessions")
            session = self._store.get(frame.token, self.identity)
            session.resume(frame, now)
        except (FrameError, ResumeRejected) as error:
            self.guessed = True
            self.farewell = codec.frame(ErrorFrame(0, Code.REJECTED_RESUME, str(error).encode()))
            raise ProtocolError(f"RESUME rejected: {error}") from error
        self.more = session.receive(self._head[end:], now, SLICE)
        self._head = b""
        return session


def detectors(start: ServerStart) -> Callable[[], RSocketDetector]:
    """Return a factory of detectors for one server. See :func:`penstock.protocols.detectors`."""
    settings, logs = start.settings, start.logs
    if start.messages:
        settings = replace(settings, length_counts_itself=False)
    served = frozenset(DIALECTS if start.protocol == "rsocket" else {start.protocol})
    store: SessionStore[RSocketSession] | None = None
    begin: Callable[..., RSocketSession] = RSocketSession.server
    if settings.resume_timeout > 0 and not settings.length_counts_itself:
        if logs is None:
            store = SessionStore(settings.all_sessions)
        else:
            from .stored import StoredSession, StoredSessions

            store = StoredSessions(settings, logs)
            begin = StoredSession.server
    return lambda: RSocketDetector(settings, store, served, begin)
