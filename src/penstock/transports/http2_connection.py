"""An HTTP/2 connection: the frames, windows and floods of both sides. What a client or a server does is in `http2`."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes
from h2.settings import Settings as H2Settings

from ..core.rates import Rate
from ..errors import LimitExceeded, LinkLost
from ..settings import Settings
from ..urls import Url
from .streams import RATE_SECONDS, WINDOW_BYTES, Carrier, StreamLink, lose_all
from .tcp import SocketLink

__all__ = ["ALPN", "Http2Connection", "code_name"]

logger = logging.getLogger("penstock.transports")

# At its level DEBUG, the library logs all headers, with whatever secrets they hold.
logging.getLogger("hpack").setLevel(logging.WARNING)

ALPN: Final = "h2"
FRAME_BYTES: Final = 65_536
"""One DATA frame: a chunk of a session's output. h2 holds up to 64 of that size while a header is unfinished."""
CONNECTION_WINDOW: Final = 16 * WINDOW_BYTES
"""What a peer may send on all streams together before we have looked at it. Streams are held back one by one."""
DEFAULT_WINDOW: Final = 65_535
"""RFC 9113, section 6.9.2: the window of a connection before anybody has changed it."""

# Frames that carry nothing: some are usual, many are an attack.
CONTROLS: Final = (
    events.RemoteSettingsChanged,
    events.SettingsAcknowledged,
    events.PingReceived,
    events.PingAckReceived,
    events.PriorityUpdated,
    events.UnknownFrameReceived,
    events.AlternativeServiceAvailable,
    events.InformationalResponseReceived,
)


