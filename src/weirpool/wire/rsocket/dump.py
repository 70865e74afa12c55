"""Human-readable frames: converts frames to JSON-compatible objects and back, and to lines of text.

An object has `type`, `stream_id` and `flags`, then the fields of its type with the names of the specification.
Bytes are hex, MIME types are text, absent metadata is None.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...errors import FrameError, LocalError
from ...texts import quoted
from ..fields import check
from ..framing import MAX_FRAME_BYTES, Deframer
from .codec import Codec
from .frames import FLAG_NAMES, METADATA, NEXT, Frame, type_name
from .layouts import REACTIVESOCKET_V02, RSOCKET_V1, UNKNOWN, Field, Layout, Metadata
from .v00 import FOREIGN, REACTIVESOCKET_V00, ReactiveSocketV00
from .v00 import name_of as name_in_v00

__all__ = ["DIALECTS", "codec_of", "from_object", "line", "read_frames", "to_object"]


_HEX = re.compile("0x0*[0-3]?[0-9a-f]{1,2}")
"""The flags of a frame have 10 bits."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """How to read, write and show one dialect.

    Attributes:
        codec: The codec.
        layouts: The layouts of the frame types.
        name_of: Returns the name of a type.
        type_bits: The size of a type in bits.
        foreign: The number that is added to unknown types.
        id_bits: The size of a stream id in bits.
        implied: Flags that are not sent, because they follow from the rest of a frame.

    """

    codec: Codec
    layouts: Mapping[int, Layout]
    name_of: Callable[[int], str] = type_name
    type_bits: int = 6
    foreign: int = 0
    id_bits: int = 31
    implied: int = 0

    def layout(self, type: int) -> Layout:
        """Return the layout of a frame type; unknown types have only data."""
        return self.layouts.get(type, UNKNOWN)


_DIALECTS = {
    "rsocket-1.0": Dialect(Codec(), RSOCKET_V1),
    "reactivesocket-0.2": Dialect(Codec(REACTIVESOCKET_V02), REACTIVESOCKET_V02),
    "reactivesocket-0.0": Dialect(ReactiveSocketV00(), REACTIVESOCKET_V00, name_in_v00, 16, FOREIGN, 64, NEXT),
}
DIALECTS: Final = tuple(_DIALECTS)
"""The names of the supported dialects."""


def _dialect(name: str) -> Dialect:
    """Return the dialect with that name. Raises LocalError if there is none."""
    if name not in _DIALECTS:
        raise LocalError(f"unknown dialect {name!r}; use one of {', '.join(DIALECTS)}")
    return _DIALECTS[name]


def codec_of(dialect: str) -> Codec:
    """Return the codec of a dialect.

    Raises:
        LocalError: It is not one of `DIALECTS`.

    """
    return _dialect(dialect).codec


def read_frames(data: bytes, dialect: str = "rsocket-1.0", prefix: int = 0) -> Iterator[tuple[int | None, Frame]]:
    """Yield every frame in `data` with the value of its length prefix.

    Args:
        data: Frames.
        dialect: One of `DIALECTS`.
        prefix: The size of the length prefixes: 3 or 4, see :class:`Deframer`. If it is 0, `data` is one frame,
            whose length is None.

    Raises:
        FrameError: A frame is malformed. The error's `offset` counts from the beginning of `data`.
        LocalError: The dialect or prefix is not supported.

    """
    codec = codec_of(dialect)
    if prefix == 0:
        yield None, codec.decode(data, 0, len(data))
        return
    deframer = Deframer(prefix, MAX_FRAME_BYTES, codec.header_bytes)
    deframer.feed(data)
    at = 0
    try:
        # `data` is fed as one piece, so the deframer uses it as its buffer, and indices are offsets in it.
        while deframer.next():
            at = deframer.start
            frame = codec.decode(deframer.buffer, at, deframer.end)
            yield deframer.end - at + (4 if prefix == 4 else 0), frame
            at = deframer.end
    except FrameError as error:
        raise FrameError(error.message, at + error.offset, ignorable=error.ignorable) from None
    if deframer.pending:
        at = len(data) - deframer.pending
        raise FrameError(f"the last frame is incomplete: it has only {deframer.pending} bytes", at)


def to_object(frame: Frame, dialect: str = "rsocket-1.0") -> dict[str, object]:
    """Return `frame` as a JSON-compatible object.

    Raises:
        LocalError: The dialect is unknown.

    """
    shown = _dialect(dialect)
    layout = shown.layout(frame.type)
    result: dict[str, object] = {
        "type": shown.name_of(frame.type),
        "stream_id": frame.stream_id,
        "flags": _flag_names(frame.flags & ~shown.implied, layout),
    }
    for field in layout.fields:
        value = getattr(frame, field.name)
        result[field.name] = _shown(field, value) if isinstance(value, bytes) else value
    if layout.metadata is not Metadata.NONE:
        result["metadata"] = None if frame.metadata is None else frame.metadata.hex()
    if layout.metadata is Metadata.TYPED and frame.metadata is not None:
        result["metadata_type"] = frame.metadata_type
    if layout.data:
        result["data"] = frame.data.hex()
    return result


def _flags(layout: Layout) -> list[str]:
    """Return the names of the valid flags of a type."""
    return [name for name in FLAG_NAMES if name == "ignore" or name in layout.flags]


def _flag_names(bits: int, layout: Layout) -> list[str]:
    """Return the names of flags; the bits that a type does not define are one hex number at the end."""
    names = [name for name in _flags(layout) if bits & FLAG_NAMES[name]]
    undefined = bits & ~sum(FLAG_NAMES[name] for name in names)
    return [*names, f"0x{undefined:03x}"] if undefined else names


def _is_text(field: Field) -> bool:
    """Return whether a field of bytes is text: a MIME type of SETUP."""
    return field.name.endswith("_mime")


def _shown(field: Field, value: bytes) -> str:
    """Return a field of bytes as text or hex. Bytes that are not UTF-8 become surrogates."""
    return value.decode(errors="surrogateescape") if _is_text(field) else value.hex()


def from_object(value: Mapping[str, object], dialect: str = "rsocket-1.0") -> Frame:
    """Return the frame for an object in the format of `to_object`.

    `flags`, `stream_id`, `metadata`, `data` and fields with a flag are optional. A `length` is ignored, because it
    follows from the other fields.

    Raises:
        LocalError: A field is missing, unknown, of the wrong type or out of range; or the dialect is unknown.

    """
    if not isinstance(value, Mapping):
        raise LocalError(f"a frame must be an object, not {type(value).__name__}")
    wanted = _dialect(dialect)
    kind = _type_of(value.get("type"), wanted)
    name = wanted.name_of(kind)
    layout = wanted.layout(kind)
    known = {"type", "stream_id", "flags", "length", *(field.name for field in layout.fields)}
    known |= {"metadata"} if layout.metadata is not Metadata.NONE else set()
    known |= {"metadata_type"} if layout.metadata is Metadata.TYPED else set()
    known |= {"data"} if layout.data else set()
    if unknown := sorted(str(key) for key in value.keys() - known):
        raise LocalError(f"{name} has no {', '.join(unknown)}; its fields are {', '.join(sorted(known))}")
    frame = layout.new(kind)
    frame.stream_id = _integer(value.get("stream_id", 0), wanted.id_bits, f"stream_id of {name}")
    for field in layout.fields:
        setattr(frame, field.name, _field(field, value, name))
    if value.get("metadata") is not None:
        frame.metadata = _bytes(value["metadata"], f"metadata of {name}")
    frame.metadata_type = _integer(value.get("metadata_type", 0), 8, f"metadata_type of {name}")
    frame.data = _bytes(value.get("data", ""), f"data of {name}")
    frame.flags = _flag_bits(value.get("flags"), layout, frame, name)
    return frame


def _type_of(value: object, dialect: Dialect) -> int:
    """Return the number of a frame type from its name or hex number."""
    names = {dialect.name_of(type): int(type) for type in dialect.layouts}
    if isinstance(value, str):
        if value in names:
            return names[value]
        if value.startswith("0x") and value[2:].isalnum():
            try:
                return check(int(value, 16), dialect.type_bits, "a frame type") | dialect.foreign
            except ValueError:
                pass
    raise LocalError(f"type is {value!r}; it must be one of {', '.join(names)}, or hex such as 0x2A")


def _integer(value: object, bits: int, what: str, signed: bool = False) -> int:
    """Return `value` if it is an integer of at most `bits` bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise LocalError(f"{what} is {value!r}; it must be an integer")
    return check(value, bits, what, signed)


