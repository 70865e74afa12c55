"""Reads the messages of reactive-streams-io version 0, which have no length prefix.

The decoder has state: `onNext` has no length in streams with a fixed element size. The decoder keeps the size for
each id until the next `subscribed` with that id, because elements may arrive long after the subscriber has canceled.

Elements of a packed run are returned as they arrive, without waiting for the complete run and without copying.
"""

from __future__ import annotations

from array import array
from typing import Final

from ...errors import FrameError, LimitExceeded
from ...payload import PayloadRun, fixed_run
from .codec import EXTENDED, LAYOUTS, MAX_VARINT_BYTES, NAMES, Field, Items, Layout, Message, Type

__all__ = ["Decoder"]

MIB: Final = 1 << 20

# Plain integers, because comparing enum members is slower.
_GOODBYE: Final = int(Type.GOODBYE)
_ON_NEXT: Final = int(Type.ON_NEXT)
_PACKED: Final = int(Type.ON_NEXT_PACKED)
_SUBSCRIBED: Final = int(Type.SUBSCRIBED)
_SUBSCRIBER: Final = int(Field.SUBSCRIBER)
_NUMBER: Final = int(Field.NUMBER)
_TEXT: Final = int(Field.TEXT)
_ELEMENT: Final = int(Field.ELEMENT)
_IDS: Final = int(Field.IDS)

_MAX_BITS: Final = 7 * MAX_VARINT_BYTES
RUN_ELEMENTS: Final = 1024
"""Maximum number of onNext messages that become one run; more become several runs."""