class Http2Connection(Carrier):
    """An HTTP/2 connection: the receiver of its socket, and the carrier of its links."""

    def __init__(self, url: Url, settings: Settings, *, is_client: bool) -> None:
        self._url = url
        self._settings = settings
        self._h2 = H2Connection(H2Configuration(client_side=is_client))
        self._h2.local_settings = H2Settings(
            client=is_client,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                SettingCodes.MAX_FRAME_SIZE: FRAME_BYTES,
                SettingCodes.MAX_CONCURRENT_STREAMS: settings.max_connections_per_address,
                SettingCodes.MAX_HEADER_LIST_SIZE: H2Connection.DEFAULT_MAX_HEADER_LIST_SIZE,
            },
        )
        self._h2.max_inbound_frame_size = FRAME_BYTES
        self._links: dict[int, StreamLink] = {}
        self._socket: SocketLink | None = None
        self._full = False
        self._done = False
        self._error: Exception | None = None
        self._unseen = 0
        self._empty = 0
        self._controls = Rate(settings.max_control_frames, RATE_SECONDS)

    def get_extra_info(self, name: str) -> Any:
        """Return what is known of the socket below."""
        return None if self._socket is None else self._socket.get_extra_info(name)

    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return what waits in the socket, which all links share, and a number that grows as the peer takes it."""
        return (0, 0) if self._socket is None else self._socket.progress()

    # What the socket tells; see penstock.transports.base.Receiver.

    def link_made(self, link: Any) -> None:
        """Begin to speak HTTP/2."""
        self._socket = link
        if self._url.transport == "h2" and link.alpn != ALPN:
            self._no_http2()
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW - DEFAULT_WINDOW)
        self.flush()

    def received(self, data: bytes) -> None:
        """Take one read."""
        if self._done:
            return
        try:
            happened = self._h2.receive_data(data)
        except ProtocolError as error:
            # h2 has its GOAWAY ready.
            self.fail(LinkLost(f"the peer broke HTTP/2: {str(error) or type(error).__name__}"), None)
            return
        for event in happened:
            if not self._done:
                self.handle(event)
        self._check_length()
        self.flush()

    def _check_length(self) -> None:
        """Give up a peer that announces a frame which is too long: h2 would wait for all of it, up to 16 MiB."""
        begun = self._h2.incoming_buffer._data
        length = int.from_bytes(begun[:3])
        if len(begun) >= 3 and length > FRAME_BYTES and not self._done:
            error = LinkLost(f"the peer broke HTTP/2: a frame of {length} bytes, where {FRAME_BYTES} are allowed")
            self.fail(error, ErrorCodes.FRAME_SIZE_ERROR)

    def writing_paused(self) -> None:
        """Give the socket no more data. What must be answered is bounded by the limits for floods."""
        self._full = True

    def writing_resumed(self) -> None:
        """Send what waits in the links."""
        self._full = False
        self._pump(self._links.values())

    def link_lost(self, error: Exception | None) -> None:
        """Tell all links."""
        self._done = True
        reason = LinkLost("the peer closed the connection in the middle of a stream")
        lose_all(self._links, self._error or error or reason)

    # What the links ask for; see penstock.transports.streams.Carrier.

    def send(self, link: StreamLink) -> None:
        """Send what waits in `link`."""
        self._pump((link,))

    def allow(self, link: StreamLink, count: int) -> None:
        """Open the window of a stream."""
        # Where the peer has ended the stream or the connection, nobody needs it.
        with suppress(ProtocolError, KeyError):
            self._h2.increment_flow_control_window(count, link.stream_id)
        self.flush()

    def _pump(self, links: Iterable[StreamLink]) -> None:
        """Send a frame of each link in turn, until they are empty or the windows or the socket are full."""
        waiting = deque(links)
        while waiting and not self._full:
            link = waiting.popleft()
            if self._send_frame(link):
                waiting.append(link)

    def _send_frame(self, link: StreamLink) -> bool:
        """Send one frame; return whether there may be another one to send."""
        h2 = self._h2
        ending = link.ending
        try:
            if ending:
                h2.end_stream(link.stream_id)
            else:
                room = min(h2.local_flow_control_window(link.stream_id), h2.max_outbound_frame_size)
                if room <= 0 or not link.get_write_buffer_size():
                    return False
                h2.send_data(link.stream_id, link.take(room))
                # Whoever has sent goes last, or the first link would get all of a window that is small.
                if link.stream_id in self._links:
                    self._links[link.stream_id] = self._links.pop(link.stream_id)
        except ProtocolError:
            # The peer has ended the stream or the connection in the same read; the event is on its way.
            return False
        self.flush()
        if ending:
            link.end_sent()
        return not ending

    # What h2 tells.

    def handle(self, event: events.Event) -> None:
        """Take one event of h2."""
        if isinstance(event, events.DataReceived):
            self._data_received(event)
        elif isinstance(event, events.WindowUpdated):
            self._pump(self._links.values())
        elif isinstance(event, events.StreamEnded):
            if event.stream_id in self._links:
                self._links[event.stream_id].peer_ended()
        elif isinstance(event, events.StreamReset):
            self._stream_reset(event)
        elif isinstance(event, events.ConnectionTerminated):
            self._terminated(event)
        elif isinstance(event, CONTROLS):
            if self._controls.hit(asyncio.get_running_loop().time()):
                limit = self._settings.max_control_frames
                self.calm(f"more than max_control_frames ({limit}) frames that carry nothing")
            elif isinstance(event, events.RemoteSettingsChanged):
                self._pump(self._links.values())

    def _data_received(self, event: events.DataReceived) -> None:
        count = event.flow_controlled_length
        # THREATS 9: they cost the peer next to nothing.
        self._empty = 0 if event.data or event.stream_ended else self._empty + 1
        if self._empty > self._settings.max_empty_fragments:
            self.calm(
                f"more than max_empty_fragments ({self._settings.max_empty_fragments}) empty DATA frames in a row"
            )
            return
        self._unseen += count
        if self._unseen >= CONNECTION_WINDOW // 2:
            with suppress(ProtocolError):
                self._h2.increment_flow_control_window(self._unseen)
            self._unseen = 0
        link = self._links.get(event.stream_id)
        if link is not None:
            link.received(event.data, count)

    def _stream_reset(self, event: events.StreamReset) -> None:
        link = self._links.pop(event.stream_id, None)
        if link is not None:
            # RFC 9113, section 8.1: a server that has said everything may ask so for the rest not to be sent.
            in_order = link.end_rcvd and event.error_code == ErrorCodes.NO_ERROR
            link.lose(None if in_order else LinkLost(f"the peer reset the stream ({code_name(event.error_code)})"))
            self.stream_over(link.made_at)

    def _terminated(self, event: events.ConnectionTerminated) -> None:
        """Take a GOAWAY. h2 sends nothing after it, so the links that have not ended are lost."""
        more = f", {event.additional_data.decode(errors='replace')!r}" if event.additional_data else ""
        reason = LinkLost(f"the peer closed the connection ({code_name(event.error_code)}{more})")
        lose_all(self._links, reason, in_order=event.error_code == ErrorCodes.NO_ERROR)
        self.hang_up()

    # Ends.

    def stream_over(self, made_at: float) -> None:
        """Take note that a stream has ended, which was made at `made_at`."""

    def calm(self, reason: str) -> None:
        """Give up a peer that floods us."""
        logger.warning("%s: the connection is closed: %s", self._url.place, reason)
        self.fail(LimitExceeded(reason), ErrorCodes.ENHANCE_YOUR_CALM)

    def fail(self, error: Exception, code: ErrorCodes | None) -> None:
        """Give up the connection, and say GOAWAY with `code`, unless h2 has said so already."""
        self._error = error
        lose_all(self._links, error)
        self.hang_up(code, str(error))

    def hang_up(self, code: ErrorCodes | None = ErrorCodes.NO_ERROR, reason: str = "") -> None:
        """Say GOAWAY, and close the socket."""
        if self._socket is None or self._done:
            return
        self._done = True
        if code is not None:
            with suppress(ProtocolError):
                self._h2.close_connection(code, reason.encode() or None)
        self.flush()
        self._socket.close()

    def drop(self) -> None:
        """Close the connection now."""
        lose_all(self._links, None)
        self.hang_up()
        if self._socket is not None:
            self._socket.abort()

    def flush(self) -> None:
        """Write what h2 has to say."""
        data = self._h2.data_to_send()
        if data and self._socket is not None:
            self._socket.write(data)

    @abstractmethod
    def _no_http2(self) -> None:
        """Tell that TLS did not agree on HTTP/2."""


def code_name(code: ErrorCodes | int | None) -> str:
    """Return how an error code is called in RFC 9113, section 7."""
    return code.name if isinstance(code, ErrorCodes) else hex(code or 0)
