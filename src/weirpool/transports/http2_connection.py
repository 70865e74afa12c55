"""The common part of HTTP/2 connections of clients and servers: frames, windows and flood limits."""

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

from ..errors import LimitExceeded, LinkLost
from ..ledger import Unclaimed
from ..settings import Settings
from ..urls import Url
from .streams import WINDOW_BYTES, Carrier, StreamLink, lose_all
from .tcp import SocketLink
from .turns import Reader, turns_of

__all__ = ["ALPN", "Http2Connection", "code_name"]

logger = logging.getLogger("weirpool.transports")

# At level DEBUG, the library logs all headers, which may contain secrets.
logging.getLogger("hpack").setLevel(logging.WARNING)

ALPN: Final = "h2"
FRAME_BYTES: Final = 65_536
"""One DATA frame: a chunk of a session's output. h2 buffers up to 64 of this size while a header is incomplete."""
CONNECTION_WINDOW: Final = 16 * WINDOW_BYTES
"""The flow control window of a connection. Slow readers are held back by the windows of their streams."""
DEFAULT_WINDOW: Final = 65_535
"""RFC 9113, section 6.9.2: the initial window of a connection."""

HEADER_BYTES: Final = 9
"""RFC 9113, section 4.1: the header of a frame, which begins with its length in three bytes."""
PREFACE_BYTES: Final = 24
"""RFC 9113, section 3.4: what a client sends before its first frame."""
SLICE: Final = 4
"""Frames that are decoded before the time is checked. h2 takes up to a tenth of a millisecond for one."""
READ_STOP: Final = 4
"""The multiple of `output_high_bytes` at which a connection is not read. Links send no more at that itself, so that the
rest is answers to control frames, which a peer that does not read causes without end (THREATS 40)."""


