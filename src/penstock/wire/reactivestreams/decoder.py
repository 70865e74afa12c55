"""Reads the messages of reactive-streams-io version 0, which nothing delimits but what stands in them.

The decoder has state: in streams whose elements have a fixed size, `onNext` carries no length. It keeps the size of
each id until the next `subscribed` of that id, because elements may come long after the subscriber has canceled.

Elements of a packed run are handed on as they come, and stay where they lie: a run is neither waited for nor copied.
"""

from __future__ import annotations

from array import array
from typing import Final

from ...errors import FrameError, LimitExceeded
from ...payload import PayloadRun, fixed_run
from .codec import EXTENDED, LAYOUTS, MAX_VARINT_BYTES, NAMES, Field, Items, Layout, Message, Type

__all__ = ["Decoder"]

MIB: Final = 1 << 20

# Plain integers are compared faster than members of an enumeration.
_GOODBYE: Final = int(Type.GOODBYE)
_ON_NEXT: Final = int(Type.ON_NEXT)
_PACKED: Final = int(Type.ON_NEXT_PACKED)
_SUBSCRIBED: Final = int(Type.SUBSCRIBED)
_SUBSCRIBER: Final = int(Field.SUBSCRIBER)
_NUMBER: Final = int(Field.NUMBER)
_TEXT: Final = int(Field.TEXT)
_ELEMENT: Final = int(Field.ELEMENT)
_IDS: Final = int(Field.IDS)

_MOST_BITS: Final = 7 * MAX_VARINT_BYTES
RUN_ELEMENTS: Final = 1024
"""Elements of onNext after onNext that are handed on together at most; the rest follows as another run."""


