"""RSocket for peers whose 24-bit length counts its own three bytes, as some of 2017 have it.

The frames are those of their dialect; the number before each is larger by three. Nothing here is compiled.
"""

from __future__ import annotations

from typing import Final

from ...payload import PayloadRun
from ..framing import Deframer, prefixed, split_frames
from .frames import Frame
from .v1 import RSocketV1

__all__ = ["CountedV1"]

OWN: Final = 3


class CountedV1(RSocketV1):
    """The codec of RSocket 1.0, or of ReactiveSocket 0.2 by its layouts, with such lengths."""

    __slots__ = ()

    counts_itself = True

    def frame(self, frame: Frame) -> bytes:
        """Return `frame` with its prefix; see :meth:`Codec.frame`."""
        return _recounted(prefixed(self.encode(frame)))

    def payload_frame(self, stream_id: int, flags: int, metadata: bytes | None, data: bytes) -> bytes:
        """Return a PAYLOAD with its prefix; see :meth:`Codec.payload_frame`."""
        return _recounted(RSocketV1.payload_frame(self, stream_id, flags, metadata, data))

    def payload_head(self, stream_id: int, flags: int, metadata: bytes | None, data_bytes: int) -> bytes:
        """Return a PAYLOAD with its prefix, up to its data; see :meth:`Codec.payload_head`."""
        return _recounted(RSocketV1.payload_head(self, stream_id, flags, metadata, data_bytes))

    def request_frame(
        self, type: int, stream_id: int, flags: int, request_n: int, metadata: bytes | None, data: bytes
    ) -> bytes:
        """Return a request with its prefix; see :meth:`Codec.request_frame`."""
        return _recounted(RSocketV1.request_frame(self, type, stream_id, flags, request_n, metadata, data))

    def request_n_frame(self, stream_id: int, count: int) -> bytes:
        """Return a REQUEST_N with its prefix; see :meth:`Codec.request_n_frame`."""
        return _recounted(RSocketV1.request_n_frame(self, stream_id, count))

    def cancel_frame(self, stream_id: int) -> bytes:
        """Return a CANCEL with its prefix; see :meth:`Codec.cancel_frame`."""
        return _recounted(RSocketV1.cancel_frame(self, stream_id))

    def scan_run(self, deframer: Deframer, limit: int) -> PayloadRun | None:
        """Take no runs: what scans for them reads lengths as they should be."""
        return None

    def run_frames(self, stream_id: int, run: PayloadRun, start: int, stop: int) -> list[bytes]:
        """Return items as PAYLOADs, glued into pieces; see :meth:`Codec.run_frames`."""
        pieces = RSocketV1.run_frames(self, stream_id, run, start, stop)
        return [b"".join(_recounted(prefixed(body)) for body in split_frames([piece])) for piece in pieces]


def _recounted(frame: bytes) -> bytes:
    """Return `frame` with a length that counts itself."""
    length = int.from_bytes(frame[:OWN], "big") + OWN
    return length.to_bytes(OWN, "big") + frame[OWN:]
