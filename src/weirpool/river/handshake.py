"""The handshake: its messages, the server's check of them, and rehandshakes.

River, Handshake. Its messages have no flags and have 0 as `seq` and `ack`; they are not acknowledged.

In the document, only handshakes have metadata. Servers of the reference implementation also request it later on the
stream ``rehandshake``, for example before a token expires, and check the metadata of every handshake of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from ..core.timers import Timer
from ..errors import FrameError, LinkLost, LocalError, ProtocolError, ResumeRejected, SetupRejected
from ..events import Established
from ..payload import Payload
from ..texts import concealed, shown
from ..wire.river.codec import Id, RiverCodec, whole
from ..wire.river.message import Message
from .identity import Side
from .outbound import Outbound, Sequence

__all__ = [
    "MALFORMED", "MALFORMED_META", "MISMATCH", "REHANDSHAKE", "REJECTED", "V1_1", "V2_0", "ExpectedState",
    "Handshake", "HandshakeRequest", "HandshakeResponse", "Rehandshake", "check_state", "code_of", "decode_request",
    "request", "response", "resumes",
]  # fmt: skip

V2_0: Final = "v2.0"
V1_1: Final = "v1.1"
REHANDSHAKE: Final = "rehandshake"
"""The stream on which a server requests the metadata again."""

MISMATCH: Final = "SESSION_STATE_MISMATCH"
"""The only code after which a client may retry, with a new session."""
MALFORMED: Final = "MALFORMED_HANDSHAKE"
MALFORMED_META: Final = "MALFORMED_HANDSHAKE_META"
VERSION: Final = "PROTOCOL_VERSION_MISMATCH"
REJECTED: Final = "REJECTED_BY_CUSTOM_HANDLER"
UNSUPPORTED: Final = "REJECTED_UNSUPPORTED_CLIENT"
CODES: Final = frozenset({MISMATCH, MALFORMED, MALFORMED_META, VERSION, REJECTED, UNSUPPORTED})


class ExpectedState(Struct, rename="camel"):
    """Where a client would resume: the next number that it expects, and that of the oldest message that it can send."""

    next_expected_seq: int | float
    next_sent_seq: int | float = 0


class HandshakeRequest(Struct, rename="camel"):
    """A client's handshake. The document writes `metdata`, the reference `metadata`.

    Early clients of v1.1 do not send `expected_session_state`.
    """

    __repr__ = concealed

    # Not a msgspec tag, because msgspec accepts messages without the tag.
    type: Literal["HANDSHAKE_REQ"]
    protocol_version: str
    session_id: Id
    expected_session_state: ExpectedState | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    metdata: Raw | UnsetType = UNSET

    @property
    def metadata_body(self) -> bytes:
        """The metadata, encoded; empty if there is none."""
        found = self.metdata if self.metadata is UNSET else self.metadata
        return bytes(found) if isinstance(found, Raw) else b""


class Status(Struct, rename="camel"):
    """The result of a handshake."""

    ok: bool
    session_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


class HandshakeResponse(Struct):
    """A server's response to a handshake."""

    type: Literal["HANDSHAKE_RESP"]
    status: Status


class _Control(Struct):
    type: str


class Rehandshake(Struct):
    """A client's response to a rehandshake request."""

    __repr__ = concealed

    type: Literal["REHANDSHAKE_RESP"]
    metadata: Raw | UnsetType = UNSET


def request(session_id: str, sequence: Sequence, metadata: bytes, codec: RiverCodec) -> bytes:
    """Return the body of a client's handshake."""
    state = ExpectedState(sequence.reported(), sequence.first)
    return codec.encode_value(
        HandshakeRequest("HANDSHAKE_REQ", V2_0, session_id, state, Raw(metadata) if metadata else UNSET)
    )


def response(codec: RiverCodec, session_id: str = "", reason: str = "", code: str = "") -> bytes:
    """Return the body of a server's response, which rejects the handshake if there is a `code`."""
    status = Status(False, UNSET, reason, code) if code else Status(True, session_id)
    return codec.encode_value(HandshakeResponse("HANDSHAKE_RESP", status))


