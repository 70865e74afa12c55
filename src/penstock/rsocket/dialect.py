"""What sets one dialect of the RSocket family apart from another: values, and a codec."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

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
"""The key of the request for a stream that is not expected to complete."""

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
        name: As it stands in URLs and on the command line.
        codec: Makes the codec: bytes to frames and back.
        version: Major and minor, as our SETUP says them.
        requests: The frame types of requests, by kind; what is not there cannot travel.
        metadata_mime: What the metadata of a connection is unless its user says otherwise: what a route needs.
        first_application_code: Of ERROR on streams; application codes go from here to 0xFFFFFFFE.
        setup_errors: The codes of SETUP_ERROR, where that is a frame of its own, and ends a connection later, too.
        half_close: A channel's halves end one by one; else the responder's end is the end of both.
        keepalive: There is KEEPALIVE, and all that was invented with it: resuming, versions in SETUP.
        own_ids: Each side numbers its streams for itself, so that both may use one number.
        cuts_requests: Requests may travel in fragments.
        server_waits: Leases bind the server's requests, too.

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
    cuts_requests: bool = True
    server_waits: bool = True

    def over_messages(self) -> Dialect:
        """Return the dialect for transports that carry messages, whose prefix is of one kind for all of them."""
        return replace(self, codec=partial(ReactiveSocketV00, 3)) if self.own_ids else self

    def counting_itself(self) -> Dialect:
        """Return the dialect for peers whose 24-bit length counts its own bytes; the first draft's always does."""
        if self.own_ids:
            return self
        layouts = RSOCKET_V1 if self.half_close else REACTIVESOCKET_V02
        return replace(self, codec=partial(Codec, layouts, counts_itself=True))

    def farewell(self, code: int, text: str) -> ErrorFrame | None:
        """Return what tells the peer that the connection ends, or None where the dialect has no word for `code`."""
        frame = ErrorFrame(0, code, text.encode())
        if self.setup_errors is not None:
            if code not in self.setup_errors:
                return None
            frame.type = int(FrameType.SETUP_ERROR)
            frame.code = self.setup_errors[code]
        return frame

    def code_of(self, frame: ErrorFrame) -> int | None:
        """Return the code of an error that concerns the connection; None for one that does not."""
        if self.setup_errors is None:
            return frame.code
        if frame.type != FrameType.SETUP_ERROR:
            return None
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
    # ReactiveSocket 0.0, Error Codes. An established connection has no other word for its end.
    setup_errors={
        Code.INVALID_SETUP: 0x0001,
        Code.UNSUPPORTED_SETUP: 0x0010,
        Code.REJECTED_SETUP: 0x0100,
        Code.CONNECTION_ERROR: 0x0001,
    },
    keepalive=False,
    own_ids=True,
    cuts_requests=False,
    server_waits=False,
)

DIALECTS: Final = {each.name: each for each in (RSOCKET_1_0, REACTIVESOCKET_0_2, REACTIVESOCKET_0_0)}
"""The dialects by name."""


def deframer_of(codec: Codec, limit: int) -> Deframer:
    """Return what splits the bytes of a link into frames of at most `limit` bytes."""
    return Deframer(codec.prefix_bytes, limit, codec.header_bytes, codec.counts_itself or None)
