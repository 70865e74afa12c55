"""The publisher's side: digests of the items of its streams, and a route that tells them."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
import pyarrow as pa

from ..aio.handlers import Next, Request, close_items
from ..aio.intercept import Answer
from ..aio.service import Service
from ..aio.setup import current_connection
from ..aio.sources import many_of
from ..errors import ApplicationError, Mismatch
from ..kinds import Kind
from ..payload import MetadataPush, Payload, PayloadRun, payload_of
from ..protocols import data_mime, sent_data
from ..schema.converter import Converter
from ..schema.formats import JSON, format_of
from ..wire.columns import ColumnBuilder
from .digest import Digests

__all__ = ["ROUTE", "Query", "Sent", "State", "audited"]

ROUTE: Final = "weirpool.audit"
"""The reserved route: a call with a `Query` returns a list of `Sent`, both in the connection's encoding, or as JSON."""
MAX_STREAMS: Final = 1_024
"""Streams to remember. Beyond it, the client that has most loses its oldest; each takes at most about 200 KiB."""
MAX_REQUEST_BYTES: Final = 4_096
"""Request data up to this size is remembered, to tell streams of one route apart."""
MAX_ANSWER_BLOCKS: Final = 65_536
"""Digests in one answer: 2 MiB of text."""
HELD_ITEMS: Final = 1_024
"""Items that are hashed together."""
HELD_BYTES: Final = 64 * 1024


class State(StrEnum):
    """What became of a stream."""

    OPEN = "open"
    COMPLETE = "complete"
    ENDED = "ended"
    """It failed, or was canceled."""


