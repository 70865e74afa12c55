"""Resuming: the state that a session needs to continue over another link, or in another process.

RSocket 1.0, Resuming Operation. Positions count the bytes of encoded requests, REQUEST_N, CANCEL, ERROR on
streams, and PAYLOAD, without length prefixes.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Annotated, Final, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec
from msgspec import Meta

from ..checkpoints import before, compose, dissect
from ..core.ends import Ends
from ..core.fragments import Partial, Reassembly
from ..core.halves import DONE, IDLE, OPEN
from ..core.replay import Replay
from ..errors import FrameError, LocalError, ResumeRejected, SetupRejected
from ..kinds import Kind
from ..wire.framing import MAX_FRAME_BYTES, prefixed
from ..wire.rsocket.codec import Codec
from ..wire.rsocket.frames import Frame, FrameType
from .codes import Code
from .dialect import deframer_of
from .lifecycle import OPENED, Lifecycle

__all__ = [
    "Checkpoint",
    "Position",
    "SessionStore",
    "StreamId",
    "decode_checkpoint",
    "encode_checkpoint",
    "restore",
    "take_checkpoint",
]

SessionT = TypeVar("SessionT")

# What the fields of a checkpoint may contain. It comes from a file, which may be damaged or hostile.
StreamId: TypeAlias = Annotated[int, Meta(ge=1, le=0x7FFFFFFF)]
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=0x7FFFFFFF)]
Position: TypeAlias = Annotated[int, Meta(ge=0, le=0x7FFFFFFFFFFFFFFF)]
_Half: TypeAlias = Annotated[int, Meta(ge=IDLE, le=DONE)]
# Requests and PAYLOAD.
_Fragmented: TypeAlias = Literal[0x04, 0x05, 0x06, 0x07, 0x0A]


class StreamState(msgspec.Struct, array_like=True):
    """An open stream that this side opened."""

    id: StreamId
    kind: Kind
    inbound: _Half
    outbound: _Half
    granted: _Count
    credit: _Count


class PartialState(msgspec.Struct, array_like=True):
    """An item that has not arrived completely."""

    stream_id: StreamId
    type: _Fragmented
    flags: Annotated[int, Meta(ge=0, lt=1 << 10)]
    request_n: _Count
    metadata: bytes | None
    data: bytes

    @classmethod
    def of(cls, stream_id: int, partial: Partial) -> PartialState:
        """Return the state of `partial`."""
        head = partial.head
        payload = partial.payload()
        return cls(
            stream_id, cast("_Fragmented", head.type), head.flags, head.request_n, payload.metadata, payload.data
        )

    def head(self) -> Frame:
        """Return the first frame of the item, without its content."""
        return Frame(self.type, self.stream_id, self.flags, self.request_n)


class Checkpoint(msgspec.Struct):
    """The state of a client's session, from which a new process can continue. The token is stored separately.

    Attributes:
        version: The version of this layout.
        received: The position up to which items are stored together with this checkpoint.
        sent: The position of the first byte of `retained`.
        retained: Frames that the server may not have received, without length prefixes.
        next_id: The id of the next stream.
        streams: The open streams.
        partials: The incomplete items.

    """

    version: int
    received: Position
    sent: Position
    retained: list[bytes]
    next_id: StreamId
    streams: list[StreamState]
    partials: list[PartialState]


VERSION: Final = 3
"""Version 1 also contained the token; in version 2 everything was public."""
_decoder = msgspec.msgpack.Decoder(Checkpoint)
_KINDS: Final = {int(kind): kind for kind in Kind}


def encode_checkpoint(checkpoint: Checkpoint, secrets: int = 0) -> bytes:
    """Return `checkpoint` as bytes. The first `secrets` of the retained frames may contain secrets."""
    if not secrets:
        return compose(msgspec.msgpack.encode(checkpoint), checkpoint.sent, [])
    private, public = checkpoint.retained[:secrets], checkpoint.retained[secrets:]
    sent = checkpoint.sent + sum(map(len, private))
    shown = msgspec.structs.replace(checkpoint, sent=sent, retained=public)
    return compose(msgspec.msgpack.encode(shown), checkpoint.sent, private)


def decode_checkpoint(data: bytes) -> Checkpoint:
    """Return the checkpoint in `data`. Raises LocalError if it is invalid, or has another version."""
    public, private = dissect(data)
    try:
        checkpoint = _decoder.decode(public)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise LocalError(f"invalid session checkpoint ({len(data)} bytes): {error}") from error
    if checkpoint.version != VERSION:
        raise LocalError(f"the checkpoint has version {checkpoint.version}; this release reads version {VERSION}")
    frames = before(private, checkpoint.sent, len)
    checkpoint.sent -= sum(map(len, frames))
    checkpoint.retained = frames + checkpoint.retained
    return checkpoint


def take_checkpoint(life: Lifecycle, partials: dict[int, Partial], stream_id: int, count: int) -> bytes | None:
    """Return what a new process needs to continue a client's session; None if it cannot be resumed.

    From now on, only committed positions are reported. `partials` are the incomplete items by stream. If `count`
    is not 0, `commit` will request `count` more items of stream `stream_id`.
    """
    outbound, streams = life.outbound, life.streams
    replay = outbound.replay
    stream = streams.get(stream_id)
    if replay is None or life.token is None or life.state != OPENED:
        return None
    life.reported = max(life.reported, 0)
    codec = outbound.codec
    pieces = replay.since(replay.first)
    retained = _split(codec, pieces) if pieces else []
    state = [
        StreamState(each.id, _KINDS[each.kind], each.inbound, each.outbound, each.granted, each.credit)
        for each in streams.all()
        if each.ours
    ]
    if stream is not None and stream.inbound == OPEN and count > 0:
        # The request that `commit` will send. The server may or may not have received it when this is read.
        retained.append(codec.request_n_frame(stream_id, count)[codec.prefix_bytes :])
        for each in state:
            each.granted += count if each.id == stream_id else 0
    secrets = len(retained)
    # REQUEST_N is the only frame that cannot contain secrets.
    while secrets and codec.decode(retained[secrets - 1], 0, len(retained[secrets - 1])).type == FrameType.REQUEST_N:
        secrets -= 1
    checkpoint = Checkpoint(
        version=VERSION,
        received=life.received,
        sent=replay.first,
        retained=retained,
        next_id=streams.next_id,
        streams=state,
        partials=[PartialState.of(id, partial) for id, partial in partials.items()],
    )
    return encode_checkpoint(checkpoint, secrets)


def _split(codec: Codec, pieces: list[bytes]) -> list[bytes]:
    """Return the complete frames in `pieces`, without length prefixes."""
    deframer = deframer_of(codec, MAX_FRAME_BYTES)
    deframer.feed(b"".join(pieces))
    frames: list[bytes] = []
    while deframer.next():
        frames.append(deframer.buffer[deframer.start : deframer.end])
    return frames


def restore(checkpoint: Checkpoint, life: Lifecycle, reassembly: Reassembly) -> None:
    """Set the state of a new session from `checkpoint`. Raises LocalError if one of its frames is invalid."""
    outbound, streams = life.outbound, life.streams
    life.move("restored")
    life.received = life.reported = checkpoint.received
    prefix_bytes = outbound.prefix_bytes
    replay = Replay(life.settings.resume_bytes, prefix_bytes, checkpoint.sent, life.account)
    for index, body in enumerate(checkpoint.retained):
        try:
            outbound.codec.decode(body, 0, len(body))
        except FrameError as error:
            raise LocalError(f"invalid session checkpoint: retained frame {index}: {error}") from error
        replay.keep(prefixed(body, prefix_bytes), len(body), True)
    outbound.replay = replay
    outbound.position = replay.end
    streams.next_id = checkpoint.next_id
    for state in checkpoint.streams:
        stream = streams.restore(state.id, state.kind)
        stream.inbound, stream.outbound = state.inbound, state.outbound
        stream.granted, stream.credit = state.granted, state.credit
    for partial in checkpoint.partials:
        reassembly.begin(partial.stream_id, partial.head(), partial.metadata, partial.data, 0.0)


class SessionStore(Generic[SessionT]):
    """The resumable sessions of one server, by token.

    Args:
        limit: The maximum number of sessions.

    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        # By the digest of the token, so that the time of a lookup does not reveal how much of a token is right.
        self._sessions: dict[bytes, tuple[bytes, SessionT]] = {}
        self._ends = Ends(limit)

    def __len__(self) -> int:
        return len(self._sessions)

    def add(self, token: bytes, session: SessionT, identity: bytes = b"") -> bool:
        """Store `session` for the peer with that `identity`; return False if the token is in use or the store is full.

        Raises SetupRejected if a session with that token has ended, so that its requests are not executed again.
        """
        ended = self._ends.reason(token, identity)
        if ended:
            raise SetupRejected(ended, Code.REJECTED_SETUP)
        if len(self._sessions) >= self._limit or self._find(token) is not None:
            return False
        self._sessions[self._name(token)] = identity, session
        return True

    def get(self, token: bytes, identity: bytes = b"") -> SessionT:
        """Return the session with that token, if the peer with that `identity` created it.

        Raises ResumeRejected if there is none, or if it belongs to another client; the error is the same.
        """
        found = self._find(token)
        # THREATS 28: a stolen token is useless without the key of its owner's certificate.
        if found is None or not hmac.compare_digest(found[0], identity):
            raise ResumeRejected(self._ends.reason(token, identity) or "there is no session with this token")
        return found[1]

    def revived(self, token: bytes, session: SessionT, identity: bytes) -> None:
        """Store `session`, which an earlier process started."""
        self._sessions[self._name(token)] = identity, session

    def remove(self, token: bytes, error: Exception | None = None) -> None:
        """Remove the session with that token, which has ended; `error` is None if it was closed normally."""
        found = self._sessions.pop(self._name(token), None)
        if found is not None:
            self._ends.note(token, found[0], error)

    def _find(self, token: bytes) -> tuple[bytes, SessionT] | None:
        return self._sessions.get(self._name(token))

    def _name(self, token: bytes) -> bytes:
        # A comparison of digests tells nothing of a token. To compare each token in constant time would cost more, the
        # more sessions clients leave behind.
        return sha256(token).digest()
