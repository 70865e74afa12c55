"""Handles the frames of streams: checks each against the state of its stream, and makes events."""

from __future__ import annotations

from typing import Final

from ..core.halves import MAX_REQUEST_N, OPEN, Signal, add
from ..core.rates import Rate
from ..core.streams import Stream
from ..errors import FrameError, LimitExceeded, ProtocolError, Rejected
from ..events import (
    Canceled,
    Completed,
    CreditGranted,
    Draining,
    MetadataPushed,
    item_received,
    requested,
    run_received,
)
from ..kinds import Kind
from ..payload import Payload, PayloadRun, payload_of
from ..wire.rsocket.frames import COMPLETE, FOLLOWS, NEXT, ErrorFrame, Frame, FrameType
from .codes import Code, error_of
from .extensions.metadata import Router
from .lifecycle import OPENED, Lifecycle
from .strays import Strays

__all__ = ["KINDS", "Inbound"]

KINDS: Final[dict[int, Kind]] = {
    FrameType.REQUEST_RESPONSE: Kind.CALL,
    FrameType.REQUEST_FNF: Kind.FIRE,
    FrameType.REQUEST_STREAM: Kind.STREAM,
    FrameType.REQUEST_CHANNEL: Kind.CHANNEL,
    FrameType.REQUEST_SUB: Kind.STREAM,
}

NO_LEASE: Final = "there is no lease for this request"
REFUSALS: Final = tuple(
    text.encode() for text in (NO_LEASE, "more than max_streams (", "streams are opened faster than max_open_rate (")
)
"""How refusals begin that may be repeated: ReactiveSocket 0.0 has no code for them."""

# Plain integers, because compiled code compares them for every frame.
_REQUEST_RESPONSE, _REQUEST_CHANNEL = int(FrameType.REQUEST_RESPONSE), int(FrameType.REQUEST_CHANNEL)
_REQUEST_SUB, _METADATA_PUSH = int(FrameType.REQUEST_SUB), int(FrameType.METADATA_PUSH)
_PAYLOAD, _REQUEST_N = int(FrameType.PAYLOAD), int(FrameType.REQUEST_N)
_CANCEL, _ERROR, _REQUEST_FNF = int(FrameType.CANCEL), int(FrameType.ERROR), int(FrameType.REQUEST_FNF)
_CALL, _FIRE, _CHANNEL = int(Kind.CALL), int(Kind.FIRE), int(Kind.CHANNEL)
_COMPLETE, _CANCELED = int(Signal.COMPLETE), int(Signal.CANCEL)


