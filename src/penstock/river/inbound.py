"""Messages of streams, on both sides. River, Handling messages for streams."""

from __future__ import annotations

from typing import Final

from ..core.halves import DONE, OPEN
from ..errors import FrameError, LimitExceeded, PeerClosed, ProtocolError, SessionError
from ..events import Canceled, Completed, Event, Failed, ItemReceived, Requested
from ..kinds import Kind
from ..payload import Payload
from ..wire.river.codec import CANCEL, CLOSE
from ..wire.river.codec import OPEN as OPENS
from ..wire.river.message import Message
from .codes import CANCELED, INVALID, error_of, refusal, rejection, result_of
from .handshake import GOODBYE, REHANDSHAKE, is_rehandshake, rehandshake
from .rehandshake import Rehandshakes
from .streams import RiverStream
from .tracing import metadata_of

__all__ = ["Inbound"]

ITEM_BYTES: Final = 64
"""About what an item that is held costs beside its data."""
NOT_OPENED: Final = "there is no such stream, and the message does not open one"


class Inbound(Rehandshakes):
    """A connection that knows what messages of streams mean."""

    def _stream_message(self, message: Message) -> None:
        """Take a message that is in order, and for us."""
        if self._is_client:
            self._response(message)
        else:
            self._request(message)

    # On the client.

    def _response(self, message: Message) -> None:
        stream = self._streams.named(message.stream_id)
        if message.stream_id == REHANDSHAKE and is_rehandshake(self._codec, message.payload):
            said = self._say()
            if said is not None:
                self._post(self._codec.encoded(REHANDSHAKE), 0, rehandshake(said, self._codec))
            return
        if stream is None and message.stream_id == GOODBYE and message.control_flags & CLOSE:
            self._finish(PeerClosed(f"{self.peer} closed the session"))
            return
        if stream is None or stream.inbound != OPEN or self._sequence.ack <= stream.heard:
            # River, On the client: what nobody waits for MUST be discarded silently.
            return
        flags = message.control_flags
        if message.fault is not None:
            self._unusable(stream, flags, message.fault)
            return
        if flags & CLOSE and self._is_close(message):
            stream.inbound = DONE
            self._deliver(stream, Completed(stream.number))
            return
        body = message.ok_payload
        if body is None:
            body = self._result(stream, message)
            if body is None:
                return
        # An rpc and an upload have one answer, whatever its flags.
        done = bool(flags & CLOSE) or not stream.answers_items
        if done:
            stream.inbound = DONE
            if not flags & CLOSE:
                # The procedure is of another kind, and would go on.
                self._post(stream.encoded, CANCEL, refusal(self._codec, CANCELED, "one answer was asked for"))
        self._item(stream, ItemReceived(stream.number, Payload(body), done))

    def _result(self, stream: RiverStream, message: Message) -> bytes | None:
        """Return what a result that is well holds; anything else ends the stream."""
        try:
            result = result_of(self._codec, message.payload)
            if result.ok:
                return self._codec.received(result.payload)
        except FrameError as error:
            self._unusable(stream, message.control_flags, error)
            return None
        self._failed(stream, message.control_flags, error_of(self._codec, result.payload))
        return None

    def _unusable(self, stream: RiverStream, flags: int, fault: SessionError) -> None:
        """End a stream whose answer cannot be used, and the server's half of it with it."""
        if not flags & CANCEL and (not flags & CLOSE or stream.outbound == OPEN):
            self._post(stream.encoded, CANCEL, refusal(self._codec, CANCELED, "the answer cannot be used"))
        text = f"the answer of {self.peer} cannot be used: {fault.message}"
        self._end(stream, LimitExceeded(text) if isinstance(fault, LimitExceeded) else ProtocolError(text))

    def _failed(self, stream: RiverStream, flags: int, error: Exception) -> None:
        """Take an error of the server's: it ends the stream."""
        if not flags & CANCEL:
            if not flags & CLOSE and stream.answers_items:
                # More might follow it; to our users an error is the end.
                self._post(stream.encoded, CANCEL, refusal(self._codec, CANCELED, "the stream ended with its error"))
            elif stream.outbound == OPEN:
                self._post(stream.encoded, CLOSE, self._codec.close)
        self._end(stream, error)

    def _end(self, stream: RiverStream, error: Exception) -> None:
        """End both halves with an error, which comes after all items that are held."""
        stream.inbound = stream.outbound = DONE
        self._deliver(stream, Failed(stream.number, error))

    # On the server.

    def _request(self, message: Message) -> None:
        name = message.stream_id
        flags = message.control_flags
        stream = self._streams.named(name)
        if self._old and flags & CANCEL and (stream is None or stream.sends_items):
            # v1.1 has one bit for both; who closes a stream in which it sends nothing wants no more of it.
            flags = flags & ~CANCEL | CLOSE
        if stream is None:
            self._unknown(message, flags)
        elif flags & CANCEL:
            self._canceled(stream)
        elif stream.deaf:
            return
        elif message.fault is not None:
            self._invalid(name, message.fault.message, stream)
        elif flags & OPENS:
            self._invalid(name, "the stream is open already", stream)
        elif self._old and stream.answers_items and not stream.sends_items and self._is_close(message):
            # v1.1: this is how a client wants no more items.
            self._canceled(stream)
        elif flags & CLOSE and self._is_close(message):
            # THREATS 63: closing twice changes nothing.
            if stream.inbound == OPEN:
                stream.inbound = DONE
                if stream.sends_items:
                    self._deliver(stream, Completed(stream.number))
                self._settle(stream)
        elif stream.inbound != OPEN or not stream.sends_items:
            self._invalid(name, "the procedure takes no further requests", stream)
        elif not self._is_close(message):
            done = bool(flags & CLOSE)
            if done:
                stream.inbound = DONE
            self._item(stream, ItemReceived(stream.number, Payload(message.payload), done))

    def _unknown(self, message: Message, flags: int) -> None:
        """Take a message for a stream that is not open."""
        name = message.stream_id
        if name == REHANDSHAKE and self._rehandshaken(message):
            return
        if self._streams.is_finished(name):
            return
        if message.fault is not None:
            self._invalid(name, message.fault.message)
        elif flags & OPENS and not flags & CANCEL:
            self._open_theirs(message, flags)
        else:
            self._invalid(name, NOT_OPENED)

    def _open_theirs(self, message: Message, flags: int) -> None:
        """Open a stream of the client's."""
        name, service, procedure = message.stream_id, message.service_name, message.procedure_name
        if service is None or procedure is None:
            missing = "service" if service is None else "procedure"
            self._invalid(name, f"missing {missing} name in stream open message")
            return
        limit = self._settings.max_streams
        if len(self._streams) >= limit:
            self._streams.finish(name)
            text = f"{limit} streams of this session are open, which is max_streams; try again when some have ended"
            self._post(self._codec.encoded(name), CANCEL, rejection(self._codec, text))
            return
        route = f"{service}.{procedure}"
        done = bool(flags & CLOSE)
        kind = self._kind_of(route) or (Kind.CALL if done else Kind.CHANNEL)
        encoded = message.encoded or self._codec.encoded(name)
        stream = self._streams.open(name, encoded, kind, DONE if done else OPEN, OPEN)
        sends_items = stream.sends_items
        self._events.append(
            Requested(
                stream.number,
                Kind.CHANNEL if sends_items else kind,
                route,
                Payload(message.payload, None if message.tracing is None else metadata_of(message.tracing)),
                self._sequence.room,
                done or not sends_items,
            )
        )

    def _canceled(self, stream: RiverStream) -> None:
        """Take a client's cancellation. What its payload says is for people."""
        if stream.outbound == OPEN and stream.answers_items:
            # As the reference does; the client ignores it.
            self._post(stream.encoded, CLOSE, self._codec.close)
        self._forget(stream)
        self._events.append(Canceled(stream.number, True))

    def _invalid(self, name: str, text: str, stream: RiverStream | None = None) -> None:
        """Refuse a message, and its whole stream. River, On the server: an abrupt full close."""
        if stream is not None:
            self._forget(stream)
            self._events.append(Canceled(stream.number, True))
        self._streams.finish(name)
        self._post(self._codec.encoded(name), CANCEL, refusal(self._codec, INVALID, text))

    # What users asked for, and what they did not.

    def _item(self, stream: RiverStream, event: ItemReceived) -> None:
        """Hand an item on, or hold it until its stream's user asks for more."""
        if stream.granted < 1 or stream.held:
            size = len(event.payload.data) + ITEM_BYTES
            stream.hold(event, self._sequence.ack - 1)
            stream.octets += size
            self._held_bytes += size
            return
        stream.granted -= 1
        self._events.append(event)
        self._settle(stream)

    def _deliver(self, stream: RiverStream, event: Event) -> None:
        """Hand a stream's end on, behind all items that are held."""
        if stream.held:
            stream.hold(event, self._sequence.ack - 1)
            return
        self._events.append(event)
        self._settle(stream)

    def _release(self, stream: RiverStream) -> None:
        """Hand on what was held and is asked for now."""
        held, seqs = stream.held, stream.held_seqs
        while held and seqs:
            event = held[0]
            if isinstance(event, ItemReceived):
                if stream.granted < 1:
                    return
                stream.granted -= 1
                size = len(event.payload.data) + ITEM_BYTES
                stream.octets -= size
                self._held_bytes -= size
            self._events.append(held.popleft())
            seqs.popleft()
        self._settle(stream)

    def _settle(self, stream: RiverStream) -> None:
        """Forget a stream that is over."""
        if stream.outbound == DONE and not self._is_client and not stream.sends_items and stream.inbound == OPEN:
            # Its client may still close it, and need not (THREATS 63).
            self._streams.finish(stream.name)
            stream.inbound = DONE
        if stream.over():
            self._forget(stream)

    def _is_close(self, message: Message) -> bool:
        """Whether the payload is a ControlClose, which no user must see."""
        if message.ok_payload is not None:
            return False
        body = message.payload
        return body == self._close or bool(self._codec.is_close(body))
