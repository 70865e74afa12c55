"""What a client says of itself again: when it comes back over another link, and when its server asks for it.

The document has metadata in handshakes alone. The reference's servers ask for it anew on the stream ``rehandshake``,
when what they were told, such as a token, is about to expire; and they look at it at every handshake of a session.
"""

from __future__ import annotations

from ..core.timers import Timer
from ..errors import FrameError, LinkLost, LocalError, ProtocolError
from ..events import Established
from ..payload import Payload
from ..wire.river.message import Message
from .connection import UP, Connection
from .handshake import REHANDSHAKE, Rehandshake, rehandshake_request

__all__ = ["Rehandshakes"]


class Rehandshakes(Connection):
    """A connection whose server may learn anew who its client is.

    Attributes:
        renew: Returns what a client says of itself from its second handshake on; None: the same as at the first.

    """

    def _say(self) -> bytes | None:
        """Return what a client says of itself now, as a body; None: `renew` has failed, and the session is over."""
        if self.renew is not None and not self._first:
            try:
                self._metadata = self._codec.body(self.renew())
            except Exception as wrong:
                error = LocalError(f"what the client says of itself could not be had anew: {wrong!r}")
                error.__cause__ = wrong
                self._finish(error)
                return None
        self._first = False
        return self._metadata

    def rehandshake(self, now: float) -> None:
        """Ask the client for its metadata; `Established` follows when it comes, and else the session ends.

        Without a link nothing is asked: whoever comes back says it anyhow.
        """
        if self._link != UP or self._asking:
            return
        self._asking = True
        self._timers.set(Timer.FIRST_FRAME, now + self._settings.handshake_timeout)
        self._post(self._codec.encoded(REHANDSHAKE), 0, rehandshake_request(self._codec))

    def said_again(self, said: bytes) -> None:
        """Take the metadata of a handshake by which the client has come back."""
        self._renewed = self._asking = False
        self._events.append(Established(Payload(said), "", self._codec.data_mime))

    def _rehandshaken(self, message: Message) -> bool:
        """Take the metadata that was asked for; return whether any was.

        Raises:
            ProtocolError: The message holds none.

        """
        if not self._asking:
            return False
        try:
            said = self._codec.value(message.payload, Rehandshake).said
        except FrameError as error:
            raise ProtocolError(f"the answer to a rehandshake is none: {error.message}") from error
        self._timers.stop(Timer.FIRST_FRAME)
        self.said_again(said)
        self._renewed = True
        return True

    def _not_rehandshaken(self) -> None:
        """End the session of a client that does not say who it is."""
        limit = self._settings.handshake_timeout
        self._finish(LinkLost(f"{self.peer} did not answer the rehandshake within {limit:g} s"))
