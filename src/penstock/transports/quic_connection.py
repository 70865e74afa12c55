"""A QUIC connection: the streams, windows and TLS of both sides. What a client or a server does is in `quic`."""

from __future__ import annotations

import ssl as tls
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection as QuicState
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription

from ..errors import LinkLost, UrlError
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from .base import certificate_errors, check_options
from .streams import WINDOW_BYTES, Carrier, StreamLink, lose_all

if TYPE_CHECKING:
    from aioquic.quic.packet_builder import QuicPacketBuilder
    from aioquic.quic.recovery import QuicPacketSpace
    from aioquic.quic.stream import QuicStream

__all__ = ["ABORTED", "NO_ALPN", "NO_ERROR", "QuicConnection", "client_configuration", "server_configuration"]

SEND_AHEAD: Final = 65_536
"""Bytes of a stream that QUIC gets before it has sent them: enough for what goes out in one turn of the loop. The rest
waits in the link, where it is counted."""

# What is said to the peer at the end of a connection, or of a stream.
NO_ERROR: Final = 0
ABORTED: Final = 1
NO_ALPN: Final = frozenset(
    QuicErrorCode.CRYPTO_ERROR + alert
    for alert in (AlertDescription.no_application_protocol, AlertDescription.handshake_failure)
)
"""What ends a connection whose sides speak different protocols."""


class QuicConnection(QuicConnectionProtocol, Carrier):
    """A QUIC connection: the protocol of its socket, and the carrier of its links.

    aioquic keeps what is written until it is acknowledged, without telling how much that is, and opens the windows of
    streams by itself, twice as far each time they are half used. So its senders are looked into before they get more,
    and the windows are held to what the links have taken; tests check that both still work.
    """

    def __init__(self, quic: QuicState, url: Url, settings: Settings) -> None:
        super().__init__(quic)
        self._url = url
        self._settings = settings
        self._links: dict[int, StreamLink] = {}
        self._limits: dict[int, int] = {}
        self._ending: set[int] = set()
        self._dead: set[int] = set()
        self._done = False
        self._write_limits = quic._write_stream_limits
        quic._write_stream_limits = self._write_held_limits  # type: ignore[method-assign]

    # What the links ask for; see penstock.transports.streams.Carrier.

    def send(self, link: StreamLink) -> None:
        """Send what waits in `link`."""
        if self._feed(link):
            self._transmit_soon()

    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return what the peer has not acknowledged of a stream, and how much it has."""
        stream = self._quic._streams.get(link.stream_id)
        if stream is None:
            return 0, 0
        return stream.sender._buffer_stop - stream.sender._buffer_start, stream.sender._buffer_start

    def get_extra_info(self, name: str) -> Any:
        """Return what is known of the socket below; of certificates nothing is."""
        return None if self._transport is None else self._transport.get_extra_info(name)

    def allow(self, link: StreamLink, count: int) -> None:
        """Open the window of a stream."""
        self._limits[link.stream_id] = self._limits.get(link.stream_id, WINDOW_BYTES) + count
        self._transmit_soon()

    # Output.

    def transmit(self) -> None:
        """Send what may be sent, and give QUIC more of what waits in the links."""
        feeding = True
        while feeding and self._transport is not None and not self._transport.is_closing():
            super().transmit()
            feeding = any([self._feed(link) for link in self._links.values()])
        # Only what is acknowledged has arrived: a connection that is closed earlier forgets the rest.
        for stream_id in list(self._ending):
            stream = self._quic._streams.get(stream_id)
            if stream is None or stream.sender.is_finished:
                self._ending.discard(stream_id)
                if stream_id in self._links:
                    self._links[stream_id].end_sent()

    def _feed(self, link: StreamLink) -> bool:
        """Give QUIC what waits in `link`, up to `SEND_AHEAD` bytes that it has not sent; return whether it got any."""
        stream = self._quic._streams.get(link.stream_id)
        unsent = stream.sender._buffer_stop - stream.sender.highest_offset if stream is not None else 0
        room = SEND_AHEAD - unsent
        try:
            if link.ending:
                if link.stream_id in self._ending:
                    return False
                self._quic.send_stream_data(link.stream_id, b"", end_stream=True)
                self._ending.add(link.stream_id)
            elif room > 0 and link.get_write_buffer_size():
                self._quic.send_stream_data(link.stream_id, link.take(room))
            else:
                return False
        except (RuntimeError, ValueError):
            # The peer has stopped the stream with the same datagram; the event is on its way.
            return False
        return True

    def _write_held_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream) -> None:
        """Tell the peer how far it may send on a stream: as far as the link has taken, and a window more.

        aioquic doubles a limit that is half used: it is given half of the limit that is wanted then.
        """
        number = stream.stream_id
        limit = WINDOW_BYTES if number is None else self._limits.get(number, WINDOW_BYTES) & ~1
        half_used = stream.receiver.highest_offset * 2 > limit
        stream.max_stream_data_local = limit // 2 if half_used else limit
        self._write_limits(builder, space, stream)

    # What QUIC tells.

    def quic_event_received(self, event: events.QuicEvent) -> None:
        """Take one event."""
        if isinstance(event, events.StreamDataReceived):
            link = self._links.get(event.stream_id)
            if link is None and event.stream_id not in self._dead:
                link = self.opened_by_peer(event.stream_id)
            if link is not None:
                if event.data:
                    link.received(event.data, len(event.data))
                if event.end_stream:
                    link.peer_ended()
            elif event.end_stream:
                self._dead.discard(event.stream_id)
        elif isinstance(event, events.StreamReset | events.StopSendingReceived):
            link = self._links.get(event.stream_id)
            if link is not None:
                self.abandon(event.stream_id)
                link.lose(LinkLost(f"the peer reset the stream (error {event.error_code})"))
                self.stream_over(link)
        elif isinstance(event, events.HandshakeCompleted):
            self.handshake_completed(event.alpn_protocol)
        elif isinstance(event, events.ConnectionTerminated):
            self.terminated(event)

    @abstractmethod
    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Make a link of a stream that the peer has opened; None refuses it."""

    def handshake_completed(self, alpn: str | None) -> None:
        """Take note of what both sides have agreed on. A client that speaks something else was refused by aioquic."""

    def terminated(self, event: events.ConnectionTerminated) -> None:
        """Take the end of the connection, whoever has ended it."""
        why = event.reason_phrase or f"error {event.error_code:#x}"
        lose_all(self._links, LinkLost(f"the connection ended: {why}"), in_order=event.error_code == NO_ERROR)

    # Ends.

    def abandon(self, stream_id: int) -> None:
        """End a stream now, both ways. What still comes in on it is dropped."""
        self._links.pop(stream_id, None)
        self._ending.discard(stream_id)
        stream = self._quic._streams.get(stream_id)
        if stream is not None:
            self._quic.reset_stream(stream_id, ABORTED)
            if not stream.receiver.is_finished:
                self._quic.stop_stream(stream_id, ABORTED)
                self._dead.add(stream_id)
            self._transmit_soon()
        # A limit must not fall while its stream lives.
        self._limits = {number: limit for number, limit in self._limits.items() if number in self._quic._streams}

    def stream_over(self, link: StreamLink) -> None:
        """Take note that a stream has ended."""

    def hang_up(self, code: int = NO_ERROR, reason: str = "") -> None:
        """Close the connection, and say why."""
        if not self._done:
            self._done = True
            self._quic.close(code, reason_phrase=reason)
            self.transmit()


