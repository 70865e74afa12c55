"""A table with the layout of every frame type of RSocket 1.0, and functions that read and write frames with it.

`encode`, `weirpool decode` and `decode` of rare types use the table. The codec has a fast path for the frequent
types; a property test compares it to the table. Each other dialect of the family has its own table. That of
ReactiveSocket 0.2, which has the same header, is derived here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from ...errors import FrameError, LocalError
from ..fields import Reader, check, put
from . import frames
from .frames import HEADER_BYTES, IGNORE, METADATA, RESUME, Frame, FrameType, type_name

__all__ = [
    "FLAGS",
    "REACTIVESOCKET_V02",
    "RSOCKET_V1",
    "TYPE_SHIFT",
    "UNKNOWN",
    "Field",
    "Layout",
    "Metadata",
    "read_body",
    "read_frame",
    "write_body",
    "write_frame",
]

# Frame Header Format: 4 bytes of stream id, 6 bits of type, 10 bits of flags.
TYPE_SHIFT = 10
FLAGS = 0x3FF
TYPED_BYTES = 4
"""ReactiveSocket 0.0, Metadata Optional Header: the size of this header, which its length includes."""


class Metadata(Enum):
    """How a frame type carries metadata."""

    NONE = 0
    COUNTED = 1
    """After a 24-bit length, if the METADATA flag is set."""
    REST = 2
    """The rest of the frame, without a length."""
    FORGIVEN = 3
    """As COUNTED, but a frame with an invalid length may be ignored, regardless of its flags."""
    TYPED = 4
    """As FORGIVEN, after a byte for the application and a 24-bit length that counts these four bytes."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: an integer, or bytes after an integer that is their number.

    Attributes:
        name: The attribute of the frame's class.
        bits: The size of the integer. If it is not a multiple of 8, the top bit is reserved: ignored, written as 0.
        counted: Whether the field is bytes.
        flag: The flag of an optional field, which is None if absent; 0 if the field is mandatory.
        signed: Whether the top bit is a sign. No valid field is negative, but a peer may send one.

    """

    name: str
    bits: int
    counted: bool = False
    flag: int = 0
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """The content of one frame type after the header, in this order: fields, metadata, data."""

    frame: type[Frame] = Frame
    fields: tuple[Field, ...] = ()
    metadata: Metadata = Metadata.NONE
    data: bool = False
    flags: tuple[str, ...] = ()
    """The names of the valid flags except IGNORE, which is always valid."""

    def new(self, type: int) -> Frame:
        """Return an empty frame of a type with this layout."""
        make: Callable[..., Frame] = self.frame
        frame = make(type) if make is Frame else make()
        frame.type = int(type)
        return frame


_REQUEST_N = (Field("request_n", 31),)
_VERSION = (Field("major", 16), Field("minor", 16))
_REQUEST = ("metadata", "follows")

RSOCKET_V1: Mapping[int, Layout] = {
    FrameType.SETUP: Layout(
        frames.SetupFrame,
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
        frames.LeaseFrame, (Field("ttl_ms", 31), Field("number_of_requests", 31)), Metadata.REST, flags=("metadata",)
    ),
    FrameType.KEEPALIVE: Layout(frames.KeepaliveFrame, (Field("position", 63),), data=True, flags=("respond",)),
    FrameType.REQUEST_RESPONSE: Layout(Frame, (), Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_FNF: Layout(Frame, (), Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_STREAM: Layout(Frame, _REQUEST_N, Metadata.COUNTED, data=True, flags=_REQUEST),
    FrameType.REQUEST_CHANNEL: Layout(Frame, _REQUEST_N, Metadata.COUNTED, data=True, flags=(*_REQUEST, "complete")),
    FrameType.REQUEST_N: Layout(frames.RequestNFrame, _REQUEST_N),
    FrameType.CANCEL: Layout(),
    FrameType.PAYLOAD: Layout(Frame, (), Metadata.COUNTED, data=True, flags=(*_REQUEST, "complete", "next")),
    FrameType.ERROR: Layout(frames.ErrorFrame, (Field("code", 32),), data=True),
    FrameType.METADATA_PUSH: Layout(Frame, (), Metadata.REST, flags=("metadata",)),
    FrameType.RESUME: Layout(
        frames.ResumeFrame,
        (
            *_VERSION,
            Field("token", 16, counted=True),
            Field("last_received_server_position", 63),
            Field("first_available_client_position", 63),
        ),
    ),
    FrameType.RESUME_OK: Layout(frames.ResumeOkFrame, (Field("last_received_client_position", 63),)),
    FrameType.EXT: Layout(frames.ExtFrame, (Field("extended_type", 31),), data=True, flags=("metadata",)),
}


def _layouts_v02() -> dict[int, Layout]:
    """Return the layouts of ReactiveSocket 0.2. Comments name sections of its specification."""
    # SETUP, LEASE and all others with integers: they are signed, where RSocket 1.0 reserves the top bit.
    table = {
        type: replace(layout, fields=tuple(_signed(field) if field.bits % 8 else field for field in layout.fields))
        for type, layout in RSOCKET_V1.items()
    }
    # Metadata Optional Header: if the length runs past the frame, the entire frame MUST be ignored.
    for type, layout in table.items():
        if layout.metadata is Metadata.COUNTED:
            table[type] = replace(layout, metadata=Metadata.FORGIVEN)
    # LEASE, METADATA_PUSH, CANCEL, ERROR: the M flag, and the metadata header with its length.
    for type in (FrameType.LEASE, FrameType.METADATA_PUSH, FrameType.CANCEL, FrameType.ERROR):
        table[type] = replace(table[type], metadata=Metadata.FORGIVEN, flags=("metadata",))
    setup = table[FrameType.SETUP]
    # SETUP Frame: S, strict interpretation of data and metadata.
    table[FrameType.SETUP] = replace(setup, flags=(*setup.flags, "strict"))
    return table


def _signed(field: Field) -> Field:
    return replace(field, bits=field.bits + 1, signed=True)


REACTIVESOCKET_V02: Mapping[int, Layout] = _layouts_v02()

UNKNOWN = Layout(Frame, (), data=True, flags=("metadata",))
"""The layout of types that are not in the table: everything after the header is data."""


def read_frame(layouts: Mapping[int, Layout], buffer: bytes, start: int, end: int) -> Frame:
    """Return the frame whose body, with a complete header, is ``buffer[start:end]``.

    Raises:
        FrameError: The type is unknown and IGNORE is not set; or a field runs past the frame.

    """
    word = int.from_bytes(buffer[start + 4 : start + HEADER_BYTES], "big")
    type = word >> TYPE_SHIFT
    layout = layouts.get(type)
    if layout is None:
        # Handling Ignore Flag: unknown frames may only be ignored if IGNORE is set.
        if not word & IGNORE:
            raise FrameError(f"unknown frame type {type_name(type)}", 4)
        layout = UNKNOWN
    frame = layout.new(type)
    frame.stream_id = int.from_bytes(buffer[start : start + 4], "big")
    frame.flags = word & FLAGS
    reader = Reader(buffer, start, start + HEADER_BYTES, end, type_name(type), bool(word & IGNORE))
    read_body(layout, frame, reader)
    return frame


def read_body(layout: Layout, frame: Frame, reader: Reader) -> None:
    """Read the fields after the header into `frame`, whose type and flags are set.

    Raises:
        FrameError: A field runs past the frame.

    """
    flags = frame.flags
    for field in layout.fields:
        if field.flag and not flags & field.flag:
            continue
        if field.counted:
            setattr(frame, field.name, reader.counted(field.bits, field.name))
        else:
            setattr(frame, field.name, reader.integer(field.bits, field.name, field.signed))
    if layout.metadata is Metadata.REST:
        rest = reader.rest()
        # METADATA_PUSH has only metadata. Some peers do not set METADATA in it and in LEASE.
        frame.metadata = rest if rest or flags & METADATA or not layout.fields else None
    elif layout.metadata is not Metadata.NONE and flags & METADATA:
        _read_metadata(layout.metadata, frame, reader)
    if layout.data:
        # Trailing bytes after a frame without data are ignored.
        frame.data = reader.rest()


def _read_metadata(kind: Metadata, frame: Frame, reader: Reader) -> None:
    """Read metadata with a length."""
    if kind is not Metadata.COUNTED:
        # ReactiveSocket 0.2, Metadata Optional Header: the entire frame MUST be ignored. RSocket 1.0: only with IGNORE.
        reader.ignorable = True
    if kind is not Metadata.TYPED:
        frame.metadata = reader.counted(24, "metadata")
        return
    frame.metadata_type = reader.integer(8, "metadata type")
    length = reader.integer(24, "metadata length")
    if length < TYPED_BYTES:
        what = f"the metadata length is {length}; it counts itself and must be at least {TYPED_BYTES}"
        raise FrameError(what, reader.at - reader.start, ignorable=True)
    frame.metadata = reader.take(length - TYPED_BYTES, "metadata")


def write_frame(layouts: Mapping[int, Layout], frame: Frame) -> bytes:
    """Return the body of `frame`.

    The flags of optional fields, and METADATA if it has a length, are set according to the fields.

    Raises:
        LocalError: A field is out of range, or the frame's type does not have it.

    """
    layout = layouts.get(frame.type, UNKNOWN)
    name = type_name(frame.type)
    flags, body = write_body(layout, frame, name)
    word = check(frame.type, 6, "a frame type") << TYPE_SHIFT | check(flags, 10, f"the flags of {name}")
    return put(frame.stream_id, 31, f"the stream id of {name}") + word.to_bytes(2, "big") + body


def write_body(layout: Layout, frame: Frame, name: str) -> tuple[int, bytes]:
    """Return the flags of `frame`, and its content after the header.

    Raises:
        LocalError: As `write_frame`. The message calls the type `name`.

    """
    if not isinstance(frame, layout.frame):
        raise LocalError(f"a {type(frame).__name__} cannot have type {name}; use {layout.frame.__name__}")
    flags = frame.flags
    parts: list[bytes] = []
    for field in layout.fields:
        value = getattr(frame, field.name)
        if field.flag:
            flags = flags & ~field.flag if value is None else flags | field.flag
        if value is not None:
            parts.append(_write_field(field, value, f"{field.name} of {name}"))
    metadata = frame.metadata
    if layout.metadata is Metadata.NONE:
        if metadata is not None:
            raise LocalError(f"{name} cannot carry metadata; omit it")
    elif layout.metadata is not Metadata.REST:
        flags = flags & ~METADATA if metadata is None else flags | METADATA
        if metadata is not None:
            parts.append(_metadata_header(layout.metadata, frame, len(metadata), name))
    if frame.data and not layout.data:
        raise LocalError(f"{name} cannot carry data; omit it")
    return flags, b"".join((*parts, metadata or b"", frame.data))


def _metadata_header(kind: Metadata, frame: Frame, size: int, name: str) -> bytes:
    """Return the header of metadata of `size` bytes."""
    what = f"the length of the metadata of {name}"
    if kind is not Metadata.TYPED:
        return put(size, 24, what)
    return put(frame.metadata_type, 8, f"the metadata type of {name}") + put(size + TYPED_BYTES, 24, what)


def _write_field(field: Field, value: int | bytes, what: str) -> bytes:
    """Return one field as bytes."""
    if isinstance(value, int):
        return put(value, field.bits, what, field.signed)
    return put(len(value), field.bits, f"the length of {what}") + value
