"""River's verbs: what a session's user may ask of it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from msgspec import UNSET

from ..core.halves import DONE, OPEN
from ..errors import (
    CreditExceeded,
    LeaseMissing,
    LimitExceeded,
    LocalError,
    SessionClosed,
    SetupRejected,
    StreamClosed,
    UnsupportedKind,
)
from ..events import CreditGranted, Established
from ..kinds import Kind
from ..payload import Payload, PayloadRun
from ..session import ClientStart
from ..settings import Settings
from ..wire.river.codec import CANCEL, CLOSE, codec_of
from ..wire.river.codec import OPEN as OPENS
from ..wire.river.scanning import is_body
from .checkpoint import Checkpoints, decode_checkpoint
from .codes import CANCELED, UNEXPECTED_DISCONNECT, failure_of, refusal
from .connection import CLOSED, DRAINING, OPENED, UP
from .handshake import GOODBYE, V1_1, HandshakeRequest, check_state, code_of, response
from .identity import SERVER, Identity, base36
from .sessions import Sessions
from .streams import RiverStream
from .tracing import tracing_of

__all__ = ["RiverSession", "client", "tag_of"]

TAG_BYTES: Final = 6
"""What ids begin with: enough that those of two sessions differ."""

CLOSING: Final = "the server closed the session; part of this may have been done"

_FIRE = int(Kind.FIRE)
_STREAM = int(Kind.STREAM)
_UPLOAD = int(Kind.UPLOAD)
_CHANNEL = int(Kind.CHANNEL)


class RiverSession(Checkpoints):
    """A :class:`penstock.session.Session` that speaks River v2.0.

    Make one with :meth:`client` or :meth:`server`.
    """

    @classmethod
    def client(cls, settings: Settings, identity: Identity, metadata: bytes, random: bytes) -> RiverSession:
        """Return a client's session.

        Args:
            settings: Limits and timeouts.
            identity: The codec, and who talks to whom.
            metadata: What to say in handshakes, as a body of the codec; empty: nothing.
            random: At least 16 bytes that nobody can guess: the session's id is its key.

        Raises:
            LocalError: `metadata` is nothing that the codec could have written.

        """
        if len(random) < 16:
            raise LocalError(f"{len(random)} random bytes; a River session needs 16")
        key = base36(int.from_bytes(random, "big"))
        said = codec_of(identity.codec).body(metadata) if metadata else b""
        tag = tag_of(key)
        us = identity.client or f"client-{tag}"
        peer = identity.server or SERVER
        return cls(settings, identity.codec, True, us, peer, f"session-{key}", f"{tag}-", said)

    @classmethod
    def restore(
        cls, settings: Settings, identity: Identity, metadata: bytes, random: bytes, checkpoint: bytes, secret: bytes
    ) -> RiverSession:
        """Return the client's session that `checkpoint` describes; it goes on as soon as a link is up.

        Args:
            settings: Limits and timeouts.
            identity: The codec, which must be the checkpoint's; it says itself who talks to whom.
            metadata: See :meth:`client`.
            random: Some bytes, from which the ids that this process makes differ from the earlier one's.
            checkpoint: What :meth:`checkpoint` returned there.
            secret: The session's :attr:`secret`.

        Raises:
            LocalError: It is none, or one of another codec; or `secret` is not that of a River session.
            ResumeRejected: It cannot be told whether the server still has the session.

        """
        kept = decode_checkpoint(checkpoint, identity.codec)
        said = codec_of(identity.codec).body(metadata) if metadata else b""
        tag = tag_of(random.hex())
        try:
            session_id = secret.decode()
        except UnicodeDecodeError as error:
            raise LocalError("the secret is not that of a River session") from error
        session = cls(settings, identity.codec, True, kept.us, kept.peer, session_id, f"{tag}-", said)
        session.restore_from(kept)
        return session

    @classmethod
    def server(
        cls,
        settings: Settings,
        codec: str,
        us: str,
        peer: str,
        asked: HandshakeRequest,
        sessions: Sessions[RiverSession],
        identity: bytes,
        now: float,
    ) -> RiverSession:
        """Return the session that a client's handshake asks for, linked and answered.

        Args:
            settings: Limits and timeouts.
            codec: ``json`` or ``msgpack``.
            us: The server's id.
            peer: The client's.
            asked: The handshake.
            sessions: The server's, to which it is added.
            identity: Who the client is, as far as its link proves it.
            now: The time.

        """
        session = cls(settings, codec, False, us, peer, asked.session_id, f"{tag_of(asked.session_id)}-s")
        session.identity = identity
        session._serve(asked, sessions, now)
        return session

    def _serve(self, asked: HandshakeRequest, sessions: Sessions[RiverSession], now: float) -> None:
        """Take a client's first handshake."""
        self._old = asked.protocol_version == V1_1
        # A client that does not say where it would go on learns by the id whether its session is still here.
        forgetful = asked.expected_session_state is UNSET
        self._answered_as = f"{asked.session_id}-{now:.9f}" if forgetful else asked.session_id
        self._sessions = sessions
        self._established = True
        sessions.add(self)
        self._events.append(Established(Payload(asked.said), "", self._codec.data_mime))
        self.go_on(now)
        # Once the client has this, it expects number 1, and a server that has forgotten the session must refuse it.
        # Before that, a server that was restarted would take the same requests for new ones: none begins until then.
        self._unproven = not self._old
        self._beat()

    def come_back(self, asked: HandshakeRequest, now: float) -> None:
        """Go on over another link, as a client asks.

        Raises:
            SetupRejected: The client, or the session, lacks what the other has forgotten.

        """
        check_state(asked.expected_session_state, self._sequence)
        self.go_on(now)
        self.said_again(asked.said)

    def decline(self) -> None:
        """Stay as it was before somebody asked for it."""

    def go_on(self, now: float) -> None:
        """Answer a handshake, and go on over its link; the old link, if there is one, is given up."""
        self._suspend(now)
        self._outbox.write(self._control(response(self._codec, self._answered_as)))
        self._linked(now)

    # Verbs.

    def open(
        self, kind: Kind, route: str, payload: Payload, credit: int = 0, done: bool = False, endless: bool = False
    ) -> int:
        """Open a stream and return its id. See :meth:`penstock.session.Session.open`."""
        if self._state != OPENED:
            raise SessionClosed("the connection is not open for new streams")
        if not self._is_client:
            raise UnsupportedKind("River: streams are opened by clients alone")
        if kind == _FIRE:
            raise UnsupportedKind("River has no way to carry fire; use a call")
        if credit < 1 and (kind == _STREAM or kind == _CHANNEL):
            raise LocalError(f"{kind.name.lower()} needs a credit of at least 1, not {credit}")
        body = self._body(payload)
        tracing = None if payload.metadata is None else tracing_of(payload.metadata)
        if self._sequence.room == 0:
            self._opening = True
            raise LeaseMissing(f"{self.peer} has not acknowledged what was sent before; wait until it has")
        name = self._new_id()
        encoded = self._writer.name(name)
        closed = done or (kind != _UPLOAD and kind != _CHANNEL)
        # River, RPC and Subscription; the reference opens both with the closed bit.
        self._post(encoded, OPENS | CLOSE if closed else OPENS, body, False, route, tracing)
        stream = self._streams.open(name, encoded, kind, OPEN, DONE if closed else OPEN)
        stream.granted = credit if stream.answers_items else 1
        if self._state == CLOSED:
            self._forget(stream)
            raise SessionClosed("the connection was closed: too much waits to be acknowledged")
        if not closed:
            # Nobody has to ask for what the client sends.
            self._events.append(CreditGranted(stream.number, self._sequence.room))
        return stream.number

    def send(self, stream_id: int, payload: Payload, done: bool = False) -> int:
        """Send an item, which may be the last, and return the credit that is left."""
        stream = self._sending(stream_id)
        done = done or not (stream.sends_items or stream.answers_items)
        # The last one may always go: somebody waits for it.
        if not done and self._sequence.room == 0:
            self._starved.add(stream_id)
            raise CreditExceeded(f"stream {stream_id}: the peer has not acknowledged enough; wait for CreditGranted")
        body = self._body(payload)
        self._post(stream.encoded, CLOSE if done else 0, body, not self._is_client)
        if done:
            self._done(stream)
            return 0
        return self.credit(stream_id)

    def send_run(self, stream_id: int, run: PayloadRun, start: int = 0) -> int:
        """Send the items of `run` from index `start`, as far as credit goes; return how many that were."""
        self._sending(stream_id)
        count = min(self.credit(stream_id), len(run) - start)
        if count <= 0:
            return 0
        sent = 0
        for payload in run.payloads(start, start + count):
            sent += 1
            if self.send(stream_id, payload) == 0:
                break
        return sent

    def complete(self, stream_id: int) -> None:
        """End our half: no more items come. A half that is over already is left alone."""
        stream = self._streams.sending(stream_id)
        if stream is not None:
            self._post(stream.encoded, CLOSE, self._codec.close)
            self._done(stream)

    def fail(self, stream_id: int, error: Exception) -> None:
        """End the stream, both halves, with an error. See :meth:`penstock.session.Session.fail`."""
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if not self._is_client:
            if stream.outbound == OPEN:
                flags, body = failure_of(self._codec, error)
                self._post(stream.encoded, flags, body)
            self._streams.finish(stream.name)
        elif stream.inbound == OPEN:
            self._post(stream.encoded, CANCEL, refusal(self._codec, CANCELED, "the client gave the request up"))
        elif stream.outbound == OPEN:
            # The server has said all: there is nothing left to cancel.
            self._post(stream.encoded, CLOSE, self._codec.close)
        self._forget(stream)
        self._after()

    def request(self, stream_id: int, count: int) -> None:
        """Take `count` more items. River has no such word: what comes before it is held here."""
        if count < 1:
            raise LocalError(f"stream {stream_id}: request at least 1 item, not {count}")
        stream = self._streams.get(stream_id)
        if stream is not None:
            stream.granted += count
            self._release(stream)
            self._after()

    def cancel(self, stream_id: int, metadata: bytes | None = None) -> None:
        """Want no more items. A stream that is over is left alone."""
        if metadata is not None:
            raise LocalError("River has no room for metadata in a cancellation")
        stream = self._streams.get(stream_id)
        if stream is None:
            return
        if not self._is_client:
            # River, Reader and Writer Semantics: a reader can only stop reading.
            self._drop_held(stream)
            if stream.inbound == OPEN:
                self._streams.finish(stream.name)
                stream.inbound = DONE
                stream.deaf = True
            if stream.outbound == DONE:
                self._forget(stream)
        elif stream.inbound == OPEN:
            self._post(stream.encoded, CANCEL, refusal(self._codec, CANCELED, "cancelled by client"))
            self._forget(stream)
        else:
            self._drop_held(stream)
            self._settle(stream)
        self._after()

    def credit(self, stream_id: int) -> int:
        """Return how many items `send` may still take; 0 for a stream that is over."""
        if self._streams.sending(stream_id) is None:
            return 0
        room = self._sequence.room
        if room == 0:
            self._starved.add(stream_id)
        return room

    def streams(self) -> list[int]:
        """Return the numbers of the streams that this side opened and that are still open."""
        return [stream.number for stream in self._streams.all()] if self._is_client else []

    def is_ours(self, stream_id: int) -> bool:
        """Return whether this side opens streams: clients alone do."""
        return self._is_client

    def push(self, metadata: bytes, stream_id: int = 0) -> None:
        """Push nothing: River has no such thing."""
        raise UnsupportedKind("River has no way to push metadata")

    def close(self, now: float, error: Exception | None = None) -> None:
        """End the session: at once with `error`, else when the streams that are open have ended."""
        if self._state == CLOSED:
            return
        if error is not None:
            if isinstance(error, SetupRejected) and not self._is_client and not self._renewed:
                self._outbox.write(self._control(response(self._codec, "", error.message, code_of(error))))
            elif not isinstance(error, SetupRejected | LimitExceeded):
                self._say_goodbye()
            self._finish(error)
            return
        self._state = DRAINING
        if not self._streams:
            self._depart()

    def _depart(self) -> None:
        self._say_goodbye()
        self._finish(None)

    def _say_goodbye(self) -> None:
        """Tell a server's client that its calls are over, and that it need not come back for them.

        River has a word for the first, and none for the second: clients that do not know ours ignore it.
        """
        if self._is_client or self._link != UP:
            return
        # Clients that know this fail their streams by themselves; the others read on.
        self._post(self._codec.encoded(GOODBYE), CLOSE, self._codec.close)
        for stream in self._streams.all():
            if stream.outbound == OPEN:
                self._post(stream.encoded, CANCEL, refusal(self._codec, UNEXPECTED_DISCONNECT, CLOSING))

    def displaced(self, now: float) -> None:
        """Give way to another session of the same client: it has forgotten this one."""
        self._timers.clear()
        self._finish(SessionClosed("the client began another session"))

    def _confirmed(self, now: float) -> None:
        if self._sessions is not None:
            for other in self._sessions.others(self):
                other.displaced(now)

    def _ended(self, error: Exception | None) -> None:
        if self._sessions is not None:
            self._sessions.forget(self, error)

    def _body(self, payload: Payload) -> bytes:
        """Return the body that `payload` travels as; no data at all is an object without fields, or null."""
        if payload.metadata is not None:
            # A handler may send back the request, trace and all; there is no room for that.
            tracing_of(payload.metadata)
        data = payload.data
        if not data:
            return self._codec.empty if self._is_client else self._codec.null
        return data if is_body(data, self._is_json) else self._codec.body(data)

    def _sending(self, stream_id: int) -> RiverStream:
        stream = self._streams.sending(stream_id)
        if stream is None:
            raise StreamClosed(f"stream {stream_id}: our half is over")
        return stream

    def _done(self, stream: RiverStream) -> None:
        """Note that our half is over."""
        stream.outbound = DONE
        if self._starved:
            self._starved.discard(stream.number)
        self._settle(stream)
        self._after()

    def _drop_held(self, stream: RiverStream) -> None:
        self._held_bytes -= stream.octets
        stream.drop()


def tag_of(secret: str) -> str:
    """Return what the ids of a session begin with. Many read them, so they tell nothing of the session's own id."""
    return blake2b(secret.encode(errors="replace"), digest_size=TAG_BYTES).hexdigest()


def client(start: ClientStart) -> RiverSession:
    """Return a client's session. See :func:`penstock.protocols.client_session`."""
    checkpoint = start.checkpoint_with_secret()
    identity = Identity.of(start.options)
    if checkpoint is not None:
        session = RiverSession.restore(
            start.settings, identity, start.setup.data, start.random, checkpoint, start.secret
        )
    else:
        session = RiverSession.client(start.settings, identity, start.setup.data, start.random)
    renew = start.renew
    if renew is not None:
        session.renew = lambda: renew().data
    return session