def decode_request(message: Message, codec: RiverCodec, old: bool) -> HandshakeRequest:
    """Return the handshake in a client's first message.

    Args:
        message: The message.
        codec: Decodes its body.
        old: Whether clients of v1.1 are served.

    Raises:
        SetupRejected: The message is not a handshake, or has another version. The error has the response's code.

    """
    try:
        handshake = codec.value(message.payload, HandshakeRequest)
    except FrameError as error:
        raise SetupRejected(f"the first message is not a handshake: {error.message}", MALFORMED) from error
    served = (V1_1, V2_0) if old else (V2_0,)
    if handshake.protocol_version not in served:
        raise SetupRejected(
            f"this server speaks {' and '.join(served)}, not {handshake.protocol_version[:20]}", VERSION
        )
    if not handshake.session_id:
        raise SetupRejected("the handshake has an empty sessionId", MALFORMED)
    state = handshake.expected_session_state
    if state is UNSET:
        if handshake.protocol_version != V1_1:
            raise SetupRejected("the handshake has no expectedSessionState", MALFORMED)
        return handshake
    try:
        state.next_expected_seq = whole("nextExpectedSeq", state.next_expected_seq)
        state.next_sent_seq = whole("nextSentSeq", state.next_sent_seq)
    except FrameError as error:
        # THREATS 56.
        raise SetupRejected(error.message, MISMATCH) from error
    return handshake


def check_state(state: ExpectedState | UnsetType, sequence: Sequence | None, unknown: str = "") -> None:
    """Check that a client and a server can resume a session.

    Args:
        state: The client's state. Unset: not checked; a mismatch shows in the order of messages.
        sequence: The server's state. None: the server does not have the session.
        unknown: Why the server does not have it.

    Raises:
        SetupRejected: One side no longer has messages that the other one expects.

    """
    if state is UNSET:
        return
    expected, sent = int(state.next_expected_seq), int(state.next_sent_seq)
    if sequence is None:
        if expected or sent:
            raise SetupRejected(unknown, MISMATCH)
        return
    if sent > sequence.ack:
        raise SetupRejected(
            f"the client would resume at message {sent}, but the server expects {sequence.ack}", MISMATCH
        )
    if not sequence.first <= expected <= sequence.seq:
        raise SetupRejected(
            f"the client expects message {expected}, but the server has {sequence.first} to {sequence.seq}", MISMATCH
        )


def resumes(state: ExpectedState | UnsetType) -> bool:
    """Return whether a client with this state continues a session."""
    return state is not UNSET and bool(state.next_expected_seq or state.next_sent_seq)


def code_of(error: SetupRejected) -> str:
    """Return the code for `error`. It permits a retry if the rejection is temporary."""
    if error.temporary:
        return MISMATCH
    return error.code if isinstance(error.code, str) and error.code in CODES else REJECTED


