"""The first bytes of a new link: is this RSocket at all?"""

from __future__ import annotations

from typing import Final

from ..errors import ProtocolError
from ..session import Session
from ..settings import Settings
from ..wire.frames import FrameType
from .dialect import RSOCKET_1_0
from .session import RSocketSession

__all__ = ["RSocketAcceptor"]

HEAD_BYTES: Final = 9
"""The length prefix and the header: enough to tell."""

TYPES: Final = frozenset(FrameType)

FOREIGN: Final = (
    (b"\x16\x03", "a TLS ClientHello; connect with +tcp, or serve with +tls"),
    (b"GET ", "an HTTP request"),
    (b"POST", "an HTTP request"),
    (b"HEAD", "an HTTP request"),
    (b"PUT ", "an HTTP request"),
    (b"PRI ", "HTTP/2"),
    (b"SSH-", "SSH"),
)
"""What else people point at a port, so that the log can say it."""


class RSocketAcceptor:
    """Waits for enough bytes to tell RSocket from anything else."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._head = b""
        self._since = 0.0
        self.farewell = b""

    def link_up(self, now: float) -> None:
        """A link was accepted: the peer must say who it is before `next_timer`."""
        self._since = now

    def next_timer(self) -> float | None:
        """Return when the peer must have said who it is."""
        return self._since + self._settings.first_frame_timeout

    def receive(self, data: bytes, now: float) -> Session | None:
        """Take what the link brought. See :meth:`penstock.session.Acceptor.receive`.

        Raises:
            ProtocolError: These bytes are no RSocket; close the link and answer nothing.

        """
        self._head += data
        if len(self._head) < HEAD_BYTES:
            return None
        self._check(self._head)
        session = RSocketSession.server(self._settings, RSOCKET_1_0)
        session.link_up(self._since)
        session.receive(self._head, now)
        self._head = b""
        return session

    def _check(self, head: bytes) -> None:
        for start, name in FOREIGN:
            if head.startswith(start):
                raise ProtocolError(f"the first bytes are {name}, not RSocket")
        length = int.from_bytes(head[:3], "big")
        stream_id = int.from_bytes(head[3:7], "big")
        type = head[7] >> 2
        fits = 6 <= length <= self._settings.max_setup_frame_bytes
        if not fits or stream_id >> 31 or type not in TYPES:
            raise ProtocolError(f"the first bytes are {head[:9].hex()}, not RSocket")
