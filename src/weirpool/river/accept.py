"""Detects River on a new link of a server: reads the handshake and finds its session."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import ProtocolError, SetupRejected
from ..session import Detector, ServerStart, Session
from ..settings import Settings
from ..wire.framing import deframer, framed
from ..wire.river.codec import codec_of
from ..wire.river.message import Message
from .handshake import MALFORMED, MISMATCH, check_state, code_of, decode_request, response, resumes
from .identity import SERVER, Identity, tag_of
from .session import RiverSession
from .sessions import Sessions

__all__ = ["RiverDetector", "detectors"]


class RiverDetector(Detector):
    """Waits for a whole handshake and finds the session that it belongs to.

    Args:
        settings: Limits and timeouts.
        identity: The codec, and the server's id.
        sessions: The server's sessions.
        session_class: The class of new sessions.

    """

    def __init__(
        self,
        settings: Settings,
        identity: Identity,
        sessions: Sessions[RiverSession],
        session_class: type[RiverSession] = RiverSession,
    ) -> None:
        super().__init__(settings.handshake_timeout)
        self._session_class = session_class
        self._settings = settings
        self._codec = codec_of(identity.codec)
        self._name = identity.server
        self._sessions = sessions
        self._deframer = deframer(settings.max_setup_frame_bytes)

    @property
    def held(self) -> int:
        """The bytes of an incomplete handshake."""
        return self._deframer.held

    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session of the link. See :meth:`weirpool.session.Detector.receive`.

        Raises:
            ProtocolError: The first message is not a handshake, or the handshake is rejected.

        """
        self._deframer.feed(data)
        found = self._deframer
        if not found.next():
            return None
        # A message that cannot be decoded is not answered.
        message = self._codec.decode(found.buffer, found.start, found.end)
        if message.fault is not None:
            raise message.fault
        try:
            if found.pending:
                raise SetupRejected("the client did not wait for the response to its handshake", MALFORMED)
            return self._session(message, now)
        except SetupRejected as error:
            self.guessed = not error.temporary and error.code == MISMATCH
            body = response(self._codec, "", error.message, code_of(error))
            answer = Message(f"{message.id[:64]}-r", message.to, message.from_, 0, 0, message.stream_id, 0, body)
            self.farewell = framed(self._codec.encode(answer))
            raise ProtocolError(f"handshake rejected: {error}") from error

    def _session(self, message: Message, now: float) -> Session:
        """Return the session that a handshake names. River, Server; and Handshake."""
        if message.control_flags:
            raise SetupRejected("a handshake must not have control flags", MALFORMED)
        request = decode_request(message, self._codec, self._settings.river_v1_1)
        if self._name and message.to != self._name:
            raise SetupRejected(f"this server is {self._name}, not {message.to[:40]}", MALFORMED)
        sessions = self._sessions
        if self.locked_out and (resumes(request.expected_session_state) or sessions.taken(request.session_id)):
            self.was_locked_out = True
            raise ProtocolError(f"handshake refused: {self.locked_out}")
        known = sessions.get(request.session_id, message.from_, self.identity)
        if known is not None and known.us == message.to:
            known.resume(request, now)
            return known
        if known is not None:
            known.decline()
        unknown = sessions.reason(request.session_id, self.identity)
        check_state(request.expected_session_state, None, unknown)
        if sessions.taken(request.session_id):
            raise SetupRejected(unknown, MISMATCH)
        if sessions.full:
            raise SetupRejected.full(f"{self._settings.all_sessions} sessions are open", MISMATCH)
        us = message.to or self._name or SERVER
        session_id = request.session_id
        tag = f"{tag_of(session_id)}-s"
        session = self._session_class(self._settings, self._codec.name, False, us, message.from_, session_id, tag)
        session.identity = self.identity
        session.serve(request, sessions, now)
        return session


def detectors(start: ServerStart) -> Callable[[], RiverDetector]:
    """Return a factory of detectors for one server. See :func:`weirpool.protocols.detectors`."""
    settings, identity = start.settings, Identity.of(start.options)
    if start.logs is None:
        sessions: Sessions[RiverSession] = Sessions(settings.all_sessions)
        return lambda: RiverDetector(settings, identity, sessions)
    from .stored import StoredRiverSession
    from .stored_sessions import StoredSessions

    stored = StoredSessions(settings, start.logs, identity.codec)
    return lambda: RiverDetector(settings, identity, stored, StoredRiverSession)
