"""The rows of a range, from the frames of a collector: checked, cut to the range, small batches joined."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa

from ..aio.peer import Peer
from ..aio.streams import Stream
from ..errors import ApplicationError, JournalError, SessionClosed, SessionError
from ..journal.damage import Damage
from ..journal.format import SCHEMA, Malformed, entry_at
from ..journal.gaps import Gap
from ..journal.losses import is_accepted
from ..journal.rows import check, merge_small
from .collectors import Collectors
from .frames import Assembler, Form, Head, decode_rows
from .links import links
from .messages import PREFIX, Named, Read, error_from

__all__ = ["read_rows"]

CREDIT: Final = 128
"""Items that a collector sends ahead, of 64 KiB each: what a range holds in memory besides one batch."""
TAKEN_BYTES: Final = 1 << 20
"""The bytes to pass from the event loop's thread at once."""

MAX_ITEMS: Final = 1 << 20
MAX_LOSSES: Final = 5
"""Connections that may be lost one after the other without a row."""

Batch = tuple[pa.RecordBatch, int]


def read_rows(
    collectors: Collectors,
    source: str,
    uuid: str,
    span: tuple[int, int],
    columns: Sequence[str] | None,
    skip_records: bool,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a range; see `RemoteReader.read`."""
    names = SCHEMA.names if columns is None else list(columns)
    asked = Read(
        source=source,
        uuid=uuid,
        first=span[0],
        end=span[1],
        columns=None if columns is None else names,
        skip_records=skip_records,
    )
    return merge_small((batch.select(names), size) for batch, size in _Range(collectors, asked).batches())


class _Range:
    """A range that is being read."""

    def __init__(self, collectors: Collectors, asked: Read) -> None:
        self._collectors = collectors
        self._asked = asked
        self._at = asked.first
        self._accepted: list[Gap] | None = None

    def batches(self) -> Iterator[Batch]:
        """Yield the rows, each batch with its bytes. A lost connection is replaced by another."""
        losses = 0
        while self._at < self._asked.end:
            before = self._at
            try:
                yield from self._batches_of_one_stream()
            except (SessionError, SessionClosed) as error:
                losses = 0 if self._at > before else losses + 1
                if losses > MAX_LOSSES:
                    raise JournalError(
                        f"{self._where()}: the connection was lost {losses} times without a row ({error}); check the "
                        "network, and the log of the collector"
                    ) from error

    def _batches_of_one_stream(self) -> Iterator[Batch]:
        connections = links()
        stream, parts = connections.run(self._collectors.ask(self._asked.source, self._open))
        assembler = Assembler()
        coming = connections.submit(_more(parts))
        try:
            while (content := connections.wait(coming)) is not None:
                coming = connections.submit(_more(parts))
                for part in content:
                    for head, body in assembler.feed(part):
                        yield from self._rows(head, body)
        except ApplicationError as error:
            raise error_from(error, self._where()) from error
        finally:
            coming.cancel()
            # Without waiting: a generator may be closed when the interpreter, and with it the loop's thread, ends.
            connections.post(_closed(stream))
        if self._at < self._asked.end:
            raise JournalError(
                f"{self._where()}: the collector ended the range at position {self._at}; update Weirpool"
            )

    async def _open(self, peer: Peer) -> tuple[Stream, AsyncIterator[pa.RecordBatch]]:
        """Open a stream of the rest, and wait for its first item: whether the collector can be asked shows here."""
        request = msgspec.json.encode(msgspec.structs.replace(self._asked, first=self._at))
        stream = peer.stream(f"{PREFIX}read", request, credit=CREDIT)
        await stream.__aenter__()
        try:
            await stream.arrival()
        except BaseException:
            await _closed(stream)
            raise
        return stream, stream.batches(MAX_ITEMS, TAKEN_BYTES)

    def _rows(self, head: Head, body: pa.Buffer) -> Iterator[Batch]:
        """Yield the rows of a frame that are in the range, and step behind it."""
        if head.begin > self._at or (head.end <= self._at < self._asked.end and head.form != Form.NOTHING):
            raise JournalError(
                f"{self._where()}: the collector has sent positions {head.begin} to {head.end - 1}, not {self._at} and "
                "later ones; update Weirpool"
            )
        if head.form == Form.ROWS:
            yield self._again_encoded(head, body), body.size
        elif head.form == Form.STORED:
            for batch, size in self._stored(head, body):
                first, stop = max(head.first, self._at), self._asked.end
                yield _cut(batch, first, stop), size
        self._at = min(head.end, self._asked.end)

    def _again_encoded(self, head: Head, body: pa.Buffer) -> pa.RecordBatch:
        try:
            batch = decode_rows(body)
            if any(field != SCHEMA.field(field.name) for field in batch.schema):
                raise ValueError("it has other columns than a journal")
        except (ValueError, KeyError) as error:
            raise Damage(head.first, head.end, str(error)).error(self._where()) from None
        return batch

    def _stored(self, head: Head, body: pa.Buffer) -> Iterator[Batch]:
        """Yield the batches of a frame, each after a check, without those whose loss was accepted."""
        view = memoryview(body)
        offset, position = 0, head.first
        while offset < body.size:
            end, entry = head.end, None
            try:
                entry = entry_at(view, offset, body.size, position)
                if entry is None or entry.position != position:
                    raise Malformed("another batch is in its place", offset, position)
                end = entry.end
                message = body.slice(offset, entry.header_bytes + entry.body_bytes)
                batch = check(message, entry.header_bytes, entry.note.rows, entry.note.time, entry.checksum)
                if position < self._asked.end and end > self._at:
                    yield batch, message.size
                offset += message.size
            except Malformed as bad:
                damage = Damage(position, end, bad.why)
                if not is_accepted(damage, self._losses()):
                    raise damage.error(self._where()) from None
                offset = body.size if entry is None else entry.end_offset
            position = end

    def _losses(self) -> list[Gap]:
        """Return the losses that were accepted, or recorded otherwise."""
        if self._accepted is None:
            asked = Named(source=self._asked.source)
            self._accepted = self._collectors.call(self._asked.source, "losses", asked, list[Gap])
        return self._accepted

    def _where(self) -> str:
        return f"{', '.join(self._collectors.urls)}: source {self._asked.source!r}"


def _cut(batch: pa.RecordBatch, first: int, end: int) -> pa.RecordBatch:
    """Return the rows between two positions."""
    begin = batch.column("position")[0].as_py()
    skipped = max(first - begin, 0)
    return batch.slice(skipped, min(end - begin, batch.num_rows) - skipped)


async def _more(parts: AsyncIterator[pa.RecordBatch]) -> list[memoryview] | None:
    """Return the bytes that arrive next, about as many as it pays to pass to another thread; None at the end."""
    taken: list[memoryview] = []
    size = 0
    async for part in parts:
        data = part.column("data")
        taken.append(_bytes_of(data))
        size += len(taken[-1])
        if size >= TAKEN_BYTES:
            break
    return taken or None


def _bytes_of(data: pa.BinaryArray) -> memoryview:
    """Return the bytes of all items, one after the other, without copying them."""
    _, ends, content = data.buffers()
    if content is None:
        return memoryview(b"")
    offsets = memoryview(ends).cast("i")
    return memoryview(content).cast("B")[offsets[data.offset] : offsets[data.offset + len(data)]]


async def _closed(stream: Stream) -> None:
    await stream.__aexit__(None, None, None)
