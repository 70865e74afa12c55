"""Decoded frames of the RSocket family: one class for each layout, shared by the three dialects.

Only `wire` and the family use frames. Fields have the names of the RSocket 1.0 specification; fields that a
dialect lacks keep their defaults.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = [
    "COMPLETE",
    "FLAG_NAMES",
    "FOLLOWS",
    "HEADER_BYTES",
    "IGNORE",
    "LEASE",
    "METADATA",
    "NEXT",
    "RESPOND",
    "RESUME",
    "STRICT",
    "ErrorFrame",
    "ExtFrame",
    "Frame",
    "FrameType",
    "KeepaliveFrame",
    "LeaseFrame",
    "RequestNFrame",
    "ResumeFrame",
    "ResumeOkFrame",
    "SetupFrame",
    "type_name",
]

HEADER_BYTES = 6
"""Size of the header in RSocket 1.0 and ReactiveSocket 0.2: stream id, type and flags."""

# RSocket 1.0, Frame Header Format and the figure of each frame. A bit has different meanings in different
# frames. The codec of ReactiveSocket 0.0 converts its bits to these.
IGNORE = 0x200
METADATA = 0x100
FOLLOWS = 0x80
"""Requests and PAYLOAD: more fragments of this item follow."""
RESUME = 0x80
"""SETUP: the client can resume."""
RESPOND = 0x80
"""KEEPALIVE: the receiver must answer."""
COMPLETE = 0x40
"""REQUEST_CHANNEL and PAYLOAD: the sender's half ends."""
LEASE = 0x40
"""SETUP: requests wait for leases."""
NEXT = 0x20
"""PAYLOAD: the frame contains an item."""
STRICT = 0x20
"""SETUP in ReactiveSocket 0.2: the server must reject requests that it does not understand."""

FLAG_NAMES = {
    "ignore": IGNORE,
    "metadata": METADATA,
    "follows": FOLLOWS,
    "complete": COMPLETE,
    "next": NEXT,
    "resume": RESUME,
    "lease": LEASE,
    "strict": STRICT,
    "respond": RESPOND,
}
"""The flags by name, in the order in which they are shown."""


class FrameType(IntEnum):
    """RSocket 1.0, Frame Types. The numbers of the last two, which only ReactiveSocket 0.0 has, are never sent."""

    SETUP = 0x01
    LEASE = 0x02
    KEEPALIVE = 0x03
    REQUEST_RESPONSE = 0x04
    REQUEST_FNF = 0x05
    REQUEST_STREAM = 0x06
    REQUEST_CHANNEL = 0x07
    REQUEST_N = 0x08
    CANCEL = 0x09
    PAYLOAD = 0x0A
    ERROR = 0x0B
    METADATA_PUSH = 0x0C
    RESUME = 0x0D
    RESUME_OK = 0x0E
    EXT = 0x3F
    SETUP_ERROR = 0x40
    REQUEST_SUB = 0x41


def type_name(type: int) -> str:
    """Return the name of a frame type, or its number in hex if it has none."""
    try:
        return FrameType(type).name
    except ValueError:
        return f"0x{type:02X}"


_FIELDS: tuple[str, ...] = ("type", "stream_id", "flags", "request_n", "metadata", "metadata_type", "data")


class Frame:
    """Header, metadata and data: the class of requests, PAYLOAD, CANCEL and METADATA_PUSH.

    Attributes:
        type: One of :class:`FrameType`, or the number of an unknown type.
        stream_id: The stream; 0 for the connection.
        flags: The flags above; METADATA is set if there is `metadata`.
        request_n: The initial request-n of REQUEST_STREAM and REQUEST_CHANNEL; else 0.
        metadata: The metadata; None if absent, which is not the same as empty.
        metadata_type: The byte before the metadata in ReactiveSocket 0.0, whose meaning is up to the application.
        data: The rest of the frame.

    """

    __slots__ = ("data", "flags", "metadata", "metadata_type", "request_n", "stream_id", "type")
    fields = _FIELDS
    """The names of all fields, beginning with those of the base class."""

    def __init__(
        self,
        type: int,
        stream_id: int = 0,
        flags: int = 0,
        request_n: int = 0,
        metadata: bytes | None = None,
        data: bytes = b"",
    ) -> None:
        # Only the plain build would keep an enum member, whose repr is different.
        self.type = int(type)
        self.stream_id = stream_id
        self.flags = flags if metadata is None else flags | METADATA
        self.request_n = request_n
        self.metadata = metadata
        self.metadata_type = 0
        self.data = data

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.fields)

    def __hash__(self) -> int:
        return hash((self.type, self.stream_id, self.flags, self.data))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.fields)
        return f"{type(self).__name__}({fields})"