class Inbound:
    """The receiving side of all streams of a session.

    Attributes:
        strays: Handles unexpected frames.
        router: Reads routes. A server replaces it when the set-up names the type of metadata.
        draining: Whether to reject new streams of the peer.
        drafts: Whether the dialect is older than RSocket 1.0.
        first_draft: Whether the dialect is ReactiveSocket 0.0.

    """

    def __init__(self, life: Lifecycle, strays: Strays) -> None:
        settings, dialect = life.settings, life.dialect
        self._life = life
        self._settings = settings
        self._streams = life.streams
        self._outbound = life.outbound
        self._events = life.events
        self._leases = life.leases
        self._reassembly = strays.reassembly
        self._partials = strays.partials
        self.strays = strays
        self._opens = Rate(2 * settings.max_open_rate, 2.0)
        self._max_streams = settings.max_streams
        self._max_metadata_bytes = settings.max_metadata_bytes
        self._max_open_rate = settings.max_open_rate
        self._lenient = settings.lenient
        self.router = Router(settings.metadata_mime or dialect.metadata_mime, settings.max_metadata_entries)
        self.draining = False
        self.drafts = not dialect.half_close
        self.first_draft = dialect.own_ids
        # rsocket-py of 2017, a client of ReactiveSocket 0.2, has even ids. Its first request tells.
        self._may_follow = self.drafts and not self.first_draft and not life.is_client

    def frame(self, frame: Frame, now: float) -> None:
        """Handle a frame of a stream. Raises LimitExceeded or ProtocolError if the session must end."""
        stream_id = self._signed_id(frame) if self.first_draft else frame.stream_id
        type = frame.type
        if type == _PAYLOAD:
            self._payload(stream_id, frame, now)
        elif _REQUEST_RESPONSE <= type <= _REQUEST_CHANNEL or type == _REQUEST_SUB:
            self._request(stream_id, frame, now)
        elif type == _REQUEST_N:
            self._request_n(stream_id, frame)
        elif type == _CANCEL:
            self._cancel(stream_id, frame.metadata)
        elif type == _ERROR:
            self._error(stream_id, frame)
        elif (
            type == _METADATA_PUSH
            and self.first_draft
            and frame.metadata is not None
            and self._streams.get(stream_id) is not None
        ):
            # ReactiveSocket 0.0, Metadata Push Frame: it is processed in order with the stream's responses.
            self.pushed(stream_id, frame.metadata)
        else:
            # SETUP, LEASE, KEEPALIVE, METADATA_PUSH, RESUME on a stream, or an unknown type.
            self.strays.ignore(frame)
            self.strays.interrupt(stream_id)

    def run(self, stream_id: int, run: PayloadRun, now: float) -> None:
        """Handle consecutive complete items of one stream. Raises as `frame` does."""
        stream = self._streams.get(stream_id)
        if stream is None or stream.inbound != OPEN:
            self.strays.stray(len(run))
            return
        if stream.kind == _CALL or (self._partials and stream_id in self._partials):
            for payload in run.payloads():
                self._payload(stream_id, Frame(_PAYLOAD, stream_id, NEXT, 0, payload.metadata, payload.data), now)
            return
        count = len(run)
        if count > stream.granted:
            if stream.granted:
                self._events.append(run_received(stream_id, run.part(0, stream.granted)))
            self.strays.overrun(stream)
            return
        if run.size > self._max_metadata_bytes:
            size = run.largest_metadata()
            if size > self._max_metadata_bytes:
                self.strays.refuse(stream, Code.INVALID, self.metadata_excess(size))
                return
        stream.granted -= count
        self._events.append(run_received(stream_id, run))

    def ignores(self, type: int, stream_id: int) -> bool:
        """Return whether a frame of a stream is ignored because of its stream, whatever its fields are."""
        requests = type <= _REQUEST_CHANNEL or type == _REQUEST_SUB
        if self.first_draft and (requests or type <= _CANCEL):
            stream_id = -stream_id
        known = self._streams.get(stream_id) is not None or stream_id in self._partials
        if requests:
            # ReactiveSocket 0.2, Request Channel: REQUEST_CHANNEL frames with FOLLOWS are fragments.
            begun = self.drafts and stream_id in self._partials
            return (known and not begun) or not self._streams.may_be_theirs(stream_id)
        return not known

    def metadata_excess(self, size: int) -> LimitExceeded:
        """Return the error for an item or a push with metadata of `size` bytes."""
        return LimitExceeded(f"metadata of {size} bytes exceeds max_metadata_bytes ({self._max_metadata_bytes})")

    def pushed(self, stream_id: int, metadata: bytes) -> None:
        """Report pushed metadata. Raises LimitExceeded if it is too large."""
        if len(metadata) > self._max_metadata_bytes:
            raise self.metadata_excess(len(metadata))
        self._events.append(MetadataPushed(stream_id, metadata))

    def _signed_id(self, frame: Frame) -> int:
        """Return the stream id of a frame, negative if the peer opened the stream.

        ReactiveSocket 0.0, Frame Types: types 0x10 to 0x1F come from a requester. METADATA_PUSH comes from either.
        """
        type = frame.type
        pushed = type == _METADATA_PUSH and self._streams.get(frame.stream_id) is None
        stream_id = frame.stream_id
        return -stream_id if _REQUEST_RESPONSE <= type <= _CANCEL or type == _REQUEST_SUB or pushed else stream_id

    # Requests.

    def _request(self, stream_id: int, frame: Frame, now: float) -> None:
        if self._may_follow:
            self._may_follow = False
            self._streams.follow(stream_id)
        if self.drafts and stream_id in self._partials and frame.type == self._partials[stream_id].head.type:
            # ReactiveSocket 0.2, Request Channel: REQUEST_CHANNEL frames with FOLLOWS are fragments.
            self._continue(stream_id, frame, frame.flags)
            return
        if self.drafts and frame.type == _REQUEST_CHANNEL and stream_id in self.strays.refused:
            # The same, of a request that was refused: the rest must not open a stream.
            self.strays.ignore_fragment(stream_id, frame)
            return
        # RSocket 1.0, Handling the Unexpected 9.1: a request on a stream that is in use is ignored.
        if (
            not self._streams.may_be_theirs(stream_id)
            or self._streams.get(stream_id) is not None
            or (self._partials and stream_id in self._partials)
        ):
            self.strays.stray()
            self.strays.interrupt(stream_id)
        elif self.draining and frame.type != _REQUEST_FNF:
            # Nobody would learn that a FIRE was rejected, so it is served until the client closes the link.
            self.strays.reject(stream_id, frame, Rejected.CLOSING)
        elif self._leases.responder is not None and not self._leases.responder.admit(now):
            # RSocket 1.0, Lease Semantics: a request without a lease MUST be answered by ERROR[REJECTED].
            # Requests that are refused below use the lease too, because the requester has counted them.
            self.strays.reject(stream_id, frame, NO_LEASE)
        elif (self._streams.remote >= self._max_streams and frame.type != _REQUEST_FNF) or len(
            self._partials
        ) > self._max_streams:
            # A FIRE opens no stream, and its loss would be silent. It waits above the session for a slot.
            self.strays.reject(
                stream_id, frame, f"more than max_streams ({self._settings.max_streams}) streams are open"
            )
        elif self._max_open_rate and self._opens.hit(now):
            self.strays.reject(
                stream_id, frame, f"streams are opened faster than max_open_rate ({self._settings.max_open_rate}/s)"
            )
        elif frame.flags & FOLLOWS:
            self._begin(stream_id, frame, now)
        else:
            self._open(stream_id, frame, payload_of(frame.data, frame.metadata))

    def _open(self, stream_id: int, frame: Frame, payload: Payload) -> None:
        """Open the stream for a complete request."""
        kind = KINDS[frame.type]
        number = kind
        metadata = payload.metadata
        try:
            if metadata is not None and len(metadata) > self._max_metadata_bytes:
                raise self.metadata_excess(len(metadata))
            route = self.router.route(metadata)
        except (FrameError, LimitExceeded) as error:
            # Only the request is invalid, so the connection continues.
            self.strays.stray()
            if number != _FIRE:
                self._outbound.error(stream_id, Code.INVALID, str(error).encode())
            return
        done = number != _CHANNEL or bool(frame.flags & COMPLETE)
        if number == _FIRE:
            self._events.append(requested(stream_id, kind, route, payload, 0, True))
            return
        # In ReactiveSocket 0.0 the field has 64 bits.
        credit = 1 if number == _CALL else min(frame.request_n, MAX_REQUEST_N)
        if credit < 1:
            # RSocket 1.0, REQUEST_STREAM Frame: the initial request-n MUST be more than 0.
            self._outbound.error(stream_id, Code.INVALID, b"initial request-n must be more than 0")
            return
        stream = self._streams.open_theirs(stream_id, kind)
        stream.credit = credit
        if number == _CHANNEL:
            # The payload that opens a channel is its first item, and counts as a requested one.
            stream.unrequested = 1
            if done:
                stream.end(_COMPLETE, False)
        self._events.append(requested(stream_id, kind, route, payload, credit, done))

    # Items.

    def _payload(self, stream_id: int, frame: Frame, now: float) -> None:
        flags = frame.flags
        # RSocket 1.0, Handling the Unexpected 7: COMPLETE overrides FOLLOWS.
        if flags & COMPLETE:
            flags &= ~FOLLOWS
        # THREATS 43: COMPLETE with content but without NEXT is an item too. Some peers send items without any flag.
        if not flags & NEXT and (flags & COMPLETE or self._lenient) and (frame.data or frame.metadata is not None):
            flags |= NEXT
        if self._partials and stream_id in self._partials:
            self._continue(stream_id, frame, flags)
            return
        stream = self._streams.get(stream_id)
        if stream is None or stream.inbound != OPEN:
            self.strays.ignore_fragment(stream_id, frame)
        elif flags & FOLLOWS:
            if stream.granted == 0:
                self.strays.overrun(stream)
            else:
                self._begin(stream_id, frame, now)
        elif flags & NEXT:
            self._item(stream, payload_of(frame.data, frame.metadata), flags & COMPLETE != 0)
        elif flags & COMPLETE and self.first_draft and stream.kind == _CALL:
            # ReactiveSocket 0.0, Response Frame: an empty response has only the flag COMPLETE.
            self._item(stream, Payload(), True)
        elif flags & COMPLETE:
            sending = stream.outbound == OPEN
            if stream.end(_COMPLETE, False):
                self.strays.remove_stream(stream)
            self._events.append(Completed(stream_id))
            if sending and stream.outbound != OPEN:
                self._events.append(Canceled(stream_id, True))
        else:
            # RSocket 1.0, PAYLOAD Frame: one of NEXT and COMPLETE must be set.
            self.strays.stray()

    def _item(self, stream: Stream, payload: Payload, done: bool) -> None:
        """Deliver a complete item."""
        if stream.granted == 0:
            self.strays.overrun(stream)
            return
        metadata = payload.metadata
        if metadata is not None and len(metadata) > self._max_metadata_bytes:
            self.strays.refuse(stream, Code.INVALID, self.metadata_excess(len(metadata)))
            return
        stream.granted -= 1
        # RSocket 1.0, Handling the Unexpected 5: a call has one response, even without COMPLETE.
        if stream.kind == _CALL:
            done = True
        sending = stream.outbound == OPEN
        if done and stream.end(_COMPLETE, False):
            self.strays.remove_stream(stream)
        self._events.append(item_received(stream.id, payload, done))
        if sending and stream.outbound != OPEN:
            # Without half-close, the responder's COMPLETE ends our half too.
            self._events.append(Canceled(stream.id, True))

    # Fragments.

    def _begin(self, stream_id: int, frame: Frame, now: float) -> None:
        try:
            self._reassembly.begin(stream_id, frame, frame.metadata, frame.data, now)
        except LimitExceeded as error:
            self.strays.drop_partial(stream_id, error)
        else:
            self._check_metadata(stream_id)
        self.strays.enforce_limits()

    def _check_metadata(self, stream_id: int) -> bool:
        """Drop an incomplete item as soon as its metadata is too large; return whether it was dropped."""
        size = self._partials[stream_id].metadata_size
        if size > self._max_metadata_bytes:
            self.strays.drop_partial(stream_id, self.metadata_excess(size), Code.INVALID)
            return True
        return False

    def _continue(self, stream_id: int, frame: Frame, flags: int) -> None:
        dropped = False
        try:
            self._reassembly.add(stream_id, frame.metadata, frame.data)
        except LimitExceeded as error:
            self.strays.drop_partial(stream_id, error)
            dropped = True
        if dropped or self._check_metadata(stream_id):
            if not flags & FOLLOWS:
                self.strays.refused.pop(stream_id, None)
            return
        if flags & FOLLOWS:
            self.strays.enforce_limits()
            return
        partial = self._reassembly.finish(stream_id)
        head = partial.head
        payload = partial.payload()
        if head.type != _PAYLOAD:
            # COMPLETE of a REQUEST_CHANNEL is in its last fragment; some peers set it in the first.
            head.flags |= flags & COMPLETE
            self._open(stream_id, head, payload)
            return
        stream = self._streams.get(stream_id)
        if stream is not None and stream.inbound == OPEN:
            self._item(stream, payload, flags & COMPLETE != 0)

    # Signals.

    def _request_n(self, stream_id: int, frame: Frame) -> None:
        stream = self._streams.get(stream_id)
        if stream is None or stream.outbound != OPEN or stream.kind == _CALL:
            self.strays.stray()
            self.strays.interrupt(stream_id)
        elif frame.request_n < 1:
            # RSocket 1.0, REQUEST_N Frame: the value MUST be more than 0.
            self.strays.refuse(stream, Code.INVALID, ProtocolError("request-n must be more than 0"))
        else:
            count = min(frame.request_n, MAX_REQUEST_N)
            stream.credit = add(stream.credit, count)
            self._events.append(CreditGranted(stream_id, count))

    def _cancel(self, stream_id: int, metadata: bytes | None) -> None:
        stream = self._streams.get(stream_id)
        if stream is None:
            if stream_id in self._partials:
                # RSocket 1.0, Fragmentation: CANCEL may arrive before the last fragment.
                self._reassembly.drop(stream_id)
            self.strays.stray()
            return
        over = stream.end(_CANCELED, False)
        if over:
            self.strays.remove_stream(stream)
        self._events.append(Canceled(stream_id, over, metadata))

    def _error(self, stream_id: int, frame: Frame) -> None:
        stream = self._streams.get(stream_id)
        if stream is None or not isinstance(frame, ErrorFrame):
            self._reassembly.drop(stream_id)
            self.strays.stray()
            return
        code = frame.code
        if self.first_draft and (frame.data == Rejected.CLOSING.encode() or frame.data.startswith(REFUSALS)):
            # ReactiveSocket 0.0, Error Frame: it has no code.
            code = Code.REJECTED
        error = error_of(code, frame.data, frame.metadata)
        if isinstance(error, Rejected) and error.closing and self._life.is_client and self._life.state == OPENED:
            # CONNECTION_CLOSE follows when the open streams have ended.
            self._life.move("CONNECTION_CLOSE")
            self._events.append(Draining())
        self.strays.fail(stream, error)
