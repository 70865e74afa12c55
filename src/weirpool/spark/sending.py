"""The kinds of requests that take rows: a channel, an upload, calls, or fires."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from ..errors import ApplicationError, Canceled, Rejected, Undelivered
from .feed import Attempt, Chunk, Part
from .link import is_temporary
from .rejection import Letters, Rejection, code_of, shown
from .sink_options import SinkOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer

__all__ = ["SENDERS", "Sender"]

Sender = Callable[["Peer", SinkOptions, Chunk, "Letters | None"], Awaitable[None]]
"""Sends a chunk. It returns when the receiver has accepted all rows, or rejected them in a way that is recorded."""


Row = tuple[int, bytes, bytes | None]
"""A row's index, data and metadata."""


class Answer(msgspec.Struct):
    """What the handler of a channel yields for a row that it rejects."""

    index: int
    code: str = ""
    message: str = ""


class PlainAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The same, and nothing else: without "deadLetters" a handler may yield what it likes, such as the rows."""

    index: int
    code: str
    message: str = ""


async def channel(peer: Peer, options: SinkOptions, chunk: Chunk, letters: Letters | None) -> None:
    """Send the rows as the items of one channel. It is done when the peer has completed its side."""
    attempt = Attempt(chunk)
    route, metadata = options.target.metadata(options.route, chunk.header)
    async with peer.channel(route, b"", attempt.items(), metadata=metadata) as answers:
        async for answer in answers:
            if letters is None:
                _accept(chunk, options, answer.data)
            else:
                _reject(chunk, letters, answer.data)
        # A peer may complete its side at once: the rows are still sent until the last one.
        await attempt.over.wait()
    _check(attempt, chunk, options)


async def upload(peer: Peer, options: SinkOptions, chunk: Chunk, letters: Letters | None) -> None:
    """Send the rows as the items of one upload. It is done when the peer has answered."""
    attempt = Attempt(chunk)
    route, metadata = options.target.metadata(options.route, chunk.header)
    await peer.upload(route, b"", attempt.items(), metadata=metadata)
    _check(attempt, chunk, options)


async def call(peer: Peer, options: SinkOptions, chunk: Chunk, letters: Letters | None) -> None:
    """Send each row as a call. It is done when all of them are answered."""
    async for part in chunk.parts():
        rows = _unanswered(chunk, part)
        callers = min(options.concurrency, part.items.num_rows)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(callers):
                    group.create_task(_call(peer, options, chunk, rows, letters))
        except ExceptionGroup as failed:
            # A permanent error explains more than the temporary ones around it.
            raise min(failed.exceptions, key=is_temporary) from None


async def _call(peer: Peer, options: SinkOptions, chunk: Chunk, rows: Iterator[Row], letters: Letters | None) -> None:
    """Send rows until there are no more."""
    for index, data, metadata in rows:
        route, around = options.target.metadata(options.route, metadata)
        send = partial(peer.call, route, data, metadata=around)
        try:
            try:
                await send()
            except Rejected:
                if not options.retries:
                    raise
                await _admitted(send, options.retries)
        except ApplicationError as error:
            if is_temporary(error) or isinstance(error, Canceled):
                raise
            rejection = Rejection(chunk.feed.origin.partition, index, code_of(error), error.message, data, metadata)
            if letters is None:
                raise _lost(options, rejection) from error
            letters.add(rejection)
        chunk.answered.add(index)


async def _admitted(send: Callable[[], Awaitable[object]], retries: int) -> None:
    """Send a call that was rejected unprocessed again: the receiver was busy, and other calls are not affected."""
    from ..aio.reconnect import Backoff

    backoff = Backoff()
    for left in range(retries - 1, -1, -1):
        await backoff.wait()
        try:
            await send()
            return
        except Rejected:
            if not left:
                raise


async def fire(peer: Peer, options: SinkOptions, chunk: Chunk, letters: Letters | None) -> None:
    """Send each row without a response. It is done when they have been written to the network."""
    async for part in chunk.parts():
        for index, data, metadata in _unanswered(chunk, part):
            route, around = options.target.metadata(options.route, metadata)
            await peer.fire(route, data, metadata=around)
            chunk.answered.add(index)


def _unanswered(chunk: Chunk, part: Part) -> Iterator[Row]:
    """Yield the rows of a part that were not sent, or not answered, by an earlier attempt."""
    columns = (column.to_pylist() for column in part.items.columns)
    for index, (data, metadata) in enumerate(zip(*columns, strict=True), part.first):
        if index not in chunk.answered:
            yield index, data, metadata


def _accept(chunk: Chunk, options: SinkOptions, answer: bytes) -> None:
    """Take an item that the handler of a channel yields; `Undelivered` if it names a row as rejected."""
    try:
        found = msgspec.json.decode(answer, type=PlainAnswer)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return
    if (row := chunk.row(found.index)) is not None:
        raise _lost(options, Rejection(chunk.feed.origin.partition, found.index, found.code, found.message, *row))


def _lost(options: SinkOptions, rejection: Rejection) -> Undelivered:
    return Undelivered(f'route {options.route!r} has rejected {shown(rejection)}; "deadLetters" keeps such rows')


def _reject(chunk: Chunk, letters: Letters, answer: bytes) -> None:
    """Keep a row that the handler of a channel names as rejected."""
    try:
        found = msgspec.json.decode(answer, type=Answer)
    except (msgspec.DecodeError, ValueError, RecursionError):
        raise Undelivered(
            f'with "deadLetters", the handler of a channel yields only rejections, as {{"index": 5, "code": "…", '
            f'"message": "…"}}; it has yielded {len(answer)} bytes of something else'
        ) from None
    row = chunk.row(found.index)
    if row is None:
        raise Undelivered(f"the receiver has rejected row {found.index}, which is not a row of this channel")
    if found.index not in chunk.answered:
        chunk.answered.add(found.index)
        letters.add(Rejection(chunk.feed.origin.partition, found.index, found.code, found.message, *row))


def _check(attempt: Attempt, chunk: Chunk, options: SinkOptions) -> None:
    if not attempt.complete:
        raise Canceled(
            message=f"the peer canceled route {options.route!r} after {chunk.rows} rows of partition "
            f"{chunk.feed.origin.partition}; its handler must take all items, including those that it drops"
        )


SENDERS: Final[dict[str, Sender]] = {"channel": channel, "upload": upload, "call": call, "fire": fire}
