"""The common part of QUIC connections of clients and servers: streams, windows and TLS."""

from __future__ import annotations

import logging
import ssl as tls
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.quic import events
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection as QuicState
from aioquic.quic.packet import QuicErrorCode
from aioquic.tls import AlertDescription, load_pem_x509_certificates

from ..errors import LimitExceeded, LinkLost, UrlError
from ..ledger import Unclaimed
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

logger = logging.getLogger("weirpool.transports")

MAX_UNSENT: Final = 65_536
"""Unsent bytes per stream to pass to aioquic: enough for one turn of the loop. The rest waits in the link, which counts
it."""

CONNECTION_WINDOW: Final = 16 * WINDOW_BYTES
"""The flow control window of a connection: what may arrive of all streams beyond what was delivered."""
WINDOW_STEP: Final = CONNECTION_WINDOW // 4
"""It is extended in steps, because each extension is a frame that the peer must acknowledge."""
RANGE_BYTES: Final = 128
"""Memory of a range of bytes that has arrived out of order."""

# Error codes for the ends of connections and streams.
NO_ERROR: Final = 0
ABORTED: Final = 1
NO_ALPN: Final = frozenset(
    QuicErrorCode.CRYPTO_ERROR + alert
    for alert in (AlertDescription.no_application_protocol, AlertDescription.handshake_failure)
)
"""Error codes for connections whose sides have no common protocol."""


