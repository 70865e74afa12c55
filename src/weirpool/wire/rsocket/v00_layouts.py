"""The layouts of ReactiveSocket 0.0, and functions that read and write frames with them.

Comments name sections of its specification.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ...errors import FrameError, LocalError
from ..fields import Reader, put
from . import frames
from .frames import COMPLETE, FOLLOWS, IGNORE, LEASE, METADATA, NEXT, Frame, FrameType
from .layouts import UNKNOWN, Field, Layout, read_body, write_body
from .layouts import Metadata as How

__all__ = [
    "FOREIGN",
    "HEADER_BYTES",
    "NUMBERS",
    "REACTIVESOCKET_V00",
    "TYPES",
    "VERSION",
    "name_of",
    "read_frame",
    "write_frame",
]

# Frame Header Format: version, flags, 16 bits of type, 64 bits of stream id.
HEADER_BYTES = 12
VERSION = 0
FOREIGN: Final = 0x10000
"""Added to the number of an unknown type, to distinguish it from types of other dialects."""
ERROR_CODE: Final = 0x201
"""APPLICATION_ERROR, the most general code, because ERROR has no code in this dialect."""
CODE_IN_METADATA: Final = re.compile(rb"\[0x(?!201\])([1-9A-F][0-9A-F]{2,7})\]")
"""The metadata of an ERROR that Weirpool sends with another code."""

TYPES: Final = {
    # Frame Types. The note in the figure of REQUEST_N, "Frame Type = SETUP", is a mistake.
    0x0001: FrameType.SETUP,
    0x0002: FrameType.SETUP_ERROR,
    0x0003: FrameType.LEASE,
    0x0011: FrameType.REQUEST_RESPONSE,
    0x0012: FrameType.REQUEST_FNF,
    0x0013: FrameType.REQUEST_STREAM,
    0x0014: FrameType.REQUEST_SUB,
    0x0015: FrameType.REQUEST_N,
    0x0016: FrameType.CANCEL,
    0x0020: FrameType.PAYLOAD,
    0x0021: FrameType.ERROR,
    0x0031: FrameType.METADATA_PUSH,
    0xFFFF: FrameType.EXT,
}
NUMBERS: Final = {int(type): number for number, type in TYPES.items()}

FLAGS: Final = ((IGNORE, 0x80), (METADATA, 0x40))
"""The flags of all types: the flag of `frames`, and its bit on the wire."""
TYPE_FLAGS: Final = {
    int(FrameType.SETUP): (*FLAGS, (LEASE, 0x20)),
    int(FrameType.PAYLOAD): (*FLAGS, (FOLLOWS, 0x20), (COMPLETE, 0x10)),
}

_REQUEST_N = (Field("request_n", 64),)
_STREAM = Layout(Frame, _REQUEST_N, How.TYPED, data=True, flags=("metadata",))
_PLAIN = Layout(Frame, (), How.TYPED, data=True, flags=("metadata",))
_BARE = Layout(Frame, (), How.TYPED, flags=("metadata",))

REACTIVESOCKET_V00: Final[Mapping[int, Layout]] = {
    FrameType.SETUP: Layout(
        frames.SetupFrame,
        (Field("metadata_mime", 8, counted=True), Field("data_mime", 8, counted=True)),
        How.TYPED,
        data=True,
        flags=("metadata", "lease"),
    ),
    FrameType.SETUP_ERROR: Layout(frames.ErrorFrame, (Field("code", 32),), How.TYPED, data=True, flags=("metadata",)),
    FrameType.LEASE: Layout(
        frames.LeaseFrame, (Field("ttl_ns", 64), Field("number_of_requests", 64)), How.TYPED, flags=("metadata",)
    ),
    FrameType.REQUEST_RESPONSE: _PLAIN,
    FrameType.REQUEST_FNF: _PLAIN,
    FrameType.REQUEST_STREAM: _STREAM,
    FrameType.REQUEST_SUB: _STREAM,
    FrameType.REQUEST_N: Layout(frames.RequestNFrame, _REQUEST_N, How.TYPED, flags=("metadata",)),
    FrameType.CANCEL: _BARE,
    FrameType.PAYLOAD: Layout(Frame, (), How.TYPED, data=True, flags=("metadata", "follows", "complete")),
    FrameType.ERROR: Layout(frames.ErrorFrame, (), How.TYPED, data=True, flags=("metadata",)),
    FrameType.METADATA_PUSH: _BARE,
    # Extension Frame: the common header with its stream id is kept before the extended type.
    FrameType.EXT: Layout(frames.ExtFrame, (Field("extended_type", 32),), data=True, flags=("metadata",)),
}


def name_of(type: int) -> str:
    """Return the specification's name of a frame type; its number in hex if it has none."""
    if type == FrameType.PAYLOAD:
        return "RESPONSE"
    return FrameType(type).name if type in REACTIVESOCKET_V00 else f"0x{type & ~FOREIGN:04X}"


