"""What leaves: messages, and items, which are packed where they are small and cut where they are large."""

from __future__ import annotations

from typing import Final

from ..core.outbox import BY_REFERENCE_BYTES, WRITE_BYTES, Outbox
from ..errors import LocalError
from ..payload import Payload, PayloadRun
from ..settings import Settings
from ..wire.reactivestreams.codec import Message, Type, encode, next_head, next_run, packed_run, part_head
from .streams import Publication

__all__ = ["Outbound"]


RUN_ITEMS: Final = 1_024
"""Items that are joined into one piece of output at most."""


class Outbound:
    """Writes messages to the outbox.

    Args:
        settings: For `fragment_bytes`.

    Attributes:
        outbox: Where the messages wait for the link.
        metadata: Both sides have agreed on the extension that carries it.

    """

    __slots__ = ("_fragment_bytes", "metadata", "outbox")

    def __init__(self, settings: Settings) -> None:
        self._fragment_bytes = settings.fragment_bytes
        self.outbox = Outbox()
        self.metadata = False

    def message(self, message: Message) -> None:
        """Send a message that carries no items."""
        self.outbox.write(encode(message))

    def item(self, publication: Publication, payload: Payload) -> None:
        """Send an item, whole or in all its parts.

        Raises:
            LocalError: The stream cannot carry it.

        """
        self._begin(publication, payload)
        while publication.cut is not None:
            self.part(publication)

    def run(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send items of `run` from `start` up to `stop` and return how many were; of a large one, a part alone.

        So the other streams have their turn before its next part. While parts are left, it is not counted.

        Raises:
            LocalError: The stream cannot carry an item, or the run is no sound one.

        """
        run.check(start, stop)
        at = start
        while at < stop:
            if publication.cut is None:
                small = self._small(publication, run, at, stop)
                if small > at:
                    at = small
                    continue
                if at > start:
                    break
                if self._begin(publication, run.payloads(at, at + 1)[0]):
                    at += 1
                    continue
            self.part(publication)
            return at - start + (1 if publication.cut is None else 0)
        return at - start

    def part(self, publication: Publication) -> None:
        """Send the next part of the element that travels in parts."""
        cut = publication.cut
        if cut is None:
            return
        piece = bytes(cut[: self._fragment_bytes])
        rest = cut[len(piece) :]
        last = len(rest) == 0
        publication.cut = None if last else rest
        self._referred(part_head(publication.subscriber, publication.cut_id, len(piece), last), piece)

    def _small(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send the items from `start` on that are small and without metadata; return where they end."""
        size = publication.element_size
        if run.width and size:
            return self._packed(publication, run, start, stop)
        view = run.offsets
        most = min(self._fragment_bytes, BY_REFERENCE_BYTES)
        room = WRITE_BYTES
        at = start
        stop = stop if size else min(stop, start + RUN_ITEMS)
        while at < stop and view[3 * at] < 0:
            length = view[3 * at + 2] - view[3 * at + 1]
            if size and length != size:
                raise LocalError(_wrong_size(publication, length))
            room -= length
            if length > most or (room < 0 and at > start):
                break
            at += 1
        if at - start > 1 and size:
            # Packed messaging: the peer has asked for so many, and all of them are of one size.
            self.outbox.write(packed_run(publication.subscriber, run, start, at))
        elif at > start and size:
            self._whole(publication, run.payloads(start, at)[0].data)
        elif at > start:
            self.outbox.write(next_run(publication.subscriber, run, start, at))
        return at

    def _packed(self, publication: Publication, run: PayloadRun, start: int, stop: int) -> int:
        """Send the items of a run of one width, unless they are large; return where they end."""
        width = run.width
        if width != publication.element_size:
            raise LocalError(_wrong_size(publication, width))
        if width > min(self._fragment_bytes, BY_REFERENCE_BYTES):
            return start
        most = WRITE_BYTES // width
        while start < stop:
            end = min(start + most, stop)
            if end - start > 1:
                self.outbox.write(packed_run(publication.subscriber, run, start, end))
            else:
                self._whole(publication, run.payloads(start, end)[0].data)
            start = end
        return start

    def _whole(self, publication: Publication, data: bytes) -> None:
        length = -1 if publication.element_size else len(data)
        self._referred(next_head(publication.subscriber, length), data)

    def _referred(self, head: bytes, data: bytes) -> None:
        """Send `data` behind its head; what is large is not copied."""
        if len(data) < BY_REFERENCE_BYTES:
            self.outbox.write(head + data)
        else:
            self.outbox.write(head)
            self.outbox.write(data)

    def _begin(self, publication: Publication, payload: Payload) -> bool:
        """Send an item, if it is small; return False where its parts are to be sent. Refuse what cannot be carried."""
        if payload.metadata is not None and not self.metadata:
            raise LocalError(
                "reactive-streams carries metadata only where both sides have it in Settings.extensions, "
                "and only once the peer's hello has come"
            )
        if publication.element_size and len(payload.data) != publication.element_size:
            raise LocalError(_wrong_size(publication, len(payload.data)))
        if payload.metadata is not None:
            self.message(Message(Type.ON_NEXT_METADATA, publication.subscriber, 0, payload.metadata))
        if len(payload.data) <= self._fragment_bytes:
            self._whole(publication, payload.data)
            return True
        publication.cut = memoryview(payload.data)
        publication.cut_id = publication.next_element
        publication.next_element += 1
        return False


def _wrong_size(publication: Publication, length: int) -> str:
    size = publication.element_size
    return f"an item has {length} bytes, and Settings.element_sizes says that all of its route have {size}"
