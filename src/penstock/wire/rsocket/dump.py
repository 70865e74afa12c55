"""Frames for people and scripts: as JSON-ready objects and back, and as one line each.

An object has `type`, `stream_id` and `flags`, then the fields of its type under the document's names. Bytes are
hex, MIME types text, absent metadata is None.
"""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one dialect is read, written and shown.

    Attributes:
        codec: Bytes to frames and back.
        layouts: What the frame types consist of.
        name_of: A type's name.
        type_bits: Bits of a type.
        foreign: What is added to the number of a type that is in no table.
        id_bits: Bits of a stream id.
        implied: Flags that follow from the rest of a frame, and do not travel.

    """

    codec: Codec
    layouts: Mapping[int, Layout]
    name_of: Callable[[int], str] = type_name
    type_bits: int = 6
    foreign: int = 0
    id_bits: int = 31
    implied: int = 0

    def layout(self, type: int) -> Layout:
        """Return what a frame type consists of; of one that nobody knows, all is data."""
        return self.layouts.get(type, UNKNOWN)


_DIALECTS = {
    "rsocket-1.0": Dialect(Codec(), RSOCKET_V1),
    "reactivesocket-0.2": Dialect(Codec(REACTIVESOCKET_V02), REACTIVESOCKET_V02),
    "reactivesocket-0.0": Dialect(ReactiveSocketV00(), REACTIVESOCKET_V00, name_in_v00, 16, FOREIGN, 63, NEXT),
}
DIALECTS: Final = tuple(_DIALECTS)
"""The names of the dialects that can be shown."""


def _dialect(name: str) -> Dialect:
    """Return the dialect of that name."""
    if name not in _DIALECTS:
        raise LocalError(f"there is no dialect {name!r}; use one of {', '.join(DIALECTS)}")
    return _DIALECTS[name]


def codec_of(dialect: str) -> Codec:
    """Return the codec of a dialect.

    Raises:
        LocalError: It is none of `DIALECTS`.

    """
    return _dialect(dialect).codec


def read_frames(data: bytes, dialect: str = "rsocket-1.0", prefix: int = 0) -> Iterator[tuple[int | None, Frame]]:
    """Yield every frame in `data` with the length that stands before it.

    Args:
        data: Frames.
        dialect: One of `DIALECTS`.
        prefix: Bytes of the length before each: 3 or 4, as :class:`Deframer` has it. 0: there is none, so
            that `data` is one frame, and its length None.

    Raises:
        FrameError: Some bytes are no frame; its `offset` counts from the beginning of `data`.
        LocalError: There is no such dialect or prefix.

    """
    codec = codec_of(dialect)
    if prefix == 0:
        yield None, codec.decode(data, 0, len(data))
        return
    deframer = Deframer(prefix, MAX_FRAME_BYTES, codec.header_bytes)
    deframer.feed(data)
    at = 0
    try:
        # Fed as one piece, `data` is the deframer's buffer from first to last, and its indices are offsets.
        while deframer.next():
            at = deframer.start
            frame = codec.decode(deframer.buffer, at, deframer.end)
            yield deframer.end - at + (4 if prefix == 4 else 0), frame
            at = deframer.end
    except FrameError as error:
        raise FrameError(error.message, at + error.offset, ignorable=error.ignorable) from None
    if deframer.pending:
        at = len(data) - deframer.pending
        raise FrameError(f"the last frame is cut: {deframer.pending} bytes of it are there", at)


def to_object(frame: Frame, dialect: str = "rsocket-1.0") -> dict[str, object]:
    """Return `frame` as an object that JSON can hold.

    Raises:
        LocalError: There is no such dialect.

    """
    shown = _dialect(dialect)
    layout = shown.layout(frame.type)
    result: dict[str, object] = {
        "type": shown.name_of(frame.type),
        "stream_id": frame.stream_id,
        "flags": [name for name in _flags(layout) if frame.flags & FLAG_NAMES[name]],
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
    """Return the names of the flags that mean something on a type."""
    return [name for name in FLAG_NAMES if name == "ignore" or name in layout.flags]


def _is_text(field: Field) -> bool:
    """Return whether the bytes of a field are a string: RSocket 1.0, SETUP, MIME types."""
    return field.name.endswith("_mime")


def _shown(field: Field, value: bytes) -> str:
    """Return the bytes of a field as text or hex; bytes that are no UTF-8 come back as they were."""
    return value.decode(errors="surrogateescape") if _is_text(field) else value.hex()


def from_object(value: Mapping[str, object], dialect: str = "rsocket-1.0") -> Frame:
    """Return the frame that an object such as `to_object` makes stands for.

    `flags` may be left out, and so may `stream_id`, `metadata`, `data`, and what a flag makes optional.
    A `length` is ignored: it follows from the rest.

    Raises:
        LocalError: Something is missing, unknown, of the wrong type or out of range; or there is no such dialect.

    """
    if not isinstance(value, Mapping):
        raise LocalError(f"a frame is written as an object, not as {type(value).__name__}")
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
    """Return the number of a frame type that is given by name, or in hex."""
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


def _integer(value: object, bits: int, what: str) -> int:
    """Return `value`, which must be an integer of so many bits."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise LocalError(f"{what} is {value!r}; it must be an integer")
    return check(value, bits, what)


