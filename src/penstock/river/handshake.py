"""The handshake: its messages, how a server checks a client's, and how a client says again who it is.

River, Handshake. Its messages have no flags and the numbers 0, and take part in no bookkeeping.

The document has metadata in handshakes only. The reference's servers ask for it again on the stream ``rehandshake``,
for example before a token expires. They also look at it in every handshake of a session.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from ..core.timers import Timer
from ..errors import FrameError, LinkLost, LocalError, ProtocolError, ResumeRejected, SetupRejected
from ..events import Established
from ..payload import Payload
from ..texts import shown
from ..wire.river.codec import Id, RiverCodec, whole
from ..wire.river.message import Message
from .identity import Side
from .outbound import Outbound, Sequence

__all__ = [
    "MALFORMED", "MALFORMED_META", "MISMATCH", "REHANDSHAKE", "REJECTED", "V1_1", "V2_0", "ExpectedState",
    "Handshake", "HandshakeRequest", "HandshakeResponse", "Rehandshake", "check_state", "code_of", "decode_request",
    "request", "response",
]  # fmt: skip

V2_0: Final = "v2.0"
V1_1: Final = "v1.1"
REHANDSHAKE: Final = "rehandshake"
"""The stream on which a server asks for metadata again."""

MISMATCH: Final = "SESSION_STATE_MISMATCH"
"""The one code after which a client may try again, with a new session."""
MALFORMED: Final = "MALFORMED_HANDSHAKE"
MALFORMED_META: Final = "MALFORMED_HANDSHAKE_META"
VERSION: Final = "PROTOCOL_VERSION_MISMATCH"
REJECTED: Final = "REJECTED_BY_CUSTOM_HANDLER"
UNSUPPORTED: Final = "REJECTED_UNSUPPORTED_CLIENT"
CODES: Final = frozenset({MISMATCH, MALFORMED, MALFORMED_META, VERSION, REJECTED, UNSUPPORTED})


class ExpectedState(Struct, rename="camel"):
    """Where a client would resume: the number that it expects next, and the oldest message that it would send."""

    next_expected_seq: int | float
    next_sent_seq: int | float = 0


class HandshakeRequest(Struct, rename="camel"):
    """A client's handshake. The document writes `metdata`, the reference `metadata`.

    Early clients of v1.1 do not say where they would resume.
    """

    # No tag of msgspec's: that might be absent.
    type: Literal["HANDSHAKE_REQ"]
    protocol_version: str
    session_id: Id
    expected_session_state: ExpectedState | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    metdata: Raw | UnsetType = UNSET

    @property
    def metadata_body(self) -> bytes:
        """The metadata's body; empty when there is none."""
        found = self.metdata if self.metadata is UNSET else self.metadata
        return bytes(found) if isinstance(found, Raw) else b""


class Status(Struct, rename="camel"):
    """Whether the server accepts a handshake."""

    ok: bool
    session_id: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


class HandshakeResponse(Struct):
    """A server's answer."""

    type: Literal["HANDSHAKE_RESP"]
    status: Status


class _Control(Struct):
    type: str


class Rehandshake(Struct):
    """A client's answer to a server that asks for its metadata again."""

    type: Literal["REHANDSHAKE_RESP"]
    metadata: Raw | UnsetType = UNSET


def request(session_id: str, sequence: Sequence, metadata: bytes, codec: RiverCodec) -> bytes:
    """Return the body of a client's handshake."""
    state = ExpectedState(sequence.reported(), sequence.first)
    return codec.encode_value(
        HandshakeRequest("HANDSHAKE_REQ", V2_0, session_id, state, Raw(metadata) if metadata else UNSET)
    )


def response(codec: RiverCodec, session_id: str = "", reason: str = "", code: str = "") -> bytes:
    """Return the body of a server's answer. With a `code` it refuses."""
    status = Status(False, UNSET, reason, code) if code else Status(True, session_id)
    return codec.encode_value(HandshakeResponse("HANDSHAKE_RESP", status))


def decode_request(message: Message, codec: RiverCodec, old: bool) -> HandshakeRequest:
    """Return the handshake that a client's first message is.

    Args:
        message: The message.
        codec: Of its body.
        old: Whether clients of v1.1 are served.

    Raises:
        SetupRejected: It is not a handshake, or one of another version. The error's code is the answer's.

    """
    try:
        asked = codec.value(message.payload, HandshakeRequest)
    except FrameError as error:
        raise SetupRejected(f"the first message is no handshake: {error.message}", MALFORMED) from error
    served = (V1_1, V2_0) if old else (V2_0,)
    if asked.protocol_version not in served:
        raise SetupRejected(f"this server speaks {' and '.join(served)}, not {asked.protocol_version[:20]}", VERSION)
    if not asked.session_id:
        raise SetupRejected("the session has no id", MALFORMED)
    state = asked.expected_session_state
    if state is UNSET:
        if asked.protocol_version != V1_1:
            raise SetupRejected("the handshake has no expectedSessionState", MALFORMED)
        return asked
    try:
        state.next_expected_seq = whole("nextExpectedSeq", state.next_expected_seq)
        state.next_sent_seq = whole("nextSentSeq", state.next_sent_seq)
    except FrameError as error:
        # THREATS 56.
        raise SetupRejected(error.message, MISMATCH) from error
    return asked