class QuicConnection(QuicConnectionProtocol, Carrier):
    """A QUIC connection: the protocol of its socket, and the carrier of its links.

    aioquic buffers output until it is acknowledged, without reporting its size, and doubles the windows of a stream and
    of the connection whenever they are half used. So this class reads the state of its senders before it passes more
    output, and limits windows to what has arrived in order and what the links have consumed. It counts what has arrived
    out of order; aioquic fills the gaps with zeros. All of this uses private attributes; tests check them.
    """

    address = ""

    def __init__(self, quic: QuicState, url: Url, settings: Settings) -> None:
        super().__init__(quic)
        self._url = url
        self._settings = settings
        self._links: dict[int, StreamLink] = {}
        self._limits: dict[int, int] = {}
        self._ending: set[int] = set()
        self._abandoned: set[int] = set()
        self._done = False
        self._write_limits = quic._write_stream_limits
        quic._write_stream_limits = self._write_own_limits  # type: ignore[method-assign]
        self._write_connection_limit = quic._write_connection_limits
        quic._write_connection_limits = self._write_own_connection_limit  # type: ignore[method-assign]
        self._unclaimed: Unclaimed | None = None

    # Calls of the links; see weirpool.transports.streams.Carrier.

    def send(self, link: StreamLink) -> None:
        """Send the waiting output of `link`."""
        if self._feed(link):
            self._transmit_soon()

    def waiting(self, link: StreamLink) -> int:
        """Return the bytes of a stream that the peer has not acknowledged."""
        return self.progress(link)[0]

    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return the bytes of a stream that the peer has not acknowledged, and those that it has."""
        stream = self._quic._streams.get(link.stream_id)
        if stream is None:
            return 0, 0
        return stream.sender._buffer_stop - stream.sender._buffer_start, stream.sender._buffer_start

    def get_extra_info(self, name: str) -> Any:
        """Return information about the socket, but not about certificates."""
        return None if self._transport is None else self._transport.get_extra_info(name)

    def extend_window(self, link: StreamLink, count: int) -> None:
        """Extend the window of a stream."""
        self._limits[link.stream_id] = self._limits.get(link.stream_id, WINDOW_BYTES) + count
        self._transmit_soon()

    # Output.

    def transmit(self) -> None:
        """Send datagrams, and pass more output of the links to QUIC, until neither is possible."""
        feeding = True
        while feeding and self._transport is not None and not self._transport.is_closing():
            super().transmit()
            feeding = any([self._feed(link) for link in self._links.values()])
        # A closed connection discards unacknowledged output, so a stream has ended only after its acknowledgement.
        for stream_id in list(self._ending):
            stream = self._quic._streams.get(stream_id)
            if stream is None or stream.sender.is_finished:
                self._ending.discard(stream_id)
                if stream_id in self._links:
                    self._links[stream_id].end_sent()

    def _feed(self, link: StreamLink) -> bool:
        """Pass output of `link` to QUIC, up to `MAX_UNSENT` unsent bytes; return True if there was any."""
        stream = self._quic._streams.get(link.stream_id)
        unsent = stream.sender._buffer_stop - stream.sender.highest_offset if stream is not None else 0
        room = MAX_UNSENT - unsent
        try:
            if link.ending:
                if link.stream_id in self._ending:
                    return False
                self._quic.send_stream_data(link.stream_id, b"", end_stream=True)
                self._ending.add(link.stream_id)
            elif room > 0 and link.unsent:
                self._quic.send_stream_data(link.stream_id, link.take(room))
            else:
                return False
        except (RuntimeError, ValueError):
            # The peer has stopped the stream in the same datagram; the event follows.
            return False
        return True

    def _write_own_limits(self, builder: QuicPacketBuilder, space: QuicPacketSpace, stream: QuicStream) -> None:
        """Send the peer the limit of a stream: one window beyond what the link has consumed.

        aioquic doubles a limit that is half used, so it gets half of the intended limit in this case.
        """
        number = stream.stream_id
        limit = WINDOW_BYTES if number is None else self._limits.get(number, WINDOW_BYTES) & ~1
        half_used = stream.receiver.highest_offset * 2 > limit
        stream.max_stream_data_local = limit // 2 if half_used else limit
        self._write_limits(builder, space, stream)

    def _write_own_connection_limit(self, builder: QuicPacketBuilder, space: QuicPacketSpace) -> None:
        """Send the peer the limit of the connection: one window beyond what has arrived in order."""
        limit = self._quic._local_max_data
        in_order = limit.used - sum(len(stream.receiver._buffer) for stream in self._quic._streams.values())
        value = in_order // WINDOW_STEP * WINDOW_STEP + CONNECTION_WINDOW
        limit.value = value // 2 if limit.used * 2 > value // 2 else value
        self._write_connection_limit(builder, space)

    # Input out of order.

    def datagram_received(self, data: bytes | str, addr: Any) -> None:
        """Handle a datagram, and count what waits for another one (THREATS 86)."""
        super().datagram_received(data, addr)
        receivers = () if self._done else [stream.receiver for stream in self._all_streams()]
        size = sum(len(each._buffer) + RANGE_BYTES * len(each._ranges) for each in receivers)
        if size and self._unclaimed is None:
            self._unclaimed = Unclaimed(self.address, self._settings, self._must_release)
        if self._unclaimed is not None:
            self._unclaimed.count(size)

    def _must_release(self) -> None:
        # From the ledger, in any thread.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        """Close a connection that holds too much that has arrived out of order."""
        if self._unclaimed is None or not self._unclaimed.size:
            return
        why = f"{self._unclaimed.size} bytes arrived out of order, and a limit of bytes is reached"
        logger.warning("%s: closed a connection: %s", self._url.place, why)
        lose_all(self._links, LimitExceeded(why))
        self.hang_up(ABORTED, why)

    def _all_streams(self) -> list[QuicStream]:
        """Return the streams, and those of the handshake."""
        return [*self._quic._streams.values(), *self._quic._crypto_streams.values()]

    def _forget_streams(self) -> None:
        """Release what a closed connection holds. aioquic keeps it for a while, but reads and sends nothing of it."""
        for stream in self._all_streams():
            stream.receiver._buffer.clear()
            stream.sender._buffer.clear()
        if self._unclaimed is not None:
            self._unclaimed.count(0)
            self._unclaimed = None

    # Events of QUIC.

    def quic_event_received(self, event: events.QuicEvent) -> None:
        """Handle one event."""
        if isinstance(event, events.StreamDataReceived):
            link = self._links.get(event.stream_id)
            if link is None and event.stream_id not in self._abandoned:
                link = self.opened_by_peer(event.stream_id)
            if link is not None:
                if event.data:
                    link.received(event.data, len(event.data))
                if event.end_stream:
                    link.peer_ended()
            elif event.end_stream:
                self._abandoned.discard(event.stream_id)
        elif isinstance(event, events.StreamReset | events.StopSendingReceived):
            link = self._links.get(event.stream_id)
            if link is not None:
                self.abandon(event.stream_id)
                link.lose(LinkLost(f"the peer reset the stream (error {event.error_code})"))
                self.stream_over()
        elif isinstance(event, events.HandshakeCompleted):
            self.handshake_completed(event.alpn_protocol)
        elif isinstance(event, events.ConnectionTerminated):
            self.terminated(event)

    @abstractmethod
    def opened_by_peer(self, stream_id: int) -> StreamLink | None:
        """Return a link for a stream that the peer has opened; None if it is refused."""

    def handshake_completed(self, alpn: str | None) -> None:
        """Handle the end of the handshake. aioquic has already refused clients without a common protocol."""

    def terminated(self, event: events.ConnectionTerminated) -> None:
        """Handle the end of the connection, by either side."""
        self._forget_streams()
        why = event.reason_phrase or f"error {event.error_code:#x}"
        lose_all(self._links, LinkLost(f"the connection ended: {why}"), in_order=event.error_code == NO_ERROR)

    # Ends.

    def abandon(self, stream_id: int) -> None:
        """End both halves of a stream now. Further input on it is discarded."""
        self._links.pop(stream_id, None)
        self._ending.discard(stream_id)
        stream = self._quic._streams.get(stream_id)
        if stream is not None:
            self._quic.reset_stream(stream_id, ABORTED)
            if not stream.receiver.is_finished:
                self._quic.stop_stream(stream_id, ABORTED)
                self._abandoned.add(stream_id)
            stream.receiver._buffer.clear()
            self._transmit_soon()
        # Keep the limits of streams that aioquic still has: a limit must not decrease.
        self._limits = {number: limit for number, limit in self._limits.items() if number in self._quic._streams}

    def stream_over(self) -> None:
        """Record the end of a stream."""

    def hang_up(self, code: int = NO_ERROR, reason: str = "") -> None:
        """Close the connection, and send the peer the code and the reason."""
        if not self._done:
            self._done = True
            self._quic.close(code, reason_phrase=reason)
            self.transmit()
            self._forget_streams()


# TLS, which is part of QUIC.


def _configuration(url: Url, settings: Settings, *, is_client: bool) -> QuicConfiguration:
    return QuicConfiguration(
        alpn_protocols=[spec_of(url.protocol).alpn],
        idle_timeout=settings.keepalive_lifetime,
        is_client=is_client,
        max_data=CONNECTION_WINDOW,
        max_stream_data=WINDOW_BYTES,
    )


def client_configuration(url: Url, host: str, settings: Settings, ssl: tls.SSLContext | None) -> QuicConfiguration:
    """Return the configuration to connect to `host`.

    Raises UrlError if options are unknown, a file cannot be read, or `ssl` is given.
    """
    if url.options.keys() & {"cert", "key"}:
        # A QUIC server of this library asks for none: aioquic does not verify it.
        raise UrlError(f"'{url}': a QUIC client cannot present a certificate; use tls, wss or h2, with ssl=...")
    check_options(url, frozenset({"ca"}))
    if ssl is not None:
        raise UrlError(f"'{url}': QUIC has its own TLS, which does not use ssl=...; pass the CA with ?ca=FILE")
    configuration = _configuration(url, settings, is_client=True)
    configuration.server_name = host
    with certificate_errors(url):
        if "ca" in url.options:
            # Read the file now: aioquic would read it during the handshake, and report what is wrong too late.
            with open(url.options["ca"], "rb") as file:
                authorities = file.read().strip() + b"\n"
            load_pem_x509_certificates(authorities)
            configuration.load_verify_locations(cadata=authorities)
        else:
            paths = tls.get_default_verify_paths()
            configuration.load_verify_locations(cafile=paths.cafile, capath=paths.capath)
    return configuration


def server_configuration(url: Url, settings: Settings, ssl: tls.SSLContext | None) -> QuicConfiguration:
    """Return the configuration to listen.

    Raises UrlError if options are unknown, there is no certificate, or a file cannot be read.
    """
    if "ca" in url.options:
        # aioquic can ask for one in tests only, and does not verify it.
        raise UrlError(f"'{url}': a QUIC server cannot ask clients for certificates; use tls, wss or h2 instead of ?ca")
    check_options(url, frozenset({"cert", "key"}))
    if "cert" not in url.options:
        # `ssl` applies to the other URLs of a server, and is ignored here.
        why = "QUIC has its own TLS, which does not use ssl=...; " if ssl is not None else ""
        raise UrlError(f"'{url}' needs a certificate; {why}add ?cert=FILE&key=FILE")
    configuration = _configuration(url, settings, is_client=False)
    with certificate_errors(url):
        configuration.load_cert_chain(url.options["cert"], url.options.get("key"))
    if configuration.private_key is None:
        raise UrlError(f"'{url}': the certificate file has no private key; add &key=FILE")
    if configuration.certificate.public_key() != configuration.private_key.public_key():
        raise UrlError(f"'{url}': the private key does not belong to the certificate")
    return configuration
