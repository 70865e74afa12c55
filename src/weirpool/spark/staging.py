"""Micro-batches that a receiver of ours commits: staged by tasks, committed by the driver."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from ..errors import LocalError, Rejected, Undelivered
from ..receiving.digest import RowDigest
from ..receiving.messages import ABORT, COMMIT, STAGE, CommitRequest, Committed, Stage, StageRequest
from .feed import Attempt, Chunk
from .link import Link
from .sink_options import SinkOptions

if TYPE_CHECKING:
    from ..aio.peer import Peer

__all__ = ["abort", "commit", "stage"]


async def stage(peer: Peer, options: SinkOptions, chunk: Chunk) -> Stage:
    """Send rows as one stage, and return its name when the receiver has them on disk."""
    attempt = Attempt(chunk)
    digest = RowDigest()
    origin = chunk.feed.origin

    async def items() -> AsyncIterator[pa.RecordBatch]:
        async for batch in attempt.items():
            digest.update(batch)
            yield batch

    request = StageRequest(route=options.route, query=origin.query, batch=origin.batch, partition=origin.partition)
    route, metadata = options.target.metadata(STAGE, None)
    try:
        answer = await peer.upload(route, msgspec.json.encode(request), items(), metadata=metadata)
    except Rejected as error:
        if not error.message.endswith(repr(STAGE)):
            raise
        raise LocalError(
            'the service at "url" does not receive stages, which delivery=transactional needs; send to '
            f"`weirpool collect --listen` or to a weirpool.Receiver ({error.message})"
        ) from error
    staged = msgspec.json.decode(answer.data, type=Stage)
    if not attempt.complete or (staged.rows, staged.digest) != (digest.rows, digest.hexdigest()):
        raise Undelivered(
            f"the receiver has staged {staged.rows} rows of partition {origin.partition}, which are not the "
            f"{chunk.rows} rows that were sent"
        )
    return staged


def commit(options: SinkOptions, query: str, batch: int, stages: Sequence[Stage], *, single: bool = False) -> Committed:
    """Commit a micro-batch, and return its positions in the log. If it was committed before, nothing happens.

    With `single`, the query is a batch write, which has no other micro-batch.

    Raises:
        ApplicationError: The receiver no longer has the stages, or has failed.
        ConnectError: It cannot be reached.
        Undelivered: It has stalled.

    """
    request = CommitRequest(route=options.route, query=query, batch=batch, stages=list(stages), single=single)
    answer = _called(options, COMMIT, request)
    return msgspec.json.decode(answer, type=Committed)


def abort(options: SinkOptions, query: str, batch: int, stages: Sequence[Stage]) -> None:
    """Let the receiver drop the stages of a micro-batch that has failed."""
    _called(options, ABORT, CommitRequest(route=options.route, query=query, batch=batch, stages=list(stages)))


def _called(options: SinkOptions, verb: str, request: CommitRequest) -> bytes:
    from ..aio.loop import run

    route, metadata = options.target.metadata(verb, None)

    async def send(peer: Peer) -> bytes:
        return (await peer.call(route, msgspec.json.encode(request), metadata=metadata)).data

    async def main() -> bytes:
        async with Link(options) as link:
            return await link.request(send, f"{verb} of micro-batch {request.batch}", lambda: 0.0)

    return run(main())
