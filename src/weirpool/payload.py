"""The content of streams: single payloads, and runs of payloads that arrived together."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from .errors import LocalError

__all__ = ["MAX_RUN_BYTES", "MetadataPush", "Payload", "PayloadRun", "fixed_run", "payload_of"]

MAX_RUN_BYTES = 0x7FFF_FFFF
"""The limit of 32-bit offsets, in a run and in an Arrow array."""


def to_bytes(value: bytes | str, name: str) -> bytes:
    """Return `value` as bytes; `name` describes it in errors.

    Raises:
        LocalError: It is neither bytes, nor a string, nor another object that contains bytes.

    """
    if isinstance(value, str):
        return value.encode()
    try:
        return bytes(memoryview(value))
    except TypeError:
        raise LocalError(f"{name} is of type {type(value).__name__}; it must be bytes or str") from None


class Payload:
    """One item: data and optional metadata.

    Args:
        data: The item's bytes. A string is encoded as UTF-8; any other object that contains bytes is copied.
        metadata: Additional bytes, or ``None``. Empty metadata is different from ``None``.

    Raises:
        LocalError: One of them does not contain bytes.

    """

    __slots__ = ("data", "metadata")

    def __init__(self, data: bytes | str = b"", metadata: bytes | str | None = None) -> None:
        self.data: bytes = data if type(data) is bytes else to_bytes(data, "data")
        self.metadata: bytes | None = (
            metadata if metadata is None or type(metadata) is bytes else to_bytes(metadata, "metadata")
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Payload):
            return NotImplemented
        return self.data == other.data and self.metadata == other.metadata

    def __hash__(self) -> int:
        return hash((self.data, self.metadata))

    def __repr__(self) -> str:
        if self.metadata is None:
            return f"Payload({self.data!r})"
        return f"Payload({self.data!r}, metadata={self.metadata!r})"


def payload_of(data: bytes, metadata: bytes | None) -> Payload:
    """Return a payload of bytes, without any checks. Compiled code calls this faster than the class."""
    payload = Payload.__new__(Payload)
    payload.data = data
    payload.metadata = metadata
    return payload


class MetadataPush:
    """Metadata sent between the items of a stream, without being an item (ReactiveSocket 0.0).

    A handler yields it to send it. A consumer receives it by `on_push` of :meth:`weirpool.Peer.stream`. A string is
    encoded as UTF-8. Raises LocalError if `metadata` does not contain bytes.
    """

    __slots__ = ("metadata",)

    def __init__(self, metadata: bytes | str) -> None:
        self.metadata: bytes = to_bytes(metadata, "metadata")

    def __repr__(self) -> str:
        return f"MetadataPush({self.metadata!r})"


class PayloadRun:
    """Consecutive items of one stream: their bytes, and the offsets of each. There is no object per item.

    Args:
        buffer: The bytes, which may contain other data between the items.
        offsets: Three native 32-bit integers per item: the start of its metadata (-1: none), the start of its data
            (which is the end of its metadata), and the end of its data.
        size: Bytes of metadata and data together.

    Attributes:
        sound: All offsets are known to be within the buffer, and `size` matches them; they must not change any more.
        width: Bytes of each item, if the items are contiguous, of equal size and without metadata; :meth:`fixed`
            makes such runs. Otherwise 0.
        first: The start of the first of these items.

    """

    __slots__ = ("_offsets", "buffer", "first", "size", "sound", "width")

    def __init__(self, buffer: bytes, offsets: array[int], size: int) -> None:
        self.buffer = buffer
        self._offsets: Any = offsets
        self.size = size
        self.sound = False
        self.width = 0
        self.first = 0

    @property
    def offsets(self) -> array[int]:
        """The offsets of each item; for items of one width they are computed on request."""
        if self._offsets is None and self.width:
            count, first, width = len(self), self.first, self.width
            offsets = array("i", bytes(12 * count))
            offsets[0::3] = array("i", (-1,)) * count
            offsets[1::3] = array("i", range(first, first + self.size, width))
            offsets[2::3] = array("i", range(first + width, first + width + self.size, width))
            self._offsets = offsets
        return self._offsets  # type: ignore[no-any-return]

    def __len__(self) -> int:
        if self.width:
            return self.size // self.width
        return len(self.offsets) // 3

    def __iter__(self) -> Iterator[Payload]:
        return iter(self.payloads())

    def __repr__(self) -> str:
        return f"<PayloadRun of {len(self)} items, {self.size} bytes>"

    def payloads(self, start: int = 0, stop: int | None = None) -> list[Payload]:
        """Return the items from index `start` to `stop` as separate payloads.

        Raises:
            LocalError: As `check`.

        """
        last = len(self) if stop is None else stop
        self.check(start, last)
        p = self.buffer
        items: list[Payload] = []
        width = self.width
        if width:
            for at in range(self.first + start * width, self.first + last * width, width):
                payload = Payload.__new__(Payload)
                payload.metadata = None
                payload.data = p[at : at + width]
                items.append(payload)
            return items
        view = self.offsets
        for at in range(3 * start, 3 * last, 3):
            first = view[at]
            middle = view[at + 1]
            payload = Payload.__new__(Payload)
            payload.metadata = None if first < 0 else p[first:middle]
            payload.data = p[middle : view[at + 2]]
            items.append(payload)
        return items

    def check(self, start: int, stop: int) -> int:
        """Return the bytes of the items from index `start` to `stop`, metadata and data together.

        Call this before reading by the offsets, because compiled code does not check them.

        Raises:
            LocalError: The run does not have these items, or one of them is outside its buffer.

        """
        count = len(self)
        if not 0 <= start <= stop <= count:
            raise LocalError(f"items {start} to {stop} are not within this run of {count} items")
        if self.width:
            return (stop - start) * self.width
        if self.sound and stop - start == count:
            return self.size
        limit = len(self.buffer)
        view = self.offsets
        size = 0
        for at in range(3 * start, 3 * stop, 3):
            first = view[at]
            middle = view[at + 1]
            end = view[at + 2]
            if not -1 <= first <= middle <= end <= limit or middle < 0:
                raise LocalError(
                    f"item {at // 3} of the run: invalid offsets {first}, {middle}, {end} in {limit} bytes"
                )
            size += end - (middle if first < 0 else first)
        return size

    def largest_metadata(self) -> int:
        """Return the size of the largest metadata of an item; 0 if none has any."""
        if self.width:
            return 0
        offsets = self.offsets
        sizes = (middle - first for first, middle in zip(offsets[0::3], offsets[1::3], strict=True) if first >= 0)
        return max(sizes, default=0)

    def part(self, start: int, stop: int) -> PayloadRun:
        """Return a run of the items from index `start` to `stop` that shares the bytes.

        Raises:
            LocalError: As `check`.

        """
        size = self.check(start, stop)
        if self.width:
            return fixed_run(self.buffer, self.width, self.first + start * self.width, size)
        run = PayloadRun(self.buffer, self.offsets[3 * start : 3 * stop], size)
        run.sound = True
        return run

    @classmethod
    def fixed(cls, octets: Any, width: int, start: int = 0, stop: int | None = None) -> PayloadRun:
        """Return a run of contiguous items of `width` bytes each, without metadata.

        Args:
            octets: Bytes, which are not copied; or another object with contiguous bytes, such as an array of numbers,
                which is copied once.
            width: Bytes of an item.
            start: Where the first item starts.
            stop: Where the last item ends; None: at the end of the bytes.

        Raises:
            LocalError: The number of bytes is not a multiple of `width`, or is 2 GiB or more.

        """
        buffer: bytes = octets if type(octets) is bytes else _copied(octets)
        end = len(buffer) if stop is None else stop
        if width < 1 or not 0 <= start <= end <= len(buffer) or (end - start) % width:
            raise LocalError(f"bytes {start} to {end} of {len(buffer)} cannot be split into items of {width} bytes")
        if end > MAX_RUN_BYTES:
            raise LocalError(f"a run holds at most {MAX_RUN_BYTES} bytes; make several of these")
        return fixed_run(buffer, width, start, end - start)

    @classmethod
    def of(cls, payloads: Iterable[Payload]) -> PayloadRun:
        """Return a run of `payloads`.

        Raises:
            LocalError: They have 2 GiB or more together.

        """
        offsets = array("i")
        parts: list[bytes] = []
        end = 0
        for payload in payloads:
            start = end
            if payload.metadata is not None:
                parts.append(payload.metadata)
                end += len(payload.metadata)
            parts.append(payload.data)
            middle = end
            end += len(payload.data)
            if end > MAX_RUN_BYTES:
                raise LocalError(f"a run holds at most {MAX_RUN_BYTES} bytes; make several of these payloads")
            offsets.extend((-1 if payload.metadata is None else start, middle, end))
        return cls(b"".join(parts), offsets, end)


def fixed_run(buffer: bytes, width: int, first: int, size: int) -> PayloadRun:
    """Return the run of :meth:`PayloadRun.fixed` for `size` bytes from offset `first`, without any checks."""
    run = PayloadRun.__new__(PayloadRun)
    run.buffer = buffer
    run._offsets = None
    run.size = size
    run.sound = True
    run.width = width
    run.first = first
    return run


def _copied(value: object) -> bytes:
    """Return the contiguous bytes of an object that is not a string."""
    if isinstance(value, str):
        raise LocalError("items of one width must be bytes or an array of numbers, not a string")
    return to_bytes(value, "the items")  # type: ignore[arg-type]
