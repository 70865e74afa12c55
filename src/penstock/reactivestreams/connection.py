"""What a session is made of: its link, hello and goodbye, and how it ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..core.timers import Timer, TimerTable
from ..errors import (
    KeepaliveTimeout,
    LimitExceeded,
    LinkLost,
    LocalError,
    PeerClosed,
    ProtocolError,
    SessionClosed,
    SessionError,
    SetupRejected,
)
from ..events import Closed, Established, Event, Failed
from ..kinds import Kind
from ..payload import Payload
from ..session import Durable
from ..settings import Settings
from ..texts import shown
from ..wire.reactivestreams.codec import Items, Message, Type
from ..wire.reactivestreams.decoder import Decoder
from .codes import fitting
from .handshake import METADATA, agreed, check_version, hello, ours
from .inbound import Inbound
from .outbound import Outbound

__all__ = ["CLOSED", "DRAINING", "LEAVING", "NEW", "OPENED", "Connection"]

# The state of the session.
NEW: Final = 0
"""A server waits for clientHello; a client has had no link yet."""
OPENED: Final = 1
"""Streams flow. A client need not wait for serverHello."""
DRAINING: Final = 2
"""Open streams may end; there are no new ones."""
LEAVING: Final = 3
"""We have said goodbye, and wait for the peer's."""
CLOSED: Final = 4

REASON_BYTES: Final = 1_000
"""How much of a reason travels in goodbye."""
_GOODBYE: Final = int(Type.GOODBYE)
# What the loop over messages looks at, as the compiled build has it fast.
_CLOSED: Final = CLOSED
_LEAVING: Final = LEAVING
_HELLOS: Final = (int(Type.CLIENT_HELLO), int(Type.SERVER_HELLO))