# TLS, which QUIC brings itself.


def _configuration(url: Url, settings: Settings, *, is_client: bool) -> QuicConfiguration:
    return QuicConfiguration(
        alpn_protocols=[spec_of(url.protocol).alpn],
        idle_timeout=settings.keepalive_lifetime,
        is_client=is_client,
        max_data=16 * WINDOW_BYTES,
        max_stream_data=WINDOW_BYTES,
    )


def client_configuration(url: Url, host: str, settings: Settings, ssl: tls.SSLContext | None) -> QuicConfiguration:
    """Return what QUIC needs to connect to `host`.

    Raises UrlError for options that QUIC does not know, for files that cannot be read, and for any `ssl`.
    """
    check_options(url, frozenset({"ca"}))
    if ssl is not None:
        raise UrlError(f"'{url}': QUIC brings its own TLS, which takes no ssl=...; name whom to trust with ?ca=FILE")
    configuration = _configuration(url, settings, is_client=True)
    configuration.server_name = host
    with certificate_errors(url):
        if "ca" in url.options:
            # It is read only during the handshake, and a file that is not there should be told of before.
            with open(url.options["ca"], "rb") as file:
                configuration.load_verify_locations(cadata=file.read())
        else:
            paths = tls.get_default_verify_paths()
            configuration.load_verify_locations(cafile=paths.cafile, capath=paths.capath)
    return configuration


def server_configuration(url: Url, settings: Settings, ssl: tls.SSLContext | None) -> QuicConfiguration:
    """Return what QUIC needs to listen.

    Raises UrlError for options that QUIC does not know, without a certificate, and for files that cannot be read.
    """
    check_options(url, frozenset({"cert", "key"}))
    if "cert" not in url.options:
        # An ssl context serves the other places of a server, and this one has nothing of it.
        why = "QUIC brings its own TLS, which takes no ssl=...; " if ssl is not None else ""
        raise UrlError(f"'{url}' needs a certificate: {why}add ?cert=FILE&key=FILE")
    configuration = _configuration(url, settings, is_client=False)
    with certificate_errors(url):
        configuration.load_cert_chain(url.options["cert"], url.options.get("key"))
    if configuration.private_key is None:
        raise UrlError(f"'{url}': there is no private key in the file of the certificate; add &key=FILE")
    return configuration