class Handshake:
    """Exchanges the client's metadata: in each handshake, and in rehandshakes.

    Args:
        side: The side and its peer.
        metadata: A client's metadata, encoded; empty: none.
        renew: Returns a client's metadata for its second and later handshakes. None: it stays the same.
        outbound: Sends the messages.

    """

    def __init__(self, side: Side, metadata: bytes, renew: Callable[[], bytes] | None, outbound: Outbound) -> None:
        self._side = side
        self._outbound = outbound
        # FIRST_FRAME runs while a response is pending.
        self._timers = side.timers
        self._metadata = metadata
        self._renew = renew
        # Whether the client has sent its metadata before.
        self._metadata_sent = False
        # Whether the newest metadata came in a rehandshake, to which River has no response.
        self._in_rehandshake = False

    def established(self) -> None:
        """Report `Established`: the server has received the metadata, or the client's was accepted."""
        self._side.events.append(Established(Payload(self._metadata), "", self._side.codec.data_mime))

    # On the client.

    def request(self, now: float) -> bool:
        """Send a handshake. Return False if that failed and the session has ended."""
        if not self._is_renewed():
            return False
        side, outbound = self._side, self._outbound
        outbound.outbox.clear()
        outbound.send_control(request(side.session_id, outbound.sequence, self._metadata, side.codec))
        self._timers.set(Timer.FIRST_FRAME, now + side.settings.handshake_timeout)
        return True

    def check_response(self, message: Message) -> SetupRejected | ResumeRejected | None:
        """Handle a server's response. Return the error if it rejects the handshake, or None.

        Raises:
            SessionError: The message cannot be decoded, or is not a response.

        """
        if message.fault is not None:
            raise message.fault
        side = self._side
        status = side.codec.value(message.payload, HandshakeResponse).status
        if status.ok and status.session_id == side.session_id and message.to == side.us:
            self._timers.stop(Timer.FIRST_FRAME)
            return None
        code = "" if status.code is UNSET else str(status.code)
        reason = "" if status.reason is UNSET else shown(str(status.reason))
        text = f"{side.peer} rejected the handshake: {shown(code)} {reason}"
        refused = SetupRejected(text, code or None)
        if status.ok or (code == MISMATCH and not refused.temporary):
            # River, Client: the server no longer has this session.
            return ResumeRejected(text, code or None)
        return refused

    def answer_rehandshake(self, message: Message) -> bool:
        """Send the metadata again. Return False if `message` is not a rehandshake request."""
        codec = self._side.codec
        try:
            if codec.value(message.payload, _Control).type != "REHANDSHAKE_REQ":
                return False
        except FrameError:
            return False
        if self._is_renewed():
            answer = Rehandshake("REHANDSHAKE_RESP", Raw(self._metadata) if self._metadata else UNSET)
            self._outbound.send_message(codec.encoded(REHANDSHAKE), 0, codec.encode_value(answer))
        return True

    def _is_renewed(self) -> bool:
        """Update the metadata before it is sent. Return False if that failed and the session has ended."""
        if self._renew is not None and self._metadata_sent:
            try:
                self._metadata = self._side.codec.body(self._renew())
            except Exception as wrong:
                error = LocalError(f"the function that renews the client's set-up raised {wrong!r}")
                error.__cause__ = wrong
                self._side.finish(error)
                return False
        self._metadata_sent = True
        return True

    # On the server.

    def accept(self, answered_as: str) -> None:
        """Accept a client's handshake; `answered_as` is the session's id in the response."""
        self._outbound.send_control(response(self._side.codec, answered_as))

    def refuse(self, error: SetupRejected) -> None:
        """Reject a client's handshake after it was read. Send nothing if the metadata came in a rehandshake."""
        if not self._in_rehandshake:
            self._outbound.send_control(response(self._side.codec, "", error.message, code_of(error)))

    def metadata_renewed(self, metadata: bytes) -> None:
        """Store the metadata of a handshake or a rehandshake, and report it."""
        self._in_rehandshake = False
        self._metadata = metadata
        self.established()

    def rehandshake(self, now: float) -> None:
        """Request the client's metadata again, unless a request is pending."""
        if Timer.FIRST_FRAME in self._timers:
            return
        codec = self._side.codec
        self._timers.set(Timer.FIRST_FRAME, now + self._side.settings.handshake_timeout)
        self._outbound.send_message(codec.encoded(REHANDSHAKE), 0, codec.encode_value({"type": "REHANDSHAKE_REQ"}))

    def receive_rehandshake(self, message: Message) -> bool:
        """Handle the response to a rehandshake request. Return False if no request is pending.

        Raises:
            ProtocolError: The message is not a rehandshake response.

        """
        if Timer.FIRST_FRAME not in self._timers:
            return False
        try:
            metadata = self._side.codec.value(message.payload, Rehandshake).metadata
        except FrameError as error:
            raise ProtocolError(f"invalid rehandshake response: {error.message}") from error
        self._timers.stop(Timer.FIRST_FRAME)
        self.metadata_renewed(bytes(metadata) if isinstance(metadata, Raw) else b"")
        self._in_rehandshake = True
        return True

    def rehandshake_expired(self) -> None:
        """End the session: the client has not answered the rehandshake in time."""
        limit = self._side.settings.handshake_timeout
        self._side.finish(LinkLost(f"{self._side.peer} did not answer the rehandshake within {limit:g} s"))
