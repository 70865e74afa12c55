"""Messages of streams, on both sides. River, Handling messages for streams."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..core.halves import DONE, OPEN
from ..errors import (
    FrameError,
    Invalid,
    LimitExceeded,
    PeerClosed,
    ProtocolError,
    Rejected,
    SessionClosed,
    SessionError,
)
from ..events import Canceled, Completed, Event, Failed, ItemReceived, item_received, requested
from ..kinds import Kind
from ..payload import Payload
from ..wire.river.codec import CANCEL, CLOSE
from ..wire.river.codec import OPEN as OPENS
from ..wire.river.message import Message
from .codes import INVALID, ITEM_ERROR, Result, error_of, refusal, rejection
from .handshake import REHANDSHAKE, Handshake
from .identity import Side
from .outbound import GOODBYE, Outbound
from .streams import RiverStream
from .tracing import metadata_of

__all__ = ["Inbound"]

ITEM_BYTES: Final = 64
"""The approximate overhead of a held item, in bytes."""
NOT_OPENED: Final = "there is no such stream, and the message does not open one"


class Inbound:
    """The receiving part of a session.

    Args:
        side: The side and its peer.
        outbound: Sends responses to messages.
        handshake: Handles rehandshakes.

    Attributes:
        draining: Whether a server rejects new streams.
        peer_closing: Whether the server has rejected a stream because it is closing.
        held_bytes: The size of all items that arrived before they were requested.
        rejected: How many streams of the client were rejected because of a limit.
        kind_of: Returns the kind of a route's handler; None for an unknown route, ANY for one that accepts every kind.

    """

    def __init__(self, side: Side, outbound: Outbound, handshake: Handshake) -> None:
        self._settings = side.settings
        self._codec = side.codec
        self._is_client = side.is_client
        self._peer = side.peer
        self._close = side.codec.close
        self._streams = side.streams
        self._events = side.events
        self._outbound = outbound
        self._sequence = outbound.sequence
        self._handshake = handshake
        self._finish = side.finish
        self._account = side.account
        self.draining = False
        self.peer_closing = False
        self.held_bytes = 0
        self.rejected = 0
        self.kind_of: Callable[[str], int | None] = lambda route: None

    def receive(self, message: Message) -> None:
        """Take a message that is in order, and for us."""
        if self._is_client:
            self._response(message)
        else:
            self._request(message)

    # On the client.

    def _response(self, message: Message) -> None:
        stream = self._streams.by_name.get(message.stream_id)
        if stream is None and self._of_session(message):
            return
        if stream is None or stream.inbound != OPEN or self._sequence.ack <= stream.seen_until:
            # River, On the client: messages of unknown streams MUST be discarded silently.
            return
        flags = message.control_flags
        if message.fault is not None:
            self._unusable(stream, flags, message.fault)
            return
        if flags & CLOSE and self._is_close(message):
            self._server_ended(stream)
            self._deliver(stream, Completed(stream.number))
            return
        body = message.ok_payload
        if body is None:
            body = self._result(stream, message)
            if body is None:
                return
        # An rpc and an upload have one response, whatever its flags.
        done = bool(flags & CLOSE) or not stream.answers_items
        if done:
            self._server_ended(stream)
            if not flags & CLOSE:
                # The procedure has another kind and would continue.
                self._outbound.cancel(stream, "only one response was requested")
        self._item(stream, item_received(stream.number, Payload(body), done))

    def _server_ended(self, stream: RiverStream) -> None:
        """End the server's half of a stream, and a subscription."""
        stream.inbound = DONE
        if stream.outbound == OPEN and not stream.sends_items:
            # River, Subscription: the party that receives the ControlClose must answer it.
            self._outbound.send_message(stream.encoded, CLOSE, self._close)
            stream.outbound = DONE

    def _of_session(self, message: Message) -> bool:
        """Handle a message of the whole session; return whether it is one."""
        if message.stream_id == REHANDSHAKE:
            return self._handshake.answer_rehandshake(message)
        if message.stream_id == GOODBYE and message.control_flags & CLOSE:
            self._reject_unreceived(message.ack)
            self._finish(PeerClosed(f"{self._peer} closed the session"))
            return True
        return False

    def _reject_unreceived(self, ack: int) -> None:
        """End the streams whose first message a closing server has not received; it expected the number `ack`."""
        for stream in self._streams.all():
            if stream.opened_seq >= ack:
                self.end(stream, Rejected(INVALID, Rejected.CLOSING))

    def _result(self, stream: RiverStream, message: Message) -> bytes | None:
        """Return the payload of a successful result; otherwise, end the stream and return None."""
        try:
            result = self._codec.value(message.payload, Result)
            if result.ok:
                return self._codec.received(bytes(result.payload))
        except FrameError as error:
            self._unusable(stream, message.control_flags, error)
            return None
        if stream.reports_errors and not message.control_flags & (CLOSE | CANCEL):
            self._item(stream, item_received(stream.number, Payload(bytes(result.payload), ITEM_ERROR), False))
            return None
        failure = error_of(self._codec, result.payload)
        self.peer_closing = self.peer_closing or (isinstance(failure, Rejected) and failure.closing)
        self._failed(stream, message.control_flags, failure)
        return None

    def _unusable(self, stream: RiverStream, flags: int, fault: SessionError) -> None:
        """End both halves of a stream after an invalid response."""
        if not flags & CANCEL and (not flags & CLOSE or stream.outbound == OPEN):
            self._outbound.cancel(stream, "the response is invalid")
        text = f"invalid response from {self._peer}: {fault.message}"
        self.end(stream, LimitExceeded(text) if isinstance(fault, LimitExceeded) else ProtocolError(text))

    def _failed(self, stream: RiverStream, flags: int, error: Exception) -> None:
        """End a stream with the server's error."""
        if not flags & CANCEL:
            if not flags & CLOSE and stream.answers_items:
                # The server could send more, but above the session an error ends the stream.
                self._outbound.cancel(stream, "the stream ended with its error")
            elif stream.outbound == OPEN:
                self._outbound.send_message(stream.encoded, CLOSE, self._codec.close)
        self.end(stream, error)

    def end(self, stream: RiverStream, error: Exception) -> None:
        """End both halves with an error, which follows the held items."""
        stream.inbound = stream.outbound = DONE
        self._deliver(stream, Failed(stream.number, error))

    # On the server.

    def _request(self, message: Message) -> None:
        name = message.stream_id
        flags = message.control_flags
        stream = self._streams.by_name.get(name)
        if self._outbound.v1_1 and flags & CANCEL and (stream is None or stream.sends_items):
            # v1.1 has one bit for both. A cancellation of a stream in which the client sends no items is real.
            flags = flags & ~CANCEL | CLOSE
        if stream is None:
            self._unknown(message, flags)
        elif flags & CANCEL:
            self._canceled(stream)
        elif stream.reads_stopped:
            return
        elif message.fault is not None:
            self._invalid(name, message.fault.message, stream)
        elif flags & OPENS:
            self._invalid(name, "the stream is already open", stream)
        elif flags & CLOSE and self._is_close(message):
            # THREATS 63: a second close has no effect.
            if stream.inbound == OPEN:
                self._client_ended(stream)
        elif stream.inbound != OPEN or not stream.sends_items:
            self._invalid(name, "the procedure accepts no further requests", stream)
        elif not self._is_close(message):
            done = bool(flags & CLOSE)
            if done:
                stream.inbound = DONE
            self._item(stream, item_received(stream.number, Payload(message.payload), done))

    def _client_ended(self, stream: RiverStream) -> None:
        """End the client's half of a stream, and a subscription."""
        if stream.answers_items and not stream.sends_items:
            # River, Subscription: either side ends it, and the other answers.
            self._streams.finish(stream.name)
            self._canceled(stream)
            return
        stream.inbound = DONE
        if stream.sends_items:
            self._deliver(stream, Completed(stream.number))
        self.close_if_done(stream)

    def _unknown(self, message: Message, flags: int) -> None:
        """Handle a message of a stream that is not open."""
        name = message.stream_id
        if name == REHANDSHAKE and self._handshake.receive_rehandshake(message):
            return
        if name in self._streams.finished:
            return
        if message.fault is not None:
            self._invalid(name, message.fault.message)
        elif flags & OPENS and not flags & CANCEL:
            self._open_theirs(message, flags)
        else:
            self._invalid(name, NOT_OPENED)

    def _open_theirs(self, message: Message, flags: int) -> None:
        """Open a stream that the client requests."""
        name, service, procedure = message.stream_id, message.service_name, message.procedure_name
        if service is None or procedure is None:
            missing = "service" if service is None else "procedure"
            self._invalid(name, f"missing {missing} name in stream open message")
            return
        limit = self._settings.max_streams
        if self.draining or len(self._streams.by_number) >= limit:
            self.rejected += 1
            self._streams.finish(name)
            text = f"max_streams ({limit}) streams of this session are open; retry when some have ended"
            text = Rejected.CLOSING if self.draining else text
            self._outbound.send_message(self._codec.encoded(name), CANCEL, rejection(self._codec, text))
            return
        route = f"{service}.{procedure}"
        done = bool(flags & CLOSE)
        kind = self.kind_of(route)
        if not kind:
            # A complete request may be an rpc or a subscription. A stream may end after one item, so it includes both.
            kind = Kind.CHANNEL if not done else Kind.CALL if kind is None else Kind.STREAM
        encoded = message.encoded or self._codec.encoded(name)
        stream = self._streams.open(name, encoded, kind, DONE if done else OPEN, OPEN)
        sends_items = stream.sends_items
        self._events.append(
            requested(
                stream.number,
                Kind.CHANNEL if sends_items else kind,  # type: ignore[arg-type]  # A function of ours returns kinds.
                route,
                Payload(message.payload, None if message.tracing is None else metadata_of(message.tracing)),
                self._sequence.room,
                done or not sends_items,
            )
        )

    def _canceled(self, stream: RiverStream) -> None:
        """Handle a client's cancellation. Its payload is only for people."""
        if stream.outbound == OPEN and stream.answers_items:
            # The reference does the same; the client ignores it.
            self._outbound.send_message(stream.encoded, CLOSE, self._codec.close)
        self.remove_stream(stream)
        self._events.append(Canceled(stream.number, True))

    def _invalid(self, name: str, text: str, stream: RiverStream | None = None) -> None:
        """Reject a message and end its stream. River, On the server: an abrupt full close."""
        if stream is not None:
            self.remove_stream(stream)
            self._events.append(Canceled(stream.number, True))
        self._streams.finish(name)
        self._outbound.send_message(self._codec.encoded(name), CANCEL, refusal(self._codec, INVALID, text))

    def refused(self, stream: RiverStream, reason: str) -> None:
        """End a stream after the peer rejected one of its messages as too large."""
        if self._is_client:
            self.end(stream, Invalid(INVALID, reason))
            return
        self._streams.finish(stream.name)
        self.remove_stream(stream)
        self._events.append(Canceled(stream.number, True))

    # Items within the demand, and items beyond it.

    def _item(self, stream: RiverStream, event: ItemReceived) -> None:
        """Report an item, or hold it until the user requests more."""
        if stream.granted < 1 or stream.held:
            size = len(event.payload.data) + ITEM_BYTES
            stream.hold(event, self._sequence.ack - 1)
            stream.held_bytes += size
            self.held_bytes += size
            self._account.book(size)
            return
        stream.granted -= 1
        self._events.append(event)
        self.close_if_done(stream)

    def _deliver(self, stream: RiverStream, event: Event) -> None:
        """Report the end of a stream, after all held items."""
        if stream.held:
            stream.hold(event, self._sequence.ack - 1)
            return
        self._events.append(event)
        self.close_if_done(stream)

    def grant(self, stream: RiverStream, count: int) -> None:
        """Add `count` to the demand, and report held items within it."""
        stream.granted += count
        held, seqs = stream.held, stream.held_seqs
        while held and seqs:
            event = held[0]
            if isinstance(event, ItemReceived):
                if stream.granted < 1:
                    return
                stream.granted -= 1
                size = len(event.payload.data) + ITEM_BYTES
                stream.held_bytes -= size
                self.held_bytes -= size
                self._account.release(size)
            self._events.append(held.popleft())
            seqs.popleft()
        self.close_if_done(stream)

    def stop_reading(self, stream: RiverStream) -> None:
        """Stop receiving items. A client cancels the stream; a server can only ignore further items."""
        if not self._is_client:
            # River, Reader and Writer Semantics: a reader can only stop reading.
            self.drop_held(stream)
            if stream.inbound == OPEN:
                self._streams.finish(stream.name)
                stream.inbound = DONE
                stream.reads_stopped = True
            if stream.outbound == DONE:
                self.remove_stream(stream)
        elif stream.inbound == OPEN:
            self._outbound.stop(stream, "cancelled by client")
            self.remove_stream(stream)
        else:
            self.drop_held(stream)
            self.close_if_done(stream)

    def drop_held(self, stream: RiverStream) -> None:
        """Drop the held items of a stream."""
        if stream.held:
            self.held_bytes -= stream.held_bytes
            self._account.release(stream.held_bytes)
            stream.drop_held()

    def shed(self, now: float, error: Exception) -> bool:
        """Drop the held items of the stream with most. See :meth:`weirpool.session.Session.shed`."""
        streams = [stream for stream in self._streams.all() if stream.held_bytes]
        if not streams:
            return False
        stream = max(streams, key=lambda stream: stream.held_bytes)
        self.drop_held(stream)
        if self._is_client:
            self._outbound.cancel(stream, "its items are not consumed")
            self.end(stream, error)
        else:
            self._invalid(stream.name, str(error), stream)
        return True

    def close_if_done(self, stream: RiverStream) -> None:
        """Remove a stream if it has ended and its held items were taken."""
        if stream.outbound == DONE and not self._is_client and not stream.sends_items and stream.inbound == OPEN:
            # The client may still close its half, but need not (THREATS 63).
            self._streams.finish(stream.name)
            stream.inbound = DONE
        if stream.inbound == DONE and stream.outbound == DONE and not stream.held:
            self.remove_stream(stream)

    def sent_all(self, stream: RiverStream) -> None:
        """Mark our half of a stream as done."""
        stream.outbound = DONE
        starved = self._outbound.starved
        if starved:
            starved.pop(stream.number, None)
        self.close_if_done(stream)

    def fail_all(self, error: Exception | None) -> None:
        """Report the held items of all streams, then fail them with `error`; None: the session was closed."""
        for stream in self._streams.all():
            self._events += [event for event in stream.held or () if not isinstance(event, Failed)]
            self.remove_stream(stream)
            self._events.append(Failed(stream.number, error or SessionClosed("the connection was closed")))

    def remove_stream(self, stream: RiverStream) -> None:
        """Remove a stream and its held items."""
        self.drop_held(stream)
        stream.inbound = stream.outbound = DONE
        starved = self._outbound.starved
        if starved:
            starved.pop(stream.number, None)
        self._streams.close(stream)

    def _is_close(self, message: Message) -> bool:
        """Return whether the payload is a ControlClose, which is not an item."""
        if message.ok_payload is not None:
            return False
        body = message.payload
        return body == self._close or bool(self._codec.is_close(body))
