"""What a session needs of its dialect's codec: frames from bytes and back, and runs of items past both."""

from __future__ import annotations

from ..payload import PayloadRun
from .framing import Deframer
from .rsocket.frames import Frame

__all__ = ["PIECE_BYTES", "Codec"]

PIECE_BYTES = 60_000
"""Frames of a run are glued into pieces of at most this: larger writes cost four times as much on loopback."""


class Codec:
    """The base of all codecs of the RSocket family.

    A codec has no state: one serves any number of sessions. Bodies are frames without their length prefix;
    everything that says so returns frames with it, ready for a stream transport.

    Attributes:
        prefix_bytes: Bytes of the length prefix, as :class:`~penstock.wire.framing.Deframer` has them.
        header_bytes: Bytes of the header that every frame begins with.
        counts_itself: The length counts its own bytes, which none of the documents says of one of this width.

    """

    __slots__ = ("header_bytes", "prefix_bytes")

    counts_itself = False

    def __init__(self, prefix_bytes: int, header_bytes: int) -> None:
        self.prefix_bytes = prefix_bytes
        self.header_bytes = header_bytes

    def decode(self, buffer: bytes, start: int, end: int) -> Frame:
        """Return the frame whose body is ``buffer[start:end]``.

        Raises:
            FrameError: The bytes are no frame. Skip them where the error is `ignorable`.

        """
        raise NotImplementedError

    def stream_id(self, buffer: bytes, start: int) -> int:
        """Return the stream id of the frame whose body starts at index `start`, where a whole header is.

        Raises:
            LocalError: The header is not there.

        """
        raise NotImplementedError

    def encode(self, frame: Frame) -> bytes:
        """Return the body of `frame`.

        Raises:
            LocalError: A field does not fit, or the frame's type has no such field.

        """
        raise NotImplementedError

    def frame(self, frame: Frame) -> bytes:
        """Return `frame` with its prefix.

        Raises:
            LocalError: As `encode`; or the frame is longer than its prefix can say.

        """
        raise NotImplementedError

    def payload_frame(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> bytes:
        """Return a PAYLOAD with its prefix; METADATA is set in its flags where `metadata` is there."""
        raise NotImplementedError

    def payload_head(self, stream_id: int, flags: int, metadata: bytes | None, data_bytes: int) -> bytes:
        """Return a PAYLOAD with its prefix, up to its data: write `data_bytes` bytes behind it."""
        raise NotImplementedError

    def request_frame(
        self, type: int, stream_id: int, flags: int, request_n: int, metadata: bytes | None, data: bytes
    ) -> bytes:
        """Return a request with its prefix; `request_n` travels where its type has it."""
        raise NotImplementedError

    def request_n_frame(self, stream_id: int, count: int) -> bytes:
        """Return a REQUEST_N with its prefix."""
        raise NotImplementedError

    def cancel_frame(self, stream_id: int) -> bytes:
        """Return a CANCEL with its prefix."""
        raise NotImplementedError

    def scan_run(self, deframer: Deframer, limit: int) -> PayloadRun | None:
        """Take consecutive items of one stream at once.

        Call it when `next` of the deframer has returned True and the frame is a PAYLOAD. If this frame and
        at least the one behind it in the buffer are items of the same stream, neither fragments nor last
        ones, all that follow so are taken, at most `limit`; a run may be shorter than it could be. The
        deframer's `next` then goes on behind it.

        Returns:
            The run, or None: then the deframer stands where it stood. Decode its frame.

        """
        return None

    def run_frames(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> list[bytes]:
        """Return the items of `run` from `start` to `stop` as PAYLOADs with NEXT and their prefixes.

        Returns:
            Pieces of at most `PIECE_BYTES` with whole frames in each; a longer frame is a piece by itself.

        Raises:
            LocalError: An item does not fit a frame: ask `fits` first, and fragment it.

        """
        raise NotImplementedError

    def fits(self, run: PayloadRun, start: int, stop: int, most: int) -> int:
        """Return how many items of `run` from `start` on, up to `stop`, have at most `most` bytes each."""
        limit = min(stop, len(run))
        if run.sound and run.size <= most:
            return max(limit - start, 0)
        view = run.offsets
        for at in range(3 * start, 3 * limit, 3):
            first = view[at]
            if first < 0:
                first = view[at + 1]
            if view[at + 2] - first > most:
                return at // 3 - start
        return max(limit - start, 0)