def _bytes(value: object, what: str) -> bytes:
    """Return the bytes that `value` gives in hex."""
    try:
        return bytes.fromhex(value)  # type: ignore[arg-type]  # what is no string raises TypeError
    except (TypeError, ValueError):
        raise LocalError(f"{what} is {value!r}; it must be a string of hex digits, two for each byte") from None


def _field(field: Field, value: Mapping[str, object], name: str) -> int | bytes | None:
    """Return one field of a frame type from an object."""
    what = f"{field.name} of {name}"
    given = value.get(field.name)
    if given is None:
        if field.flag:
            return None
        raise LocalError(f"{what} is missing")
    if not field.counted:
        return _integer(given, field.bits, what)
    if not _is_text(field):
        return _bytes(given, what)
    if not isinstance(given, str):
        raise LocalError(f"{what} is {given!r}; it must be a string")
    try:
        return given.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise LocalError(f"{what} is {given!r}; it must be a text that UTF-8 can hold") from None


def _flag_bits(names: object, layout: Layout, frame: Frame, name: str) -> int:
    """Return the bits of the flags that are named; when none are, of those that follow from the fields."""
    if names is None:
        flags = METADATA if frame.metadata is not None else 0
        for field in layout.fields:
            flags |= field.flag if getattr(frame, field.name) is not None else 0
        return flags
    if not isinstance(names, list | tuple):
        raise LocalError(f"flags of {name} is {names!r}; it must be an array of names")
    flags = 0
    for flag in names:
        if flag not in _flags(layout):
            raise LocalError(f"{name} has no flag {flag!r}; its flags are {', '.join(_flags(layout))}")
        flags |= FLAG_NAMES[flag]
    return flags


def line(frame: Frame, dialect: str = "rsocket-1.0", show: Callable[[str, bytes], str | None] | None = None) -> str:
    """Return `frame` as one line for people; nothing in it can move a terminal's cursor.

    Args:
        frame: The frame.
        dialect: One of `DIALECTS`.
        show: Called with the name and the value of each field of bytes; returns what to show instead of
            the bytes, or None.

    Raises:
        LocalError: There is no such dialect.

    """
    shown = _dialect(dialect)
    layout = shown.layout(frame.type)
    words = [shown.name_of(frame.type), f"stream={frame.stream_id}"]
    flags = frame.flags & ~shown.implied
    for name in _flags(layout):
        if flags & FLAG_NAMES[name]:
            words.append(name)
            flags &= ~FLAG_NAMES[name]
    if flags:
        words.append(f"flags=0x{flags:03x}")
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
