"""What streams carry: single payloads, and runs of them that arrived together."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

__all__ = ["Payload", "PayloadRun"]


class Payload:
    """One item: data, and metadata that says something about it.

    Args:
        data: The item's bytes. A string is encoded as UTF-8.
        metadata: Bytes beside the data, or ``None``. Empty metadata is metadata; ``None`` is none.

    """

    __slots__ = ("data", "metadata")

    def __init__(self, data: bytes | str = b"", metadata: bytes | None = None) -> None:
        self.data: bytes = data.encode() if isinstance(data, str) else data
        self.metadata: bytes | None = metadata

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


class PayloadRun:
    """Consecutive items of one stream: their bytes, and where each lies. There is no object per item.

    Args:
        buffer: The bytes, which may hold other things between the items.
        offsets: Three native 32-bit integers an item: where its metadata starts (-1: it has none),
            where its data starts (which is where the metadata ends), and where its data ends.
        size: Bytes of metadata and data together.

    """

    __slots__ = ("buffer", "offsets", "size")

    def __init__(self, buffer: bytes, offsets: array[int], size: int) -> None:
        self.buffer = buffer
        self.offsets = offsets
        self.size = size

    def __len__(self) -> int:
        return len(self.offsets) // 3

    def __iter__(self) -> Iterator[Payload]:
        return iter(self.payloads())

    def __repr__(self) -> str:
        return f"<PayloadRun of {len(self)} items, {self.size} bytes>"

    def payloads(self) -> list[Payload]:
        """Return the items, each cut from the run."""
        buffer = self.buffer
        offsets = self.offsets
        items: list[Payload] = []
        for at in range(0, len(offsets), 3):
            start = offsets[at]
            middle = offsets[at + 1]
            metadata = None if start < 0 else buffer[start:middle]
            items.append(Payload(buffer[middle : offsets[at + 2]], metadata))
        return items

    @classmethod
    def of(cls, payloads: list[Payload]) -> PayloadRun:
        """Return the run that carries `payloads`."""
        offsets = array("i")
        parts: list[bytes] = []
        end = 0
        for payload in payloads:
            start = end
            if payload.metadata is not None:
                parts.append(payload.metadata)
                end += len(payload.metadata)
            parts.append(payload.data)
            offsets.extend((-1 if payload.metadata is None else start, end, end + len(payload.data)))
            end += len(payload.data)
        return cls(b"".join(parts), offsets, end)
