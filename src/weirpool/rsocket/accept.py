"""Detects RSocket on a new link of a server."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial
from typing import Final

from ..errors import FrameError, ProtocolError, ResumeRejected
from ..session import SLICE, Detector, ServerStart, Session
from ..settings import Settings
from ..wire.rsocket.frames import ResumeFrame
from .codes import Code
from .detect import NotSetup, detect, is_resume
from .dialect import DIALECTS, Dialect
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
        messages, exclusive: See :func:`weirpool.rsocket.detect.detect`.

    """

    def __init__(
        self,
        settings: Settings,
        store: SessionStore[RSocketSession] | None = None,
        served: Collection[str] = frozenset(DIALECTS),
        begin: Callable[..., RSocketSession] = RSocketSession.server,
        *,
        messages: bool = False,
        exclusive: bool = False,
    ) -> None:
        super().__init__(settings.first_frame_timeout)
        self._settings = settings
        self._store = store
        self._served = served
        self._begin = begin
        self._messages = messages
        self._exclusive = exclusive
        self._head = b""

    @property
    def held(self) -> int:
        """The bytes of an incomplete RESUME, or of less than a frame's header."""
        return len(self._head)

    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session of the link. See :meth:`weirpool.session.Detector.receive`.

        Raises ProtocolError if the bytes are not RSocket, or if RESUME is rejected.
        """
        self._head += data
        dialect = self._detect()
        if dialect is None:
            return None
        if dialect.keepalive and is_resume(self._head):
            return self._resume(dialect, now)
        session = self._begin(self._settings, dialect, self._store if dialect.keepalive else None)
        session.identity = self.identity
        session.link_up(self._since)
        self.more = session.receive(self._head, now, SLICE)
        self._head = b""
        return session

    def _detect(self) -> Dialect | None:
        """Return the dialect; None until enough bytes have arrived. Raises ProtocolError if there is none."""
        found = partial(detect, messages=self._messages, exclusive=self._exclusive)
        try:
            dialect = found(self._head, self._settings, self._served)
        except NotSetup as error:
            if error.dialect is not None:
                # The bytes of an unknown frame are for the log, and are not sent back.
                invalid = error.code == Code.INVALID_SETUP
                text = f"the first frame is not a SETUP of {error.dialect.name}" if invalid else str(error)
                self._answer(self._on_link(error.dialect), error.code, text)
            raise
        return None if dialect is None else self._on_link(dialect)

    def _on_link(self, dialect: Dialect) -> Dialect:
        """Return `dialect` with the lengths that its frames have on this link."""
        if self._messages:
            return dialect.over_messages()
        return dialect.counting_itself() if self._settings.length_counts_itself else dialect

    def _answer(self, dialect: Dialect, code: Code, text: str) -> None:
        """Answer the first frame with an error before the link is closed."""
        frame = dialect.close_error(code, text.encode())
        if frame is not None:
            self.farewell = dialect.codec().frame(frame)

    def _resume(self, dialect: Dialect, now: float) -> Session | None:
        """Return the session that the first frame, RESUME, names; None until the frame is whole."""
        codec = dialect.codec()
        if self.locked_out:
            self.was_locked_out = True
            raise ProtocolError(f"RESUME refused: {self.locked_out}")
        end = int.from_bytes(self._head[: codec.prefix_bytes], "big") + codec.prefix_bytes * (not codec.counts_itself)
        if len(self._head) < min(end, RESUME_BYTES):
            return None
        try:
            if end > RESUME_BYTES:
                raise ResumeRejected(f"RESUME has {end} bytes; at most {RESUME_BYTES} are accepted")
            frame = codec.decode(self._head, codec.prefix_bytes, end)
            if self._store is None or not isinstance(frame, ResumeFrame):
                # RSocket 1.0, Resuming Operation: a server that cannot resume MUST reject it.
                raise ResumeRejected("this server does not resume sessions")
            session = self._store.get(frame.token, self.identity)
            session.resume(frame, now)
        except (FrameError, ResumeRejected) as error:
            self.guessed = True
            self._answer(dialect, Code.REJECTED_RESUME, str(error))
            raise ProtocolError(f"RESUME rejected: {error}") from error
        self.more = session.receive(self._head[end:], now, SLICE)
        self._head = b""
        return session


def detectors(start: ServerStart) -> Callable[[], RSocketDetector]:
    """Return a factory of detectors for one server. See :func:`weirpool.protocols.detectors`."""
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
    return partial(RSocketDetector, settings, store, served, begin, messages=start.messages, exclusive=start.exclusive)
