"""The first bytes of a new link: is this RSocket at all?"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from typing import Final

from ..errors import FrameError, ProtocolError, ResumeRejected
from ..session import Detector, ServerStart, Session
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
"""No RESUME is longer: until it is whole, it is gathered byte by byte."""


class RSocketDetector(Detector):
    """Waits for enough bytes to tell whose a new link is: which dialect, and a new session or one to be resumed.

    Args:
        settings: Limits and timeouts.
        store: The server's sessions that may be resumed; None: it resumes none.
        served: Names of the dialects that are.
        begin: Makes a new session, of the settings, the dialect and the store.

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

    def receive(self, data: bytes, now: float) -> Session | None:
        """Take what the link brought. See :meth:`penstock.session.Detector.receive`.

        Raises ProtocolError if the bytes are not RSocket; close the link and answer nothing.
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
        session.receive(self._head, now)
        self._head = b""
        return session

    def _resume(self, now: float) -> Session | None:
        """Return the session that the first frame, RESUME, asks for; None until the frame is whole."""
        # RESUME and its answers are the same in all dialects that have them.
        codec = RSOCKET_1_0.codec()
        end = codec.prefix_bytes + int.from_bytes(self._head[: codec.prefix_bytes], "big")
        if len(self._head) < min(end, RESUME_BYTES):
            return None
        try:
            if end > RESUME_BYTES:
                raise ResumeRejected(f"a RESUME of {end} bytes is longer than any token needs")
            frame = codec.decode(self._head, codec.prefix_bytes, end)
            if not isinstance(frame, ResumeFrame) or frame.stream_id != 0:
                raise ResumeRejected("RESUME belongs on stream 0")
            if self._store is None:
                # RSocket 1.0, Resuming Operation: a server that cannot resume MUST say so.
                raise ResumeRejected("this server does not resume sessions")
            session = self._store.get(frame.token, self.identity)
            session.resume(frame, now)
        except (FrameError, ResumeRejected) as error:
            self.farewell = codec.frame(ErrorFrame(0, Code.REJECTED_RESUME, str(error).encode()))
            raise ProtocolError(f"RESUME refused: {error}") from error
        session.receive(self._head[end:], now)
        self._head = b""
        return session


def detectors(start: ServerStart) -> Callable[[], RSocketDetector]:
    """Return what makes the detectors of one server. See :func:`penstock.protocols.detectors`."""
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
