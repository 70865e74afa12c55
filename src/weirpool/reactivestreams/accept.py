"""Detects reactive-streams-io on a new link of a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..errors import ProtocolError
from ..session import SLICE, Detector, ServerStart, Session
from ..settings import Settings
from ..wire.reactivestreams.codec import LAYOUTS, NAMES, Message, Type, encode
from .session import ReactiveStreamsSession

__all__ = ["ReactiveStreamsDetector", "detectors"]

FOREIGN: Final = {
    0x16: "a TLS ClientHello; connect with +tcp, or serve with +tls",
    ord("G"): "an HTTP request",
    ord("P"): "an HTTP request",
    ord("H"): "an HTTP request",
    ord("S"): "SSH",
    0x00: "a frame of RSocket",
}
"""Other protocols that clients may send by mistake, by their first byte."""
LAST_BYTE: Final = 0x7F
"""Larger bytes are not a type, but the beginning of one."""
OPENING: Final = (Type.CLIENT_HELLO, Type.GOODBYE)
"""First messages that begin a session. A session answers a goodbye without a hello, and ends."""
NO_HELLO: Final = b"the server closes the connection: no clientHello was received"


class ReactiveStreamsDetector(Detector):
    """Waits for the first byte, which is the type of a message: clientHello."""

    def __init__(self, settings: Settings, exclusive: bool = False) -> None:
        super().__init__(settings.first_frame_timeout)
        self._settings = settings
        self._exclusive = exclusive
        # docs/reference/rs-0.md, Hello 3: sent to a silent client when the server closes, or after the time limit.
        self.farewell = encode(Message(Type.GOODBYE, 0, 0, NO_HELLO))

    def receive(self, data: bytes, now: float) -> Session | None:
        """Return the session of the link. See :meth:`weirpool.session.Detector.receive`.

        Raises:
            ProtocolError: The first message is not clientHello. It is answered unless it may be another protocol's.

        """
        if not data:
            return None
        type = data[0]
        if type not in OPENING:
            what = f"{NAMES[type]} instead of clientHello" if type in LAYOUTS else f"the byte 0x{type:02x}"
            # THREATS 71.
            self.farewell = encode(Message(Type.GOODBYE, 0, 0, f"the first message is {what}".encode()))
            if not self._exclusive and (type in FOREIGN or type > LAST_BYTE):
                what = FOREIGN.get(type, what)
                self.farewell = b""
            raise ProtocolError(f"the link begins with {what}, not with reactive-streams-io")
        session = ReactiveStreamsSession.server(self._settings)
        session.identity = self.identity
        session.link_up(self._since)
        self.more = session.receive(data, now, SLICE)
        return session


def detectors(start: ServerStart) -> Callable[[], ReactiveStreamsDetector]:
    """Return a factory of detectors for one server. See :func:`weirpool.protocols.detectors`."""
    return lambda: ReactiveStreamsDetector(start.settings, start.exclusive)