def check_state(state: ExpectedState | UnsetType, sequence: Sequence | None, unknown: str = "") -> None:
    """Check that a client and a server can resume together.

    Args:
        state: The client's. Unset: it does not say, and only the order of messages tells.
        sequence: The server's. None: it has no such session.
        unknown: Why it has none.

    Raises:
        SetupRejected: One of them lacks what the other has forgotten.

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
            f"the client is in the future: {sequence.ack} is expected, and it would send {sent}", MISMATCH
        )
    if not sequence.first <= expected <= sequence.seq:
        raise SetupRejected(
            f"the client expects {expected}, and {sequence.first} to {sequence.seq} can be sent", MISMATCH
        )


def code_of(error: SetupRejected) -> str:
    """Return the code that tells a client of `error`. A client that finds no room may try again."""
    if error.temporary:
        return MISMATCH
    return error.code if isinstance(error.code, str) and error.code in CODES else REJECTED


class Handshake:
    """Tells a server who its client is, or learns it from the client: when they link, and again when a server asks.

    Args:
        side: Who talks to whom.
        metadata: A client's metadata, as a body; empty: none.
        renew: Returns a client's metadata from its second handshake on. None: it stays the same.
        outbound: Sends the messages.

    """

    def __init__(self, side: Side, metadata: bytes, renew: Callable[[], bytes] | None, outbound: Outbound) -> None:
        self._side = side
        self._outbound = outbound
        # FIRST_FRAME runs while an answer of the peer is missing.
        self._timers = side.timers
        self._metadata = metadata
        self._renew = renew
        # Whether the client's metadata was sent before.
        self._repeats = False
        # Whether the client's metadata came without a handshake: then there is no answer to it.
        self._unanswerable = False

    def established(self) -> None:
        """Report that the client's metadata is known, or accepted."""
        self._side.events.append(Established(Payload(self._metadata), "", self._side.codec.data_mime))

    # On the client.

    def request(self, now: float) -> bool:
        """Send a handshake. Return whether that was possible: else the session is over."""
        if not self._is_renewed():
            return False
        side, outbound = self._side, self._outbound
        outbound.outbox.clear()
        outbound.send_control(request(side.session_id, outbound.sequence, self._metadata, side.codec))
        self._timers.set(Timer.FIRST_FRAME, now + side.settings.handshake_timeout)
        return True

    def refusal(self, message: Message) -> SetupRejected | ResumeRejected | None:
        """Take a server's answer. Return why it has refused the handshake; None: it has accepted.

        Raises:
            SessionError: The message cannot be read, or is not an answer.

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
        text = f"{side.peer} refused the handshake: {shown(code)} {reason}"
        refused = SetupRejected(text, code or None)
        if status.ok or (code == MISMATCH and not refused.temporary):
            # River, Client: the server has lost the state of this session.
            return ResumeRejected(text, code or None)
        return refused

    def repeat(self, message: Message) -> bool:
        """Answer a server that asks for metadata again. Return whether `message` does."""
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
        """Renew the metadata that is sent next. Return False if that fails: the session is over."""
        if self._renew is not None and self._repeats:
            try:
                self._metadata = self._side.codec.body(self._renew())
            except Exception as wrong:
                error = LocalError(f"what the client says of itself could not be had anew: {wrong!r}")
                error.__cause__ = wrong
                self._side.finish(error)
                return False
        self._repeats = True
        return True

    # On the server.

    def accept(self, answered_as: str) -> None:
        """Answer a client's handshake, by the name that its session has there."""
        self._outbound.send_control(response(self._side.codec, answered_as))

    def refuse(self, error: SetupRejected) -> None:
        """Tell a client why its handshake is refused after all, unless its metadata came without one."""
        if not self._unanswerable:
            self._outbound.send_control(response(self._side.codec, "", error.message, code_of(error)))

    def metadata_renewed(self, metadata: bytes) -> None:
        """Take the metadata of a handshake, or of an answer to :meth:`ask`."""
        self._unanswerable = False
        self._metadata = metadata
        self.established()

    def ask(self, now: float) -> None:
        """Ask the client for its metadata again, unless an answer is missing already."""
        if Timer.FIRST_FRAME in self._timers:
            return
        codec = self._side.codec
        self._timers.set(Timer.FIRST_FRAME, now + self._side.settings.handshake_timeout)
        self._outbound.send_message(codec.encoded(REHANDSHAKE), 0, codec.encode_value({"type": "REHANDSHAKE_REQ"}))

    def repeated(self, message: Message) -> bool:
        """Take the metadata for which we have asked. Return whether we have.

        Raises:
            ProtocolError: The message is not an answer.

        """
        if Timer.FIRST_FRAME not in self._timers:
            return False
        try:
            metadata = self._side.codec.value(message.payload, Rehandshake).metadata
        except FrameError as error:
            raise ProtocolError(f"the answer to a rehandshake is none: {error.message}") from error
        self._timers.stop(Timer.FIRST_FRAME)
        self.metadata_renewed(bytes(metadata) if isinstance(metadata, Raw) else b"")
        self._unanswerable = True
        return True

    def not_repeated(self) -> None:
        """End the session of a client that has not answered in time."""
        limit = self._side.settings.handshake_timeout
        self._side.finish(LinkLost(f"{self._side.peer} did not answer the rehandshake within {limit:g} s"))
