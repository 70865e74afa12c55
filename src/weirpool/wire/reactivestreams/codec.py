"""The messages of reactive-streams-io version 0, and their encoding; `decoder` reads them.

docs/reference/rs-0.md is the profile, which defines what the specification leaves open, such as varints: unsigned
LEB128 with the low seven bits first, and the top bit set in each byte but the last; 0 to 2^63-1, shortest form only.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

from ...errors import LocalError
from ...payload import PayloadRun

__all__ = [
    "EXTENDED",
    "LAYOUTS",
    "MAX_VARINT",
    "MAX_VARINT_BYTES",
    "NAMES",
    "Field",
    "Items",
    "Layout",
    "Message",
    "Type",
    "encode",
    "next_head",
    "next_run",
    "packed_head",
    "packed_run",
    "part_head",
    "varint",
]

MAX_VARINT: Final = 0x7FFF_FFFF_FFFF_FFFF
"""The largest varint, which fits into a signed 64-bit integer."""
MAX_VARINT_BYTES: Final = 9
"""Nine times seven bits are 63 bits."""
_SHORT: Final = [bytes((value,)) for value in range(0x80)]


class Type(IntEnum):
    """The codes of the messages; those from 64 on belong to extensions."""

    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    SUBSCRIBE = 3
    REQUEST = 4
    CANCEL = 5
    SUBSCRIBED = 6
    ON_NEXT = 7
    ON_COMPLETE = 8
    ON_ERROR = 9
    ON_NEXT_PACKED = 10
    ON_NEXT_PART = 11
    ON_NEXT_LAST_PART = 12
    GOODBYE = 13
    SUBSCRIBE_METADATA = 64
    """Extension `metadata`: the metadata of the next `subscribe` with that id."""
    ON_NEXT_METADATA = 65
    """Extension `metadata`: the metadata of the next element of that stream."""


class Field(IntEnum):
    """The types of fields, and the attributes of a message that contain them."""

    SUBSCRIBER = 0
    """A varint, in `subscriber`."""
    NUMBER = 1
    """A varint, in `number`."""
    TEXT = 2
    """A varint length and UTF-8, in `data`."""
    BYTES = 3
    """A varint length and bytes, in `data`."""
    ELEMENT = 4
    """As BYTES, but without the length if the stream has a fixed element size."""
    PACKED = 5
    """The bytes of `number` elements of the stream's fixed size, in `data`."""
    IDS = 6
    """A varint count and varints, in `ids`."""


Layout: TypeAlias = tuple[tuple[str, Field], ...]
"""The fields of a message in order, with the names of the specification."""

LAYOUTS: Final[dict[int, Layout]] = {
    Type.CLIENT_HELLO: (("version", Field.NUMBER), ("extensions", Field.IDS)),
    Type.SERVER_HELLO: (("version", Field.NUMBER), ("extensions", Field.IDS)),
    Type.SUBSCRIBE: (("publisher", Field.TEXT), ("subscriber", Field.SUBSCRIBER), ("demand", Field.NUMBER)),
    Type.REQUEST: (("subscriber", Field.SUBSCRIBER), ("demand", Field.NUMBER)),
    Type.CANCEL: (("subscriber", Field.SUBSCRIBER),),
    Type.SUBSCRIBED: (("subscriber", Field.SUBSCRIBER), ("elementSize", Field.NUMBER)),
    Type.ON_NEXT: (("subscriber", Field.SUBSCRIBER), ("element", Field.ELEMENT)),
    Type.ON_COMPLETE: (("subscriber", Field.SUBSCRIBER),),
    Type.ON_ERROR: (("subscriber", Field.SUBSCRIBER), ("error", Field.TEXT)),
    Type.ON_NEXT_PACKED: (("subscriber", Field.SUBSCRIBER), ("count", Field.NUMBER), ("messages", Field.PACKED)),
    Type.ON_NEXT_PART: (("subscriber", Field.SUBSCRIBER), ("element", Field.NUMBER), ("data", Field.BYTES)),
    Type.ON_NEXT_LAST_PART: (("subscriber", Field.SUBSCRIBER), ("element", Field.NUMBER), ("data", Field.BYTES)),
    Type.GOODBYE: (("reason", Field.TEXT),),
}
"""The messages of the specification."""

EXTENDED: Final[dict[int, Layout]] = {
    Type.SUBSCRIBE_METADATA: (("subscriber", Field.SUBSCRIBER), ("metadata", Field.BYTES)),
    Type.ON_NEXT_METADATA: (("subscriber", Field.SUBSCRIBER), ("metadata", Field.BYTES)),
}
"""The messages of the supported extensions. Unknown messages cannot be skipped, because they have no length."""

NAMES: Final[dict[int, str]] = {
    type: type.name.split("_")[0].lower() + "".join(word.title() for word in type.name.split("_")[1:]) for type in Type
}
"""The names of the messages in the specification."""