class Decoder:
    """Feed it what the network brought, then call `next` until it returns None.

    Args:
        max_string_bytes: The longest string that is accepted.
        max_element_bytes: The longest element, part of one, or packed run.
        max_metadata_bytes: The longest metadata, where that extension is agreed on.
        max_extensions: The most extensions that a hello may list.
        first: The type that must come first, unless it is a goodbye; 0: any.
        runs: Return consecutive elements of one stream as :class:`Items`; else message by message.

    Attributes:
        extensions: Layouts of the extensions' messages that are agreed on.
        element_sizes: The size of all elements by subscription, where it is fixed.

    """

    __slots__ = (
        "_ahead", "_ahead_at", "_base", "_left", "_need", "_owner", "_pos", "_runs", "_tail", "_width", "buffer",
        "element_sizes", "extensions", "first", "max_element_bytes", "max_extensions", "max_metadata_bytes",
        "max_string_bytes", "size", "start",
    )  # fmt: skip

    def __init__(
        self,
        max_string_bytes: int = 65_536,
        max_element_bytes: int = 16 * MIB,
        max_metadata_bytes: int = MIB,
        max_extensions: int = 1024,
        first: int = 0,
        runs: bool = True,
    ) -> None:
        self.max_string_bytes = max_string_bytes
        self.max_element_bytes = max_element_bytes
        self.max_metadata_bytes = max_metadata_bytes
        self.max_extensions = max_extensions
        self.first = first
        self.extensions: dict[int, Layout] = {}
        self.element_sizes: dict[int, int] = {}
        self._runs = runs
        # The bytes at hand, of which those before `start` are done with; `_pos` is where a message is read.
        self.buffer = b""
        self.size = self.start = self._pos = 0
        # The beginning of a message, how many bytes it has at least, and how many bytes came before it and `buffer`.
        self._tail = bytearray()
        self._need = self._base = 0
        # What was fed and is not at hand yet, from `_ahead_at` on: the tail takes of it what its message lacks.
        self._ahead, self._ahead_at = b"", 0
        # A packed run of which elements are still to come: how many, of which subscription, and how long each is.
        self._left = self._owner = self._width = 0

    @property
    def pending(self) -> int:
        """How many bytes are held of a message that is not whole."""
        return len(self._tail) + self.size - self.start + len(self._ahead) - self._ahead_at

    @property
    def position(self) -> int:
        """At which byte of all that was fed the next message, or piece of a packed run, begins."""
        return self._base + self.start

    def feed(self, data: bytes) -> None:
        """Take what the network brought. Call `next` afterwards."""
        if self.start < self.size or self._ahead:
            # Somebody feeds faster than they read.
            self._keep()
            self._need = 0
            data = self._ahead[self._ahead_at :] + data
        self._ahead = data
        self._ahead_at = 0

    def next(self) -> Message | Items | None:
        """Return the next message, or elements that came together; None when more bytes are needed.

        Raises:
            FrameError: These bytes are no message. There is no way to go on from here.
            LimitExceeded: A message is larger than it may be. Neither is there one here.

        """
        while self.start < self.size or self._refill():
            self._pos = self.start
            message = self._message() if self._left == 0 else self._elements_left()
            if message is not None:
                self.start = self._pos
                return message
            self._keep()
        return None

    def _refill(self) -> bool:
        """Have the next bytes at hand: what begins a message with what it lacks, or all that was fed."""
        self._drop()
        data = self._ahead
        at = self._ahead_at
        there = len(data) - at
        if there == 0:
            return False
        if self._tail:
            # A long message is joined once, however it was cut: nothing is looked at before it can be whole.
            lacking = max(self._need - len(self._tail), 1)
            end = at + min(lacking, there)
            self._tail += data[at:end]
            self._ahead_at = end
            if end == len(data):
                self._ahead, self._ahead_at = b"", 0
            if lacking > there:
                return False
            self.buffer = bytes(self._tail)
            self._tail = bytearray()
        else:
            self.buffer = data
            self.start = at
            # What came before it in `data` was counted when it was read.
            self._base -= at
            self._ahead, self._ahead_at = b"", 0
        self.size = len(self.buffer)
        return True

    def _keep(self) -> None:
        """Put aside what begins a message."""
        self._need -= self.start
        self._tail += self.buffer[self.start :]
        self._drop()

    def _drop(self) -> None:
        self._base += self.start
        self.buffer = b""
        self.size = self.start = 0

    def _error(self, what: str) -> FrameError:
        return FrameError(what, self._base + self._pos)

    # Fields. Each moves `_pos` on, or returns what says that bytes are missing, and leaves in `_need` where they end.

    def _varint(self, what: str) -> int:
        """Return the next varint; -1: it is not whole."""
        p = self.buffer
        at = self._pos
        end = self.size
        if at < end and p[at] < 0x80:
            self._pos = at + 1
            return p[at]
        value = 0
        shift = 0
        while at < end:
            byte = p[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if byte == 0:
                    raise self._error(f"{what} is not in its shortest form")
                self._pos = at
                return value
            shift += 7
            if shift == _MOST_BITS:
                raise self._error(f"{what} is longer than {MAX_VARINT_BYTES} bytes")
        self._need = end + 1
        return -1

    def _length(self, limit: int, what: str) -> int:
        """Return the next varint, which says how many bytes follow; -1: it is not whole."""
        length = self._varint(what)
        if length > limit:
            raise LimitExceeded(f"{what} has {length} bytes, and at most {limit} are accepted")
        return length

    def _take(self, length: int) -> bytes | None:
        """Return the next `length` bytes; None: they are not all there."""
        end = self._pos + length
        if end > self.size:
            self._need = end
            return None
        data = self.buffer[self._pos : end]
        self._pos = end
        return data

    def _ids(self, what: str) -> tuple[int, ...] | None:
        """Return the next ids; None: they are not all there."""
        count = self._varint(f"the number of {what}")
        if count > self.max_extensions:
            raise LimitExceeded(f"there are {count} {what}, and at most {self.max_extensions} are accepted")
        if count < 0:
            return None
        ids: list[int] = []
        for left in range(count, 0, -1):
            each = self._varint(what)
            if each < 0:
                self._need = self.size + left
                return None
            ids.append(each)
        return tuple(ids)

    # Messages.

    def _message(self) -> Message | Items | None:
        """Read one message; None: it is not whole."""
        type = self._varint("the message type")
        if type < 0:
            return None
        if self.first and type not in (self.first, _GOODBYE):
            raise self._error(f"{NAMES.get(type, f'message type {type}')} came before {NAMES[self.first]}")
        if type == _ON_NEXT and self._runs:
            return self._elements()
        if type == _PACKED:
            return self._packed()
        layout = LAYOUTS.get(type) or self.extensions.get(type)
        if layout is None:
            # Its length is nowhere: it cannot be skipped.
            known = "nobody agreed on its extension" if type in EXTENDED else "it is unknown"
            raise self._error(f"message type {type} cannot be read: {known}")
        message = Message(type)
        for name, kind in layout:
            if not self._field(message, name, kind):
                return None
        if type == _SUBSCRIBED:
            self._fix(message)
        self.first = 0
        return message

    def _field(self, message: Message, name: str, kind: int) -> bool:
        """Read one field; False: it is not whole."""
        if kind <= _NUMBER:
            value = self._varint(name)
            if kind == _SUBSCRIBER:
                message.subscriber = value
            else:
                message.number = value
            return value >= 0
        if kind == _IDS:
            ids = self._ids(name)
            message.ids = ids or ()
            return ids is not None
        length = self.element_sizes.get(message.subscriber, 0) if kind == _ELEMENT else 0
        if length == 0:
            length = self._length(self._limit(message.type, kind), f"{name} of {NAMES[message.type]}")
        data = None if length < 0 else self._take(length)
        if data is None:
            return False
        if kind == _TEXT:
            try:
                data.decode()
            except UnicodeDecodeError as error:
                raise self._error(f"{name} of {NAMES[message.type]} is no UTF-8: {error.reason}") from None
        message.data = data
        return True

    def _limit(self, type: int, kind: int) -> int:
        if kind == _TEXT:
            return self.max_string_bytes
        return self.max_metadata_bytes if type in EXTENDED else self.max_element_bytes

    def _fix(self, message: Message) -> None:
        """Learn the element size of a stream."""
        size, limit = message.number, self.max_element_bytes
        if size > limit:
            raise LimitExceeded(f"subscribed says that elements have {size} bytes, and at most {limit} are accepted")
        if size:
            self.element_sizes[message.subscriber] = size
        else:
            self.element_sizes.pop(message.subscriber, None)

    def _elements(self) -> Message | Items | None:
        """Read onNext, and those of the same stream that follow it at once."""
        buffer = self.buffer
        subscriber = self._varint("subscriber")
        if subscriber < 0:
            return None
        head = buffer[self.start : self._pos]
        head_bytes = len(head)
        fixed = self.element_sizes.get(subscriber, 0)
        offsets = None
        most = at = carried = taken = 0
        middle = end = self._pos
        while True:
            length = fixed or self._length(self.max_element_bytes, "element of onNext")
            if length < 0:
                break
            if self._pos + length > self.size:
                self._need = self._pos + length
                break
            if taken:
                if offsets is None:
                    # There are two at least: as many as the bytes at hand may hold.
                    most = 3 * min((self.size - end) // (head_bytes + max(fixed, 1)) + 2, RUN_ELEMENTS)
                    offsets = array("i", bytes(4 * most))
                    view = memoryview(offsets)
                    view[0], view[1], view[2] = -1, middle, end
                    at = 3
                view[at], view[at + 1], view[at + 2] = -1, self._pos, self._pos + length
                at += 3
            middle = self._pos
            end = taken = middle + length
            carried += length
            # Varints have no other form: the same bytes, and only they, are the same type and id.
            if (at and at == most) or not buffer.startswith(head, end):
                break
            self._pos = end + head_bytes
        if not taken:
            return None
        self._pos = taken
        if offsets is None:
            return Message(_ON_NEXT, subscriber, 0, buffer[middle:end])
        return Items(subscriber, _run(buffer, offsets[:at], carried), 0)

    def _packed(self) -> Message | Items | None:
        """Read onNextPacked."""
        subscriber = self._varint("subscriber")
        count = -1 if subscriber < 0 else self._varint("count")
        if count < 0:
            return None
        size = self.element_sizes.get(subscriber, 0)
        if size == 0 or count == 0:
            wrong = "its elements have no fixed size" if size == 0 else "it holds no elements"
            raise self._error(f"onNextPacked for subscriber {subscriber} makes no sense: {wrong}")
        limit = self.max_element_bytes
        # THREATS 69: the product of the two may be more than an integer of the machine's holds.
        if count > limit // size:
            raise LimitExceeded(f"onNextPacked has {count} times {size} bytes, and at most {limit} are accepted")
        if self._runs:
            self._left, self._owner, self._width = count, subscriber, size
            items = self._elements_left()
            if items is None:
                # Not even one element is there: the head is read again when it is.
                self._left = 0
            else:
                items.announced = count
            return items
        data = self._take(count * size)
        return None if data is None else Message(_PACKED, subscriber, count, data)

    def _elements_left(self) -> Items | None:
        """Read as many elements of a packed run as are there; None: not even one is whole."""
        width = self._width
        at = self._pos
        count = min((self.size - at) // width, self._left)
        if count == 0:
            self._need = at + width
            return None
        self._left -= count
        self._pos = at + count * width
        return Items(self._owner, fixed_run(self.buffer, width, at, count * width), 0)


def _run(buffer: bytes, offsets: array[int], size: int) -> PayloadRun:
    """Return elements that lie in `buffer` for certain."""
    run = PayloadRun(buffer, offsets, size)
    run.sound = True
    return run