class SetupFrame(Frame):
    """SETUP: the parameters of the connection. `token` is None if the client cannot resume."""

    __slots__ = ("data_mime", "keepalive_ms", "lifetime_ms", "major", "metadata_mime", "minor", "token")
    fields = (*Frame.fields, "major", "minor", "keepalive_ms", "lifetime_ms", "token", "metadata_mime", "data_mime")

    def __init__(
        self,
        flags: int = 0,
        major: int = 1,
        minor: int = 0,
        keepalive_ms: int = 0,
        lifetime_ms: int = 0,
        token: bytes | None = None,
        metadata_mime: bytes = b"",
        data_mime: bytes = b"",
        metadata: bytes | None = None,
        data: bytes = b"",
    ) -> None:
        super().__init__(FrameType.SETUP, 0, flags if token is None else flags | RESUME, 0, metadata, data)
        self.major = major
        self.minor = minor
        self.keepalive_ms = keepalive_ms
        self.lifetime_ms = lifetime_ms
        self.token = token
        self.metadata_mime = metadata_mime
        self.data_mime = data_mime


class LeaseFrame(Frame):
    """LEASE: allows `number_of_requests` requests within `ttl_ms` (ReactiveSocket 0.0: `ttl_ns`)."""

    __slots__ = ("number_of_requests", "ttl_ms", "ttl_ns")
    fields = (*Frame.fields, "ttl_ms", "ttl_ns", "number_of_requests")

    def __init__(
        self, ttl_ms: int = 0, number_of_requests: int = 0, metadata: bytes | None = None, ttl_ns: int = 0
    ) -> None:
        super().__init__(FrameType.LEASE, 0, 0, 0, metadata)
        self.ttl_ms = ttl_ms
        self.ttl_ns = ttl_ns
        self.number_of_requests = number_of_requests


class KeepaliveFrame(Frame):
    """KEEPALIVE: the sender is alive, and has received everything before `position`."""

    __slots__ = ("position",)
    fields = (*Frame.fields, "position")

    def __init__(self, flags: int = 0, position: int = 0, data: bytes = b"") -> None:
        super().__init__(FrameType.KEEPALIVE, 0, flags, 0, None, data)
        self.position = position


class RequestNFrame(Frame):
    """REQUEST_N: requests `request_n` more items."""

    __slots__ = ()

    def __init__(self, stream_id: int = 0, request_n: int = 0, flags: int = 0) -> None:
        super().__init__(FrameType.REQUEST_N, stream_id, flags, request_n)


class ErrorFrame(Frame):
    """ERROR: the stream, or on stream 0 the connection, has failed; `data` is the text."""

    __slots__ = ("code",)
    fields = (*Frame.fields, "code")

    def __init__(
        self, stream_id: int = 0, code: int = 0, data: bytes = b"", flags: int = 0, metadata: bytes | None = None
    ) -> None:
        super().__init__(FrameType.ERROR, stream_id, flags, 0, metadata, data)
        self.code = code


class ResumeFrame(Frame):
    """RESUME: resumes the session with that `token` from these positions."""

    __slots__ = ("first_available_client_position", "last_received_server_position", "major", "minor", "token")
    fields = (
        *Frame.fields,
        "major",
        "minor",
        "token",
        "last_received_server_position",
        "first_available_client_position",
    )

    def __init__(
        self,
        token: bytes = b"",
        last_received_server_position: int = 0,
        first_available_client_position: int = 0,
        major: int = 1,
        minor: int = 0,
        flags: int = 0,
    ) -> None:
        super().__init__(FrameType.RESUME, 0, flags)
        self.major = major
        self.minor = minor
        self.token = token
        self.last_received_server_position = last_received_server_position
        self.first_available_client_position = first_available_client_position


class ResumeOkFrame(Frame):
    """RESUME_OK: the server has received everything before this position."""

    __slots__ = ("last_received_client_position",)
    fields = (*Frame.fields, "last_received_client_position")

    def __init__(self, last_received_client_position: int = 0, flags: int = 0) -> None:
        super().__init__(FrameType.RESUME_OK, 0, flags)
        self.last_received_client_position = last_received_client_position


class ExtFrame(Frame):
    """EXT: a frame of an extension; `data` is everything after the extended type, including metadata."""

    __slots__ = ("extended_type",)
    fields = (*Frame.fields, "extended_type")

    def __init__(self, stream_id: int = 0, extended_type: int = 0, data: bytes = b"", flags: int = 0) -> None:
        super().__init__(FrameType.EXT, stream_id, flags, 0, None, data)
        self.extended_type = extended_type
