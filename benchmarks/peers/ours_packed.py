"""Numbers of 8 bytes, packed, over reactive-streams-io: into Arrow's buffers, next to copying the bytes alone.

With an address it is a client of the server that `serving` starts; without a network it feeds a session itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pyarrow as pa

from penstock import Payload, Peer, Service, Settings, connect, serve
from penstock.kinds import Kind
from penstock.reactivestreams.session import ReactiveStreamsSession
from penstock.wire.columns import ColumnBuilder
from penstock.wire.reactivestreams.codec import Message, Type, encode

WIDTH = 8
BATCH_ROWS = 65_536
READ_BYTES = 131_072
PACKED = 7_500
"""Elements of one onNextPacked: what our own sender makes of them."""
SETTINGS = Settings(element_sizes=(("numbers", WIDTH),))
KB = 125
"""Elements of 1,000 bytes, which is what is counted: one element is too little for a clock."""
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
    """Return what the network would bring, in reads of the usual size: whole messages together, cut anywhere."""
    message = encode(Message(Type.ON_NEXT_PACKED, 1, PACKED, bytes(range(250)) * (PACKED * WIDTH // 250)), WIDTH)
    octets = message * 64
    return [octets[at : at + READ_BYTES] for at in range(0, len(octets), READ_BYTES)]


class Alone:
    """A client's session that is fed without a network, and a copy of the same bytes."""

    def __init__(self) -> None:
        self.reads = reads()
        self.rows = 64 * PACKED

    async def session(self, count: int) -> None:
        """Take reads of `count` kB and more, and make record batches of them."""
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
        """Copy the same reads to one place after another."""
        batch = bytearray(BATCH_ROWS * WIDTH)
        for _ in range(-(-count * KB // self.rows)):
            at = 0
            for read in self.reads:
                if at + len(read) > len(batch):
                    at = 0
                batch[at : at + len(read)] = read
                at += len(read)


class Client(Alone):
    """A client of the server, and the same copy."""

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
async def connected(address: str, tuned: bool) -> AsyncIterator[Alone]:
    if address == "none":
        yield Alone()
        return
    async with connect(address, settings=SETTINGS) as peer:
        yield Client(peer)