def _bytes(value: object, what: str) -> bytes:
    """Return the bytes of the hex string `value`."""
    try:
        return bytes.fromhex(value)  # type: ignore[arg-type]  # TypeError if it is not a string
    except (TypeError, ValueError):
        raise LocalError(f"{what} is {value!r}; it must be a string of hex digits, two for each byte") from None


def _field(field: Field, value: Mapping[str, object], name: str) -> int | bytes | None:
    """Return the value of one field from an object."""
    what = f"{field.name} of {name}"
    given = value.get(field.name)
    if given is None:
        if field.flag:
            return None
        raise LocalError(f"{what} is missing")
    if not field.counted:
        return _integer(given, field.bits, what, field.signed)
    if not _is_text(field):
        return _bytes(given, what)
    if not isinstance(given, str):
        raise LocalError(f"{what} is {given!r}; it must be a string")
    try:
        return given.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise LocalError(f"{what} is {given!r}; it must be text that can be encoded in UTF-8") from None


def _flag_bits(names: object, layout: Layout, frame: Frame, name: str) -> int:
    """Return the bits of the named flags; without names, those that follow from the fields."""
    if names is None:
        flags = METADATA if frame.metadata is not None else 0
        for field in layout.fields:
            flags |= field.flag if getattr(frame, field.name) is not None else 0
        return flags
    if not isinstance(names, list | tuple):
        raise LocalError(f"flags of {name} is {names!r}; it must be an array of names")
    flags = 0
    for flag in names:
        if flag in _flags(layout):
            flags |= FLAG_NAMES[flag]
        else:
            flags |= _undefined_bits(flag, layout, name)
    return flags


