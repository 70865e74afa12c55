"""HTTP/2 peers without Weirpool: h2 on a socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection

from tests.transports.recording import Place, Recorder, connected

H2C = "rsocket+h2c://127.0.0.1:0"
H2 = "rsocket+h2://localhost:0"
TYPE = ("content-type", "application/rsocket")
"""The request headers of our clients."""

Event = TypeVar("Event", bound=events.Event)


class Raw:
    """One end of a connection.

    Attributes:
        h2: What to say; `flush` sends it.
        told: Every event, in order.
        data: What came in on each stream.
        acknowledging: Give what came in back to the peer's windows.

    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_client: bool) -> None:
        self.h2 = H2Connection(H2Configuration(client_side=is_client))
        self.told: list[events.Event] = []
        self.data: dict[int, bytes] = {}
        self.acknowledging = True
        self.at_end = False
        self._reader = reader
        self._writer = writer
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.send(self.h2.data_to_send())

    def send(self, data: bytes) -> None:
        """Send bytes that h2 would not."""
        self._writer.write(data)

    def request(
        self,
        path: str = "/",
        method: str = "POST",
        *,
        authority: str = "localhost",
        headers: Iterable[tuple[str, str]] = (TYPE,),
        end_stream: bool = False,
    ) -> int:
        """Open a stream and return its number."""
        stream_id = self.h2.get_next_available_stream_id()
        pseudo = [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path)]
        self.h2.send_headers(stream_id, [*pseudo, *headers], end_stream=end_stream)
        self.flush()
        return stream_id

    async def read(self) -> None:
        """Process one read."""
        try:
            data = await self._reader.read(65_536)
        except ConnectionError:
            data = b""
        self.at_end = not data
        for event in self.h2.receive_data(data):
            self.told.append(event)
            if isinstance(event, events.DataReceived):
                self.data[event.stream_id] = self.data.get(event.stream_id, b"") + event.data
                if self.acknowledging and event.flow_controlled_length:
                    self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        self.flush()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert not self.at_end
            await self.read()

    def find(self, kind: type[Event]) -> Event | None:
        """Return the first event of a kind."""
        return next((event for event in self.told if isinstance(event, kind)), None)

    async def next(self, kind: type[Event]) -> Event:
        """Wait for the first event of a kind."""
        await self.until(lambda: self.find(kind) is not None)
        found = self.find(kind)
        assert found is not None
        return found

    async def status(self) -> int:
        """Wait for the first answer and return its status."""
        response = await self.next(events.ResponseReceived)
        return int(dict(response.headers)[b":status"])

    async def closed(self) -> None:
        """Wait until the peer has closed the connection."""
        while not self.at_end:
            await self.read()

    def abort(self) -> None:
        self._writer.transport.abort()


@asynccontextmanager
async def raw_client(port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[Raw]:
    """Connect to our server."""
    server_name = "localhost" if context is not None else None
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=server_name)
    raw = Raw(reader, writer, is_client=True)
    try:
        yield raw
    finally:
        raw.abort()


class RawServer:
    """A server for our clients.

    Attributes:
        port: Where.
        came: The connections, in order.

    """

    port: int

    def __init__(self) -> None:
        self.came: asyncio.Queue[Raw] = asyncio.Queue()
        self.all: list[Raw] = []

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        raw = Raw(reader, writer, is_client=False)
        self.all.append(raw)
        self.came.put_nowait(raw)


@asynccontextmanager
async def raw_server(context: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Listen for our clients."""
    server = RawServer()
    listening: Any = await asyncio.start_server(server.accept, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for raw in server.all:
            raw.abort()


async def open_link(raw: Raw, place: Place) -> Recorder:
    """Open a stream, and return the receiver of its link."""
    raw.request()
    assert await raw.status() == 200
    return await place.linked()


@asynccontextmanager
async def asked_by_client() -> AsyncIterator[tuple[Raw, asyncio.Task[Recorder]]]:
    """Connect with our client; yield the server's end with its request, and the task that waits for the answer."""
    async with raw_server() as server:
        connecting = asyncio.create_task(connected(f"rsocket+h2c://127.0.0.1:{server.port}"))
        raw = await server.came.get()
        await raw.next(events.RequestReceived)
        yield raw, connecting