def read_frame(buffer: bytes, start: int, end: int) -> Frame:
    """Return the frame of any type whose body, with a complete header, is ``buffer[start:end]``.

    Raises:
        FrameError: The bytes are not a valid frame.

    """
    if buffer[start] != VERSION:
        raise FrameError(f"the frame header has version {buffer[start]}; ReactiveSocket 0.0 has {VERSION}")
    bits = buffer[start + 1]
    ignorable = bool(bits & 0x80)
    number = int.from_bytes(buffer[start + 2 : start + 4], "big")
    type = TYPES.get(number, FOREIGN | number)
    layout = REACTIVESOCKET_V00.get(type, UNKNOWN)
    if layout is UNKNOWN and not ignorable:
        raise FrameError(f"unknown frame type 0x{number:04X}", 2)
    frame = layout.new(type)
    frame.stream_id = int.from_bytes(buffer[start + 4 : start + HEADER_BYTES], "big")
    for flag, bit in TYPE_FLAGS.get(type, FLAGS):
        if bits & bit:
            frame.flags |= flag
    read_body(layout, frame, Reader(buffer, start, start + HEADER_BYTES, end, name_of(type), ignorable))
    # Set fields that other dialects send, and that the type implies in this one.
    if type == FrameType.PAYLOAD:
        # Response Frame: an empty body with the complete bit is not an item.
        if not frame.flags & COMPLETE or frame.data or frame.metadata is not None:
            frame.flags |= NEXT
    elif type == FrameType.ERROR and isinstance(frame, frames.ErrorFrame):
        coded = CODE_IN_METADATA.fullmatch(frame.metadata or b"")
        frame.code = int(coded[1], 16) if coded else ERROR_CODE
    elif isinstance(frame, frames.SetupFrame):
        frame.major = frame.minor = VERSION
    return frame


def write_frame(frame: Frame) -> bytes:
    """Return the body of `frame`.

    Raises:
        LocalError: A field is out of range, or the frame's type does not have it.

    """
    type = frame.type
    name = name_of(type)
    number = NUMBERS.get(type, type & ~FOREIGN)
    if type not in REACTIVESOCKET_V00 and not type & FOREIGN:
        raise LocalError(f"ReactiveSocket 0.0 does not have {FrameType(type).name}")
    if type == FrameType.ERROR and isinstance(frame, frames.ErrorFrame):
        frame = _with_code_in_metadata(frame)
    flags, body = write_body(REACTIVESOCKET_V00.get(type, UNKNOWN), frame, name)
    bits = 0
    for flag, bit in TYPE_FLAGS.get(type, FLAGS):
        if flags & flag:
            bits |= bit
    stream_id = put(frame.stream_id, 64, f"the stream id of {name}")
    return bytes((VERSION, bits)) + put(number, 16, "a frame type") + stream_id + body


def _with_code_in_metadata(frame: frames.ErrorFrame) -> frames.ErrorFrame:
    """Return an ERROR whose metadata is its code, unless it has metadata, or the most general code.

    ReactiveSocket 0.0, Error Frame: it has no code. Peers that do not know this ignore the metadata.
    """
    if frame.code in (0, ERROR_CODE) or frame.metadata is not None:
        return frame
    return frames.ErrorFrame(frame.stream_id, frame.code, frame.data, frame.flags, b"[0x%03X]" % frame.code)
