"""Sends messages and items. Small items are packed, large ones are sent in parts."""

from __future__ import annotations

from typing import Final

from ..core.outbox import BY_REFERENCE_BYTES, WRITE_BYTES, Outbox, too_large
from ..errors import LocalError
from ..payload import Payload, PayloadRun
from ..settings import Settings
from ..wire.reactivestreams.codec import (
    Message,
    Type,
    encode,
    next_head,
    next_run,
    packed_head,
    packed_run,
    part_head,
)
from .streams import Publication

__all__ = ["Outbound"]


RUN_ITEMS: Final = 1_024
"""The maximum number of items in one chunk of output."""


class Outbound:
    """Writes messages to the outbox.

    Items of a fixed size that are sent one by one wait in a pack until anything else is sent, or the output is taken.

    Args:
        settings: Limits.

    Attributes:
        outbox: The output for the link, without the pack.
        metadata: Whether both sides have agreed on the metadata extension.

    """

    __slots__ = ("_fragment_bytes", "_max_bytes", "_max_small", "_pack", "_pack_room", "_packing", "metadata", "outbox")

    def __init__(self, settings: Settings) -> None:
        self._fragment_bytes = settings.fragment_bytes
        self._max_small = min(settings.fragment_bytes, BY_REFERENCE_BYTES)
        self._max_bytes = settings.max_output_bytes
        self.outbox = Outbox()
        self.metadata = False
        # The items of the pack, their stream, and the bytes that it may still grow by.
        self._pack: list[bytes] = []
        self._packing: Publication | None = None
        self._pack_room = 0

    def take(self) -> list[bytes]:
        """Remove and return the output; see :meth:`Outbox.take`."""
        if self._packing is not None:
            self._send_pack()
        return self.outbox.take()

    def message(self, message: Message) -> None:
        """Send a message without items."""
        if self._packing is not None:
            self._send_pack()
        self.outbox.write(encode(message))

    def item(self, publication: Publication, payload: Payload) -> None:
        """Send an item, whole or in all its parts.

        Raises:
            LocalError: The stream cannot carry it.

        """
        size = publication.element_size
        if size and payload.metadata is None and len(payload.data) == size <= self._max_small:
            self._add_to_pack(publication, payload.data)
            return
        self._check_size("an item", len(payload.data))
        self._begin(publication, payload)
        while publication.unsent is not None:
            self.part(publication)

    def check_metadata(self, metadata: bytes | None) -> None:
        """Raise LocalError if metadata cannot be sent."""
        if metadata is None:
            return
        if not self.metadata:
            raise LocalError(
                "reactive-streams carries metadata only if both sides list it in Settings.extensions, "
                "and only after the peer's hello; connect with confirm=True"
            )
        self._check_size("metadata", len(metadata))

    def _check_size(self, what: str, size: int) -> None:
        """Raise LocalError if what is not sent in parts is too large: it would end the connection."""
        if size > self._max_bytes:
            raise too_large(what, size, "max_output_bytes", self._max_bytes)

    def run(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send items of `run` from `start` up to `stop`, and return how many were sent.

        Of a large item, only the next part is sent, so that other streams have their turn before the one after it. The
        item counts when its last part was sent.

        Raises:
            LocalError: The stream cannot carry an item, or the run is invalid.

        """
        run.check(start, stop)
        at = start
        while at < stop:
            if publication.unsent is None:
                small = self._send_small(publication, run, at, stop)
                if small > at:
                    at = small
                    continue
                if at > start:
                    break
                if self._begin(publication, _item(run, at)):
                    at += 1
                    continue
            self.part(publication)
            return at - start + (1 if publication.unsent is None else 0)
        return at - start

    def part(self, publication: Publication) -> None:
        """Send the next part of the element that is sent in parts, if there is one."""
        unsent = publication.unsent
        if unsent is None:
            return
        piece = bytes(unsent[: self._fragment_bytes])
        rest = unsent[len(piece) :]
        last = len(rest) == 0
        publication.unsent = None if last else rest
        self._send(part_head(publication.subscriber, publication.unsent_id, len(piece), last), piece)

    def _add_to_pack(self, publication: Publication, data: bytes) -> None:
        if self._packing is not publication or self._pack_room < len(data):
            if self._packing is not None:
                self._send_pack()
            self._packing = publication
            self._pack_room = WRITE_BYTES
        self._pack.append(data)
        self._pack_room -= len(data)

    def _send_pack(self) -> None:
        publication, items = self._packing, self._pack
        assert publication is not None
        self._packing = None
        self._pack = []
        if len(items) == 1:
            self._send_whole(publication, items[0])
        else:
            self.outbox.write(packed_head(publication.subscriber, len(items)) + b"".join(items))

    def _write(self, piece: bytes) -> None:
        """Append `piece` to the output, after the pack."""
        if self._packing is not None:
            self._send_pack()
        self.outbox.write(piece)

    def _send_small(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send the items from `start` on that are small and have no metadata; return the index of the next one."""
        size = publication.element_size
        if run.width and size:
            return self._send_packed(publication, run, start, stop)
        view = run.offsets
        max_size = self._max_small
        room = WRITE_BYTES
        at = start
        stop = stop if size else min(stop, start + RUN_ITEMS)
        while at < stop and view[3 * at] < 0:
            length = view[3 * at + 2] - view[3 * at + 1]
            if size and length != size:
                raise LocalError(_wrong_size(publication, length))
            room -= length
            if length > max_size or (room < 0 and at > start):
                break
            at += 1
        if at - start > 1 and size:
            # Packed messaging: the items have one size and are within the demand.
            self._write(packed_run(publication.subscriber, run, start, at))
        elif at > start and size:
            self._send_whole(publication, run.payloads(start, at)[0].data)
        elif at > start:
            self._write(next_run(publication.subscriber, run, start, at))
        return at

    def _send_packed(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send the items of a run of one width, unless they are large; return the index of the next one."""
        width = run.width
        if width != publication.element_size:
            raise LocalError(_wrong_size(publication, width))
        if width > self._max_small:
            return start
        max_items = WRITE_BYTES // width
        while start < stop:
            end = min(start + max_items, stop)
            if end - start > 1:
                self._write(packed_run(publication.subscriber, run, start, end))
            else:
                self._send_whole(publication, run.payloads(start, end)[0].data)
            start = end
        return start

    def _send_whole(self, publication: Publication, data: bytes) -> None:
        length = -1 if publication.element_size else len(data)
        self._send(next_head(publication.subscriber, length), data)

    def _send(self, head: bytes, data: bytes) -> None:
        """Send `head` and `data`. Large data is not copied."""
        if len(data) < BY_REFERENCE_BYTES:
            self._write(head + data)
        else:
            self._write(head)
            self.outbox.write(data)

    def _begin(self, publication: Publication, payload: Payload) -> bool:
        """Send a small item and return True; of a large one, prepare the parts and return False."""
        self.check_metadata(payload.metadata)
        if publication.element_size and len(payload.data) != publication.element_size:
            raise LocalError(_wrong_size(publication, len(payload.data)))
        if payload.metadata is not None:
            self.message(Message(Type.ON_NEXT_METADATA, publication.subscriber, 0, payload.metadata))
        if len(payload.data) <= self._fragment_bytes:
            self._send_whole(publication, payload.data)
            return True
        publication.unsent = memoryview(payload.data)
        publication.unsent_id = publication.next_element
        publication.next_element += 1
        return False


def _item(run: PayloadRun, at: int) -> Payload:
    """Return an item of a run. If it is all of the run's bytes, they are not copied."""
    view = run.offsets
    if view[3 * at] < 0 and view[3 * at + 1] == 0 and view[3 * at + 2] == len(run.buffer):
        return Payload(run.buffer)
    return run.payloads(at, at + 1)[0]


def _wrong_size(publication: Publication, length: int) -> str:
    size = publication.element_size
    return f"an item has {length} bytes, but Settings.element_sizes requires {size} for its route"