class Http2Connection(Carrier):
    """An HTTP/2 connection: the receiver of its socket, and the carrier of its links."""

    def __init__(
        self, url: Url, settings: Settings, *, is_client: bool, address: str = "", max_streams: int = 0
    ) -> None:
        self._url = url
        self._settings = settings
        self._h2 = H2Connection(H2Configuration(client_side=is_client))
        self._h2.local_settings = H2Settings(
            client=is_client,
            initial_values={
                SettingCodes.ENABLE_PUSH: 0,
                SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
                SettingCodes.MAX_FRAME_SIZE: FRAME_BYTES,
                SettingCodes.MAX_CONCURRENT_STREAMS: max_streams or settings.max_connections_per_address,
                SettingCodes.MAX_HEADER_LIST_SIZE: H2Connection.DEFAULT_MAX_HEADER_LIST_SIZE,
            },
        )
        self._h2.max_inbound_frame_size = FRAME_BYTES
        self._links: dict[int, StreamLink] = {}
        self._socket: SocketLink | None = None
        self._full = False
        self._done = False
        self._error: Exception | None = None
        self._unacknowledged = 0
        self._empty = 0
        self._loop = asyncio.get_running_loop()
        self._turns = turns_of(self._loop)
        self._reader = Reader(self._turns, address, self._go_on)
        # What was read, decoded up to `_at`; and the bytes that are left of the current frame, or of the preface.
        self._data = b""
        self._at = 0
        self._left = 0 if is_client else PREFACE_BYTES
        # Too much output waits for the peer; there is more to decode, or others go first.
        self._stopped = self._waits = False
        self._unclaimed = Unclaimed(address, settings, self._must_release)

    def get_extra_info(self, name: str) -> Any:
        """Return information about the socket."""
        return None if self._socket is None else self._socket.get_extra_info(name)

    def waiting(self, link: StreamLink) -> int:
        """Return the part of the socket's output that counts for a link."""
        if self._socket is None or not self._links:
            return 0
        return self._socket.get_write_buffer_size() // len(self._links)

    def progress(self, link: StreamLink) -> tuple[int, int]:
        """Return the progress of the socket, which all links share; see `Link.progress`."""
        return (0, 0) if self._socket is None else self._socket.progress()

    # Calls of the socket's link; see weirpool.transports.base.Receiver.

    def link_made(self, link: Any) -> None:
        """Start the HTTP/2 connection."""
        self._socket = link
        if self._url.transport == "h2" and link.alpn != ALPN:
            self._alpn_failed()
            return
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(CONNECTION_WINDOW - DEFAULT_WINDOW)
        self.flush()

    def received(self, data: bytes) -> None:
        """Process one read, or keep it."""
        if self._done:
            return
        self._data = self._data[self._at :] + data
        self._at = 0
        if self._waits or self._stopped or not self._turns.enter(self._reader, len(data)):
            self._wait()
            self._count()
            return
        more = self._decode()
        if self._turns.leave(self._reader) or more:
            self._wait()

    def _decode(self) -> bool:
        """Decode frames until the time of this turn is used; return whether any are left."""
        piece = self._slice()
        while piece:
            self._receive(piece)
            if self._done or self._stopped:
                return not self._done
            if self._turns.over():
                return self._at < len(self._data)
            piece = self._slice()
        return False

    def _slice(self) -> bytes:
        """Remove and return a few frames, the last of which may be incomplete; empty if there is not even a header."""
        data, start, size = self._data, self._at, len(self._data)
        at, frames = start, 0
        while at < size:
            if not self._left:
                if frames == SLICE or size - at < HEADER_BYTES:
                    break
                self._left = HEADER_BYTES + int.from_bytes(data[at : at + 3])
                frames += 1
            taken = min(self._left, size - at)
            self._left -= taken
            at += taken
        self._at = at
        return data if at - start == size else data[start:at]

    def _wait(self) -> None:
        """Do not read the socket, and decode the rest in another turn, or when the peer has read."""
        self._waits = True
        if self._socket is not None and not self._done:
            with suppress(RuntimeError):
                self._socket.pause_reading()
            if not self._stopped:
                self._turns.wait(self._reader)

    def _go_on(self) -> bool:
        """Decode what was kept, and read again when that is done; return whether there is more."""
        if self._done or self._stopped or not self._waits:
            return False
        if self._decode():
            return not self._stopped
        self._waits = False
        self._resume()
        return False

    def _resume(self) -> None:
        if self._socket is not None:
            # The transports of uvloop raise it if they are closed.
            with suppress(RuntimeError):
                self._socket.resume_reading()

    def _receive(self, data: bytes) -> None:
        """Process a few frames."""
        try:
            new_events = self._h2.receive_data(data)
        except ProtocolError as error:
            # h2 has already prepared GOAWAY.
            self.fail(LinkLost(f"the peer violated HTTP/2: {str(error) or type(error).__name__}"), None)
            return
        for event in new_events:
            if not self._done:
                self.handle(event)
        self._check_length()
        self.flush()
        self._count()
        socket = self._socket
        if self._full and socket is not None:
            self._stopped = socket.get_write_buffer_size() > READ_STOP * self._settings.output_high_bytes

    def _check_length(self) -> None:
        """Fail a connection with the header of a frame that is too long: h2 would buffer the frame, up to 16 MiB.

        It would buffer as many as 64 frames of an incomplete header block (THREATS 86).
        """
        block = sum(len(frame.data) for frame in self._h2.incoming_buffer._headers_buffer)
        if block > self._h2.DEFAULT_MAX_HEADER_LIST_SIZE and not self._done:
            self.fail(LimitExceeded(f"an incomplete header block of {block} bytes"), ErrorCodes.ENHANCE_YOUR_CALM)
        begun = self._h2.incoming_buffer._data
        length = int.from_bytes(begun[:3])
        if len(begun) >= 3 and length > FRAME_BYTES and not self._done:
            error = LinkLost(f"the peer violated HTTP/2: a frame of {length} bytes; at most {FRAME_BYTES} are allowed")
            self.fail(error, ErrorCodes.FRAME_SIZE_ERROR)

    def writing_paused(self) -> None:
        """Stop sending data. Answers to control frames go on until the connection is not read."""
        self._full = True

    def writing_resumed(self) -> None:
        """Send the waiting output of all links."""
        self._full = False
        self._pump(self._links.values())
        self._count()
        if self._stopped:
            self._stopped = False
            self._turns.wait(self._reader)

    def link_lost(self, error: Exception | None) -> None:
        """Close all links."""
        self._done = True
        reason = LinkLost("the peer closed the connection in the middle of a stream")
        lose_all(self._links, self._error or error or reason)
        self._forget_input()
        self._unclaimed.count(0)

    # What belongs to no link.

    def _count(self) -> None:
        """Count a part of a frame or header block, and output that is left of links (THREATS 40, 86)."""
        unclaimed, buffer = self._unclaimed, self._h2.incoming_buffer
        held = len(buffer._data) + sum(len(frame.data) for frame in buffer._headers_buffer)
        held += len(self._data) - self._at
        if self._socket is not None and not self._links:
            held += self._socket.get_write_buffer_size()
        if held or unclaimed.size:
            # Not 0: most reads end within a frame, and leaving the ledger takes longer than counting.
            unclaimed.count(held or 1)

    def _forget_input(self) -> None:
        """Release what was not decoded, because nothing more is read."""
        self._data, self._at = b"", 0
        buffer = self._h2.incoming_buffer
        buffer._data = bytearray()
        buffer._headers_buffer.clear()

    def _must_release(self) -> None:
        # From the ledger, in any thread.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._release)

    def _release(self) -> None:
        """Abort a connection that holds too much."""
        held = self._unclaimed.size
        if held:
            self.close_flooded(f"{held} bytes belong to no stream, and a limit of bytes is reached")
            self.drop()
            self._unclaimed.count(0)

    # Calls of the links; see weirpool.transports.streams.Carrier.

    def send(self, link: StreamLink) -> None:
        """Send the waiting output of `link`."""
        self._pump((link,))

    def extend_window(self, link: StreamLink, count: int) -> None:
        """Extend the window of a stream."""
        # It is not needed after the peer has ended the stream or the connection.
        with suppress(ProtocolError, KeyError):
            self._h2.increment_flow_control_window(count, link.stream_id)
        self.flush()

    def _pump(self, links: Iterable[StreamLink]) -> None:
        """Send a frame of each link in turn, until all are empty, or the windows or the socket are full."""
        waiting = deque(links)
        while waiting and not self._full:
            link = waiting.popleft()
            if self._send_frame(link):
                waiting.append(link)

    def _send_frame(self, link: StreamLink) -> bool:
        """Send one frame; return True if there may be another one."""
        h2 = self._h2
        ending = link.ending
        try:
            if ending:
                h2.end_stream(link.stream_id)
            else:
                room = min(h2.local_flow_control_window(link.stream_id), h2.max_outbound_frame_size)
                if room <= 0 or not link.unsent:
                    return False
                h2.send_data(link.stream_id, link.take(room))
                # Move the link to the end, so that the first link does not use up a small window.
                if link.stream_id in self._links:
                    self._links[link.stream_id] = self._links.pop(link.stream_id)
        except ProtocolError:
            # The peer has ended the stream or the connection in the same read; the event follows.
            return False
        self.flush()
        if ending:
            link.end_sent()
        return not ending

    # Events of h2.

    def handle(self, event: events.Event) -> None:
        """Handle one event of h2."""
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
        elif isinstance(event, events.RemoteSettingsChanged):
            self._pump(self._links.values())

    def _data_received(self, event: events.DataReceived) -> None:
        count = event.flow_controlled_length
        # THREATS 9: empty frames cost the peer almost nothing.
        self._empty = 0 if event.data or event.stream_ended else self._empty + 1
        if self._empty > self._settings.max_empty_fragments:
            self.close_flooded(
                f"more than max_empty_fragments ({self._settings.max_empty_fragments}) empty DATA frames in a row"
            )
            return
        self._unacknowledged += count
        if self._unacknowledged >= CONNECTION_WINDOW // 2:
            with suppress(ProtocolError):
                self._h2.increment_flow_control_window(self._unacknowledged)
            self._unacknowledged = 0
        link = self._links.get(event.stream_id)
        if link is not None:
            link.received(event.data, count)

    def _stream_reset(self, event: events.StreamReset) -> None:
        link = self._links.pop(event.stream_id, None)
        if link is not None:
            # RFC 9113, section 8.1: a server that has sent its whole response may stop the request this way.
            in_order = link.end_received and event.error_code == ErrorCodes.NO_ERROR
            link.lose(None if in_order else LinkLost(f"the peer reset the stream ({code_name(event.error_code)})"))
            self.stream_over()

    def _terminated(self, event: events.ConnectionTerminated) -> None:
        """Handle GOAWAY. h2 sends nothing after it, so links that have not ended are lost."""
        more = f", {event.additional_data.decode(errors='replace')!r}" if event.additional_data else ""
        reason = LinkLost(f"the peer closed the connection ({code_name(event.error_code)}{more})")
        lose_all(self._links, reason, in_order=event.error_code == ErrorCodes.NO_ERROR)
        self.hang_up()

    # Ends.

    def stream_over(self) -> None:
        """Record the end of a stream."""

    def close_flooded(self, reason: str) -> None:
        """Close the connection to a peer that exceeded a flood limit."""
        logger.warning("%s: closed a connection: %s", self._url.place, reason)
        self.fail(LimitExceeded(reason), ErrorCodes.ENHANCE_YOUR_CALM)

    def fail(self, error: Exception, code: ErrorCodes | None) -> None:
        """Close the connection with an error, and send GOAWAY with `code`; None if h2 has already prepared it."""
        self._error = error
        lose_all(self._links, error)
        self.hang_up(code, str(error))

    def hang_up(self, code: ErrorCodes | None = ErrorCodes.NO_ERROR, reason: str = "") -> None:
        """Send GOAWAY unless `code` is None, and close the socket."""
        if self._socket is None or self._done:
            return
        self._done = True
        if code is not None:
            with suppress(ProtocolError):
                self._h2.close_connection(code, reason.encode() or None)
        self.flush()
        self._socket.close()
        if self._waits:
            # What still arrives is discarded, and then the end of the connection.
            self._resume()
        self._forget_input()
        self._count()

    def drop(self) -> None:
        """Abort the connection."""
        lose_all(self._links, None)
        self.hang_up()
        if self._socket is not None:
            self._socket.abort()

    def flush(self) -> None:
        """Write the output of h2."""
        data = self._h2.data_to_send()
        if data and self._socket is not None and not self._socket.is_closing():
            self._socket.write(data)

    @abstractmethod
    def _alpn_failed(self) -> None:
        """Refuse the connection because TLS did not negotiate HTTP/2."""


def code_name(code: ErrorCodes | int | None) -> str:
    """Return the name of an error code in RFC 9113, section 7, or its number."""
    return code.name if isinstance(code, ErrorCodes) else hex(code or 0)