class Decoder:
    """Decodes a byte stream into messages. Call `feed` with received bytes, then `next` until it returns None.

    Args:
        max_string_bytes: The maximum size of a string.
        max_element_bytes: The maximum size of an element, a part of one, or a packed run.
        max_metadata_bytes: The maximum size of metadata, if that extension is enabled.
        max_extensions: The maximum number of extensions in a hello.
        first: The required type of the first message, which may also be a goodbye; 0 for any.
        runs: Whether to return consecutive elements of one stream as :class:`Items` instead of single messages.

    Attributes:
        extensions: The layouts of the enabled extensions' messages.
        element_sizes: The fixed element sizes by subscription.
        incomplete: The bytes of an incomplete message, after `next` has returned None.

    """

    __slots__ = (
        "_ahead", "_ahead_at", "_base", "_left", "_need", "_owner", "_pos", "_runs", "_tail", "_width", "buffer",
        "element_sizes", "extensions", "first", "incomplete", "max_element_bytes", "max_extensions",
        "max_metadata_bytes", "max_string_bytes", "size", "start",
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
        # The current bytes. Those before `start` have been decoded; `_pos` is the position in the current message.
        self.buffer = b""
        self.size = self.start = self._pos = 0
        # The beginning of an incomplete message, its minimum size, and the number of bytes before it and `buffer`.
        self._tail = bytearray()
        self._need = self._base = self.incomplete = 0
        # Bytes that were fed and are not in `buffer` yet, from `_ahead_at` on. The tail takes the bytes that it lacks.
        self._ahead, self._ahead_at = b"", 0
        # An unfinished packed run: the number of remaining elements, their subscription and size.
        self._left = self._owner = self._width = 0

    @property
    def pending(self) -> int:
        """The number of bytes of an incomplete message."""
        return len(self._tail) + self.size - self.start + len(self._ahead) - self._ahead_at

    @property
    def position(self) -> int:
        """The offset of the next message, or piece of a packed run, in all bytes that were fed."""
        return self._base + self.start

    def feed(self, data: bytes) -> None:
        """Add received bytes. Call `next` afterwards."""
        if self.start < self.size or self._ahead:
            # The caller has not read all messages.
            self._save_tail()
            self._need = 0
            data = self._ahead[self._ahead_at :] + data
        self._ahead = data
        self._ahead_at = 0

    def next(self) -> Message | Items | None:
        """Return the next message, or elements that arrived together; None if more bytes are needed.

        Raises:
            FrameError: A message is malformed. The decoder cannot continue after that.
            LimitExceeded: A message is too large. The decoder cannot continue after that.

        """
        while self.start < self.size or self._refill():
            self._pos = self.start
            message = self._message() if self._left == 0 else self._packed_elements()
            if message is not None:
                self.start = self._pos
                return message
            self._save_tail()
        self.incomplete = len(self._tail)
        return None

    def _refill(self) -> bool:
        """Fill the buffer with the tail and the bytes that it lacks, or with all bytes that were fed."""
        self._drop()
        data = self._ahead
        at = self._ahead_at
        available = len(data) - at
        if available == 0:
            return False
        if self._tail:
            # A long message is joined once, in however many pieces it arrives: the tail is not read before.
            lacking = max(self._need - len(self._tail), 1)
            end = at + min(lacking, available)
            self._tail += data[at:end]
            self._ahead_at = end
            if end == len(data):
                self._ahead, self._ahead_at = b"", 0
            if lacking > available:
                return False
            self.buffer = bytes(self._tail)
            self._tail = bytearray()
        else:
            self.buffer = data
            self.start = at
            # Bytes before it in `data` have been counted already.
            self._base -= at
            self._ahead, self._ahead_at = b"", 0
        self.size = len(self.buffer)
        return True

    def _save_tail(self) -> None:
        """Move an incomplete message to the tail."""
        self._need -= self.start
        self._tail += self.buffer[self.start :]
        self._drop()

    def _drop(self) -> None:
        self._base += self.start
        self.buffer = b""
        self.size = self.start = 0

    def _error(self, what: str) -> FrameError:
        return FrameError(what, self._base + self._pos)

    # Fields. Each advances `_pos`; if bytes are missing, it sets `_need` to their end and returns a special value.

    def _varint(self, what: str) -> int:
        """Return the next varint; -1 if it is incomplete."""
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
            if shift == _MAX_BITS:
                raise self._error(f"{what} is longer than {MAX_VARINT_BYTES} bytes")
        self._need = end + 1
        return -1

    def _length(self, limit: int, what: str) -> int:
        """Return the next varint, which is the size of a field; -1 if it is incomplete."""
        length = self._varint(what)
        if length > limit:
            raise LimitExceeded(f"{what} has {length} bytes; the maximum is {limit}")
        return length

    def _take(self, length: int) -> bytes | None:
        """Return the next `length` bytes; None if they are incomplete."""
        end = self._pos + length
        if end > self.size:
            self._need = end
            return None
        data = self.buffer[self._pos : end]
        self._pos = end
        return data

    def _ids(self, what: str) -> tuple[int, ...] | None:
        """Return the next ids; None if they are incomplete."""
        count = self._varint(f"the number of {what}")
        if count > self.max_extensions:
            raise LimitExceeded(f"there are {count} {what}; the maximum is {self.max_extensions}")
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
        """Read one message; None if it is incomplete."""
        type = self._varint("the message type")
        if type < 0:
            return None
        if self.first and type not in (self.first, _GOODBYE):
            raise self._error(f"{NAMES.get(type, f'message type {type}')} arrived before {NAMES[self.first]}")
        if type == _ON_NEXT and self._runs:
            return self._elements()
        if type == _PACKED:
            return self._packed()
        layout = LAYOUTS.get(type) or self.extensions.get(type)
        if layout is None:
            # It cannot be skipped, because messages have no length.
            reason = "its extension is not enabled" if type in EXTENDED else "the type is unknown"
            raise self._error(f"message type {type} cannot be read: {reason}")
        message = Message(type)
        for name, kind in layout:
            if not self._field(message, name, kind):
                return None
        if type == _SUBSCRIBED:
            self._set_element_size(message)
        self.first = 0
        return message

    def _field(self, message: Message, name: str, kind: int) -> bool:
        """Read one field; False if it is incomplete."""
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
                raise self._error(f"{name} of {NAMES[message.type]} is not valid UTF-8: {error.reason}") from None
        message.data = data
        return True

    def _limit(self, type: int, kind: int) -> int:
        if kind == _TEXT:
            return self.max_string_bytes
        return self.max_metadata_bytes if type in EXTENDED else self.max_element_bytes

    def _set_element_size(self, message: Message) -> None:
        """Store the element size of a stream."""
        size, limit = message.number, self.max_element_bytes
        if size > limit:
            raise LimitExceeded(f"elementSize of subscribed is {size} bytes; the maximum is {limit}")
        if size:
            self.element_sizes[message.subscriber] = size
        else:
            self.element_sizes.pop(message.subscriber, None)

    def _elements(self) -> Message | Items | None:
        """Read onNext, and the onNext messages of the same stream that follow directly."""
        buffer = self.buffer
        subscriber = self._varint("subscriber")
        if subscriber < 0:
            return None
        head = buffer[self.start : self._pos]
        head_bytes = len(head)
        fixed = self.element_sizes.get(subscriber, 0)
        offsets = None
        limit = at = carried = taken = 0
        middle = end = self._pos
        while True:
            length = fixed or self._element_length(taken == 0)
            if length < 0:
                break
            if self._pos + length > self.size:
                self._need = self._pos + length
                break
            if taken:
                if offsets is None:
                    # There are at least two. Allocate for as many as the buffer may contain.
                    limit = 3 * min((self.size - end) // (head_bytes + max(fixed, 1)) + 2, RUN_ELEMENTS)
                    offsets = array("i", bytes(4 * limit))
                    view = memoryview(offsets)
                    view[0], view[1], view[2] = -1, middle, end
                    at = 3
                view[at], view[at + 1], view[at + 2] = -1, self._pos, self._pos + length
                at += 3
            middle = self._pos
            end = taken = middle + length
            carried += length
            # Varints have only one form, so the same type and id always have the same bytes.
            if (at and at == limit) or not buffer.startswith(head, end):
                break
            self._pos = end + head_bytes
        if not taken:
            return None
        self._pos = taken
        if offsets is None:
            return Message(_ON_NEXT, subscriber, 0, buffer[middle:end])
        return Items(subscriber, _run(buffer, offsets[:at], carried), 0)

    def _element_length(self, first: bool) -> int:
        """Return the size of the next element; -1 if it is incomplete, or if it is invalid and not the first one.

        The elements before an invalid one are delivered, however the bytes are split.
        """
        try:
            return self._length(self.max_element_bytes, "element of onNext")
        except (FrameError, LimitExceeded):
            if first:
                raise
            return -1

    def _packed(self) -> Message | Items | None:
        """Read onNextPacked."""
        subscriber = self._varint("subscriber")
        count = -1 if subscriber < 0 else self._varint("count")
        if count < 0:
            return None
        size = self.element_sizes.get(subscriber, 0)
        if size == 0 or count == 0:
            wrong = "its elements have no fixed size" if size == 0 else "it has no elements"
            raise self._error(f"onNextPacked for subscriber {subscriber} is invalid: {wrong}")
        limit = self.max_element_bytes
        # THREATS 69: the product of the two may overflow a machine integer.
        if count > limit // size:
            raise LimitExceeded(f"onNextPacked has {count} times {size} bytes; the maximum is {limit}")
        if self._runs:
            self._left, self._owner, self._width = count, subscriber, size
            items = self._packed_elements()
            if items is None:
                # No element has arrived completely. The head is read again when one has.
                self._left = 0
            else:
                items.announced = count
            return items
        data = self._take(count * size)
        return None if data is None else Message(_PACKED, subscriber, count, data)

    def _packed_elements(self) -> Items | None:
        """Read the available elements of a packed run; None if not even one is complete."""
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
    """Return a run of elements whose offsets are known to be valid."""
    run = PayloadRun(buffer, offsets, size)
    run.sound = True
    return run
