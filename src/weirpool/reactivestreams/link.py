"""The link of a session: messages in, hello and goodbye, and timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..account import Account
from ..core.timers import Timer, TimerTable
from ..core.unfinished import Unfinished
from ..errors import (
    KeepaliveTimeout,
    LimitExceeded,
    LinkLost,
    LocalError,
    PeerClosed,
    ProtocolError,
    SessionError,
    SetupRejected,
)
from ..events import Draining, Established, Event
from ..payload import Payload
from ..settings import Settings
from ..texts import shown
from ..wire.reactivestreams.codec import Items, Message, Type
from ..wire.reactivestreams.decoder import Decoder
from .codes import fitting
from .handshake import METADATA, agreed, check_version, hello, ours
from .inbound import Inbound
from .lifecycle import CLOSED, DRAINING, LEAVING, NEW, OPENED, TRANSITIONS, SessionState
from .outbound import Outbound

__all__ = ["Link"]

ALL_DONE: Final = "all streams are done"
"""The reason in the goodbye of an orderly close."""
REASON_BYTES: Final = 1_000
"""The maximum size of the reason in goodbye."""
ITEMS_OF_MESSAGE: Final = 64
"""Items of a run that take as much time as a message of another kind."""
_GOODBYE: Final = int(Type.GOODBYE)
_HELLOS: Final = (int(Type.CLIENT_HELLO), int(Type.SERVER_HELLO))


class Link:
    """The one link of a session.

    Args:
        settings: Limits and timeouts.
        is_client: Whether this side is the client.
        account: The account of the connection.
        events: The list to append events to.
        timers: The timers of the session.
        outbound: Sends messages.
        inbound: Receives messages of streams.
        finish: Ends the session with an error, or None.

    Attributes:
        state: A :class:`SessionState` as a number.
        greeted: Whether the peer's hello has been received.
        unfinished: The bytes of a message that has not arrived completely.

    """

    def __init__(
        self,
        settings: Settings,
        is_client: bool,
        account: Account,
        events: list[Event],
        timers: TimerTable,
        outbound: Outbound,
        inbound: Inbound,
        finish: Callable[[Exception | None], None],
    ) -> None:
        self._settings = settings
        self._is_client = is_client
        self._offered = ours(settings)
        self._events = events
        self._timers = timers
        self._outbound = outbound
        self._inbound = inbound
        self._finish = finish
        self._last_received_at = 0.0
        self._waits_for_parts = False
        self._decoder = self._new_decoder()
        self.unfinished = Unfinished(account, timers, settings.frame_timeout)
        self.state = NEW
        self.greeted = False

    def _new_decoder(self) -> Decoder:
        settings = self._settings
        return Decoder(
            settings.max_string_bytes,
            settings.max_frame_bytes,
            settings.max_metadata_bytes,
            settings.max_extensions,
            int(Type.SERVER_HELLO if self._is_client else Type.CLIENT_HELLO),
        )

    def forget_input(self) -> None:
        """Release the received bytes of an incomplete message: the session has ended."""
        self._decoder = self._new_decoder()
        self.unfinished.drop()

    def move(self, cause: str) -> None:
        """Enter the next state."""
        self.state = int(TRANSITIONS[SessionState(self.state), cause])

    def link_up(self, now: float) -> None:
        """Start the timers, and send a client's hello."""
        if self.state != NEW:
            return
        self._last_received_at = now
        self._timers.set(Timer.FIRST_FRAME, now + self._settings.first_frame_timeout)
        if self._is_client:
            self.move("hello")
            self._outbound.message(hello(True, self._offered))
        if self._settings.idle_timeout > 0:
            self._timers.set(Timer.SILENCE, now + self._settings.idle_timeout)

    def link_down(self, now: float, error: Exception | None) -> None:
        """End the session; `error` is the reason if the link failed."""
        if self.state == LEAVING:
            self._finish(None)
        elif self.state != CLOSED:
            # reactive-streams-io 0, Closing the connection: state is not reused after reconnecting.
            self._finish(error if error is not None else LinkLost("the peer closed the connection without goodbye"))

    def receive(self, data: bytes, now: float, frames: int = 0) -> bool:
        """Process bytes from the link, which may end within a message. See `Session.receive`."""
        if self.state == CLOSED:
            return False
        self._last_received_at = now
        decoder = self._decoder
        if data:
            decoder.feed(data)
        left = frames
        more = False
        try:
            while self.state != CLOSED:
                message = decoder.next()
                if message is None:
                    break
                left -= self._take(message, now)
                if left <= 0 < frames:
                    more = decoder.pending > 0
                    break
        except (ProtocolError, LimitExceeded, SetupRejected) as error:
            if self.state == LEAVING:
                # Goodbye was already sent.
                self._finish(None)
            else:
                self.abort(error)
        if self.state == CLOSED:
            return False
        if more or decoder.incomplete or self.unfinished.held:
            self.unfinished.update(decoder.pending if more else decoder.incomplete, now, more)
        self.update_timers()
        return more

    def _take(self, message: Message | Items, now: float) -> int:
        """Process a message; return the number of messages that take as much time."""
        if isinstance(message, Items):
            if self.state != LEAVING:
                self._inbound.items(message)
            return 1 + len(message.run) // ITEMS_OF_MESSAGE
        known = message
        if known.type == _GOODBYE:
            self._goodbye(known)
        elif self.state == LEAVING:
            # Goodbye closed all streams. Messages that the peer sent before it read goodbye are ignored.
            return 1
        elif not self.greeted and known.type in _HELLOS:
            self._hello(known)
        else:
            self._inbound.message(known, now)
            if self._inbound.peer_closing and self._is_client and self.state == OPENED:
                self.move("close()")
                self._events.append(Draining())
        return 1

    def handle_timer(self, now: float) -> None:
        """Handle the timers that have expired."""
        for timer in self._timers.expired(now):
            if self.state == CLOSED:
                return
            if timer is Timer.FIRST_FRAME:
                limit = self._settings.first_frame_timeout
                text = f"no hello from the peer within {limit:g} s"
                # A silent server has not rejected the client, so a retry may succeed.
                self.abort(LinkLost(text) if self._is_client else SetupRejected(text))
            elif timer is Timer.GOODBYE:
                self.send_goodbye_or_finish(now)
            elif timer is Timer.SILENCE:
                self._silence(now)
            elif timer is Timer.FRAME and self.unfinished.overdue(now):
                limit = self._settings.frame_timeout
                self.abort(KeepaliveTimeout(f"the peer stopped within a message for frame_timeout ({limit:g} s)"))
            elif timer is Timer.REASSEMBLY:
                try:
                    self._inbound.overdue(now)
                except LimitExceeded as error:
                    self.abort(error)
        self.update_timers()

    def _silence(self, now: float) -> None:
        """End the session if the peer has been silent for too long."""
        due = self._last_received_at + self._settings.idle_timeout
        if now < due:
            self._timers.set(Timer.SILENCE, due)
        else:
            self.abort(KeepaliveTimeout(f"nothing received from the peer for {now - self._last_received_at:.1f} s"))

    def progressed(self, now: float) -> None:
        """Record that pending output left the link, which shows that the peer reads."""
        self._last_received_at = now
        self.unfinished.excuse(now)

    # Hello and goodbye.

    def _hello(self, message: Message) -> None:
        """Process the peer's hello. Raises SetupRejected if it has another version."""
        check_version(message)
        self.greeted = True
        self._timers.stop(Timer.FIRST_FRAME)
        if not self._is_client:
            if self.state == NEW:
                self.move("hello")
            self._outbound.message(hello(False, self._offered))
        for extension in agreed(message, self._offered):
            self._decoder.extensions.update(extension.layouts)
            self._outbound.metadata = self._outbound.metadata or extension is METADATA
        self.establish()

    def establish(self) -> None:
        """Report the session as established."""
        settings = self._settings
        self._events.append(Established(Payload(), settings.metadata_mime, settings.data_mime))

    def _goodbye(self, message: Message) -> None:
        """Process the peer's goodbye, which closes all streams. Answer it unless it is an answer."""
        if self.state == LEAVING:
            self._finish(None)
            return
        reason = shown(message.data.decode())
        if self._is_client and not self.greeted:
            self._finish(SetupRejected(f"the server rejected the connection: {reason}"))
            return
        self._say_goodbye("goodbye")
        if reason == ALL_DONE:
            # docs/reference/rs-0.md, Goodbye: the server has not opened them.
            self._inbound.reject_unanswered()
        self._finish(PeerClosed(f"the peer closed the connection: {reason}"))

    def _say_goodbye(self, reason: str) -> None:
        self._outbound.message(Message(Type.GOODBYE, 0, 0, fitting(reason, REASON_BYTES)))

    # Closing.

    def update_timers(self) -> None:
        """Update the timers after input, a timer or a verb."""
        if self.state == CLOSED:
            return
        if self.state == DRAINING and self._inbound.open_streams == 0:
            # Goodbye needs the time to set its timer. Verbs do not have it, so an immediate timer sends goodbye.
            self._timers.set(Timer.GOODBYE, self._last_received_at)
        deadline = self._inbound.reassembly.deadline() if self._inbound.reassembly.partials else None
        if deadline is not None:
            self._timers.set(Timer.REASSEMBLY, deadline)
        elif self._waits_for_parts:
            self._timers.stop(Timer.REASSEMBLY)
        self._waits_for_parts = deadline is not None

    def send_goodbye_or_finish(self, now: float) -> None:
        """Send goodbye if all streams have ended, and wait for the answer. End the session at the second call."""
        if self.state == LEAVING:
            self._finish(None)
        elif self.state == DRAINING and self._inbound.open_streams == 0:
            self.move("streams ended")
            self._say_goodbye(ALL_DONE)
            self._timers.clear()
            self._timers.set(Timer.GOODBYE, now + self._settings.close_grace)

    def abort(self, error: Exception) -> None:
        """Send the reason to the peer, unless it may be secret, and end the session."""
        known = isinstance(error, SessionError) and not isinstance(error, LocalError)
        if isinstance(error, SetupRejected) and not self._outbound.outbox.taken:
            # A goodbye instead of hello is a rejection.
            self._outbound.outbox.clear()
        self._say_goodbye(str(error) if known else "this side ended the connection")
        self._finish(error)
