"""The layout of every frame type of RSocket 1.0 as one table, and frames read and written by it.

The table is what `encode`, `penstock decode` and the rare half of `decode` go by; the frequent types have a
fast path in the codec, which a property test holds equal to the table. Another dialect of the family with the
same header is another table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from ..errors import FrameError, LocalError
from .fields import Reader, check, put
from .frames import (
    IGNORE,
    METADATA,
    RESUME,
    ErrorFrame,
    ExtFrame,
    Frame,
    FrameType,
    KeepaliveFrame,
    LeaseFrame,
    RequestNFrame,
    ResumeFrame,
    ResumeOkFrame,
    SetupFrame,
    type_name,
)

__all__ = [
    "FLAGS",
    "HEADER_BYTES",
    "RSOCKET_V1",
    "TYPE_SHIFT",
    "UNKNOWN",
    "Field",
    "Layout",
    "Metadata",
    "read_frame",
    "write_frame",
]

# Frame Header Format: 4 bytes of stream id, 6 bits of type, 10 bits of flags.
HEADER_BYTES = 6
TYPE_SHIFT = 10
FLAGS = 0x3FF


class Metadata(Enum):
    """How a frame type carries metadata."""

    NONE = 0
    COUNTED = 1
    """Behind its 24-bit length, when the METADATA flag is set."""
    REST = 2
    """All that is left of the frame; there is no length."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: an integer of `bits` bits, or as many bytes as the integer of `bits` bits before them says.

    Attributes:
        name: Its attribute in the frame's class.
        bits: Of the integer. Where they are no whole bytes, the top bit is reserved: not read, written as 0.
        counted: It is bytes.
        flag: It is there when this flag is set; 0: always. It is None when it is not there.

    """

    name: str
    bits: int
    counted: bool = False
    flag: int = 0


@dataclass(frozen=True, slots=True)
class Layout:
    """What stands behind the header of one frame type, in this order: fields, metadata, data."""

    frame: type[Frame] = Frame
    fields: tuple[Field, ...] = ()
    metadata: Metadata = Metadata.NONE
    data: bool = False
    flags: tuple[str, ...] = ()
    """Names of the flags that mean something, IGNORE apart, which always does."""

    def new(self, type: int) -> Frame:
        """Return an empty frame of the type that has this layout."""
        make: Callable[..., Frame] = self.frame
        return make(type) if make is Frame else make()


_REQUEST_N = (Field("request_n", 31),)
_VERSION = (Field("major", 16), Field("minor", 16))
_REQUEST = ("metadata", "follows")

RSOCKET_V1: Mapping[int, Layout] = {
    FrameType.SETUP: Layout(
        SetupFrame,
        (
            *_VERSION,
            Field("keepalive_ms", 31),
            Field("lifetime_ms", 31),
            Field("token", 16, counted=True, flag=RESUME),
            # Unsigned lengths: old peers read 255 as -1.
            Field("metadata_mime", 8, counted=True),
            Field("data_mime", 8, counted=True),
        ),
        Metadata.COUNTED,
        data=True,
        flags=("metadata", "resume", "lease"),
    ),
    FrameType.LEASE: Layout(
        LeaseFrame, (Field("ttl_ms", 31), Field("number_of_requests", 31)), Metadata.REST, flags=("metadata",)
    ),
    FrameType.KEEPALIVE: Layout(KeepaliveFrame, (Field("position", 63),), data=True, flags=("respond",)),
    FrameType.REQUEST_RESPONSE: Layout(Frame, (), Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_FNF: Layout(Frame, (), Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_STREAM: Layout(Frame, _REQUEST_N, Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_CHANNEL: Layout(Frame, _REQUEST_N, Metadata.COUNTED, data=True, flags=(*_REQUEST, "complete")),
    FrameType.REQUEST_N: Layout(RequestNFrame, _REQUEST_N),
    FrameType.CANCEL: Layout(),
    FrameType.PAYLOAD: Layout(Frame, (), Metadata.COUNTED, data=True, flags=(*_REQUEST, "complete", "next")),
    FrameType.ERROR: Layout(ErrorFrame, (Field("code", 32),), data=True),
    FrameType.METADATA_PUSH: Layout(Frame, (), Metadata.REST, flags=("metadata",)),
    FrameType.RESUME: Layout(
        ResumeFrame,
        (
            *_VERSION,
            Field("token", 16, counted=True),
            Field("last_received_server_position", 63),
            Field("first_available_client_position", 63),
        ),
    ),
    FrameType.RESUME_OK: Layout(ResumeOkFrame, (Field("last_received_client_position", 63),)),
    FrameType.EXT: Layout(ExtFrame, (Field("extended_type", 31),), data=True, flags=("metadata",)),
}

UNKNOWN = Layout(Frame, (), data=True, flags=("metadata",))
"""A type that is not in the table: all behind the header is data."""


def read_frame(layouts: Mapping[int, Layout], buffer: bytes, start: int, end: int) -> Frame:
    """Return the frame whose body, at least a header, is ``buffer[start:end]``.

    Raises:
        FrameError: The type is unknown and IGNORE is not set; or a field runs past the frame.

    """
    word = int.from_bytes(buffer[start + 4 : start + HEADER_BYTES], "big")
    type = word >> TYPE_SHIFT
    layout = layouts.get(type)
    if layout is None:
        # Handling Ignore Flag: what is not understood may be ignored only if IGNORE is set.
        if not word & IGNORE:
            raise FrameError(f"no frame has type {type_name(type)}", 4)
        layout = UNKNOWN
    frame = layout.new(type)
    frame.stream_id = int.from_bytes(buffer[start : start + 4], "big")
    frame.flags = word & FLAGS
    reader = Reader(buffer, start, start + HEADER_BYTES, end, type_name(type), bool(word & IGNORE))
    for field in layout.fields:
        if field.flag and not word & field.flag:
            continue
        read = reader.counted if field.counted else reader.integer
        setattr(frame, field.name, read(field.bits, field.name))
    if layout.metadata is Metadata.COUNTED and word & METADATA:
        # Metadata Optional Header: a length that is not the frame's is CONNECTION_ERROR, unless IGNORE is set.
        frame.metadata = reader.counted(24, "metadata")
    elif layout.metadata is Metadata.REST:
        rest = reader.rest()
        # METADATA_PUSH is nothing but metadata; living peers leave METADATA out, here and on LEASE.
        frame.metadata = rest if rest or word & METADATA or not layout.fields else None
    if layout.data:
        # Behind a frame that has none, trailing bytes are ignored.
        frame.data = reader.rest()
    return frame


def write_frame(layouts: Mapping[int, Layout], frame: Frame) -> bytes:
    """Return the body of `frame`.

    The flags of optional fields, and METADATA where a length precedes it, follow from what is there.

    Raises:
        LocalError: A field does not fit, or the frame holds one that its type does not have.

    """
    layout = layouts.get(frame.type, UNKNOWN)
    name = type_name(frame.type)
    if not isinstance(frame, layout.frame):
        raise LocalError(f"a {type(frame).__name__} cannot be {name}; make a {layout.frame.__name__}")
    flags = check(frame.flags, 10, f"the flags of {name}")
    parts: list[bytes] = []
    for field in layout.fields:
        value = getattr(frame, field.name)
        if field.flag:
            flags = flags & ~field.flag if value is None else flags | field.flag
        if value is not None:
            parts.append(_write_field(field, value, f"{field.name} of {name}"))
    metadata = frame.metadata
    if layout.metadata is Metadata.COUNTED:
        flags = flags & ~METADATA if metadata is None else flags | METADATA
        if metadata is not None:
            parts.append(put(len(metadata), 24, f"the length of the metadata of {name}"))
    elif layout.metadata is Metadata.NONE and metadata is not None:
        raise LocalError(f"{name} carries no metadata; leave it out")
    if frame.data and not layout.data:
        raise LocalError(f"{name} carries no data; leave it out")
    word = check(frame.type, 6, "a frame type") << TYPE_SHIFT | flags
    header = put(frame.stream_id, 31, f"the stream id of {name}") + word.to_bytes(2, "big")
    return b"".join((header, *parts, metadata or b"", frame.data))


def _write_field(field: Field, value: int | bytes, what: str) -> bytes:
    """Return one field as it travels."""
    if isinstance(value, int):
        return put(value, field.bits, what)
    return put(len(value), field.bits, f"the length of {what}") + value
