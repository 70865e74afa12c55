"""The dialects of the RSocket family: their differences as values, and their codecs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from ..errors import Rejected
from ..kinds import Kind
from ..wire.framing import Deframer
from ..wire.rsocket.codec import Codec
from ..wire.rsocket.frames import ErrorFrame, FrameType
from ..wire.rsocket.layouts import REACTIVESOCKET_V02, RSOCKET_V1
from ..wire.rsocket.v00 import ReactiveSocketV00
from .codes import Code
from .extensions.mimes import COMPOSITE, TEXT

__all__ = ["DIALECTS", "ENDLESS", "REACTIVESOCKET_0_0", "REACTIVESOCKET_0_2", "RSOCKET_1_0", "Dialect", "deframer_of"]

ENDLESS: Final = 0
"""The key in `Dialect.requests` for a stream that is not expected to complete."""

REQUESTS: Final = {
    Kind.CALL: int(FrameType.REQUEST_RESPONSE),
    Kind.FIRE: int(FrameType.REQUEST_FNF),
    Kind.STREAM: int(FrameType.REQUEST_STREAM),
    Kind.UPLOAD: int(FrameType.REQUEST_CHANNEL),
    Kind.CHANNEL: int(FrameType.REQUEST_CHANNEL),
    ENDLESS: int(FrameType.REQUEST_STREAM),
}


@dataclass(frozen=True)
class Dialect:
    """One protocol version of the family.

    Attributes:
        name: The name in URLs and on the command line.
        codec: Makes the codec.
        version: Major and minor version in SETUP.
        requests: The frame types of requests by kind. Other kinds are not supported.
        metadata_mime: The default type of a connection's metadata; it can contain a route.
        first_application_code: The first application code of ERROR on streams; the last one is 0xFFFFFFFE.
        setup_errors: The codes of SETUP_ERROR, if the dialect has this frame; it also ends established connections.
        half_close: Whether a channel's halves end separately; else the responder's COMPLETE ends both.
        keepalive: Whether there is KEEPALIVE, and what came with it: resuming, versions in SETUP.
        own_ids: Whether both sides may use the same stream ids.
        fragments_requests: Whether requests may be fragmented.
        server_needs_leases: Whether requests of the server need leases too.

    """

    name: str
    codec: Callable[[], Codec]
    version: tuple[int, int]
    requests: Mapping[int, int]
    metadata_mime: str = TEXT
    first_application_code: int = 0x205
    setup_errors: Mapping[int, int] | None = None
    half_close: bool = False
    keepalive: bool = True
    own_ids: bool = False
    fragments_requests: bool = True
    server_needs_leases: bool = True

    def over_messages(self) -> Dialect:
        """Return the dialect for message transports, where all dialects have the same prefix."""
        return replace(self, codec=partial(ReactiveSocketV00, 3)) if self.own_ids else self

    def counting_itself(self) -> Dialect:
        """Return the dialect for peers whose 24-bit length counts itself. ReactiveSocket 0.0's length always does."""
        if self.own_ids:
            return self
        layouts = RSOCKET_V1 if self.half_close else REACTIVESOCKET_V02
        return replace(self, codec=partial(Codec, layouts, counts_itself=True))

    def close_error(self, code: int, text: bytes) -> ErrorFrame | None:
        """Return the frame that ends the connection; None if the dialect has none for `code`."""
        # RSocket 1.0, ERROR Frame: the text MUST NOT be null terminated.
        frame = ErrorFrame(0, code, text.rstrip(b"\0"))
        if self.setup_errors is not None:
            if code not in self.setup_errors:
                return None
            frame.type = int(FrameType.SETUP_ERROR)
            frame.code = self.setup_errors[code]
            if code == Code.CONNECTION_CLOSE:
                # The code alone would mean that the set-up was rejected.
                frame.data = Rejected.CLOSING.encode()
        return frame

    def code_of(self, frame: ErrorFrame) -> int | None:
        """Return the code of an error that concerns the connection; None if it does not."""
        if self.setup_errors is None:
            return frame.code
        if frame.type != FrameType.SETUP_ERROR:
            return None
        if frame.data == Rejected.CLOSING.encode():
            return Code.CONNECTION_CLOSE
        return next((code for code, number in self.setup_errors.items() if number == frame.code), frame.code)


RSOCKET_1_0: Final = Dialect(
    name="rsocket-1.0",
    codec=Codec,
    version=(1, 0),
    requests=REQUESTS,
    metadata_mime=COMPOSITE,
    first_application_code=0x301,
    half_close=True,
)

REACTIVESOCKET_0_2: Final = Dialect(
    name="reactivesocket-0.2", codec=partial(Codec, REACTIVESOCKET_V02), version=(0, 2), requests=REQUESTS
)

REACTIVESOCKET_0_0: Final = Dialect(
    name="reactivesocket-0.0",
    codec=ReactiveSocketV00,
    version=(0, 0),
    requests={
        Kind.CALL: int(FrameType.REQUEST_RESPONSE),
        Kind.FIRE: int(FrameType.REQUEST_FNF),
        Kind.STREAM: int(FrameType.REQUEST_STREAM),
        ENDLESS: int(FrameType.REQUEST_SUB),
    },
    # ReactiveSocket 0.0, Error Codes. There is no other way to end an established connection.
    setup_errors={
        Code.INVALID_SETUP: 0x0001,
        Code.UNSUPPORTED_SETUP: 0x0010,
        Code.REJECTED_SETUP: 0x0100,
        Code.CONNECTION_ERROR: 0x0001,
        Code.CONNECTION_CLOSE: 0x0100,
    },
    keepalive=False,
    own_ids=True,
    fragments_requests=False,
    server_needs_leases=False,
)

DIALECTS: Final = {each.name: each for each in (RSOCKET_1_0, REACTIVESOCKET_0_2, REACTIVESOCKET_0_0)}
"""The dialects by name."""


def deframer_of(codec: Codec, limit: int) -> Deframer:
    """Return a deframer for frames of at most `limit` bytes."""
    return Deframer(codec.prefix_bytes, limit, codec.header_bytes, codec.counts_itself or None)
