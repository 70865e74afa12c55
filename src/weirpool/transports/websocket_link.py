"""A link of WebSocket messages, over the link of a socket whose handshake is complete."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from math import inf
from typing import Any, Final

from websockets.frames import OK_CLOSE_CODES, Close, CloseCode, Opcode

from ..errors import LimitExceeded, LinkLost, ProtocolError
from ..protocols import spec_of
from ..settings import Settings
from ..urls import Url
from ..wire.framing import MAX_MESSAGE_BYTES, Deframer
from . import tcp
from .base import Link, Receiver
from .lingering import LINGER, MAX_LINGER, Linger
from .turns import Reader, turns_of
from .websocket_frames import FrameReader, control_frame, message_frames
from .websocket_handshake import ClientHandshake, ServerHandshake
from .websocket_runs import write_run

__all__ = ["LARGE", "WebSocketLink", "start_link"]

LARGE: Final = 8_192
"""A write of this size may take so long that a peer closes before its end; see `WebSocketLink._end`."""


class WebSocketLink:
    """A link of messages, over the link of a socket whose handshake is complete."""

    __slots__ = (
        "_client", "_closing", "_cutter", "_ending", "_kept", "_large_at", "_link", "_paused", "_reader", "_stopped",
        "_turn", "_turns", "_waits", "progress", "receiver"
    )  # fmt: skip

    def __init__(
        self, link: tcp.SocketLink, receiver: Receiver, url: Url, settings: Settings, address: str, *, client: bool
    ) -> None:
        self.receiver = receiver
        self._link = link
        self._client = client
        spec = spec_of(url.protocol)
        width = spec.prefix_bytes
        # Without a length prefix, each chunk of output is a message, whose boundaries have no meaning.
        self._cutter = Deframer(width, MAX_MESSAGE_BYTES, 0, counts_itself=False) if width else None
        self._reader = FrameReader(
            masked=not client,
            max_bytes=settings.max_frame_bytes,
            width=width,
            # The client is still unknown.
            first_max_bytes=None if client or not width else settings.max_setup_frame_bytes,
            skip_long=spec.skips_oversized,
            max_empty=settings.max_empty_fragments,
        )
        self._turns = turns_of(asyncio.get_running_loop())
        self._turn = Reader(self._turns, address, self._go_on)
        # What was read and not passed to the reader of frames.
        self._kept: list[bytes] = []
        # The receiver does not read; there may be more to decode.
        self._stopped = self._waits = False
        # Closing: we sent Close or aborted the link; `_ending` is the limit for the time after that.
        self._paused = self._closing = False
        self._ending: Linger | None = None
        self._large_at = -inf  # The time of the last large write.
        self.progress = link.progress

    # Calls of the receiver; see weirpool.transports.base.Link.

    @property
    def unfinished(self) -> int:
        """The bytes of an incomplete message."""
        return self._reader.unfinished

    @property
    def unread(self) -> int:
        """The bytes of frames that are not decoded yet."""
        return self._reader.undecoded + sum(map(len, self._kept))

    def get_extra_info(self, name: str) -> Any:
        """Return information about the socket."""
        return self._link.get_extra_info(name)

    def is_closing(self) -> bool:
        """Return whether the socket's link is closing."""
        return self._link.is_closing()

    def pause_reading(self) -> None:
        """Stop calling `received`."""
        self._stopped = True
        self._link.pause_reading()

    def resume_reading(self) -> None:
        """Call `received` again, first with what was read before."""
        self._stopped = False
        if self._waits:
            self._turns.wait(self._turn)
        else:
            self._link.resume_reading()

    def write(self, data: bytes) -> None:
        """Send the messages that `data` completes, or discard them if the link is closing."""
        if self._closing:
            return
        if len(data) >= LARGE:
            self._large_at = asyncio.get_running_loop().time()
        cutter = self._cutter
        if cutter is None:
            messages = [data]
        else:
            if not cutter.pending:
                frames, taken = write_run(data, cutter.prefix, self._client)
                if frames:
                    self._link.write(frames)
                    if taken == len(data):
                        return
                    data = data[taken:]
            messages = cutter.split(data)
        for chunk in message_frames(messages, self._client):
            self._link.write(chunk)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the network has not accepted yet."""
        pending = 0 if self._cutter is None else self._cutter.pending
        return self._link.get_write_buffer_size() + pending

    def close(self) -> None:
        """Close after all output is written. Input is discarded until the peer closes too."""
        self._send_close(Close(CloseCode.NORMAL_CLOSURE, ""))

    def abort(self) -> None:
        """Close now, without a Close frame."""
        self._closing = True
        self._forget()
        self._link.abort()

    def _forget(self) -> None:
        """Forget what is not decoded."""
        self._reader.forget()
        self._kept.clear()

    # Calls of the socket's link; see weirpool.transports.base.Receiver.

    def link_made(self, link: Link) -> None:
        """Do nothing: the socket's link was made before the handshake."""

    def received(self, data: bytes) -> None:
        """Process one read, or keep it. After our Close, nobody would use it, and it is not counted."""
        if self._closing:
            return
        if self._waits or self._stopped or not self._turns.enter(self._turn, len(data)):
            self._kept.append(data)
            self._wait()
            # It is counted.
            self.receiver.received(b"")
            return
        more = self._decode(data)
        if self._turns.leave(self._turn) or more:
            self._wait()

    def _decode(self, data: bytes) -> bool:
        """Decode frames until the receiver stops or the time of this turn is used; return whether any are left.

        Control frames wait for the messages before them: a Close must not overtake what the receiver has not read.
        """
        reader = self._reader
        while not self._closing:
            messages = reader.feed(data)
            data = b""
            # Also without a complete message, because a part of a long one shows that the peer is alive.
            self.receiver.received(messages)
            if reader.skipped is not None:
                self._deliver_skipped()
            if self._stopped:
                return True
            if reader.ping is not None:
                self._answer_ping()
            if reader.violation is not None or reader.close is not None:
                self._end(reader.violation or reader.close)
            if not reader.more or self._turns.over():
                return reader.more
        return False

    def _wait(self) -> None:
        """Stop reading the socket, and decode the rest in another turn, or when the receiver reads again."""
        if not self._closing:
            self._waits = True
            with suppress(RuntimeError):
                self._link.pause_reading()
            if not self._stopped:
                self._turns.wait(self._turn)

    def _go_on(self) -> bool:
        """Decode what was kept, and read again when that is done; return whether there is more."""
        if self._stopped or not self._waits:
            return False
        kept, self._kept = b"".join(self._kept), []
        if self._decode(kept):
            return not self._stopped
        self._waits = False
        if not self._stopped:
            # The transports of uvloop raise it if they are closed.
            with suppress(RuntimeError):
                self._link.resume_reading()
        return False

    def _deliver_skipped(self) -> None:
        """Deliver the skipped messages, and the messages after each."""
        reader = self._reader
        while reader.skipped is not None:
            for piece in reader.take_skipped():
                self.receiver.received(piece)
            messages = reader.feed(b"")
            if messages:
                self.receiver.received(messages)

    def writing_paused(self) -> None:
        """Tell the receiver to pause."""
        self._paused = True
        self.receiver.writing_paused()

    def writing_resumed(self) -> None:
        """Answer the last ping, and tell the receiver to continue."""
        self._paused = False
        self._answer_ping()
        self.receiver.writing_resumed()

    def link_lost(self, error: Exception | None) -> None:
        """Report the loss to the receiver."""
        self._stopped = True
        if self._ending is not None:
            self._ending.cancel()
        self.receiver.link_lost(self._reason(error))

    # Control frames.

    def _answer_ping(self) -> None:
        """Answer only the last ping of a read, or while the peer did not read (RFC 6455, 5.5.3; THREATS 8)."""
        ping = self._reader.ping
        if ping is not None and not self._paused and not self._closing:
            self._reader.ping = None
            self._link.write(control_frame(Opcode.PONG, ping, self._client))

    def _send_close(self, close: Close) -> None:
        if self._closing:
            return
        self._closing = True
        self._forget()
        # A Close without a code is answered without one: 1005 is never sent (RFC 6455, 7.4.1).
        payload = b"" if close.code == CloseCode.NO_STATUS_RCVD else close.serialize()
        self._link.write(control_frame(Opcode.CLOSE, payload, self._client))
        # RFC 6455, 7.1.1: the server closes the connection first, and the client waits for that.
        if self._client:
            self._ending = Linger(self._link.linger or LINGER, self._link.progress, self._link.abort)
        else:
            self._link.close()

    def _end(self, close: Close | None) -> None:
        """End the link with `close`: the answer to the peer's Close, or the Close for its violation.

        A peer may close while it receives a long message from us, because it mistakes the delay for silence, as River's
        reference does. It still reads, and accepts the message if it is complete. Progress between both systems is not
        visible here, so the link is kept until the peer closes it, and counts as alive.
        """
        loop = asyncio.get_running_loop()
        if self._reader.violation is None and not self._closing and loop.time() - self._large_at < MAX_LINGER:
            self._link.linger = MAX_LINGER
            self.progress = _assumed_progress
        if close is not None:
            self._send_close(close)

    def _reason(self, error: Exception | None) -> Exception | None:
        """Return the reason of the loss; `error` is the reason of the socket's link."""
        violation, close = self._reader.violation, self._reader.close
        if violation is not None:
            kind = LimitExceeded if violation.code == CloseCode.MESSAGE_TOO_BIG else ProtocolError
            return kind(f"the peer violated the WebSocket protocol: {violation.reason}")
        if close is not None and close.code not in OK_CLOSE_CODES:
            return LinkLost(f"the peer closed the WebSocket with {close.code}: {close.reason!r}", close.code)
        if error is None and close is None and not self._closing:
            return LinkLost("the connection ended without a WebSocket closing handshake")
        return error


def _assumed_progress() -> tuple[int, int]:
    """Return continuous progress, for use as `Link.progress` while the actual progress is unknown."""
    return LARGE, int(asyncio.get_running_loop().time() * 1e6)


def start_link(
    socket: tcp.SocketLink,
    handshake: ClientHandshake | ServerHandshake,
    receiver: Receiver,
    url: Url,
    settings: Settings,
    address: str = "",
    *,
    client: bool,
) -> None:
    """Create the link over a socket whose handshake is complete, and pass it to its receiver.

    `address` is that of the client on a server, for its share of the time.
    """
    link = socket.receiver = WebSocketLink(socket, receiver, url, settings, address, client=client)
    receiver.link_made(link)
    rest = handshake.take_rest()
    if rest:
        link.received(rest)
