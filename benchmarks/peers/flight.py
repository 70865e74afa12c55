"""Arrow Flight: a stream of record batches."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pyarrow as pa
from pyarrow import flight

from . import BATCH_ROWS, PAYLOAD

SCHEMA = pa.schema([("data", pa.binary())])


class Server(flight.FlightServerBase):
    def do_get(self, context: flight.ServerCallContext, ticket: flight.Ticket) -> flight.GeneratorStream:
        batch = pa.record_batch([pa.array([PAYLOAD] * BATCH_ROWS, pa.binary())], schema=SCHEMA)
        count = int(ticket.ticket)
        return flight.GeneratorStream(SCHEMA, (batch for _ in range(count // BATCH_ROWS)))


class Client:
    def __init__(self, client: flight.FlightClient) -> None:
        self.client = client

    async def rows(self, count: int) -> None:
        got = 0
        for chunk in self.client.do_get(flight.Ticket(b"%d" % count)):
            got += chunk.data.num_rows
        assert got == count, f"{got} of {count} rows"


@asynccontextmanager
async def serving(tuned: bool) -> AsyncIterator[str]:
    server = Server("grpc://127.0.0.1:0")
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield f"grpc://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        thread.join()


@asynccontextmanager
async def connected(address: str, tuned: bool) -> AsyncIterator[Client]:
    with flight.connect(address) as client:
        yield Client(client)