class Connection:
    """A session without verbs.

    Args:
        settings: Limits and timeouts.
        is_client: Which side this is.

    Attributes:
        link_wanted: See :class:`penstock.session.Session`.
        identity: Who the peer is, as far as its link proves it.

    """

    def __init__(self, settings: Settings, is_client: bool) -> None:
        self._settings = settings
        self._is_client = is_client
        self._offered = ours(settings)
        self._state = NEW
        self._greeted = False
        self._said_hello = False
        self._heard = 0.0
        self._waits_for_parts = False
        self._events: list[Event] = []
        self._timers = TimerTable()
        self._outbound = Outbound(settings)
        self._inbound = Inbound(settings, self._outbound, self._events)
        self._decoder = Decoder(
            settings.max_string_bytes,
            settings.max_frame_bytes,
            settings.max_metadata_bytes,
            settings.max_extensions,
            int(Type.SERVER_HELLO if is_client else Type.CLIENT_HELLO),
        )
        self.link_wanted = True
        self.identity = b""

    @property
    def open_streams(self) -> int:
        """How many streams are open, of both sides."""
        return self._inbound.subscriptions.live + len(self._inbound.publications)

    @property
    def calls_by_streams(self) -> bool:
        """Yes: a subscriber that wants one item cannot say so."""
        return True

    @property
    def linked_at(self) -> float | None:
        """None: a session has one link."""
        return None

    @property
    def excused(self) -> bool:
        """No: a session has one link."""
        return False

    @property
    def durable(self) -> Durable | None:
        """None: this session ends with its link."""
        return None

    @property
    def full(self) -> bool:
        """Whether nothing more should be read: never, because demand bounds what comes."""
        return False

    def ask_kinds(self, kind_of: Callable[[str], Kind | None]) -> None:
        """Nothing: all that a subscriber wants is a stream."""

    # The link.

    def link_up(self, now: float) -> None:
        """A link is open; output made from now on belongs on it."""
        if self._state != NEW:
            return
        self._heard = now
        self._timers.set(Timer.FIRST_FRAME, now + self._settings.first_frame_timeout)
        if self._is_client:
            self._state = OPENED
            self._outbound.message(hello(True, self._offered))
        if self._settings.idle_timeout > 0:
            self._timers.set(Timer.SILENCE, now + self._settings.idle_timeout)

    def link_down(self, now: float, error: Exception | None) -> None:
        """The link is gone; `error` says why unless it ended in order."""
        if self._state == LEAVING:
            self._finish(None)
        elif self._state != CLOSED:
            # Closing the connection: state is not reused after reconnecting.
            self._finish(error if error is not None else LinkLost("the peer closed the connection without goodbye"))

    def receive(self, data: bytes, now: float) -> None:
        """Take what the link brought. It may be cut anywhere."""
        if self._state == _CLOSED:
            return
        self._heard = now
        decoder = self._decoder
        decoder.feed(data)
        try:
            while self._state != _CLOSED:
                message = decoder.next()
                if message is None:
                    break
                self._take(message, now)
        except (ProtocolError, LimitExceeded, SetupRejected) as error:
            if self._state == _LEAVING:
                # We are gone already; nobody needs to hear it twice.
                self._finish(None)
            else:
                self._abort(error)
        self._after()

    def _take(self, message: Message | Items, now: float) -> None:
        """Take one message."""
        if isinstance(message, Items):
            if self._state != _LEAVING:
                self._inbound.items(message, now)
            return
        known = message
        if known.type == _GOODBYE:
            self._goodbye(known)
        elif self._state == _LEAVING:
            # Goodbye closed all streams: what the peer said before it read that means nothing.
            return
        elif not self._greeted and known.type in _HELLOS:
            self._hello(known)
        else:
            self._inbound.message(known, now)

    def next_timer(self) -> float | None:
        """Return when to call `handle_timer`, or None. It may be early, never late."""
        return self._timers.next()

    def handle_timer(self, now: float) -> None:
        """Do what is due by now."""
        for timer in self._timers.expired(now):
            if self._state == CLOSED:
                return
            if timer is Timer.FIRST_FRAME:
                limit = self._settings.first_frame_timeout
                text = f"the peer said no hello within {limit:g} s"
                # A server that is silent has refused nobody: another try may help.
                self._abort(LinkLost(text) if self._is_client else SetupRejected(text))
            elif timer is Timer.GOODBYE:
                self._leave_or_give_up(now)
            elif timer is Timer.SILENCE:
                self._silence(now)
            elif timer is Timer.REASSEMBLY:
                try:
                    self._inbound.overdue(now)
                except LimitExceeded as error:
                    self._abort(error)
        self._after()

    def _silence(self, now: float) -> None:
        """Give a peer up that has been silent for too long."""
        due = self._heard + self._settings.idle_timeout
        if now < due:
            self._timers.set(Timer.SILENCE, due)
        else:
            self._abort(KeepaliveTimeout(f"nothing was heard of the peer for {now - self._heard:.1f} s"))

    def progressed(self, now: float) -> None:
        """Output that had waited has left the link: the peer takes it."""
        self._heard = now

    def take_output(self) -> list[bytes]:
        """Return the bytes to write, in pieces fit for a socket, and forget them."""
        pieces = self._outbound.outbox.take()
        self._said_hello = self._said_hello or bool(pieces)
        return pieces

    def take_events(self) -> list[Event]:
        """Return what happened since the last call, in order, and forget it."""
        happened = self._events[:]
        self._events.clear()
        return happened

    # Hello and goodbye.

    def _hello(self, message: Message) -> None:
        """Take the peer's hello. Raises SetupRejected when its version is not ours."""
        check_version(message)
        self._greeted = True
        self._timers.stop(Timer.FIRST_FRAME)
        if not self._is_client:
            if self._state == NEW:
                self._state = OPENED
            self._outbound.message(hello(False, self._offered))
        for extension in agreed(message, self._offered):
            self._decoder.extensions.update(extension.layouts)
            self._outbound.metadata = self._outbound.metadata or extension is METADATA
        self._established()

    def _established(self) -> None:
        settings = self._settings
        self._events.append(Established(Payload(), settings.metadata_mime, settings.data_mime))

    def _goodbye(self, message: Message) -> None:
        """Take the peer's goodbye, which closes all streams and wants an answer, unless it is one."""
        if self._state == LEAVING:
            self._finish(None)
            return
        reason = shown(message.octets.decode())
        if self._is_client and not self._greeted:
            self._finish(SetupRejected(f"the server refused us: {reason}"))
            return
        self._say_goodbye("goodbye")
        self._finish(PeerClosed(f"the peer closed the connection: {reason}"))

    def _say_goodbye(self, reason: str) -> None:
        self._outbound.message(Message(Type.GOODBYE, 0, 0, fitting(reason, REASON_BYTES)))

    # Ends.

    def _after(self) -> None:
        """Do what any input, timer or verb may have made due."""
        if self._state == CLOSED:
            return
        if self._state == DRAINING and self.open_streams == 0:
            # Verbs do not know the time, and goodbye has a timer: the next one that goes off says it.
            self._timers.set(Timer.GOODBYE, self._heard)
        deadline = self._inbound.reassembly.deadline() if self._inbound.reassembly.partials else None
        if deadline is not None:
            self._timers.set(Timer.REASSEMBLY, deadline)
        elif self._waits_for_parts:
            self._timers.stop(Timer.REASSEMBLY)
        self._waits_for_parts = deadline is not None

    def _leave_or_give_up(self, now: float) -> None:
        """Say goodbye, all streams having ended, and wait for the answer; the second time, wait no longer."""
        if self._state == LEAVING:
            self._finish(None)
        elif self._state == DRAINING and self.open_streams == 0:
            self._state = LEAVING
            self._say_goodbye("all streams are done")
            self._timers.clear()
            self._timers.set(Timer.GOODBYE, now + self._settings.close_grace)

    def _abort(self, error: Exception) -> None:
        """Say to the peer why the session ends, as far as it may know, and end it."""
        known = isinstance(error, SessionError) and not isinstance(error, LocalError)
        if isinstance(error, SetupRejected) and not self._said_hello:
            # A goodbye in place of hello is a refusal.
            self._outbound.outbox.clear()
        self._say_goodbye(str(error) if known else "this side ended the connection")
        self._finish(error)

    def _finish(self, error: Exception | None) -> None:
        """End the session for good; every stream fails first."""
        self._state = CLOSED
        reason = error if error is not None else SessionClosed("the connection was closed")
        inbound = self._inbound
        open_ids = [subscription.id for subscription in inbound.subscriptions.all()]
        open_ids += list(inbound.published)
        for subscription in inbound.subscriptions.all():
            inbound.end_subscription(subscription)
        inbound.publications.clear()
        inbound.published.clear()
        inbound.reassembly.clear()
        self._events += [Failed(stream_id, reason) for stream_id in open_ids]
        self.link_wanted = False
        self._events.append(Closed(error))
        self._timers.clear()