class Message:
    """One message.

    Attributes:
        type: A :class:`Type` as a number.
        subscriber: The id of the subscription.
        number: The version, demand, element size, element id or count; see `LAYOUTS`.
        data: The publisher, element, data, error, reason or metadata.
        ids: The extensions.

    """

    __slots__ = ("data", "ids", "number", "subscriber", "type")

    def __init__(
        self, type: int, subscriber: int = 0, number: int = 0, data: bytes = b"", ids: tuple[int, ...] = ()
    ) -> None:
        self.type = type
        self.subscriber = subscriber
        self.number = number
        self.data = data
        self.ids = ids

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())

    def _fields(self) -> tuple[object, ...]:
        return self.type, self.subscriber, self.number, self.data, self.ids

    def __repr__(self) -> str:
        return f"<{NAMES.get(self.type, self.type)} {self.subscriber} {self.number} {self.data[:40]!r} {self.ids}>"


class Items:
    """Consecutive elements of one stream: available elements of one onNextPacked, or those of several onNext messages.

    Attributes:
        subscriber: The id of the subscription.
        run: The elements.
        announced: The number of elements of the onNextPacked that begins here; 0 if none does.

    """

    __slots__ = ("announced", "run", "subscriber")

    def __init__(self, subscriber: int, run: PayloadRun, announced: int) -> None:
        self.subscriber = subscriber
        self.run = run
        self.announced = announced


def varint(value: int, name: str = "a varint") -> bytes:
    """Return `value` in its shortest form.

    Raises:
        LocalError: It is negative or too large. The message calls it `name`.

    """
    if 0 <= value < 0x80:
        return _SHORT[value]
    if not 0 <= value <= MAX_VARINT:
        raise LocalError(f"{name} is {value}; it must be between 0 and {MAX_VARINT}")
    parts: list[int] = []
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def encode(message: Message, element_size: int = 0) -> bytes:
    """Return `message` as bytes.

    Args:
        message: The message.
        element_size: The fixed element size of its stream, from `subscribed`; 0 if elements have a length.

    Raises:
        LocalError: Its type is unknown, a number is out of range, or its elements have another size.

    """
    layout = LAYOUTS.get(message.type) or EXTENDED.get(message.type)
    if layout is None:
        raise LocalError(f"unknown message type {message.type}; use one of {', '.join(NAMES.values())}")
    parts = [varint(message.type)]
    for name, kind in layout:
        what = f"{name} of {NAMES[message.type]}"
        if kind == Field.SUBSCRIBER:
            parts.append(varint(message.subscriber, what))
        elif kind == Field.NUMBER:
            parts.append(varint(message.number, what))
        elif kind == Field.IDS:
            parts.append(varint(len(message.ids)))
            parts += [varint(each, what) for each in message.ids]
        else:
            count = message.number if kind == Field.PACKED else 1
            fixed = element_size > 0 and kind in (Field.ELEMENT, Field.PACKED)
            if kind == Field.PACKED and not fixed:
                raise LocalError("onNextPacked requires a stream with a fixed element size; use onNext")
            if fixed and len(message.data) != count * element_size:
                raise LocalError(f"{what} has {len(message.data)} bytes; it must have {count} * {element_size}")
            if not fixed:
                parts.append(varint(len(message.data)))
            parts.append(message.data)
    return b"".join(parts)


_ON_NEXT: Final = bytes((Type.ON_NEXT,))
_ON_NEXT_PACKED: Final = bytes((Type.ON_NEXT_PACKED,))
_ON_NEXT_PART: Final = bytes((Type.ON_NEXT_PART,))
_ON_NEXT_LAST_PART: Final = bytes((Type.ON_NEXT_LAST_PART,))


def next_head(subscriber: int, length: int) -> bytes:
    """Return an onNext without its element; `length` is -1 if the stream has a fixed element size."""
    head = _ON_NEXT + varint(subscriber)
    return head if length < 0 else head + varint(length)


def packed_head(subscriber: int, count: int) -> bytes:
    """Return an onNextPacked without its elements, of which there are `count`."""
    return _ON_NEXT_PACKED + varint(subscriber) + varint(count)


def part_head(subscriber: int, element: int, length: int, last: bool) -> bytes:
    """Return an onNextPart or onNextLastPart without its data, which has `length` bytes."""
    type = _ON_NEXT_LAST_PART if last else _ON_NEXT_PART
    return type + varint(subscriber) + varint(element) + varint(length)


def next_run(subscriber: int, run: PayloadRun, start: int, stop: int) -> bytes:
    """Return items `start` to `stop` of `run`, which must have no metadata, as onNext messages."""
    head = _ON_NEXT + varint(subscriber)
    p = run.buffer
    view = run.offsets
    parts: list[bytes] = []
    for at in range(3 * start, 3 * stop, 3):
        middle = view[at + 1]
        end = view[at + 2]
        parts.append(head)
        parts.append(varint(end - middle))
        parts.append(p[middle:end])
    return b"".join(parts)


def packed_run(subscriber: int, run: PayloadRun, start: int, stop: int) -> bytes:
    """Return items `start` to `stop` of `run`, which must have the stream's size and no metadata, as onNextPacked."""
    p = run.buffer
    head = packed_head(subscriber, stop - start)
    width = run.width
    if width:
        # The items are contiguous, so no offsets are needed.
        first = run.first + start * width
        return b"".join((head, memoryview(p)[first : first + (stop - start) * width]))
    view = run.offsets
    parts = [head]
    parts += [p[view[at + 1] : view[at + 2]] for at in range(3 * start, 3 * stop, 3)]
    return b"".join(parts)