def _undefined_bits(flag: object, layout: Layout, name: str) -> int:
    """Return the bits of a hex number in the flags of a frame, which its type does not define."""
    found = _HEX.fullmatch(flag) if isinstance(flag, str) else None
    bits = int(found[0], 16) if found else 0
    if not bits or bits & sum(FLAG_NAMES[known] for known in _flags(layout)):
        raise LocalError(
            f"{name} has no flag {flag!r}; its flags are {', '.join(_flags(layout))}, and the other bits in hex"
        )
    return bits


def line(frame: Frame, dialect: str = "rsocket-1.0", show: Callable[[str, bytes], str | None] | None = None) -> str:
    """Return `frame` as one line of text without control characters.

    Args:
        frame: The frame.
        dialect: One of `DIALECTS`.
        show: Called with the name and value of each field of bytes; returns the text to show instead, or None.

    Raises:
        LocalError: The dialect is unknown.

    """
    shown = _dialect(dialect)
    layout = shown.layout(frame.type)
    flags = _flag_names(frame.flags & ~shown.implied, layout)
    words = [shown.name_of(frame.type), f"stream={frame.stream_id}"]
    words += (f"flags={name}" if name.startswith("0x") else name for name in flags)
    for field in layout.fields:
        value = getattr(frame, field.name)
        if isinstance(value, bytes):
            words.append(_shown_bytes(field.name, value, show))
        elif value is not None:
            words.append(f"{field.name}=0x{value:x}" if field.name == "code" else f"{field.name}={value}")
    if frame.metadata is not None:
        words.append(_shown_bytes("metadata", frame.metadata, show))
    if frame.data:
        words.append(_shown_bytes("data", frame.data, show))
    return " ".join(words)


def _shown_bytes(name: str, data: bytes, show: Callable[[str, bytes], str | None] | None) -> str:
    text = None if show is None else show(name, data)
    return f"{name}={quoted(data) if text is None else text}"
