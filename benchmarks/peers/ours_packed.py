"""Packed numbers of 8 bytes over reactive-streams-io, into Arrow buffers, compared with a copy of the bytes.

With an address it is a client of the server that `serving` starts. Without a network it feeds a session directly.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pyarrow as pa

from weirpool import Payload, Peer, Service, Settings, connect, serve
from weirpool.kinds import Kind
from weirpool.reactivestreams.session import ReactiveStreamsSession
from weirpool.wire.columns import ColumnBuilder
from weirpool.wire.reactivestreams.codec import Message, Type, encode

WIDTH = 8
BATCH_ROWS = 65_536
READ_BYTES = 131_072
PACKED = 7_500
"""Elements per onNextPacked, as our own sender sends them."""
SETTINGS = Settings(element_sizes=(("numbers", WIDTH),))
KB = 125
"""Elements in 1,000 bytes, the unit of counts: a single element is too short to measure."""
CREDIT = 1 << 20
BATCH = pa.record_batch({"data": pa.array(range(BATCH_ROWS), pa.int64())})

service = Service()


@service.stream("numbers")
def numbers(request: Payload) -> Iterator[pa.RecordBatch]:
    left = int(request.data)
    while left > 0:
        yield BATCH.slice(0, min(left, BATCH_ROWS))
        left -= BATCH_ROWS


def reads() -> list[bytes]:
    """Return reads of the usual size as from a network, which split messages anywhere."""
    message = encode(Message(Type.ON_NEXT_PACKED, 1, PACKED, bytes(range(250)) * (PACKED * WIDTH // 250)), WIDTH)
    data = message * 64
    return [data[start : start + READ_BYTES] for start in range(0, len(data), READ_BYTES)]


class Offline:
    """A client's session without a network, and a copy of the same bytes."""

    def __init__(self) -> None:
        self.reads = reads()
        self.rows = 64 * PACKED

    async def session(self, count: int) -> None:
        """Convert reads of at least `count` kB to record batches."""
        wanted = count * KB
        session = ReactiveStreamsSession.client(SETTINGS, Payload())
        session.link_up(0.0)
        session.receive(b"\x02\0\0", 0.0)
        session.open(Kind.STREAM, "numbers", Payload(), 1 << 62)
        session.receive(encode(Message(Type.SUBSCRIBED, 1, WIDTH)), 0.0)
        session.take_events()
        builder = ColumnBuilder()
        got = 0
        for _ in range(-(-wanted // self.rows)):
            for read in self.reads:
                session.receive(read, 0.0)
                for event in session.take_events():
                    builder.append(event.run)
                if len(builder) + READ_BYTES // WIDTH > BATCH_ROWS:
                    got += builder.finish().num_rows
        got += builder.finish().num_rows
        assert got >= wanted, f"{got} of {wanted} elements"

    async def copy(self, count: int) -> None:
        """Copy the same reads, each to a new place."""
        batch = bytearray(BATCH_ROWS * WIDTH)
        for _ in range(-(-count * KB // self.rows)):
            at = 0
            for read in self.reads:
                if at + len(read) > len(batch):
                    at = 0
                batch[at : at + len(read)] = read
                at += len(read)


class Client(Offline):
    """A client of the server, and a copy of the same bytes."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer = peer

    async def batches(self, count: int) -> None:
        """Receive `count` kB of elements as record batches."""
        wanted = count * KB
        got = 0
        async with self.peer.stream("numbers", b"%d" % wanted, credit=CREDIT) as stream:
            async for batch in stream.batches():
                got += batch.num_rows
        assert got == wanted, f"{got} of {wanted} elements"


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    async with serve(service, "reactive-streams+tcp://127.0.0.1:0", settings=SETTINGS) as server:
        yield server.urls[0]


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Offline]:
    if address == "none":
        yield Offline()
        return
    async with connect(address, settings=SETTINGS) as peer:
        yield Client(peer)
