"""The handshake: its messages, and what a server makes of a client's.

River, Handshake. Its messages have no flags and the numbers 0, and take part in no bookkeeping.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import UNSET, Raw, Struct, UnsetType

from ..errors import FrameError, SetupRejected
from ..wire.river.codec import Id, RiverCodec, whole
from ..wire.river.message import Message
from .sequence import Sequence

__all__ = [
    "GOODBYE",
    "MALFORMED",
    "MALFORMED_META",
    "MISMATCH",
    "REHANDSHAKE",
    "REJECTED",
    "V1_1",
    "V2_0",
    "ExpectedState",
    "HandshakeRequest",
    "HandshakeResponse",
    "Rehandshake",
    "check_state",
    "code_of",
    "decode_request",
    "is_rehandshake",
    "rehandshake",
    "rehandshake_request",
    "request",
    "response",
]

V2_0: Final = "v2.0"
V1_1: Final = "v1.1"
REHANDSHAKE: Final = "rehandshake"
"""The stream on which a server asks for metadata anew."""

GOODBYE: Final = "goodbye"
"""The stream of a server's last message: it is open nowhere, and clients that do not know it MUST ignore it."""

MISMATCH: Final = "SESSION_STATE_MISMATCH"
"""The one code after which a client may try again, with a new session."""
MALFORMED: Final = "MALFORMED_HANDSHAKE"
MALFORMED_META: Final = "MALFORMED_HANDSHAKE_META"
VERSION: Final = "PROTOCOL_VERSION_MISMATCH"
REJECTED: Final = "REJECTED_BY_CUSTOM_HANDLER"
UNSUPPORTED: Final = "REJECTED_UNSUPPORTED_CLIENT"
CODES: Final = frozenset({MISMATCH, MALFORMED, MALFORMED_META, VERSION, REJECTED, UNSUPPORTED})


class ExpectedState(Struct, rename="camel"):
    """Where a client would go on: what it expects next, and the oldest message that it would send."""

    next_expected_seq: int | float
    next_sent_seq: int | float = 0


class HandshakeRequest(Struct, rename="camel"):
    """A client says who it is. The document writes `metdata`, the reference `metadata`.

    Early clients of v1.1 do not say where they would go on.
    """

    # No tag of msgspec's: that might be absent.
    type: Literal["HANDSHAKE_REQ"]
    protocol_version: str
    session_id: Id
    expected_session_state: ExpectedState | UnsetType = UNSET
    metadata: Raw | UnsetType = UNSET
    metdata: Raw | UnsetType = UNSET

    @property
    def said(self) -> bytes:
        """The metadata's body; empty when there is none."""
        found = self.metdata if self.metadata is UNSET else self.metadata
        return bytes(found) if isinstance(found, Raw) else b""


class Status(Struct, rename="camel"):
    """What a server makes of it."""

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
    """A client's answer to a server that asks for its metadata anew."""

    type: Literal["REHANDSHAKE_RESP"]
    metadata: Raw | UnsetType = UNSET

    @property
    def said(self) -> bytes:
        """The metadata's body; empty when there is none."""
        return bytes(self.metadata) if isinstance(self.metadata, Raw) else b""


def request(session_id: str, sequence: Sequence, metadata: bytes, codec: RiverCodec) -> bytes:
    """Return the body of a client's handshake."""
    state = ExpectedState(sequence.reported(), sequence.first)
    return codec.encode_value(
        HandshakeRequest("HANDSHAKE_REQ", V2_0, session_id, state, Raw(metadata) if metadata else UNSET)
    )


def response(codec: RiverCodec, session_id: str = "", reason: str = "", code: str = "") -> bytes:
    """Return the body of a server's answer: with a `code` it refuses."""
    status = Status(False, UNSET, reason, code) if code else Status(True, session_id)
    return codec.encode_value(HandshakeResponse("HANDSHAKE_RESP", status))


def decode_request(message: Message, codec: RiverCodec, old: bool) -> HandshakeRequest:
    """Return the handshake that a client's first message is.

    Args:
        message: The message.
        codec: Of its body.
        old: Whether clients of v1.1 are served.

    Raises:
        SetupRejected: It is none, or one of another version; the error's code is the answer's.

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
    """Check that a client and a server can go on together.

    Args:
        state: The client's; unset: it does not say, and order alone tells.
        sequence: The server's; None: it has no such session.
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
    """Return the code that tells a client of `error`: whoever finds no room may try again."""
    if error.temporary:
        return MISMATCH
    return error.code if isinstance(error.code, str) and error.code in CODES else REJECTED


def is_rehandshake(codec: RiverCodec, body: bytes) -> bool:
    """Whether a server asks for metadata anew."""
    try:
        return codec.value(body, _Control).type == "REHANDSHAKE_REQ"
    except FrameError:
        return False


def rehandshake(metadata: bytes, codec: RiverCodec) -> bytes:
    """Return the body that answers it."""
    return codec.encode_value(Rehandshake("REHANDSHAKE_RESP", Raw(metadata) if metadata else UNSET))


def rehandshake_request(codec: RiverCodec) -> bytes:
    """Return the body by which a server asks for it."""
    return codec.encode_value({"type": "REHANDSHAKE_REQ"})
