"""The client's side of a QUIC connection, which carries one link."""

from __future__ import annotations

import asyncio
from typing import Final

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import ConnectionTerminated
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from ..errors import ConnectError, LinkLost
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from .base import Receiver
from .quic_connection import ABORTED, NO_ALPN, Connection
from .streams import StreamLink

__all__ = ["ClientConnection"]

UNTRUSTED: Final = frozenset(
    QuicErrorCode.CRYPTO_ERROR + alert
    for alert in (
        AlertDescription.bad_certificate,
        AlertDescription.certificate_expired,
        AlertDescription.certificate_unknown,
        AlertDescription.unknown_ca,
    )
)


class ClientConnection(Connection):
    """The connection of one link that we open.

    Args:
        quic: The state of the connection.
        url: Where to.
        receiver: Whose link it will be.
        settings: For `output_high_bytes`.

    Attributes:
        opened: Done when the handshake is complete.

    """

    def __init__(self, quic: QuicConnection, url: Url, receiver: Receiver, settings: Settings) -> None:
        super().__init__(quic, url, settings)
        self._receiver = receiver
        self._alpn = spec_of(url.protocol).alpn
        self.opened: asyncio.Future[None] = self._loop.create_future()

    def handshake_completed(self, alpn: str | None) -> None:
        """Make the link."""
        if alpn != self._alpn:
            self._not_opened(f"the server does not speak {self._alpn!r} there (ALPN); is it the right port?")
        elif not self.opened.done():
            stream_id = self._quic.get_next_available_stream_id()
            link = StreamLink(self, stream_id, self._receiver, self._settings.output_high_bytes)
            self._links[stream_id] = link
            self.opened.set_result(None)
            self._receiver.link_made(link)

    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Refuse it: a client has one stream, its own."""
        self.drop(LinkLost("the server opened a stream of its own"))
        return None

    def terminated(self, event: ConnectionTerminated) -> None:
        """Tell why there is no link, or no longer one."""
        super().terminated(event)
        why = event.reason_phrase or f"error {event.error_code:#x}"
        if event.error_code in UNTRUSTED:
            self._not_opened(f"its certificate is not trusted ({why}); name its CA with ?ca=FILE")
        elif event.error_code in NO_ALPN:
            self._not_opened(f"the server does not speak {self._alpn!r} there ({why}); is it the right port?")
        else:
            self._not_opened(f"the server closed the connection ({why})")
        self.drop()

    def error_received(self, error: Exception) -> None:
        """Take what the system tells of the other end: mostly that nobody listens there."""
        if not self.opened.done():
            self.opened.set_exception(error)
        self.drop(LinkLost(f"the connection broke: {getattr(error, 'strerror', None) or error}"))

    def connection_lost(self, error: Exception | None) -> None:
        """Tell the link that has ended in order."""
        self.lose_links(error)

    def ended(self, link: StreamLink) -> None:
        """Close the connection; the link is gone with the socket."""
        self.hang_up()
        self._close_socket()

    def reset(self, link: StreamLink) -> None:
        """Drop the connection."""
        self.drop()

    def stream_over(self, link: StreamLink) -> None:
        """Close the connection: it has no other stream."""
        self.drop()

    def drop(self, error: Exception | None = None) -> None:
        """Close the connection now."""
        self.lose_links(error)
        self.hang_up(ABORTED)
        self._close_socket()

    def _close_socket(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def _not_opened(self, reason: str) -> None:
        if not self.opened.done():
            self.opened.set_exception(ConnectError(f"cannot connect to {self._url.place}: {reason}"))