class Query(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which streams to tell about."""

    route: str
    salt: str = ""
    """Prefixed to the request's data, with a zero byte between, before it is hashed."""
    request: str = ""
    """SHA-256 of the salted data of the request, in hex; empty: any request."""


class Sent(msgspec.Struct, frozen=True):
    """What was sent on one stream, as far as the peer's credit has asked for it."""

    opened: datetime
    state: State
    items: int
    """Items so far."""
    first: int
    """The number of the first block in `blocks`; earlier ones are forgotten."""
    blocks: list[str]
    """The digests of complete blocks, in hex."""
    rest: str
    """The digest of the items after the last complete block, in hex."""
    taken: int = 0
    """Items so far, with the last ones that were taken to be sent, whose digest is not known yet."""


_QUERY: Final = Converter(Query)


def audited(service: Service) -> Service:
    """Let clients check that they have received what the streams of a service have sent.

    Digests of the items are kept, and served on the reserved route ``weirpool.audit``; `weirpool audit` compares them
    with a journal. They tell nothing about the content of items that are not known. Requests to this route pass the
    service's interceptors as any others.

    Args:
        service: The service. Its streams opened from now on are audited.

    Returns:
        The service.

    Raises:
        LocalError: The service is already in use, or audited.

    """
    audit = _Audit()
    service.intercept(audit.watch)
    service.call(ROUTE)(audit.answer)
    return service


class _Audit:
    """The streams of a service."""

    def __init__(self) -> None:
        self._streams: dict[str, dict[_Stream, None]] = {}
        # Of each client, by its address or principal: it may come back, and ask then.
        self._opened: dict[str, deque[_Stream]] = {}
        self._count = 0

    async def watch(self, request: Request, next: Next) -> Any:
        """Digest the items of a stream while they are sent."""
        answer = await next(request)
        if request.kind != Kind.STREAM or not request.handled or not isinstance(answer, Answer):
            return answer
        stream = _Stream(request.route, request.payload.data, sent_data(request.connection))
        self._remember(stream, request.connection.counted_as)
        # Not a wrapper of the answer: the sending half would then treat plain iterables as asynchronous ones.
        source = answer.source
        return Answer(_each(source, stream) if isinstance(source, AsyncIterable) else _every(source, stream))

    def _remember(self, stream: _Stream, client: str) -> None:
        if self._count == MAX_STREAMS:
            self._forget()
        self._count += 1
        self._opened.setdefault(client, deque()).append(stream)
        self._streams.setdefault(stream.route, {})[stream] = None

    def _forget(self) -> None:
        """Forget the oldest stream of the client that has most."""
        client = max(self._opened, key=lambda each: len(self._opened[each]))
        oldest = self._opened[client].popleft()
        streams = self._streams[oldest.route]
        del streams[oldest]
        if not streams:
            del self._streams[oldest.route]
        if not self._opened[client]:
            del self._opened[client]
        self._count -= 1

    def answer(self, request: Payload) -> bytes:
        """Answer a `Query`, the newest stream first. Connections without a known encoding use JSON."""
        form = format_of(data_mime(current_connection(), request.metadata)) or JSON
        try:
            query = _QUERY.decode(form, request.data)
        except Mismatch as error:
            raise ApplicationError(message=f"not a query of {ROUTE}: {error}") from None
        return form.encode(self._answer(query))

    def _answer(self, query: Query) -> list[Sent]:
        left = MAX_ANSWER_BLOCKS
        answer = []
        for stream in reversed(self._streams.get(query.route, {})):
            if stream.matches(query):
                sent = stream.sent(left)
                left -= len(sent.blocks)
                answer.append(sent)
        return answer


class _Stream:
    """One stream that was opened."""

    __slots__ = ("_as_sent", "_builder", "_data", "_digests", "_opened", "_taken", "route", "state")

    def __init__(self, route: str, data: bytes, as_sent: Callable[[bytes], bytes] | None = None) -> None:
        self.route = route
        self.state = State.OPEN
        self._opened = datetime.now(UTC)
        self._data = data if len(data) <= MAX_REQUEST_BYTES else None
        self._as_sent = as_sent
        self._digests = Digests()
        self._builder = ColumnBuilder()
        self._taken = 0

    def take(self, item: Any) -> Any:
        """Count what a handler has yielded, before it may be sent."""
        if type(item) is bytes or type(item) is Payload:
            self._taken += 1
        elif (many := many_of(item)) is not None:
            self._taken += len(many)
        elif not isinstance(item, MetadataPush):
            self._taken += 1
        return item

    def add(self, item: Any) -> None:
        """Add what a handler has yielded."""
        builder = self._builder
        if type(item) is bytes:
            builder.append_payload(payload_of(item, None))
        elif type(item) is Payload:
            builder.append_payload(item)
        elif (many := many_of(item)) is None:
            if isinstance(item, MetadataPush):
                return
            builder.append_payload(Payload(item))
        elif isinstance(many, PayloadRun):
            builder.append(many)
        else:
            at = 0
            while at < len(many):
                run = many.run(at, None, HELD_BYTES)
                builder.append(run)
                at += len(run)
                self._flush()
        if len(builder) >= HELD_ITEMS or builder.size >= HELD_BYTES:
            self._flush()

    def _flush(self) -> None:
        batch = self._builder.finish()
        data, metadata = batch.column("data"), batch.column("metadata")
        if self._as_sent is not None:
            # A protocol that rewrites data has no metadata of items.
            sent = [self._as_sent(item) for item in data.to_pylist()]
            data, metadata = pa.array(sent, data.type), pa.nulls(len(sent), metadata.type)
        self._digests.add(data, metadata)

    def matches(self, query: Query) -> bool:
        """Return True if the request's data is that of the query, or too long to be known."""
        if not query.request or self._data is None:
            return True
        return hashlib.sha256(query.salt.encode() + b"\0" + self._data).hexdigest() == query.request

    def sent(self, blocks: int) -> Sent:
        """Return what was sent, with the digests of at most the last `blocks` blocks."""
        self._flush()
        digests = self._digests
        kept = digests.blocks[-blocks:] if blocks else []
        first = digests.first + len(digests.blocks) - len(kept)
        blocks_told = [each.hex() for each in kept]
        return Sent(self._opened, self.state, digests.count, first, blocks_told, digests.rest.hex(), self._taken)


def _every(items: Iterable[Any], stream: _Stream) -> Iterator[Any]:
    """Yield items, and add each when the next one is asked for, because an item may be taken before it can be sent."""
    try:
        for item in items:
            yield stream.take(item)
            stream.add(item)
        stream.state = State.COMPLETE
    finally:
        if stream.state is State.OPEN:
            stream.state = State.ENDED
        if isinstance(items, Generator):
            items.close()


async def _each(items: AsyncIterable[Any], stream: _Stream) -> AsyncIterator[Any]:
    try:
        async for item in items:
            yield stream.take(item)
            stream.add(item)
        stream.state = State.COMPLETE
    finally:
        if stream.state is State.OPEN:
            stream.state = State.ENDED
        await close_items(items)
